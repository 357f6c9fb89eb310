"""What a crawl of ids does, as the one report, made from its status. Pure."""

import msgspec

from sanderling.apis.numbered import Status
from sanderling.observe.report import (
    MOST_LISTED,
    AtFault,
    HostCondition,
    HostReport,
    Report,
    WorkCounts,
    largest,
    paced_by,
    shorten,
)
from sanderling.sequence.status import DecisionStatus, SequenceStatus
from sanderling.words import count, duration


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
        paused=status.paused,
        troubles=tuple(_troubles(status)),
        work=WorkCounts(
            asked=requests,
            refused=0 if host is None else host.refused,
            kept=status.published,
            failed=status.answered(Status.BAD_FORMAT, Status.ERROR),
            waiting=status.waiting,
        ),
        hosts=(_host(status),),
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
        facts=_facts(status),
    )


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
    return HostReport(
        host=status.host,
        state=_state(status),
        waiting=status.waiting,
        in_flight=status.inflight,
        trouble="" if status.available else shorten(_switched_off(status)),
        at_fault=None if status.available else AtFault.HOST,
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
        return f"ended; all ids below {status.cursor:,} have their fate"
    if status.paused:
        return f"paused at {status.cursor:,}; {count(status.inflight, 'request')} in flight"
    behind = "" if status.behind is None else f", {count(status.behind, 'id')} behind"
    return f"{status.doing}{behind}; {count(status.plan.workers, 'worker')}{paced_by(status.pace)}"


def _troubles(status: SequenceStatus) -> list[str]:
    found = []
    if not status.available:
        found.append(_switched_off(status))
    if status.trouble:
        found.append(f"the queue takes nothing: {status.trouble}")
    if status.store is not None and status.store.trouble:
        found.append(f"nothing is stored: {status.store.trouble}")
    dead = (status.queue or {}).get("dead", 0)
    if dead:
        found.append(f"{count(dead, 'record')} could not be stored; see: sanderling dead list DIR")
    return found
