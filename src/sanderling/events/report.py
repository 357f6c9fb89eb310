"""What a consumer of events does, as the one report, made from its status. Pure."""

import msgspec

from sanderling.events.lately import Minute, ShortError
from sanderling.events.modes import Modes
from sanderling.events.status import EventsStatus, StationStatus
from sanderling.observe.report import (
    MOST_LISTED,
    AtFault,
    HostCondition,
    HostReport,
    Report,
    WorkCounts,
    largest,
    shorten,
)
from sanderling.stores.queue import Dead
from sanderling.words import count

MOST_MINUTES = 60


class DeadShown(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was given up."""

    key: str
    why: str
    at: float
    tries: int

    @classmethod
    def of(cls, dead: Dead) -> "DeadShown":
        """Without its body. The key is what it is replayed by, so it is whole."""
        return cls(key=dead.key, why=shorten(dead.why), at=dead.at, tries=dead.tries)


class EventsFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Events. Counts are those of the process."""

    batches: int
    posts: int
    errors: int
    categories: dict[str, int]
    codes: dict[str, int]
    sentiments: dict[str, int]
    skipped: dict[str, int]
    platforms: dict[str, int]  # posts
    minutes: tuple[Minute, ...]
    queue: dict[str, int] | None
    modes: Modes
    outbox: int | None
    sent: dict[str, int]
    recent: tuple[ShortError, ...]  # the oldest first
    dead: tuple[DeadShown, ...] | None = None  # the first ones; None if the queue cannot be asked from here
    elsewhere: str = ""  # why not
    series: tuple[str, ...] = ("errors", "posts")


def report(status: EventsStatus) -> Report[EventsFacts]:
    """Make the report of a consumer."""
    queue = status.queue
    waiting = 0 if queue is None else queue.ready + queue.delayed
    return Report(
        system=status.system,
        doing=_processing(status),
        paused=status.paused,
        troubles=tuple(_troubles(status)),
        work=WorkCounts(
            asked=status.received,
            refused=status.postponed,
            kept=status.batches,
            failed=status.failed,
            waiting=waiting,
        ),
        hosts=tuple(map(_station, status.stations)),
        classes=status.classes,
        counters={"errors": status.errors, "posts": status.posts},
        numbers=(
            ("batches", f"{status.batches:,}"),
            ("posts", f"{status.posts:,}"),
            ("errors", f"{status.errors:,} ({status.error_rate:.1%})"),
            ("items a second", f"{status.lately.items:,.1f}"),
            ("waiting", "unknown" if queue is None else f"{waiting:,}"),
            ("given up", "unknown" if queue is None else f"{queue.dead:,}"),
            ("outbox", "unknown" if status.outbox is None else f"{status.outbox:,}"),
            ("seen before", f"{status.duplicates:,}"),
            *((("consumers", f"{sum(each.running for each in status.consumers):,}"),) if status.consumers else ()),
            *((("under the id of another", f"{status.reused:,}"),) if status.reused else ()),
        ),
        facts=EventsFacts(
            batches=status.batches,
            posts=status.posts,
            errors=status.errors,
            categories=largest(status.categories),
            codes=largest(status.codes),
            sentiments=largest(status.sentiments),
            skipped=largest(status.skipped),
            platforms=largest({name: each.posts for name, each in status.platforms.items()}),
            minutes=status.minutes[-MOST_MINUTES:],
            queue=None if queue is None else msgspec.structs.asdict(queue),
            modes=status.modes,
            outbox=status.outbox,
            sent=largest(status.sent),
            recent=tuple(_error(each) for each in status.recent[-MOST_LISTED:]),
        ),
    )


def _error(error: ShortError) -> ShortError:
    texts = {name: shorten(getattr(error, name)) for name in ("platform", "code", "category", "content_id", "message")}
    return msgspec.structs.replace(error, **texts)


def _station(station: StationStatus) -> HostReport:
    """Report a service as a host. That a service which is up fails is the message's fault, as far as is known."""
    return HostReport(
        host=station.name,
        state=HostCondition.FAILING if station.down else HostCondition.GOING,
        waiting=station.waiting,
        in_flight=station.in_flight,
        trouble=shorten(station.trouble),
        at_fault=(AtFault.HOST if station.down else AtFault.ITEMS) if station.trouble else None,
    )


def _processing(status: EventsStatus) -> str:
    if not status.running:
        return f"ended with {count(status.posts, 'post')} and {count(status.errors, 'error')}"
    return status.doing


def _troubles(status: EventsStatus) -> list[str]:
    found = [status.trouble] if status.trouble else []
    if status.queue is None:
        found.append("the queue does not answer")
    elif status.queue.dead:
        found.append(f"{count(status.queue.dead, 'message')} given up")
    if status.modes_trouble:
        found.append(f"the modes are as before: {status.modes_trouble}")
    if status.outbox_trouble:
        found.append(status.outbox_trouble)
    return found
