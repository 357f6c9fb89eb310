"""A crawl of the simulated fleet under virtual time, into real segments and a real progress store."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from world_networks import FleetNetwork

from sanderling.fetch.attempts import Sends
from sanderling.fetch.transport import Transport
from sanderling.formats.rca_reader import RcaReader
from sanderling.limit import BreakerRules, Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import Directory, DirectoryEntry
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Segments
from sanderling.stores.control_file import Control
from sanderling.stores.ports import ProgressView
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

T = TypeVar("T")
LIMITS = LimiterRules(pace=PaceRules(max_rps=10), breaker=BreakerRules(consecutive=10))


class Listed:
    """A directory in a list."""

    def __init__(self, entries: Sequence[tuple[str, str]]) -> None:
        self._entries = sorted(DirectoryEntry(did, host) for did, host in entries)

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        return [entry for entry in self._entries if entry.did > after][:limit]

    def hosts_of(self, dids: Sequence[str]) -> dict[str, str]:
        wanted = set(dids)
        return {entry.did: entry.host for entry in self._entries if entry.did in wanted}

    def count(self) -> int:
        return len(self._entries)


@dataclass(slots=True)
class Crawled:
    """What came of it."""

    complete: bool
    crawl: RepoCrawl
    view: ProgressView
    archive: Counter[str]  # DIDs, by how often they are in the segments
    seconds: float


async def inline(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk at which everything is done at once."""
    return work(*args)


def crawl_fleet(
    folder: Path,
    fleet: Fleet,
    *,
    rules: RepoRules | None = None,
    through: Callable[[FleetNetwork], Sends] = lambda network: network,
    stop_after: float | None = None,
    wanted: Mapping[float, Control] | None = None,
    progress_at: Callable[[Path], SqliteProgress] = SqliteProgress,
    directory: Directory | None = None,
) -> Crawled:
    """Crawl to the end, or until it is stopped."""

    async def main() -> Crawled:
        clock, progress = LoopClock(), progress_at(folder / "progress.db")
        with (
            closing(progress),
            Segments(folder / "rca", size=200_000, created_at=lambda: int(clock.wall() * 1e6)) as segments,
        ):
            return await crawled(clock, progress, segments)

    async def crawled(clock: LoopClock, progress: SqliteProgress, segments: Segments) -> Crawled:
        progress.record(segments.found, [], cursor=None, segment=segments.number)
        limiter = Limiter(LIMITS, clock=clock, rng=Random(1))
        http = through(FleetNetwork(fleet, clock))
        stores = Stores(directory or Listed(list(fleet.directory())), progress, segments)
        transport = Transport(http, limiter, Memory(2**30))
        made = rules or RepoRules(page_size=100)
        crawl = RepoCrawl(stores, transport, inline, inline, rules=made, clock=clock)
        for after, control in (wanted or {}).items():
            clock.call_later(after, partial(crawl.control, control))
        if stop_after is not None:
            clock.call_later(stop_after, crawl.stop)
        complete = await crawl.run()
        segments.close()
        return Crawled(complete, crawl, progress.view(), archived(folder / "rca"), clock.now())

    folder.mkdir(exist_ok=True)
    return run_virtual(main())


def archived(folder: Path) -> Counter[str]:
    """The DIDs in the segments, by how often they are there."""
    found: Counter[str] = Counter()
    for path in folder.glob("*.rca"):
        with path.open("rb") as file:
            found.update(block.did for block in RcaReader(file))
    return found
