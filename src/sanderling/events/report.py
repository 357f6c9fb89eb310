"""What a consumer of events does, as the one report, made from its status. Pure."""

from collections.abc import Iterator, Mapping

import msgspec

from sanderling.events.lately import Minute, ShortError
from sanderling.events.modes import Modes
from sanderling.events.status import ConsumerStatus, EventsStatus, StationStatus
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
    process_of,
    shorten,
)
from sanderling.stores.queue import Dead
from sanderling.words import count, duration

MOST_MINUTES = 60
LABELS = ("positive", "neutral", "negative")
MOST_CODES = 4


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
        process=process_of(status, paused=status.paused),
        troubles=(*disk_troubles(status), *_troubles(status)),
        work=WorkCounts(
            asked=status.received,
            refused=status.postponed,
            kept=status.batches,
            failed=status.failed,
            waiting=waiting,
        ),
        hosts=tuple(map(_station, status.stations)),
        hosts_known=len(status.stations),
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
        lines=tuple(_lines(status)),
        activity=tuple(_activity(status)),
        events=tuple(Event(each.at, _describe(each)) for each in status.recent[-MOST_LISTED:]),
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


def _activity(status: EventsStatus) -> Iterator[Activity]:
    """Count posts by how they were meant, and items that are no posts."""
    meant = {label.lower(): number for label, number in status.sentiments.items()}
    for label in LABELS:
        number = meant.get(label, 0)
        yield Activity(label=label, value=number, text=f"{number:,}", counts=True)
    yield Activity(label="errors", value=status.errors, text=f"{status.errors:,}", counts=True)


def _lines(status: EventsStatus) -> Iterator[tuple[str, str]]:
    """Say what came of messages, what failed and why, and what went out."""
    yield "rows", f"{describe_rows(status)}, written by this run"
    yield "pace", f"{status.lately.items:,.0f} items a second, in {status.lately.batches:,.1f} batches"
    yield "queue", _queue(status)
    yield "messages", _messages(status)
    skipped = sum(status.skipped.values())
    meant = {label.lower(): number for label, number in status.sentiments.items()}
    parts = [f"{meant.get(label, 0):,} {label}" for label in LABELS]
    yield "sentiment", ", ".join([*parts, f"{skipped:,} not read"] if skipped else parts)
    codes = dict(list(largest(status.codes).items())[:MOST_CODES])
    yield (
        "errors",
        f"{status.error_rate:.1%}: {_listed(status.categories)}; {_listed(codes)}" if status.errors else "none",
    )
    yield (
        "platforms",
        _listed({name: each.posts + each.errors for name, each in status.platforms.items()}) or "none yet",
    )
    yield "modes", _modes(status.modes)
    outbox = f"; {count(status.outbox, 'message')} in the outbox" if status.outbox else ""
    yield "sent", f"{_listed(status.sent) or 'nothing yet'}{outbox}"
    for consumer in status.consumers:
        yield "consumer", _consumer(consumer, status.wall)


def describe_rows(status: EventsStatus | ConsumerStatus) -> str:
    """Say what is in the rows."""
    batches = "1 batch" if status.batches == 1 else f"{status.batches:,} batches"
    return f"{batches}: {count(status.posts, 'post')}, {count(status.errors, 'error')}"


def _queue(status: EventsStatus) -> str:
    if status.queue is None:
        return "does not say how many messages wait"
    depth = status.queue
    several = ((depth.taken, "in hand"), (depth.delayed, "for later"), (depth.dead, "given up"))
    return ", ".join([f"{depth.ready:,} waiting", *(f"{number:,} {what}" for number, what in several if number)])


def _messages(status: EventsStatus) -> str:
    several = (
        (status.duplicates, "seen before"),
        (status.reused, "under the id of another"),
        (status.postponed, "put off"),
        (status.failed, "given up"),
    )
    return ", ".join([f"{status.processed:,} done", *(f"{number:,} {what}" for number, what in several if number)])


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in largest(counts).items())


def _modes(now: Modes) -> str:
    on = [name for name in ("new", "legacy", "inline") if getattr(now, name)]
    share = f", of the new ones {now.canary:.0%}" if now.new and now.canary < 1 else ""
    return f"{', '.join(on) or 'none'}{share}"


def _consumer(found: ConsumerStatus, wall: float) -> str:
    """Describe one of several processes."""
    if not found.running:
        since = duration(max(0.0, wall - found.wall))
        return f"process {found.pid}, not running, last heard of {since} ago: {describe_rows(found)}"
    pace = f"{found.items_per_second:,.0f} items a second"
    return f"process {found.pid}, {found.doing}; {pace}; {describe_rows(found)}"


def _describe(error: ShortError) -> str:
    return shorten(f"{error.platform or 'unknown'} {error.content_id or '?'}: {error.code}: {error.message}")


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


def _troubles(status: EventsStatus) -> Iterator[Trouble]:
    if status.trouble:
        yield Trouble(Severity.ERROR, shorten(status.trouble))
    if status.queue is None:
        yield Trouble(Severity.ERROR, "the queue does not answer")
    elif status.queue.dead:
        yield Trouble(Severity.ERROR, f"{count(status.queue.dead, 'message')} given up")
    if status.modes_trouble:
        yield Trouble(Severity.WARNING, shorten(f"the modes are as before: {status.modes_trouble}"))
    if status.outbox_trouble:
        yield Trouble(Severity.WARNING, shorten(status.outbox_trouble))
