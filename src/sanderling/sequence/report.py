"""What a crawl of ids does, as the one report."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from sanderling.apis.numbered import Status
from sanderling.engine.host_report import EngineStanding, standing_of
from sanderling.observe.metric import Metric, counter, gauge
from sanderling.observe.report import (
    Activity,
    AtFault,
    Event,
    HostCondition,
    HostReport,
    Report,
    Severity,
    Trouble,
    WorkCounts,
    largest,
    paced_by,
    shorten,
)
from sanderling.sequence.measures import FIRST
from sanderling.sequence.scaler import ScalingDecision
from sanderling.sequence.store import StoreTally
from sanderling.sequence.system import SequenceSystem
from sanderling.stores.queue import Depth
from sanderling.words import count, duration

LATELY = 10.0  # seconds that rate and lag are taken over, so that they are steady and still of now
FAR = 60.0  # seconds of lag that are more than what being at the head takes
# What the reasons for which ids are missed mean to whoever looks at them.
MEANINGS = {
    "not_found": "not found",
    "bad_format": "malformed",
    "error": "failed",
    "hidden": "hidden for now",
    "rate_limited": "refused over and over",
    "gap": "in gaps",
    "alive": "in a gap that was none",
    "imported": "imported",
}
# How an answer with something odd about it is called, by its status.
ODD = {"success": "an odd record", "bad_format": "a malformed record", "error": "a failure"}
MOST_EVENTS = 8


class WorkerDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about how many workers there are, and what it went by. Shares are from 0 to 1, None without any."""

    wall: float  # when, in Unix seconds
    workers: int  # from then on
    before: int  # workers until then
    strategy: str
    why: str
    held: tuple[str, ...] = ()  # against what was wanted, in words
    lag: float | None = None
    missing: float | None = None  # share of the requests that said not found


class SequenceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a crawl of ids has. Counts are those of the run."""

    api: str
    host: str
    cursor: int  # every id below it has a fate that is on disk
    next: int = 0  # the next new id
    newest: int | None  # the highest id that is known to exist
    head: int | None  # the id that should be the newest now
    behind: int | None  # ids up to the head that have no fate yet
    head_rate: float | None = None  # ids a second that the upstream makes
    lag: float | None  # seconds, how old records were that came lately
    rate: float  # records a second lately, kept or not
    workers: int
    period: int = 0  # ids until the next decision
    strategy: str  # by which the workers are planned
    why: str  # there are so many workers
    inflight: int = 0
    waiting: int = 0  # ids that wait for their next try
    at_head: bool = False  # whether nothing exists ahead, and it waits for that
    looking: bool = False  # whether it is finding out what is ahead
    decisions: tuple[WorkerDecision, ...]  # the last ones, the oldest first
    missed: dict[str, int]  # ids to ask again, by reason
    answers: dict[str, int]  # of the main lane, by status
    probes: int = 0  # questions that only asked whether an id exists
    gaps: int
    skipped: int  # ids in gaps
    published: int  # records put into the queue
    publish_failures: int = 0  # batches that it did not take
    stored: int | None  # records; None if another process stores them
    available: bool  # whether the API is switched on
    queue: dict[str, int] | None  # messages by state; None if unknown
    queue_trouble: str = ""  # why the queue is not to be had, while it is not
    store_trouble: str = ""  # why nothing is stored, while nothing is
    remarks: dict[str, str] = {}  # by status, the last answer that was odd: its id, what was found and expected
    series: tuple[str, ...] = ("lag", "workers")  # names of its own series

    @property
    def asked(self) -> int:
        """Answers of the main lane."""
        return sum(self.answers.values())

    def answered(self, *statuses: Status) -> int:
        """Answers of the main lane that had one of these."""
        return sum(self.answers.get(status.value, 0) for status in statuses)


class _Count(NamedTuple):
    now: float
    found: int
    lag: float  # seconds, of all records together
    records: int  # with a lag


class SequenceWatch:
    """Reports a running crawl. Rate and lag are of the last seconds, so ask it every now and then."""

    def __init__(self, system: SequenceSystem, store: StoreTally | None, started: float) -> None:
        self.depth: Depth | None = None  # whoever can ask the queue sets it
        self._system = system
        self._store = store
        self._started = started
        self._first = system.scaler.plan.workers
        self._counts: deque[_Count] = deque()

    def report(self, now: float, wall: float, *, running: bool = True) -> Report[SequenceFacts]:
        """How it stands."""
        system = self._system
        self._counts.append(self._count(now))
        while len(self._counts) > 2 and now - self._counts[0].now > LATELY:
            self._counts.popleft()
        at = standing_of(system.engine, system.tools.limiter, wall - self._started, top=1, running=running)
        measured = (*system.measures.metrics(), *store_metrics(self._store, self.depth))
        return report_sequence(self._facts(wall), at, measured)

    def _facts(self, wall: float) -> SequenceFacts:
        system, measures, store, plan = self._system, self._system.measures, self._store, self._system.scaler.plan
        lookout, head, cursor = system.lookout, system.lookout.head, system.cursor
        # Without a rate, all it knows is the newest: that would look like being there.
        estimate = None if head.rate is None else head.estimate(wall)
        return SequenceFacts(
            api=system.tools.api.name,
            host=system.host,
            cursor=system.durable.low,
            next=cursor.next,
            newest=head.newest,
            head=estimate,
            behind=None if estimate is None else max(0, estimate + 1 - cursor.next) + cursor.open,
            head_rate=head.rate,
            lag=self._lag(),
            rate=self._rate(),
            workers=plan.workers,
            period=plan.period,
            strategy=plan.strategy.value,
            why=shorten(plan.why),
            inflight=system.inflight,
            waiting=system.waiting,
            at_head=lookout.waiting,
            looking=lookout.holding,
            decisions=self._decisions(),
            missed=largest(system.missed),
            answers=largest(measures.by_status()),
            probes=measures.probes.total(),
            gaps=measures.gaps,
            skipped=measures.skipped,
            published=system.sink.published,
            publish_failures=system.sink.failures,
            stored=None if store is None else store.stored,
            available=system.availability.open,
            queue=None if self.depth is None else self.depth._asdict(),
            queue_trouble=shorten(system.sink.trouble),
            store_trouble="" if store is None else shorten(store.trouble),
            remarks={kind: shorten(found) for kind, found in measures.remarks.items()},
        )

    def _decisions(self) -> tuple[WorkerDecision, ...]:
        """Those that are remembered; each found the workers that the one before it had left."""
        made = list(self._system.scaler.made)
        before = [self._first, *(each.decision.plan.workers for each in made)]
        several = tuple(map(_decision, before, made))
        # What the oldest of them found may be forgotten.
        return several[1:] if len(made) == self._system.scaler.made.maxlen else several

    def _count(self, now: float) -> _Count:
        measures = self._system.measures
        found, lags = measures.by_status(), [each for (_, attempt), each in measures.lags.items() if attempt == FIRST]
        return _Count(
            now,
            found.get(Status.SUCCESS, 0) + found.get(Status.SKIPPED, 0),
            sum(each.total for each in lags),
            sum(sum(each.counts) for each in lags),
        )

    def _rate(self) -> float:
        first, last = self._counts[0], self._counts[-1]
        return (last.found - first.found) / (last.now - first.now) if last.now > first.now else 0.0

    def _lag(self) -> float | None:
        """The mean; only of ids that were there when they were first asked for: others are late for other reasons."""
        first, last = self._counts[0], self._counts[-1]
        records = last.records - first.records
        return (last.lag - first.lag) / records if records else None


def _decision(before: int, made: ScalingDecision) -> WorkerDecision:
    plan, readings = made.decision.plan, made.readings
    return WorkerDecision(
        wall=made.wall,
        before=before,
        workers=plan.workers,
        strategy=plan.strategy.value,
        why=shorten(plan.why),
        held=tuple(map(shorten, made.decision.held)),
        lag=readings.lag if readings else None,
        missing=readings.missing if readings else None,
    )


def store_metrics(tally: StoreTally | None, depth: Depth | None) -> Iterator[Metric]:
    """What those who store show Prometheus, beside a crawl or in a process of their own."""
    names = {"new": "stored", "duplicate": "duplicates", "buried": "buried", "retried": "retried"}
    counts = {} if tally is None else {result: getattr(tally, name) for result, name in names.items()}
    yield counter("stored", "Records taken from the queue, by what came of them.", counts, "result")
    yield gauge("queue", "Records in the queue.", {} if depth is None else depth._asdict(), "state")
    yield gauge("store_workers", "Workers that store what the queue has.", 0 if tally is None else tally.workers)


def report_sequence(facts: SequenceFacts, at: EngineStanding, measured: Iterable[Metric] = ()) -> Report[SequenceFacts]:
    """Make the report of a crawl from what is known of it. Pure."""
    here = _host(facts, at)
    return Report(
        system="sequence",
        doing=_doing(facts, at),
        process=at.process,
        troubles=(*at.disk_troubles, *_troubles(facts)),
        work=WorkCounts(
            asked=max(facts.asked, here.requests),
            refused=here.refused,
            kept=facts.published,
            failed=facts.answered(Status.BAD_FORMAT, Status.ERROR),
            waiting=facts.waiting,
        ),
        hosts=(here,),
        hosts_known=1,
        pace=at.pace,
        classes=at.classes,
        gauges={"lag": facts.lag, "workers": facts.workers},
        numbers=(
            ("behind", "unknown" if facts.behind is None else count(facts.behind, "id")),
            ("lag", duration(facts.lag)),
            ("records a second", f"{facts.rate:,.1f}"),
            ("workers", f"{facts.workers:,}"),
            ("to ask again", f"{sum(facts.missed.values()):,}"),
            ("gaps", f"{facts.gaps:,}"),
            ("queued", f"{facts.published:,}"),
            ("stored", "elsewhere" if facts.stored is None else f"{facts.stored:,}"),
        ),
        lines=tuple(_lines(facts)),
        activity=(
            Activity(label="lag", value=facts.lag, text=f"{duration(facts.lag)}, {facts.rate:,.1f} records a second"),
            Activity(
                label="workers",
                value=facts.workers,
                text=f"{facts.workers:,}, {facts.inflight:,} busy, {facts.waiting:,} ids wait for another try",
            ),
        ),
        events=tuple(
            Event(each.wall, shorten(f"{each.before:,} workers become {each.workers:,}: {_reason(each)}"))
            for each in facts.decisions[-MOST_EVENTS:]
            if each.workers != each.before
        ),
        metrics=(*measured, *_metrics(facts)),
        facts=facts,
    )


def _metrics(facts: SequenceFacts) -> Iterator[Metric]:
    yield counter("published", "Records that the queue has confirmed.", facts.published)
    yield counter("publish_failures", "Batches that the queue did not confirm.", facts.publish_failures)
    yield gauge("workers", "Requests that may be in flight.", facts.workers)
    yield gauge("in_flight", "Requests that are in flight.", facts.inflight)
    yield gauge("waiting", "Ids that wait for their next attempt.", facts.waiting)
    yield gauge("cursor", "Every id below it has a fate that is on disk.", facts.cursor)
    yield gauge("head", "The id that should be the newest now.", facts.newest if facts.head is None else facts.head)
    yield gauge("newest", "The highest id that was seen to exist.", facts.newest)
    yield gauge("available", "1 if the API is switched on.", facts.available)
    yield gauge("missed", "Ids that are asked for again later.", facts.missed, "reason")
    yield gauge("period_ids", "Ids until the next decision.", facts.period)
    yield gauge("strategy", "1 for the strategy of the last decision.", {facts.strategy: 1}, "strategy")


def _lines(facts: SequenceFacts) -> Iterator[tuple[str, str]]:
    """Say where it is, what was answered, and what became of it."""
    yield "api", f"{facts.api} at {facts.host}"
    ahead = "" if facts.behind is None else f"; the head is {count(facts.behind, 'id')} ahead"
    yield "ids", f"all below {facts.cursor:,} have their fate{ahead}"
    yield "why", shorten(f"{facts.strategy}: {facts.why}")
    others = (("failed", Status.BAD_FORMAT, Status.ERROR), ("refused", Status.RATE_LIMITED), ("hidden", Status.HIDDEN))
    answers = [
        count(facts.answered(Status.SUCCESS, Status.SKIPPED), "record"),
        f"{facts.answered(Status.SUCCESS):,} wanted",
        f"{100 * facts.answered(Status.NOT_FOUND) / max(1, facts.asked):.1f} % not found",
        *(f"{facts.answered(*several):,} {what}" for what, *several in others if facts.answered(*several)),
    ]
    yield "answers", ", ".join(answers)
    gaps = f"; {count(facts.gaps, 'gap')} skipped with {count(facts.skipped, 'id')}" if facts.gaps else ""
    yield "missed", f"{explain_missed(facts.missed)}{gaps}"
    kept = [f"{facts.published:,} queued"]
    if facts.queue is not None:
        kept.append(f"{queued(facts.queue):,} wait there")
    if facts.stored is not None:
        kept.append(f"{facts.stored:,} stored")
    yield "kept", ", ".join(kept)


def queued(queue: Mapping[str, int]) -> int:
    """Messages that somebody has still to take."""
    return sum(queue.get(state, 0) for state in ("ready", "taken", "delayed"))


def explain_missed(ids: Mapping[str, int]) -> str:
    """Say how many ids are asked again later, and why, the most frequent reason first."""
    if not ids:
        return "nothing"
    reasons = ", ".join(f"{number:,} {MEANINGS.get(name, name)}" for name, number in largest(ids).items())
    return f"{count(sum(ids.values()), 'id')} to be asked again: {reasons}"


def _reason(made: WorkerDecision) -> str:
    """Say what a decision went by: the readings, and the names of the rules that held it back."""
    rules = ", ".join(dict.fromkeys(held.partition(":")[0] for held in made.held))
    missing = "" if made.missing is None else f", {100 * made.missing:.1f} % not found"
    behind = "how far behind is not known yet" if made.lag is None else f"{duration(made.lag)} behind"
    return f"{behind}{missing}{f' ({rules})' if rules else ''}"


def _host(facts: SequenceFacts, at: EngineStanding) -> HostReport:
    """Report its one host, which is never done while the crawl runs: the next id is asked for sooner or later."""
    known = next((each for each in at.hosts if each.host == facts.host), None)  # None before the first request
    busy = at.process.running or facts.waiting or facts.inflight
    state = HostCondition.GOING if busy else HostCondition.DONE
    known = known or HostReport(host=facts.host, state=state, waiting=0, in_flight=0)
    return msgspec.structs.replace(
        known,
        state=state if facts.available else HostCondition.FAILING,
        circuit="closed" if facts.available else "open",
        waiting=facts.waiting,
        in_flight=facts.inflight,
        trouble="" if facts.available else _switched_off(facts),
        at_fault=None if facts.available else AtFault.HOST,
    )


def _switched_off(facts: SequenceFacts) -> str:
    return shorten(f"{facts.api} says that it is switched off")


def _doing(facts: SequenceFacts, at: EngineStanding) -> str:
    if not at.process.running:
        return f"ended; all ids below {facts.cursor:,} have their fate{paced_by(at.pace)}"
    if at.process.paused:
        return f"paused at {facts.cursor:,}; {count(facts.inflight, 'request')} in flight"
    behind = "" if facts.behind is None else f", {count(facts.behind, 'id')} behind"
    return f"{_at(facts)}{behind}; {count(facts.workers, 'worker')}{paced_by(at.pace)}"


def _at(facts: SequenceFacts) -> str:
    if not facts.available:
        return "waiting: the API is switched off"
    if facts.queue_trouble:
        return "waiting for the queue"
    if facts.at_head:
        return "waiting at the head"
    if facts.looking:
        return "looking for what is ahead"
    # By the lag of what came lately; if nothing came, by how long the upstream took for what is ahead.
    took = facts.behind / facts.head_rate if facts.behind and facts.head_rate else 0.0
    return "catching up" if (took if facts.lag is None else facts.lag) >= FAR else "following the head"


def _troubles(facts: SequenceFacts) -> Iterator[Trouble]:
    if facts.queue_trouble:
        yield Trouble(Severity.ERROR, shorten(f"the queue takes nothing: {facts.queue_trouble}"))
    if facts.store_trouble:
        yield Trouble(Severity.ERROR, shorten(f"nothing is stored: {facts.store_trouble}"))
    if dead := (facts.queue or {}).get("dead", 0):
        yield Trouble(Severity.ERROR, f"{count(dead, 'record')} could not be stored; see: sanderling dead list DIR")
    if not facts.available:
        yield Trouble(Severity.WARNING, _switched_off(facts))
    for kind, found in sorted(facts.remarks.items()):
        yield Trouble(Severity.INFO, shorten(f"lately {ODD.get(kind, kind)}, {found}"))
