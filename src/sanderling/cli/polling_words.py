"""Polling in words: how it stands, and what changed."""

from collections.abc import Iterator

from sanderling.cli.pages_summary import count, duration
from sanderling.polling.measures import ACCELERATED, USUAL, Late
from sanderling.polling.status import ChangeStatus, NextStatus, PollingStatus

MARKS = {"insert": "+", "update": "~", "delete": "-", "purge": "x"}
MOST_FIELDS = 4  # of a change


def often(seconds: float) -> str:
    """An interval, as people say it."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:g} s" if seconds < 120 else duration(seconds)


def targets(status: PollingStatus) -> str:
    """How many targets there are, and of what sort."""
    counts = status.targets
    kinds = (
        (counts.accelerated, "live"),
        (counts.failing, "failing"),
        (counts.paused, "paused"),
        (counts.gone, "gone"),
    )
    more = [f"{number:,} {what}" for number, what in kinds if number]
    return ", ".join([count(counts.all, "target"), *more])


def lateness(late: Late | None) -> str:
    """How punctual runs were lately."""
    if late is None:
        return "no runs lately"
    return f"{late.p50 * 1000:.1f} ms late at the median, {late.p99 * 1000:.1f} ms for one in a hundred"


def runs(status: PollingStatus) -> str:
    """What was run, and how it went."""
    parts = [f"{count(status.ran, 'run')}", f"{status.rate:,.1f}/s"]
    if status.failed:
        parts.append(f"{status.failed:,} failed")
    if missed := sum(status.missed.values()):
        parts.append(f"{missed:,} missed")
    return ", ".join(parts)


def change(each: ChangeStatus) -> str:
    """A change, on one line."""
    fields = ", ".join(each.fields[:MOST_FIELDS]) + (" …" if len(each.fields) > MOST_FIELDS else "")
    return f"{each.seq:>6} {MARKS[each.op]} {each.table or 'everything'} {each.key[:8]} {fields}".rstrip()


def upcoming(each: NextStatus) -> str:
    """A target and when it runs."""
    when = "now" if each.due <= 0 else f"in {each.due:.1f} s"
    return f"{each.kind} {each.source_id[:8]} {when}, every {often(each.interval)}"


def live(status: PollingStatus) -> str:
    """Which targets are accelerated."""
    if not status.accelerated:
        return "nothing"
    first, *others = status.accelerated
    more = f", and {len(others)} more" if others else ""
    return f"{first.kind} {first.source_id[:8]} every {often(first.interval)}{more}"


def troubles(status: PollingStatus) -> Iterator[str]:
    """What is wrong, if anything."""
    if status.store_trouble:
        yield status.store_trouble
    if status.discovery_trouble:
        yield f"what there is to poll is not to be found out: {status.discovery_trouble}"
    yield from status.problems
    for each in status.subscribers:
        if each.trouble:
            yield f"{each.name}: {count(each.behind, 'change')} behind: {each.trouble}"


def line(status: PollingStatus) -> str:
    """All of it on one line."""
    parts = [status.doing, targets(status), runs(status), f"{count(status.changed, 'change')}"]
    if USUAL in status.late:
        parts.append(f"{status.late[USUAL].p50 * 1000:.0f} ms late")
    if ACCELERATED in status.late:
        parts.append(f"live: {status.late[ACCELERATED].p50 * 1000:.0f} ms late")
    return ", ".join(parts)
