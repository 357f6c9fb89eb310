"""A crawl of ids for people. Pure."""

import msgspec

from sanderling.apis.numbered import Status
from sanderling.sequence.status import DecisionStatus, SequenceStatus
from sanderling.web.house_told import MOST_LISTED, Told, Work, most, short
from sanderling.words import count, duration


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about the workers."""

    wall: float
    workers: int
    before: int
    strategy: str
    why: str

    @classmethod
    def of(cls, made: DecisionStatus) -> "Decision":
        """In short."""
        return cls(
            wall=made.wall,
            workers=made.workers,
            before=made.before,
            strategy=short(made.strategy),
            why=short(made.why),
        )


class SequenceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl of ids. Counts are those of the run; lag is seconds."""

    cursor: int
    newest: int | None
    head: int | None
    behind: int | None
    lag: float | None
    rate: float  # records a second
    workers: int
    strategy: str
    why: str
    decisions: tuple[Decision, ...]  # the last ones, the oldest first
    missed: dict[str, int]
    answers: dict[str, int]
    gaps: int
    skipped: int
    published: int
    stored: int | None  # None if nothing is stored there
    available: bool
    queue: dict[str, int] | None
    series: tuple[str, ...] = ("lag", "workers")


def sequence_told(status: SequenceStatus) -> Told:
    """A crawl of ids."""
    plan, host, store = status.plan, status.limiter, status.store
    requests = status.asked if host is None else max(status.asked, host.requests)
    return Told(
        doing=_following(status),
        paused=status.paused,
        troubles=tuple(_troubles(status)),
        work=Work(
            requests,
            0 if host is None else host.refused,
            status.published,
            status.answered(Status.BAD_FORMAT, Status.ERROR),
            status.waiting,
        ),
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
        facts=SequenceFacts(
            cursor=status.cursor,
            newest=status.newest,
            head=status.head,
            behind=status.behind,
            lag=status.lag,
            rate=status.rate,
            workers=plan.workers,
            strategy=short(plan.strategy),
            why=short(plan.why),
            decisions=tuple(Decision.of(each) for each in status.decisions[-MOST_LISTED:]),
            missed=most(status.missed),
            answers=most(status.answers),
            gaps=status.gaps,
            skipped=status.skipped,
            published=status.published,
            stored=None if store is None else store.stored,
            available=status.available,
            queue=None if status.queue is None else most(status.queue),
        ),
    )


def _following(status: SequenceStatus) -> str:
    if not status.running:
        return f"ended; all ids below {status.cursor:,} have their fate"
    if status.paused:
        return f"paused at {status.cursor:,}; {count(status.inflight, 'request')} in flight"
    behind = "" if status.behind is None else f", {count(status.behind, 'id')} behind"
    return f"{status.doing}{behind}; {count(status.plan.workers, 'worker')}"


def _troubles(status: SequenceStatus) -> list[str]:
    found = []
    if not status.available:
        found.append(f"{status.api} says that it is switched off")
    if status.trouble:
        found.append(f"the queue takes nothing: {status.trouble}")
    if status.store is not None and status.store.trouble:
        found.append(f"nothing is stored: {status.store.trouble}")
    dead = (status.queue or {}).get("dead", 0)
    if dead:
        found.append(f"{count(dead, 'record')} could not be stored; see: sanderling sequence dead list")
    return found
