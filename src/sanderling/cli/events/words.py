"""`events` in words: what it is at, what came of it, and what is wrong."""

from collections.abc import Iterator, Mapping

from sanderling.events.lately import ShortError
from sanderling.events.status import ConsumerStatus, EventsStatus
from sanderling.words import count, duration

LABELS = ("positive", "neutral", "negative")
MOST_CODES = 4


def done(status: EventsStatus | ConsumerStatus) -> str:
    """What is in the rows."""
    batches = "1 batch" if status.batches == 1 else f"{status.batches:,} batches"
    return f"{batches}: {count(status.posts, 'post')}, {count(status.errors, 'error')}"


def pace(status: EventsStatus) -> str:
    """How fast it goes."""
    return f"{status.lately.items:,.0f} items a second, in {status.lately.batches:,.1f} batches"


def queue(status: EventsStatus) -> str:
    """What waits."""
    if status.queue is None:
        return "does not say how many messages wait"
    depth = status.queue
    parts = [f"{depth.ready:,} waiting"]
    parts += [
        f"{number:,} {what}" for number, what in ((depth.taken, "in hand"), (depth.delayed, "for later")) if number
    ]
    if depth.dead:
        parts.append(f"{depth.dead:,} given up")
    return ", ".join(parts)


def messages(status: EventsStatus) -> str:
    """What became of the messages."""
    parts = [f"{status.processed:,} done"]
    several = (
        (status.duplicates, "seen before"),
        (status.reused, "under the id of another"),
        (status.postponed, "put off"),
        (status.failed, "given up"),
    )
    return ", ".join([*parts, *(f"{number:,} {what}" for number, what in several if number)])


def sentiments(status: EventsStatus) -> str:
    """How posts were meant."""
    found = {label.lower(): number for label, number in status.sentiments.items()}
    parts = [f"{found.get(label, 0):,} {label}" for label in LABELS]
    skipped = sum(status.skipped.values())
    return ", ".join([*parts, f"{skipped:,} not read"] if skipped else parts)


def errors(status: EventsStatus) -> str:
    """Items that are no posts, by category, and the most frequent codes."""
    return f"{categories(status)}; {codes(status)}" if status.errors else "none"


def categories(status: EventsStatus) -> str:
    """The share of errors, and how many there are of each category."""
    return f"{status.error_rate:.1%}: {listed(status.categories)}" if status.errors else "none"


def codes(status: EventsStatus) -> str:
    """The most frequent codes."""
    return listed(dict(sorted(status.codes.items(), key=lambda each: -each[1])[:MOST_CODES])) or "none"


def listed(counts: Mapping[str, int]) -> str:
    """Counts by name, the largest first."""
    several = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{name} {number:,}" for name, number in several)


def sent(status: EventsStatus) -> str:
    """What went out, and what waits to."""
    waiting = "" if not status.outbox else f"; {count(status.outbox, 'message')} in the outbox"
    return f"{listed(status.sent) or 'nothing yet'}{waiting}"


def modes(status: EventsStatus) -> str:
    """Which formats are processed."""
    now = status.modes
    on = [name for name in ("new", "legacy", "inline") if getattr(now, name)]
    share = f", of the new ones {now.canary:.0%}" if now.new and now.canary < 1 else ""
    return f"{', '.join(on) or 'none'}{share}"


def consumer(found: ConsumerStatus, wall: float) -> str:
    """One of several processes."""
    if not found.running:
        since = duration(max(0.0, wall - found.wall))
        return f"process {found.pid}, not running, last heard of {since} ago: {done(found)}"
    return f"process {found.pid}, {found.doing}; {found.items_per_second:,.0f} items a second; {done(found)}"


def error(found: ShortError) -> str:
    """One item that is no post."""
    return f"{found.platform or 'unknown'} {found.content_id or '?'}: {found.code}: {found.message}".rstrip(": ")


def troubles(status: EventsStatus) -> Iterator[str]:
    """What is wrong, if anything."""
    if status.trouble:
        yield status.trouble
    if status.queue is None:
        yield "the queue is not to be had"
    if status.modes_trouble:
        yield f"the modes are as before, for {status.modes_trouble}"
    if status.outbox_trouble:
        yield status.outbox_trouble


def line(status: EventsStatus) -> str:
    """All of it on one line."""
    return f"{done(status)}; {pace(status)}; {queue(status)}"
