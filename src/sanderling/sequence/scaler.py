"""The periods: at the end of each, readings become a decision, and the decision the number of workers."""

from collections import deque
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from sanderling.engine.hosts import HostState
from sanderling.engine.loop import Engine
from sanderling.limit import Limiter
from sanderling.sequence import alerts
from sanderling.sequence.cursor import IdCursor
from sanderling.sequence.gaps import suspects
from sanderling.sequence.guard import Decision, Guard, UpstreamFacts
from sanderling.sequence.handler import SequenceWork
from sanderling.sequence.inquiries import InquiryAnswer
from sanderling.sequence.lookout import Lookout
from sanderling.sequence.readings import PeriodReadings, ReadingError
from sanderling.sequence.scaling import ScalePlan

LOOK = 1.0  # seconds between looks at whether it is over
KEPT = 20  # decisions to look back at


class ReadingsSource(Protocol):
    """Where readings come from, if not from what was counted here."""

    async def read(self, seconds: float) -> PeriodReadings:
        """The readings of the last so many seconds. Raises ReadingError."""


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """A decision that was made, or could not be."""

    wall: float
    readings: PeriodReadings | None
    facts: UpstreamFacts
    decision: Decision
    changed: bool


class Scaler:
    """Decides at the end of each period. Readings come from what was counted in process, or from another source."""

    def __init__(
        self,
        guard: Guard,
        plan: ScalePlan,
        engine: Engine[HostState, SequenceWork, InquiryAnswer],
        limiter: Limiter,
        cursor: IdCursor,
        lookout: Lookout,
    ) -> None:
        self.plan = plan
        self.source: ReadingsSource | None = None
        self.made: deque[ScalingDecision] = deque(maxlen=KEPT)
        self._guard = guard
        self._engine = engine
        self._limiter = limiter
        self._cursor = cursor
        self._lookout = lookout
        self._measures = lookout.measures
        self._say = lookout.say
        self._clock = engine.clock
        self._permits: list[float] = []  # requests a second that the limiter allowed, at each look of this period
        self._engine.slots = plan.workers

    async def run(self) -> None:
        """Decide, period after period."""
        while True:
            self._say(alerts.workers_starting(self.plan.workers, self.plan.period, self._cursor.next))
            await self._period()
            await self.decide()
            self._engine.pump()

    async def _period(self) -> None:
        """Return when the period is over: enough ids, or long enough."""
        while not self._guard.over(self.plan, self._lookout.window, self._clock.now()):
            await self._clock.sleep(LOOK)
            self._permits.append(self._permitted())

    async def decide(self) -> None:
        """End the period and plan the next."""
        counted = self._lookout.window.close(self._clock.now())
        disturbed, self._lookout.disturbed = self._lookout.disturbed, self._lookout.holding
        facts = self._facts()
        try:
            readings = counted if self.source is None else await self.source.read(counted.seconds)
        except ReadingError as error:
            held = Decision(self.plan, self.plan, (f"no readings, so the plan stays: {error}",))
            self._note(ScalingDecision(self._clock.wall(), None, facts, held, changed=False))
            return
        decision = self._guard.decide(readings, facts, self.plan, gap=disturbed)
        changed = decision.plan.workers != self.plan.workers
        self._note(ScalingDecision(self._clock.wall(), readings, facts, decision, changed))
        self.plan = decision.plan
        self._engine.slots = decision.plan.workers
        self._say(alerts.status_update(readings.lag, readings.missing, readings.errors, self.plan.workers))
        if suspects(readings) and not self._lookout.holding:
            self._say(alerts.high_404(readings.missing, readings.missing_count))
            self._lookout.suspect()

    def _note(self, made: ScalingDecision) -> None:
        self.made.append(made)
        self._measures.decisions[made.changed] += 1

    def _facts(self) -> UpstreamFacts:
        cursor, head = self._cursor, self._lookout.head
        estimate = head.estimate(self._clock.wall())
        permits, self._permits = self._permits or [self._permitted()], []
        return UpstreamFacts(
            head_rate=head.rate,
            latency=self._measures.latency(),
            permits=fmean(permits),
            backlog=None if estimate is None else max(0.0, estimate + 1 - cursor.next) + cursor.open,
        )

    def _permitted(self) -> float:
        return self._limiter.snapshot().permitted
