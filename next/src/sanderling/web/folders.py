"""The folders of runs below a home: the report of each, every second, and its last ten minutes."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sanderling.clock import Clock
from sanderling.files import FolderError
from sanderling.observe.report import STATUS, Kind, Report, RunState, current_report
from sanderling.serving import StreamEvent
from sanderling.systems import System, system_of

TICK = 1.0  # seconds
REMEMBERED = 600  # ticks
MOST_FOLDERS = 200
_MOST_ENTRIES = 2000  # of one folder that are looked at
_DEEPEST = 2  # folders below the home
_SILENCE = 10.0  # seconds after which a stream says that it is there


@dataclass
class Watched:
    """A folder, its last report, and for each fact that is a number one point a tick: growth of counts, else values."""

    name: str  # its path within the home
    folder: Path
    system: System
    report: Report
    ticks: deque[tuple[float, dict[str, float]]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def add(self, report: Report) -> None:
        """Take a newer report."""
        self.report = report
        if report.state is not RunState.ENDED:
            self.ticks.append((report.wall, _points(report)))

    def history(self) -> dict[str, list[float | None]]:
        """The points of each fact; None where it was not known."""
        names = {name for _, points in self.ticks for name in points}
        series: dict[str, list[float | None]] = {"wall": [wall for wall, _ in self.ticks]}
        return series | {name: [points.get(name) for _, points in self.ticks] for name in sorted(names)}


def _points(report: Report) -> dict[str, float]:
    points = {"rate of all hosts": sum(host.rate for host in report.hosts)} if report.hosts else {}
    for fact in report.facts:
        if isinstance(fact.value, int | float):
            points[fact.name] = (fact.rate or 0.0) if fact.kind is Kind.COUNT else float(fact.value)
    return points


class Home:
    """All folders below a home, as `watch` sees them."""

    def __init__(self, path: Path, systems: tuple[System, ...], clock: Clock) -> None:
        self.path = path
        self.known: dict[str, Watched] = {}
        self.position = 0  # grows with each change
        self._changes: dict[str, int] = {}  # by name: the position at which it changed last
        self._systems = systems
        self._clock = clock
        self._news = asyncio.Event()

    async def watch(self) -> None:
        """Look each second, until cancelled."""
        while True:
            self._take(await asyncio.to_thread(self._read))
            await self._clock.sleep(TICK)

    def look(self) -> None:
        """Look once, now."""
        self._take(self._read())

    def find(self, name: str) -> Watched | None:
        """The folder of that name."""
        return self.known.get(name)

    def reports(self) -> dict[str, Report]:
        """All reports, by the name of their folder."""
        return {name: each.report for name, each in sorted(self.known.items())}

    async def changes(self) -> AsyncGenerator[StreamEvent]:
        """First all reports, then each that has changed; one that is gone is None."""
        seen = self.position
        yield StreamEvent(seen, "reports", msgspec.json.encode(self.reports()))
        while True:
            try:
                async with asyncio.timeout(_SILENCE):
                    while self.position == seen:
                        await self._news.wait()
            except TimeoutError:
                yield StreamEvent(seen)
                continue
            names = [name for name, position in self._changes.items() if position > seen]
            seen = self.position
            found = {name: each.report if (each := self.known.get(name)) else None for name in names}
            yield StreamEvent(seen, "changes", msgspec.json.encode(found))

    def _take(self, found: dict[str, tuple[Path, System, Report]]) -> None:
        before = self.position
        for name in self.known.keys() - found.keys():
            del self.known[name]
            self._changed(name)
        for name, (folder, system, report) in found.items():
            known = self.known.get(name)
            if known is None or known.system is not system:
                known = self.known[name] = Watched(name, folder, system, report)
            elif known.report == report:
                continue
            known.add(report)
            self._changed(name)
        if self.position > before:
            # Whoever waits now is told; whoever comes later waits for the next change.
            self._news.set()
            self._news = asyncio.Event()

    def _changed(self, name: str) -> None:
        self.position += 1
        self._changes[name] = self.position

    def _read(self) -> dict[str, tuple[Path, System, Report]]:
        found = {}
        for folder in _folders(self.path, _DEEPEST):
            name = folder.relative_to(self.path).as_posix()
            try:
                system = system_of(folder, self._systems)
                report = current_report(folder)
            except FolderError as error:
                # A stranger's folder or a damaged status is one line, and costs no other folder.
                known = self.known.get(name)
                if known is None:
                    continue
                system, report = known.system, Report(system=known.system.name, doing="", troubles=(str(error),))
            if report is not None:
                found[name] = (folder, system, report)
            if len(found) == MOST_FOLDERS:
                break
        return found


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    """The folders below that have a status, and `folder` itself if it has one."""
    if (folder / STATUS).is_file():
        yield folder
    elif depth:
        try:
            inside = sorted(each for _, each in zip(range(_MOST_ENTRIES), folder.iterdir(), strict=False))
        except OSError:
            return  # a folder that nobody lets us read is none of ours
        for each in inside:
            if each.is_dir() and not each.is_symlink() and not each.name.startswith("."):
                yield from _folders(each, depth - 1)
