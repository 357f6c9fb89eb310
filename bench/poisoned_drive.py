"""How `poisoned` drives a crawl: our real code but for the sockets, under virtual time; and the real command."""

import asyncio
import json
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, inf
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from poisoned_worlds import Asked, Numbers, Web, Wire
from sequence_drive import Counting

from sanderling.apis.json_ids import JsonIds
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.pages.crawl import Crawl
from sanderling.pages.crawling import BODIES
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.sequence.cursor import Position
from sanderling.sequence.inquiries import limits
from sanderling.sequence.state import Fates, SavedCrawl, SequenceState
from sanderling.sequence.system import SequenceRules, SequenceServices, SequenceSystem
from sanderling.testing.virtual import LoopClock, run_virtual

T = TypeVar("T")
EPOCH = 1_800_000_000.0
RPS = 8.0  # as the command has it
LONGEST = 4 * 3600.0  # virtual seconds after which a crawl of pages is stopped
RATE = 20.0  # new ids a second
FIRST_ID = 50_000_000
REASONS = ("not_found", "error")  # of what was missed, in turn
EVERY = 10.0  # seconds between two looks at a crawl of ids


async def run_inline(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk at which everything is done at once."""
    return work(*args)


@dataclass(slots=True)
class PagesRun:
    """What came of a crawl of pages."""

    complete: bool
    set_aside: int
    seconds: float
    asked: Asked  # in this run
    rows: list[str]  # the URL of each row, of all runs of the folder
    failed: dict[str, str]  # the outcome of each URL that failed


def crawl_pages(
    folder: Path,
    web: Web,
    seeds: Sequence[str],
    *,
    allow: Sequence[str] = (),
    patience: float = 600.0,
    epoch: float = EPOCH,
) -> PagesRun:
    """Crawl to the end with the rules of the command, or on in a folder that is not finished."""
    web.asked = Asked()

    async def main() -> PagesRun:
        clock, memory = LoopClock(epoch), Memory(BODIES)
        limiter = Limiter(LimiterRules(pace=PaceRules.up_to(RPS)), clock=clock, rng=Random(1))
        rules = CrawlRules(per_host=min(64, max(8, ceil(RPS))), patience=patience)
        plan = CrawlPlan(tuple(seeds), tuple(allow), 16)
        with CrawlFolder.open(folder, plan, resume=False, wall=clock.wall()) as opened:
            transport = Transport(Wire(web, memory), limiter, memory)
            crawl = Crawl(opened, transport, run_inline, rules=rules, clock=clock)
            asyncio.get_running_loop().call_later(LONGEST, crawl.stop)
            complete = await crawl.run()
            seconds = clock.now()
            opened.finish(clock.wall(), complete)
            rows, failed = read_rows(folder)
            return PagesRun(complete, crawl.set_aside, seconds, web.asked, rows, failed)

    return run_virtual(main())


def read_rows(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The URL of each row of pages.jsonl, and the outcome of each URL of failed.jsonl."""
    pages, failed = (_lines(folder / name) for name in ("pages.jsonl", "failed.jsonl"))
    return [row["url"] for row in pages], {row["url"]: row["outcome"] for row in failed}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


@dataclass(slots=True)
class IdsRun:
    """What came of a crawl of ids."""

    seconds: float  # until it was stopped
    lags: list[tuple[float, float]]  # of new ids: seconds since the start, and seconds late
    shared: float = inf  # seconds until each missed id was asked; infinity if that never came, or there were none
    new: int = 0  # requests for new ids until then, or until the end
    missed: int = 0  # and for missed ones
    unasked: int = 0  # missed ids that were never asked
    cpu: float = 0.0

    def lag(self, share: float, until: float = inf) -> float:
        """The lag that so many of the new ids do not pass; infinity if there are none."""
        lags = sorted(lag for at, lag in self.lags if at <= until)
        return lags[min(len(lags) - 1, int(share * len(lags)))] if lags else inf


@dataclass(frozen=True, slots=True)
class IdsJob:
    """A crawl of ids to be made: of which world, under which cap, beside how many overdue ids.

    `cap` is the requests a second that we allow ourselves, from the start: nothing about the quota is to be learned. It
    is stopped when each missed id was asked, after `least` seconds, or after `most`.
    """

    seed: int
    every: int
    cap: float
    missed: int
    least: float
    most: float
    latency: float = 0.1


def crawl_ids(path: Path, job: IdsJob) -> IdsRun:
    """Follow new ids from a state in which others are overdue."""
    make_state(path, job.missed, EPOCH, "orders")
    started = time.process_time()
    run = run_virtual(_crawl_ids(path, job))
    run.cpu = time.process_time() - started
    return run


async def _crawl_ids(path: Path, job: IdsJob) -> IdsRun:
    clock = LoopClock(EPOCH)
    numbers, state = Numbers(job.seed, FIRST_ID, EPOCH, RATE, job.every), SequenceState(path)
    numbers.latency = job.latency
    limiter = Limiter(limits(PaceRules(initial_rps=job.cap, max_rps=job.cap)), clock=clock, rng=Random(2))
    fetcher = Fetcher(Wire(numbers, None, EPOCH), limiter, clock=clock)
    settings = {"name": "orders", "url": "http://orders.example/{id}", "id": "id", "timestamp": "made"}
    tools = SequenceServices(
        JsonIds.from_settings(settings), fetcher, limiter, Memory(2**28), state, Counting(), run_inline
    )
    system = SequenceSystem(tools, Position(FIRST_ID), SequenceRules(), say=lambda _: None, clock=clock, rng=Random(3))
    run, wanted = IdsRun(0.0, []), set(range(FIRST_ID - job.missed, FIRST_ID))

    async def watch() -> None:
        seen = 0
        while clock.now() < job.least or (wanted and clock.now() < job.most):
            await clock.sleep(EVERY)
            requests = numbers.asked.requests
            wanted.difference_update(number_of(url) for _, url in requests[seen:])
            seen = len(requests)
            if run.shared == inf:
                run.new, run.missed = numbers.sent[True], numbers.sent[False]
                run.shared = inf if wanted or not job.missed else clock.now()
        system.stop()

    await system.run(watch())
    state.close()
    run.seconds, run.unasked = clock.now(), len(wanted)
    run.lags = [(at - EPOCH, lag) for at, lag in numbers.lags]
    return run


def number_of(url: str) -> int:
    """The id that a URL asks for."""
    return int(url.rsplit("/", 1)[1])


def make_state(path: Path, missed: int, wall: float, api: str) -> None:
    """A crawl that has come to FIRST_ID, with so many ids below it missed, all overdue, each with a row of its own."""
    due = wall - 7200
    path.parent.mkdir(exist_ok=True)
    state = SequenceState(path)
    state.record(SavedCrawl(api, Position(FIRST_ID), FIRST_ID - 1), Fates())
    state.close()
    with sqlite3.connect(path) as db:  # a row at a time through the state would take a minute for a million
        db.executemany(
            "INSERT INTO missed (low, high, reason, first_seen, last_seen, tries, next_check) VALUES (?,?,?,?,?,?,?)",
            ((id_, id_, REASONS[id_ % 2], due - 60, due - 30, 1, due) for id_ in range(FIRST_ID - missed, FIRST_ID)),
        )
    db.close()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, None if it had to be killed, and after how many seconds."""

    code: int | None
    seconds: float


async def run_command(*arguments: str, limit: float, enough: Callable[[], bool] = lambda: False) -> Ended:
    """Run `python -m sanderling …`; interrupt it as soon as it is `enough`, or after `limit` seconds."""
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sanderling", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while process.returncode is None and not enough() and time.monotonic() - started < limit:
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 0.1)
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), 10)
    code = process.returncode
    if code is None:
        process.kill()
        await process.wait()
    return Ended(code, time.monotonic() - started)
