"""All parts of a crawl of ids, put together and run."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sanderling.apis.numbered import NumberedApi
from sanderling.clock import Clock
from sanderling.engine.hosts import HostState
from sanderling.engine.loop import Engine
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.sequence import alerts
from sanderling.sequence.cursor import IdCursor, Position
from sanderling.sequence.guard import Guard, ScalingGuardRules
from sanderling.sequence.handler import SequenceHandler, SequenceWork
from sanderling.sequence.inquiries import Availability, Inquiries, InquiryAnswer
from sanderling.sequence.lookout import Lookout, LookRules, Say
from sanderling.sequence.measures import SequenceMeasures
from sanderling.sequence.recheck import Recheck
from sanderling.sequence.retries import Missed, RetryRules
from sanderling.sequence.scaler import ReadingsSource, Scaler
from sanderling.sequence.scaling import AtlasPolicy, ScaleRules
from sanderling.sequence.sink import SequenceSink, SequenceWriter
from sanderling.sequence.source import ENGINE, Lanes, SequenceSource
from sanderling.sequence.state import SequenceState
from sanderling.stores.control_file import Control
from sanderling.stores.queue import Queue

REFRESH = 5.0  # seconds that the counts of what is missed may be old


@dataclass(frozen=True, slots=True)
class SequenceRules:
    """How a crawl of ids goes about it."""

    stride: int = 1
    scale: ScaleRules = field(default_factory=ScaleRules)
    guard: ScalingGuardRules = field(default_factory=ScalingGuardRules)
    retry: RetryRules = field(default_factory=RetryRules)
    look: LookRules = field(default_factory=LookRules)


@dataclass(frozen=True, slots=True)
class SequenceServices:
    """What a crawl asks with and writes to."""

    api: NumberedApi
    fetcher: Fetcher
    limiter: Limiter
    memory: Memory
    state: SequenceState
    queue: Queue
    executor: Executor


class SequenceSystem:
    """One crawl of ids. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self, tools: SequenceServices, position: Position, rules: SequenceRules, *, say: Say, clock: Clock, rng: Random
    ) -> None:
        self.tools = tools
        self.measures = SequenceMeasures()
        self.cursor = IdCursor(position, stride=rules.stride)
        self.sink = SequenceSink(tools.state, tools.queue, tools.executor, clock, position)
        self.writer = SequenceWriter(self.sink, self.cursor, tools.api.name, clock)
        self.host = str(tools.api.task(0, 1).host)
        inquiries = Inquiries()
        self.availability = Availability(tools.api, inquiries, clock, say)
        self.lookout = Lookout(inquiries, self.measures, say, clock, rules.look)
        self._remember(position)
        missed, failed = (
            Recheck(self.writer, self.sink, rng, self.measures, failed=failed) for failed in (False, True)
        )
        missed.unresolved = failed.unresolved = self._unresolved
        self._lanes = Lanes(self.writer, inquiries, missed, failed, self.availability)
        self.source = SequenceSource(self.host, self._lanes, self.lookout, self.measures, rules.retry, rng)
        if self.writer.newest is not None:
            self.source.host.answered = clock.now()  # in an earlier run
        handler = SequenceHandler(
            tools.api, tools.fetcher, tools.memory, clock, self.measures, disabled=self.availability.shut
        )
        self.engine: Engine[HostState, SequenceWork, InquiryAnswer] = Engine(
            self.source, handler, self.writer, tools.limiter, clock, ENGINE
        )
        self.source.wake = inquiries.wake = self._wake
        guard = Guard(AtlasPolicy(rules.scale), rules.guard, rules.scale)
        self.scaler = Scaler(guard, rules.scale.first_plan(), self.engine, tools.limiter, self.cursor, self.lookout)
        self.missed: Mapping[str, int] = {}
        self._say = say
        self._clock = clock

    def _remember(self, position: Position) -> None:
        """Begin with what the last run knew. One that was sent back to earlier ids looks at those with new eyes."""
        saved = self.tools.state.load()
        known = self.writer.newest = None if saved is None else saved.newest
        self.lookout.begin(position.low if known is None or known >= position.next else max(position.low, known + 1))

    def read_from(self, source: ReadingsSource) -> None:
        """Take readings from there instead of from what is counted here."""
        self.scaler.source = source

    async def run(self, *others: Coroutine[Any, Any, object]) -> None:
        """Crawl until it is stopped or drained; `others` run beside it, and end with it."""
        self._say(alerts.starting_up())
        lanes = (self._lanes.missed, self._lanes.failed, self._lanes.availability)
        feeding = (lane.run(self._wake) for lane in lanes)
        deciding = (self.lookout.run(self.source), self.scaler.run(), self._refresh())
        self._wake()
        await self.engine.run(*feeding, *deciding, *others)
        self._say(alerts.workers_stopped(self.workers, self.durable.low))

    def _wake(self) -> None:
        self.engine.wake((self.source.host,))

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self.engine.stop()

    def control(self, wanted: Control) -> None:
        """Pause, or go on: there is one host, so that leaving it alone is the same; stop; drain."""
        self.engine.control(wanted)

    def end_at(self, until: int | None) -> None:
        """Ask for nothing beyond this id, unless that is needed to know whether there is anything up to it."""
        self.source.until = until

    # How it stands.

    @property
    def workers(self) -> int:
        """Requests in flight at most."""
        return self.engine.slots

    @property
    def inflight(self) -> int:
        """Requests in flight."""
        return self.engine.inflight

    @property
    def waiting(self) -> int:
        """Ids that are due again at some time."""
        return self.source.waiting

    @property
    def durable(self) -> Position:
        """Where a restart would begin."""
        return self.sink.durable

    @property
    def draining(self) -> bool:
        """Whether somebody wants it to take no new ids, and end."""
        return self.engine.wanted.ending == "drain"

    @property
    def paused(self) -> bool:
        """Whether somebody wants it to rest."""
        return self.engine.wanted.paused

    def _unresolved(self, missed: Missed, seconds: float, last: bool) -> None:  # noqa: FBT001 - the recheck's call
        said = alerts.unresolved if last else alerts.unresolved_warning
        self._say(said(missed.low, seconds))

    async def count_missed(self) -> None:
        """Know how much is missed now."""
        counts = await self.tools.executor(self.tools.state.counts)
        self.missed = {reason.value: ids for reason, ids in counts.items()}

    async def _refresh(self) -> None:
        """Know now and then how much is missed."""
        while True:
            await self.count_missed()
            await self._clock.sleep(REFRESH)
