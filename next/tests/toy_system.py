"""A system for tests of the shell: it counts its items, one each tenth of a second, and does as it is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import msgspec

from sanderling.clock import Clock
from sanderling.files import Exit, FolderError, FolderLock, make_folder, write_file
from sanderling.forms import Seconds, Url
from sanderling.observe.control import Control, ControlRequest
from sanderling.observe.options import ObserveOptions
from sanderling.observe.report import Hint, HostReport, Report, count, gauge, seconds, text
from sanderling.options import REQUIRED, option
from sanderling.records.answers import Shown, Task, Verified
from sanderling.records.rows import RowReader, RowWriter
from sanderling.redact import Secret
from sanderling.stores import RowFile
from sanderling.systems import Command, System

TASK_STATES = ("waiting", "failed")


class ToyOptions(ObserveOptions, table="toys", title="What is counted"):
    urls: tuple[Url, ...] = option(REQUIRED, "Where to begin.", argument="URL")
    out: Path = option(REQUIRED, "The folder for what is counted.")
    items: int = option(20, "Items to count.", low=0, high=1000)
    pause: Seconds = option(0.1, "Time for each item.", low=0)
    private: bool = option(default=False, help="Count private items as well.")
    token: Secret | None = option(None, "The token of the upstream.")
    workers: int = option(4, "Items at once.", low=1, seed="toy-concurrency", variable="TOY_CONCURRENCY")
    header: dict[str, str] = option({}, "A header to send.")
    breaks: str = option("", "The error to end with.")


class ToyRun:
    def __init__(self, options: ToyOptions, clock: Clock) -> None:
        self.options, self.clock = options, clock
        self.counted = 0
        self.stopped = False
        self.wanted = Control()
        self.forgotten: list[str] = []
        self.rows = RowWriter(options.out, "toys", ())

    async def run(self) -> Exit:
        while self.counted < self.options.items and not self.stopped:
            await self.clock.sleep(self.options.pause)
            if not self.wanted.paused:
                self.counted += 1
                self.rows.append(self.counted.to_bytes(16, "big"), [b'{"id":%d}' % self.counted], 1)
            if self.options.breaks == "disk":
                raise FolderError("cannot write to x: the disk is full", "free some space", Exit.LATER)
            if self.options.breaks == "bug":
                raise ZeroDivisionError("secret=hush123")
        write_file(self.options.out / "toys.counted", msgspec.json.encode(self.rows.write()))
        return Exit.DONE if self.counted == self.options.items else Exit.WAITING

    def stop(self) -> None:
        self.stopped = True

    def control(self, wanted: Control) -> None:
        self.wanted = wanted
        self.stopped |= wanted.draining

    async def carry_out(self, request: ControlRequest) -> str:
        if request.action == "retry":
            return " ".join(request.words)
        self.forgotten += request.words
        return f"{len(request.words)} forgotten"

    def report(self, *, running: bool = True) -> Report:
        waiting = self.options.items - self.counted
        return Report(
            system="toys",
            doing="counting" if running else "",
            progress=(self.counted, self.options.items),
            facts=(
                count("stored", self.counted, "Items counted."),
                gauge("waiting", waiting, "Items that wait."),
                count("failed", {"TIMEOUT": 2, "DNS_ERROR": 1}, "Items given up.", by="code"),
                seconds("oldest", 75.0, "Age of the oldest item."),
                text("event", "of a name that the log has too", "What it counts."),
                text("last", "https://me:hush@example.org/\x1b[2J", "The last item."),
                count("forgotten", len(self.forgotten), "Items forgotten.", metric="toy_forgotten", more=True),
            ),
            hosts=(
                HostReport(host="a.example", rate=4.0, allowed=8.0, waiting=waiting, latency=0.12, why="your --rps 8"),
                HostReport(host="b.example", state="down", failed=5, why="5 timeouts in a row"),
            ),
            hints=(Hint("export them as CSV", ("export", str(self.options.out), "toys.csv")),),
        )


@asynccontextmanager
async def open_run(options: ToyOptions, clock: Clock) -> AsyncIterator[ToyRun]:
    make_folder(options.out)
    with FolderLock(options.out):
        run = ToyRun(options, clock)
        yield run
        run.rows.close()


def records(folder: Path) -> RowReader:
    return RowReader(folder, "toys", msgspec.json.decode((folder / "toys.counted").read_bytes(), type=list[RowFile]))


async def show(folder: Path, key: str) -> Shown:
    with records(folder) as rows:
        found = rows.find(int(key).to_bytes(16, "big"))
    return Shown([line for each in found for line in each.lines], "" if found else "never counted")


async def verify(folder: Path) -> Verified:
    with records(folder) as rows:
        return Verified(list(rows.damage()), {"toys": rows.count()})


async def tasks(folder: Path, state: str, host: str | None, code: str | None) -> AsyncIterator[Task]:
    yield Task("21", state, "a.example", code or "", due=inf)


async def count_tasks(folder: Path) -> dict[tuple[str, str], int]:
    return {("waiting", ""): 1, ("failed", "TIMEOUT"): 1200}


async def retry(folder: Path, state: str, host: str | None, code: str | None) -> int:
    return 3


COUNT = Command(
    "toys count", "Count toys.", "toy_system:ToyOptions", example="toys count https://example.org/ --out example"
)
TOYS = System("toys", "Counts toys.", ("toys.jsonl",), "toy_system", (COUNT,))
