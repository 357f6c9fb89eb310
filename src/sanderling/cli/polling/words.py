"""Polling in words: what it is at, how punctual it is, and what is wrong."""

from collections.abc import Iterator
from math import inf

from sanderling.outcome import Code
from sanderling.polling.measures import ACCELERATED, USUAL, Late
from sanderling.polling.status import PollingStatus
from sanderling.words import count, duration

SHORT = 8  # characters of an id that are shown where all of it has no room


def often(seconds: float) -> str:
    """An interval, as people say it."""
    if seconds < 1:
        return f"{seconds * 1000:g} ms"
    return f"{seconds:g} s" if seconds < 120 else duration(seconds)


def milliseconds(seconds: float) -> str:
    """A time that should be short."""
    if seconds >= 10:
        return duration(seconds)
    return f"{seconds * 1000:.1f} ms" if seconds < 0.01 else f"{seconds * 1000:,.0f} ms"


def targets(status: PollingStatus) -> str:
    """How many targets there are, and of what sort."""
    counts = status.targets
    sorts = ((counts.failing, "failing"), (counts.paused, "paused"), (counts.gone, "gone"))
    more = [f"{number:,} {what}" for number, what in sorts if number]
    return ", ".join([count(counts.all, "target"), *more])


def now(status: PollingStatus) -> str:
    """What it is at, and who is live."""
    if status.store_trouble or not status.enabled or not status.targets.all:
        return status.doing
    if status.targets.paused == status.targets.all:
        return status.doing
    if not status.accelerated:
        kind, _, current = status.current.partition(" ")
        return f"nothing is live; the current {kind} is {current[:SHORT]}" if current else "nothing is live"
    first, *others = status.accelerated
    more = f", and {len(others)} more" if others else ""
    return f"{first.kind} {first.source_id[:SHORT]} is live: asked for every {often(first.interval)}{more}"


def punctual(status: PollingStatus) -> str:
    """How late runs began lately, of those that matter most."""
    for pace, what in ((ACCELERATED, "live runs"), (USUAL, "runs")):
        if late := status.late.get(pace):
            return f"{what} by {milliseconds(late.p50)} at the median, 99 of 100 by {milliseconds(late.p99)} at most"
    return "no runs lately"


def lateness(late: Late) -> str:
    """How late all runs began."""
    half, most = (f"within {milliseconds(each)}" if each < inf else "at any time" for each in (late.p50, late.p99))
    return f"half began {half} of their time, 99 of 100 {most}"


def runs(status: PollingStatus) -> str:
    """What was run, and how it went."""
    missed = sum(status.missed.values())
    return f"{status.ran:,}, {status.rate:,.1f} a second; {status.failed:,} failed, {missed:,} missed"


def host(status: PollingStatus) -> str:
    """How the host is, and what the limiter makes of it."""
    view = status.limiter
    if view is None:
        return "not asked yet"
    return view.why if view.latency is None else f"answers in {milliseconds(view.latency)}; {view.why}"


def told(status: PollingStatus) -> str:
    """How much changed, and who was told."""
    parts = [f"{count(status.changed, 'row')} changed"]
    if status.followers:
        parts.append(f"{status.followers:,} follow the stream")
    parts += [f"{each.name} is {count(each.behind, 'change')} behind" for each in status.subscribers if each.behind]
    return ", ".join(parts)


def troubles(status: PollingStatus) -> Iterator[str]:
    """What is wrong, if anything."""
    if status.store_trouble:
        yield status.store_trouble
    if status.discovery_trouble:
        # Our own guard: a name that turned out to be one of ours.
        hint = "; see --private" if status.discovery_trouble.startswith(Code.REFUSED) else ""
        yield f"what there is to poll could not be found out: {status.discovery_trouble}{hint}"
    yield from status.problems
    for each in status.subscribers:
        if each.trouble:
            yield f"{each.name}: {count(each.behind, 'change')} behind: {each.trouble}"


def line(status: PollingStatus) -> str:
    """All of it on one line."""
    parts = [targets(status), f"{count(status.ran, 'run')}, {status.rate:,.1f} a second"]
    if status.failed:
        parts.append(f"{status.failed:,} failed")
    parts.append(told(status))
    for pace, what in ((ACCELERATED, "live runs"), (USUAL, "runs")):
        if pace in status.late:
            parts.append(f"{what} {milliseconds(status.late[pace].p50)} late")
            break
    return ", ".join(parts)
