"""All parts of a crawl of ids, put together and run."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sanderling.apis.numbered import NumberedApi
from sanderling.clock import Clock
from sanderling.fetch.attempts import Fetcher
from sanderling.flow.desk import Desk
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter
from sanderling.observe.metrics_sequence import SequenceReadings, StoreReadings
from sanderling.sequence import messages
from sanderling.sequence.asking import Asker
from sanderling.sequence.availability import Availability
from sanderling.sequence.books import Books
from sanderling.sequence.crawl import Lanes, SequenceCrawl
from sanderling.sequence.cursor import Cursor, Position
from sanderling.sequence.guard import Guard, GuardRules
from sanderling.sequence.lookout import Lookout, LookRules, Say
from sanderling.sequence.measures import Measures
from sanderling.sequence.missed import Missed
from sanderling.sequence.recheck import Recheck
from sanderling.sequence.retries import RetryRules
from sanderling.sequence.scaler import Scaler, Source
from sanderling.sequence.scaling import AtlasPolicy, ScaleRules
from sanderling.sequence.state import SequenceState
from sanderling.stores.queue import Queue

REFRESH = 5.0  # seconds that the counts of what is missed may be old


@dataclass(frozen=True, slots=True)
class SequenceRules:
    """How a crawl of ids goes about it."""

    stride: int = 1
    scale: ScaleRules = field(default_factory=ScaleRules)
    guard: GuardRules = field(default_factory=GuardRules)
    retry: RetryRules = field(default_factory=RetryRules)
    look: LookRules = field(default_factory=LookRules)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a crawl asks with and writes to."""

    api: NumberedApi
    fetcher: Fetcher
    limiter: Limiter
    memory: Memory
    state: SequenceState
    queue: Queue
    desk: Desk


class SequenceSystem:
    """One crawl of ids. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self, tools: Tools, position: Position, rules: SequenceRules, *, say: Say, clock: Clock, rng: Random
    ) -> None:
        self.tools = tools
        self.measures = Measures()
        self.cursor = Cursor(position, stride=rules.stride)
        self.books = Books(tools.api.name, self.cursor, tools.state, tools.queue, tools.desk, clock)
        asker = Asker(tools.api, tools.fetcher, tools.limiter, tools.memory, clock, self.measures)
        self.availability = Availability(asker, clock, say)
        missed, failed = (Recheck(self.books, rng, self.measures, failed=failed) for failed in (False, True))
        missed.unresolved = failed.unresolved = self._unresolved
        self.lookout = Lookout(asker, self.availability, say, clock, rules.look)
        self._remember(position)
        lanes = Lanes(self.cursor, self.books, missed, failed, self.availability)
        self.crawl = SequenceCrawl(asker, lanes, self.lookout, rules=rules.retry, clock=clock, rng=rng)
        guard = Guard(AtlasPolicy(rules.scale), rules.guard, rules.scale)
        self.scaler = Scaler(guard, rules.scale.first_plan(), self.crawl, self.lookout, say=say, clock=clock)
        self.missed: Mapping[str, int] = {}
        self._say = say
        self._clock = clock

    def _remember(self, position: Position) -> None:
        """Begin with what the last run knew. One that was sent back to earlier ids looks at those with new eyes."""
        saved = self.tools.state.load()
        self.books.newest = None if saved is None else saved.newest
        known = self.books.newest
        self.lookout.begin(position.low if known is None or known >= position.next else max(position.low, known + 1))

    def read_from(self, source: Source) -> None:
        """Take readings from there instead of from what is counted here."""
        self.scaler.source = source

    async def run(self, *others: Coroutine[Any, Any, object]) -> None:
        """Crawl until it is stopped; `others` run beside it, and end with it."""
        self._say(messages.starting_up())
        await self.crawl.run(self.lookout.run(self.crawl), self.scaler.run(), self._refresh(), *others)
        self._say(messages.workers_stopped(self.crawl.workers, self.books.durable.low))

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self.crawl.stop()

    def _unresolved(self, missed: Missed, seconds: float, last: bool) -> None:  # noqa: FBT001 - the recheck's call
        said = messages.unresolved if last else messages.unresolved_warning
        self._say(said(missed.low, seconds))

    async def _refresh(self) -> None:
        """Know now and then how much is missed."""
        while True:
            counts = await self.tools.desk(self.tools.state.counts)
            self.missed = {reason.value: ids for reason, ids in counts.items()}
            await self._clock.sleep(REFRESH)

    def readings(self, store: StoreReadings) -> SequenceReadings:
        """How it stands, for Prometheus; the store says its own part, where it runs beside us."""
        measures, plan = self.measures, self.scaler.plan
        return SequenceReadings(
            answers=dict(measures.answers),
            lags={key: lags.copy() for key, lags in measures.lags.items()},
            requests={name: seconds.copy() for name, seconds in measures.requests.items()},
            workers=self.crawl.workers,
            inflight=self.crawl.inflight + self.lookout.probing,
            waiting=self.crawl.waiting,
            cursor=self.books.durable.low,
            head=self.lookout.head.estimate(self._clock.wall()),
            newest=self.lookout.head.newest,
            available=self.availability.open,
            missed=self.missed,
            period=plan.period,
            strategy=plan.strategy.value,
            probes=dict(measures.probes),
            gaps=measures.gaps,
            skipped=measures.skipped,
            rechecks=dict(measures.rechecks),
            decisions=dict(measures.decisions),
            published=self.books.published,
            publish_failures=self.books.failures,
            store=store,
        )
