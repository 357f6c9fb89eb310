"""One crawl of repos: the engine, with what is special about repos."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sanderling.clock import Clock
from sanderling.engine.loop import Engine
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import Writer
from sanderling.executor import Executor
from sanderling.fetch.attempts import Sends
from sanderling.fetch.transport import Transport
from sanderling.repos.directory import Directory
from sanderling.repos.feeding import DirectoryWalk, Feeder, WholeDirectory
from sanderling.repos.handler import RepoHandler
from sanderling.repos.hosts import QueuedRepo, RepoHost
from sanderling.repos.measures import Exchanges, RepoMeasures
from sanderling.repos.rules import RepoRules
from sanderling.repos.since import EarlierRevs
from sanderling.repos.sink import RULES, Appends, RepoSink, RepoWriter
from sanderling.repos.source import RepoSource
from sanderling.stores.control_file import Control
from sanderling.stores.ports import RepoProgress

FEW_HOSTS = 50  # while fewer have work, more pages are read ahead than usual, up to FAR of them
AHEAD, FAR = 10, 50  # pages


A = TypeVar("A", bound=Appends, covariant=True)  # noqa: PLC0105 - one letter, as elsewhere


@dataclass(frozen=True, slots=True)
class Stores(Generic[A]):
    """Where a crawl reads and writes."""

    directory: Directory
    progress: RepoProgress
    segments: A
    earlier: EarlierRevs | None = None  # what it has already need not be archived again
    walk: DirectoryWalk | None = None  # of a part, what it was handed of the directory
    others: Sequence[RepoProgress] = ()  # those of the other parts


class RepoCrawl:
    """One crawl. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self,
        stores: Stores[Appends],
        transport: Transport[Sends],
        disk: Executor,
        cores: Executor,
        *,
        rules: RepoRules,
        clock: Clock,
    ) -> None:
        """The executor `disk` does one thing at a time, in order; `cores` does as many at once as there are cores."""
        limiter = transport.limiter
        self.rules = rules
        self.limiter = limiter
        self.clock = clock
        self.exchanges = Exchanges(rules.leave_out.before(transport.http), clock)
        self.sink = RepoSink(stores.segments, stores.progress, stores.directory, disk)
        self._progress, self._disk = stores.progress, disk
        self.measures = RepoMeasures()
        walk = stores.walk or WholeDirectory(stores.directory, disk, rules.page_size)
        self._feeder = Feeder(stores.directory, walk, stores.progress, stores.others, disk, self.measures)
        water = self._feeder.water
        writer: RepoWriter = Writer(self.sink, lambda: water.cursor, clock, rules.writing or RULES)
        self.source = RepoSource(writer, self._feeder, limiter, self.measures, rules, clock)
        handler = RepoHandler(Transport(self.exchanges, limiter, transport.memory), cores, stores.earlier, rules, clock)
        self.durations = handler.durations
        self.engine = Engine(self.source, handler, writer, limiter, clock, engine_rules(rules))

    async def run(self) -> bool:
        """Crawl until nothing is due any more, or it was stopped; whether all of the directory was seen to."""
        await self._disk(self._progress.clear_aside)
        await self.engine.run(
            self._feeder.feed(self._has_room, self._is_idle, self._feed),
            self._feeder.bring_back(self.engine.writer.settled, self._bring_back, self._feed),
        )
        return not self.engine.stopped and self._feeder.complete

    def _feed(self, found: Sequence[QueuedRepo]) -> None:
        self.engine.wake(self.source.feed(found))

    def _bring_back(self, host: RepoHost, found: Sequence[QueuedRepo], *, last: bool) -> None:
        self.source.bring_back(host, found, last=last)
        self.engine.wake([host])

    def _has_room(self) -> bool:
        """Whether little enough waits. Where few hosts have work, others may be further on in the directory."""
        pages = self.source.waiting / self.rules.page_size
        return pages <= AHEAD or (pages <= FAR and self.engine.asking < FEW_HOSTS)

    def _is_idle(self) -> bool:
        """Whether nothing is left but to probe hosts that were set aside, and what came of the rest is on disk."""
        engine = self.engine
        busy = engine.asking or engine.inflight > engine.room.aside or self._feeder.brings_back
        return not busy and engine.writer.idle

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self.engine.stop()

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone, and only those; stop; drain. See `Engine.control`."""
        before, now = self.engine.wanted, self.clock.now()
        for name in before.hosts - wanted.hosts if not before.paused or wanted.paused else self.hosts:
            if name in self.hosts:
                self.hosts[name].begin_anew(now)
        self.engine.control(wanted)

    @property
    def wanted(self) -> Control:
        """What somebody wants of the crawl."""
        return self.engine.wanted

    @property
    def hosts(self) -> dict[str, RepoHost]:
        """All hosts that were met."""
        return self.source.hosts

    @property
    def ended(self) -> Counter[str]:
        """How many repos came to which end in this run."""
        return self.source.ended

    @property
    def inflight(self) -> int:
        """Requests that are out."""
        return self.engine.inflight

    @property
    def waiting(self) -> int:
        """How many DIDs wait, in memory and on disk; those that were not read from the directory yet do not count."""
        return self.source.waiting + self.source.stored

    @property
    def unread(self) -> int:
        """How many DIDs of the pages that were read are neither ended nor scheduled."""
        return len(self._feeder.water)

    @property
    def set_aside(self) -> int:
        """How many DIDs are left to another run, since their host did not answer, or refused them for too long."""
        return self.source.refused + self.source.stored


def engine_rules(rules: RepoRules) -> EngineRules:
    """The engine's part of the rules."""
    return EngineRules(
        slots=rules.workers,
        per_host=rules.per_host,
        again=rules.again,
        patience=rules.patience,
        first_patience=rules.first_patience,
    )
