"""What a crawl of ids does, as the one report, made from its status. Pure."""

from collections.abc import Iterator, Mapping

import msgspec

from sanderling.apis.numbered import Status
from sanderling.observe.report import (
    MOST_LISTED,
    Activity,
    AtFault,
    Event,
    HostCondition,
    HostReport,
    Report,
    Severity,
    Trouble,
    WorkCounts,
    disk_troubles,
    largest,
    paced_by,
    process_of,
    shorten,
)
from sanderling.sequence.status import DecisionStatus, SequenceStatus
from sanderling.words import count, duration

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
    """A decision about how many workers there are."""

    wall: float  # when, in Unix seconds
    workers: int  # from then on
    before: int  # workers until then
    strategy: str
    why: str

    @classmethod
    def of(cls, made: DecisionStatus) -> "WorkerDecision":
        """Take what is shown of a decision."""
        return cls(
            wall=made.wall,
            workers=made.workers,
            before=made.before,
            strategy=shorten(made.strategy),
            why=shorten(made.why),
        )


class SequenceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a crawl of ids has. Counts are those of the run."""

    cursor: int  # every id below it has a fate that is on disk
    newest: int | None  # the highest id that is known to exist
    head: int | None  # the id that should be the newest now
    behind: int | None  # ids up to the head that have no fate yet
    lag: float | None  # seconds, how old records were that came lately
    rate: float  # records a second
    workers: int
    strategy: str  # by which the workers are planned
    why: str  # there are so many workers
    decisions: tuple[WorkerDecision, ...]  # the last ones, the oldest first
    missed: dict[str, int]  # ids to ask again, by reason
    answers: dict[str, int]  # of the main lane, by status
    gaps: int
    skipped: int  # ids in gaps
    published: int  # records put into the queue
    stored: int | None  # records; None if another process stores them
    available: bool  # whether the API is switched on
    queue: dict[str, int] | None  # messages by state; None if unknown
    series: tuple[str, ...] = ("lag", "workers")  # names of its own series


def report(status: SequenceStatus) -> Report[SequenceFacts]:
    """Make the report of a crawl."""
    plan, host, store = status.plan, status.limiter, status.store
    requests = status.asked if host is None else max(status.asked, host.requests)
    return Report(
        system=status.system,
        doing=_doing(status),
        process=process_of(status, paused=status.paused),
        troubles=(*disk_troubles(status), *_troubles(status)),
        work=WorkCounts(
            asked=requests,
            refused=0 if host is None else host.refused,
            kept=status.published,
            failed=status.answered(Status.BAD_FORMAT, Status.ERROR),
            waiting=status.waiting,
        ),
        hosts=(_host(status),),
        hosts_known=1,
        classes=status.classes,
        gauges={"lag": status.lag, "workers": plan.workers},
        numbers=(
            ("behind", "unknown" if status.behind is None else count(status.behind, "id")),
            ("lag", duration(status.lag)),
            ("records a second", f"{status.rate:,.1f}"),
            ("workers", f"{plan.workers:,}"),
            ("to ask again", f"{sum(status.missed.values()):,}"),
            ("gaps", f"{status.gaps:,}"),
            ("queued", f"{status.published:,}"),
            ("stored", "elsewhere" if store is None else f"{store.stored:,}"),
        ),
        lines=tuple(_lines(status)),
        activity=(
            Activity(
                label="lag", value=status.lag, text=f"{duration(status.lag)}, {status.rate:,.1f} records a second"
            ),
            Activity(
                label="workers",
                value=plan.workers,
                text=f"{plan.workers:,}, {status.inflight:,} busy, {status.waiting:,} ids wait for another try",
            ),
        ),
        events=tuple(
            Event(each.wall, shorten(f"{each.before:,} workers become {each.workers:,}: {_reason(each)}"))
            for each in status.decisions[-MOST_EVENTS:]
            if each.workers != each.before
        ),
        facts=_facts(status),
    )


def _lines(status: SequenceStatus) -> Iterator[tuple[str, str]]:
    """Say where it is, what was answered, and what became of it."""
    ahead = "" if status.behind is None else f"; the head is {count(status.behind, 'id')} ahead"
    yield "api", f"{status.api} at {status.host}"
    yield "ids", f"all below {status.cursor:,} have their fate{ahead}"
    yield "why", shorten(f"{status.plan.strategy}: {status.plan.why}")
    yield "answers", _answers(status)
    gaps = f"; {count(status.gaps, 'gap')} skipped with {count(status.skipped, 'id')}" if status.gaps else ""
    yield "missed", f"{explain_missed(status.missed)}{gaps}"
    yield "kept", _kept(status)


def _answers(status: SequenceStatus) -> str:
    found, asked = status.answered(Status.SUCCESS, Status.SKIPPED), max(1, status.asked)
    several = (
        (status.answered(Status.BAD_FORMAT, Status.ERROR), "failed"),
        (status.answered(Status.RATE_LIMITED), "refused"),
        (status.answered(Status.HIDDEN), "hidden"),
    )
    return ", ".join(
        [
            count(found, "record"),
            f"{status.answered(Status.SUCCESS):,} wanted",
            f"{100 * status.answered(Status.NOT_FOUND) / asked:.1f} % not found",
            *(f"{number:,} {what}" for number, what in several if number),
        ]
    )


def explain_missed(ids: Mapping[str, int]) -> str:
    """Say how many ids are asked again later, and why, the most frequent reason first."""
    if not ids:
        return "nothing"
    reasons = ", ".join(f"{number:,} {MEANINGS.get(name, name)}" for name, number in largest(ids).items())
    return f"{count(sum(ids.values()), 'id')} to be asked again: {reasons}"


def _kept(status: SequenceStatus) -> str:
    """Say what became of the records that are wanted."""
    parts = [f"{status.published:,} queued"]
    if status.queue is not None:
        parts.append(f"{sum(status.queue.get(state, 0) for state in ('ready', 'taken', 'delayed')):,} wait there")
    if status.store is not None:
        parts.append(f"{status.store.stored:,} stored")
    return ", ".join(parts)


def _reason(made: DecisionStatus) -> str:
    """Say what a decision went by: the readings, and the names of the rules that held it back."""
    rules = ", ".join(dict.fromkeys(held.partition(":")[0] for held in made.held))
    missing = "" if made.missing is None else f", {100 * made.missing:.1f} % not found"
    behind = "how far behind is not known yet" if made.lag is None else f"{duration(made.lag)} behind"
    return f"{behind}{missing}{f' ({rules})' if rules else ''}"


def _facts(status: SequenceStatus) -> SequenceFacts:
    plan, store = status.plan, status.store
    return SequenceFacts(
        cursor=status.cursor,
        newest=status.newest,
        head=status.head,
        behind=status.behind,
        lag=status.lag,
        rate=status.rate,
        workers=plan.workers,
        strategy=shorten(plan.strategy),
        why=shorten(plan.why),
        decisions=tuple(WorkerDecision.of(each) for each in status.decisions[-MOST_LISTED:]),
        missed=largest(status.missed),
        answers=largest(status.answers),
        gaps=status.gaps,
        skipped=status.skipped,
        published=status.published,
        stored=None if store is None else store.stored,
        available=status.available,
        queue=None if status.queue is None else largest(status.queue),
    )


def _host(status: SequenceStatus) -> HostReport:
    """Report its one host."""
    known = status.limiter
    return HostReport(
        host=status.host,
        state=_state(status),
        waiting=status.waiting,
        in_flight=status.inflight,
        trouble="" if status.available else shorten(_switched_off(status)),
        at_fault=None if status.available else AtFault.HOST,
        requests=0 if known is None else known.requests,
        refused=0 if known is None else known.refused,
        ceiling=None if known is None else known.ceiling,
        latency=None if known is None else known.latency,
        why="" if known is None else shorten(known.why),
    )


def _state(status: SequenceStatus) -> HostCondition:
    if not status.available:
        return HostCondition.FAILING
    # While it runs, the next id is asked for sooner or later.
    busy = status.running or status.waiting or status.inflight
    return HostCondition.GOING if busy else HostCondition.DONE


def _switched_off(status: SequenceStatus) -> str:
    return f"{status.api} says that it is switched off"


def _doing(status: SequenceStatus) -> str:
    if not status.running:
        return f"ended; all ids below {status.cursor:,} have their fate{paced_by(status.pace)}"
    if status.paused:
        return f"paused at {status.cursor:,}; {count(status.inflight, 'request')} in flight"
    behind = "" if status.behind is None else f", {count(status.behind, 'id')} behind"
    return f"{status.doing}{behind}; {count(status.plan.workers, 'worker')}{paced_by(status.pace)}"


def _troubles(status: SequenceStatus) -> Iterator[Trouble]:
    if status.trouble:
        yield Trouble(Severity.ERROR, shorten(f"the queue takes nothing: {status.trouble}"))
    if status.store is not None and status.store.trouble:
        yield Trouble(Severity.ERROR, shorten(f"nothing is stored: {status.store.trouble}"))
    dead = (status.queue or {}).get("dead", 0)
    if dead:
        found = f"{count(dead, 'record')} could not be stored; see: sanderling dead list DIR"
        yield Trouble(Severity.ERROR, found)
    if not status.available:
        yield Trouble(Severity.WARNING, shorten(_switched_off(status)))
    for kind, found in sorted(status.remarks.items()):
        yield Trouble(Severity.INFO, shorten(f"lately {ODD.get(kind, kind)}, {found}"))
