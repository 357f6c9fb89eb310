"""How a crawl of ids stands, for whoever looks: the screen, and other processes through status.json in its folder."""

import os
from collections import Counter, deque
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.apis.numbered import Status
from sanderling.sequence.scaler import ScalingDecision
from sanderling.sequence.store import StoreTally
from sanderling.sequence.system import SequenceSystem
from sanderling.stores.process_identity import ProcessIdentity
from sanderling.stores.queue import Depth
from sanderling.stores.status_file import read_status

LATELY = 10.0  # seconds that rate and lag are taken over, so that they are steady and still of now
FAR = 60.0  # seconds of lag that are more than what being at the head takes


class DecisionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about the workers, and what it went by. Readings are those of its period, None without any."""

    wall: float
    before: int  # workers
    workers: int
    wanted: int  # by the policy alone
    period: int
    strategy: str
    why: str
    held: tuple[str, ...]  # against what was wanted, in words
    lag: float | None
    missing: float | None
    errors: float | None
    rate: float | None


class PlanStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the crawl works by until the next decision."""

    workers: int
    period: int  # ids
    strategy: str
    why: str


class HostStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the limiter knows of the host. Rates are requests a second."""

    rate: float
    ceiling: float | None
    latency: float | None
    requests: int
    refused: int
    why: str


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the store beside the crawl has done in this run."""

    stored: int
    duplicates: int
    buried: int
    retried: int
    workers: int
    trouble: str  # why nothing is stored, while nothing is


class SequenceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl as it stands. Counts are those of the run; times are Unix seconds, shares are from 0 to 1."""

    running: bool  # as far as it could say: one that was killed did not
    pid: int
    wall: float
    started: float
    api: str
    host: str
    cursor: int  # every id below it has a fate that is on disk
    next: int  # the next new id
    newest: int | None  # the highest that is known to exist
    head: int | None  # the id that should be the newest now
    behind: int | None  # ids up to the head that have no fate yet
    head_rate: float | None  # ids a second that the upstream makes
    lag: float | None  # seconds, how old records were that came lately
    p20: float | None  # the lag of the last period, by which workers are planned
    missing: float | None  # share of its requests that said not found
    errors: float | None  # share that failed
    rate: float  # records a second lately, kept or not
    plan: PlanStatus
    inflight: int
    waiting: int  # ids that wait for their next try
    available: bool  # whether the API is switched on
    at_head: bool  # whether nothing exists ahead, and it waits for that
    looking: bool  # whether it is finding out what is ahead
    missed: dict[str, int]  # ids by reason
    answers: dict[str, int]  # of the main lane, by status
    probes: dict[str, int]
    gaps: int
    skipped: int  # ids in them
    published: int
    publish_failures: int
    trouble: str  # why the queue is not to be had, while it is not
    queue: dict[str, int] | None  # letters by state; None if that is not known
    store: StoreStatus | None  # None if nothing is stored here
    limiter: HostStatus | None  # None before the first request
    decisions: tuple[DecisionStatus, ...]  # the last ones, oldest first
    paused: bool = False  # whether somebody wants it to rest
    disk_trouble: str = ""  # why it paused itself, while it does: its disk has no room
    remarks: dict[str, str] = {}  # by status, the last answer that was odd: its id, what was found and expected
    process: ProcessIdentity | None = None  # by which its end is known at once, on the same machine
    system: str = "sequence"
    classes: dict[str, int] = {}  # requests of this run, by class of work
    pace: str = "governor"  # what moves the pace of hosts

    @property
    def seconds(self) -> float:
        """How long this run has taken so far."""
        return self.wall - self.started

    @property
    def asked(self) -> int:
        """Answers of the main lane."""
        return sum(self.answers.values())

    def answered(self, *statuses: Status) -> int:
        """Answers of the main lane that had one of these."""
        return sum(self.answers.get(status.value, 0) for status in statuses)

    @property
    def doing(self) -> str:
        """What the crawl is at, in a few words."""
        if not self.available:
            return "waiting: the API is switched off"
        if self.trouble:
            return "waiting for the queue"
        if self.at_head:
            return "waiting at the head"
        if self.looking:
            return "looking for what is ahead"
        return "catching up" if self._seconds_behind >= FAR else "following the head"

    @property
    def _seconds_behind(self) -> float:
        """By the lag of what came lately; if nothing came, by how long the upstream took for what is ahead."""
        if self.lag is not None:
            return self.lag
        return self.behind / self.head_rate if self.behind and self.head_rate else 0.0


class _Count(NamedTuple):
    now: float
    found: int
    lag: float  # seconds, of all records together
    records: int  # with a lag


class SequenceWatch:
    """Takes the status of a running crawl. Rate and lag are of the last seconds, so ask it every now and then."""

    def __init__(self, system: SequenceSystem, store: StoreTally | None, started: float) -> None:
        self.depth: Depth | None = None  # whoever can ask the queue sets it
        self._system = system
        self._store = store
        self._started = started
        self._first = system.scaler.plan.workers
        self._counts: deque[_Count] = deque()

    def take(self, now: float, wall: float, *, running: bool = True) -> SequenceStatus:
        """How it stands."""
        system, measures = self._system, self._system.measures
        lookout, head = system.lookout, system.lookout.head
        self._counts.append(self._count(now))
        while len(self._counts) > 2 and now - self._counts[0].now > LATELY:
            self._counts.popleft()
        # Without a rate, all it knows is the newest: that would look like being there.
        estimate = None if head.rate is None else head.estimate(wall)
        last = next((made.readings for made in reversed(system.scaler.made) if made.readings), None)
        answers: Counter[str] = Counter()
        for (status, _), number in measures.answers.items():
            answers[status] += number
        return SequenceStatus(
            running=running,
            pid=os.getpid(),
            wall=wall,
            started=self._started,
            api=system.tools.api.name,
            host=system.host,
            cursor=system.durable.low,
            next=system.cursor.next,
            newest=head.newest,
            head=estimate,
            behind=None if estimate is None else max(0, estimate + 1 - system.cursor.next) + system.cursor.open,
            head_rate=head.rate,
            lag=self._lag(),
            p20=last.lag if last else None,
            missing=last.missing if last else None,
            errors=last.errors if last else None,
            rate=self._rate(),
            plan=_plan(system),
            inflight=system.inflight,
            waiting=system.waiting,
            available=system.availability.open,
            at_head=lookout.waiting,
            looking=lookout.holding,
            missed=dict(system.missed),
            answers=dict(answers),
            probes=dict(measures.probes),
            classes=system.engine.given_by_name(),
            gaps=measures.gaps,
            skipped=measures.skipped,
            published=system.sink.published,
            publish_failures=system.sink.failures,
            trouble=system.sink.trouble,
            queue=None if self.depth is None else self.depth._asdict(),
            store=_store(self._store),
            limiter=_limiter(system),
            decisions=self._decisions(),
            paused=system.paused,
            disk_trouble=system.engine.wanted.disk_trouble,
            remarks=dict(measures.remarks),
            pace=system.tools.limiter.rules.strategy,
        )

    def _decisions(self) -> tuple[DecisionStatus, ...]:
        """Those that are remembered; each found the workers that the one before it had left."""
        made = list(self._system.scaler.made)
        before = [self._first, *(each.decision.plan.workers for each in made)]
        told = tuple(map(_decision, before, made))
        # What the oldest of them found may be forgotten.
        return told[1:] if len(made) == self._system.scaler.made.maxlen else told

    def _count(self, now: float) -> _Count:
        measures = self._system.measures
        lags = [lags for (_, attempt), lags in measures.lags.items() if attempt == 1]
        return _Count(
            now,
            measures.total(Status.SUCCESS, Status.SKIPPED),
            sum(each.total for each in lags),
            sum(count for each in lags for _, count in each.buckets),
        )

    def _rate(self) -> float:
        first, last = self._counts[0], self._counts[-1]
        return (last.found - first.found) / (last.now - first.now) if last.now > first.now else 0.0

    def _lag(self) -> float | None:
        """The mean; only of ids that were there when they were first asked for: others are late for other reasons."""
        first, last = self._counts[0], self._counts[-1]
        records = last.records - first.records
        return (last.lag - first.lag) / records if records else None


def _plan(system: SequenceSystem) -> PlanStatus:
    plan = system.scaler.plan
    return PlanStatus(workers=plan.workers, period=plan.period, strategy=plan.strategy.value, why=plan.why)


def _store(tally: StoreTally | None) -> StoreStatus | None:
    if tally is None:
        return None
    return StoreStatus(
        stored=tally.stored,
        duplicates=tally.duplicates,
        buried=tally.buried,
        retried=tally.retried,
        workers=tally.workers,
        trouble=tally.trouble,
    )


def _limiter(system: SequenceSystem) -> HostStatus | None:
    for view in system.tools.limiter.snapshot(1).top:
        if view.host == system.host:
            return HostStatus(
                rate=view.rate,
                ceiling=view.ceiling,
                latency=view.latency,
                requests=view.requests,
                refused=view.rejected,
                why=view.why,
            )
    return None


def _decision(before: int, made: ScalingDecision) -> DecisionStatus:
    plan, readings = made.decision.plan, made.readings
    return DecisionStatus(
        wall=made.wall,
        before=before,
        workers=plan.workers,
        wanted=made.decision.wanted.workers,
        period=plan.period,
        strategy=plan.strategy.value,
        why=plan.why,
        held=made.decision.held,
        lag=readings.lag if readings else None,
        missing=readings.missing if readings else None,
        errors=readings.errors if readings else None,
        rate=readings.rate if readings else None,
    )


def published(folder: Path) -> SequenceStatus | None:
    """The status that the crawl in this folder last wrote; None if there is none that can be read."""
    return read_status(folder, SequenceStatus)
