"""Machines that share a crawl, as processes: each with a folder of its own, started, stopped, cut off and killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fleet_hosts
import msgspec
from fleet_hosts import Entry, Web, read_log

NAME = "web"  # of every crawl: the last step of --out
PATIENCE = 120.0  # seconds for anything that must happen at some time; a backstop, never what is measured


class LateError(AssertionError):
    """Something that must happen did not, for so long that it never will."""


def wait_until(happened: Callable[[], bool], what: str, seconds: float = PATIENCE) -> float:
    """Look until it has happened; how long that took."""
    begun = time.monotonic()
    while not happened():
        if time.monotonic() - begun > seconds:
            raise LateError(f"within {seconds:g} s: {what}")
        time.sleep(0.02)
    return time.monotonic() - begun


@dataclass(frozen=True, slots=True)
class Place:
    """Where a machine is: what stands before each of its commands, and what its hosts know it by."""

    name: str
    before: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    by_contact: bool = True  # its hosts know it by its contact, since it shares its address with others


@dataclass(slots=True)
class Machine:
    """One process of a crawl."""

    place: Place
    folder: Path
    process: "subprocess.Popen[bytes]"
    begun: float

    @property
    def name(self) -> str:
        """As the log of the hosts has it."""
        return self.place.name

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def kill(self) -> float:
        """kill -9; when that was."""
        self.process.kill()
        self.process.wait()
        return time.monotonic()

    def signal(self, number: signal.Signals) -> float:
        """Send it a signal; when that was."""
        self.process.send_signal(number)
        return time.monotonic()

    def freeze(self) -> float:
        """SIGSTOP."""
        return self.signal(signal.SIGSTOP)

    def thaw(self) -> float:
        """SIGCONT."""
        return self.signal(signal.SIGCONT)

    def wait(self, seconds: float = PATIENCE) -> int:
        """How it ended."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise LateError(f"{self.name} did not end within {seconds:g} s\n{self.said()}") from None

    def said(self) -> str:
        """The end of what it printed."""
        texts = ((self.folder / name).read_text(errors="replace")[-1500:] for name in ("stdout", "stderr"))
        return f"--- {self.name}\n" + "\n".join(texts)

    def summary(self) -> dict[str, Any]:
        """What it printed for machines at its end."""
        lines = (self.folder / "stdout").read_text().strip()
        found: dict[str, Any] = json.loads(lines)
        return found


@dataclass(slots=True)
class Hosts:
    """The server of the hosts, and its log."""

    web: Web
    log_file: Path

    def log(self) -> list[Entry]:
        """All requests so far."""
        return read_log(self.log_file)

    def count(self) -> int:
        """How many requests there were."""
        return self.log_file.read_bytes().count(b"\n")

    def wait(self, more: int, seconds: float = PATIENCE) -> None:
        """Until so many more requests have come."""
        until = self.count() + more
        wait_until(lambda: self.count() >= until, f"{more} more requests at the hosts", seconds)

    def asked_by(self, sender: str, since: float = 0.0) -> int:
        """Requests of one sender since a moment."""
        return sum(entry.sender == sender and entry.asked >= since for entry in self.log())


@contextmanager
def hosts_at(web: Web, folder: Path, before: Sequence[str] = ()) -> Iterator[Hosts]:
    """Serve a web, in a process of its own."""
    plan, log = folder / "web.json", folder / "log.jsonl"
    plan.write_bytes(msgspec.json.encode(web))
    log.touch()
    command = [*before, sys.executable, fleet_hosts.__file__, str(plan), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield Hosts(msgspec.structs.replace(web, port=port), log)
        finally:
            process.kill()


@dataclass(slots=True)
class Crawl:
    """A crawl of a web, by as many machines as are started; `shared` are the flags that make it one of a fleet."""

    hosts: Hosts
    folder: Path
    flags: Sequence[str]  # of every machine
    machines: list[Machine] = field(default_factory=list)

    def start(self, place: Place | str, *more: str, seeds: Sequence[str] | None = None) -> Machine:
        """Start the command on one more machine, in an empty folder."""
        place = Place(place) if isinstance(place, str) else place
        home = self.folder / f"{place.name}-{len(self.machines)}"
        home.mkdir(parents=True)
        file = home / "seeds"
        file.write_text("".join(f"{url}\n" for url in seeds or self.hosts.web.seeds()))
        contact = ("--contact", f"mailto:{place.name}@fleet.example") if place.by_contact else ()
        flags = ("--seeds", str(file), "--out", NAME, "--private", "--no-parquet", "--json", *contact)
        command = [*place.before, *SANDERLING, "pages", "crawl", *flags, *self.flags, *more]
        with (home / "stdout").open("wb") as out, (home / "stderr").open("wb") as err:
            process = subprocess.Popen(  # noqa: S603 - ours
                command, cwd=home, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=_environment(place)
            )
        machine = Machine(place, home, process, time.monotonic())
        self.machines.append(machine)
        return machine

    def running(self) -> list[Machine]:
        """Those that have not ended."""
        return [machine for machine in self.machines if machine.runs()]

    def finish(self, seconds: float = PATIENCE) -> dict[str, int]:
        """Wait until all that run have ended by themselves; how each did, but for those that were killed."""
        until = time.monotonic() + seconds
        codes = {machine.name: machine.wait(max(0.1, until - time.monotonic())) for machine in self.machines}
        return {name: code for name, code in codes.items() if code != -signal.SIGKILL}

    def end(self) -> None:
        """Kill what still runs."""
        for machine in self.running():
            machine.kill()


Ended = subprocess.CompletedProcess[str]
SANDERLING = (sys.executable, "-W", "error", "-m", "sanderling")


def _environment(place: Place) -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    return os.environ | {"PYTHONPATH": source, "NO_COLOR": "1"} | dict(place.environment)


def run(*words: str | Path, place: Place | None = None, seconds: float = PATIENCE) -> Ended:
    """Run a command of ours to its end, on a machine."""
    place = place or Place("operator")
    command = [*place.before, *SANDERLING, *map(str, words)]
    return subprocess.run(  # noqa: S603 - ours
        command, capture_output=True, text=True, timeout=seconds, check=False, env=_environment(place)
    )


@contextmanager
def crawl_of(hosts: Hosts, folder: Path, *flags: str) -> Iterator[Crawl]:
    """A crawl whose machines are all gone at the end."""
    crawl = Crawl(hosts, folder, flags)
    try:
        yield crawl
    finally:
        crawl.end()
