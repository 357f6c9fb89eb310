"""What a status comes to for people, whichever system wrote it; and the few words that all of them share. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

# As many as are sent of each, whatever a status has: it is sent every second to everyone who looks.
MOST_NAMES, MOST_LISTED, MOST_TROUBLES, MOST_NUMBERS = 50, 20, 10, 8
LONGEST = 500  # characters of a text

ASKED, ALLOWED, KEPT, FAILED, WAITING = "asked", "allowed", "kept", "failed", "waiting"
COUNTERS = (ASKED, ALLOWED, KEPT, FAILED)


class Work(NamedTuple):
    """What was done since a process began, in whatever it deals in."""

    asked: float  # that was asked for
    refused: float  # of that, what was turned away
    kept: float
    failed: float
    waiting: int  # now


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A status for people."""

    doing: str
    paused: bool | None = None  # None if the status does not say
    troubles: tuple[str, ...] = ()
    work: Work
    counters: Mapping[str, float] = {}  # besides, of which the rate is a series of its own
    gauges: Mapping[str, float | None] = {}  # series of values as they are
    numbers: tuple[tuple[str, str], ...] = ()
    facts: msgspec.Struct


def told_counters(told: Told) -> dict[str, float]:
    """Everything of which the rate is of interest."""
    work = told.work
    allowed = max(0.0, work.asked - work.refused)
    return {ASKED: work.asked, ALLOWED: allowed, KEPT: work.kept, FAILED: work.failed, **told.counters}


def short(text: str) -> str:
    """A text, cut where it is long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def shorts(texts: Iterable[str], most: int = MOST_TROUBLES) -> tuple[str, ...]:
    """The first of them, each cut where it is long; and how many more there are."""
    every = tuple(texts)
    more = (f"and {len(every) - most + 1:,} more",) if len(every) > most else ()
    return (*(short(each) for each in every[: most - len(more)]), *more)


def most(counts: Mapping[str, int]) -> dict[str, int]:
    """The largest of some counts, by name."""
    several = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return {short(name): number for name, number in several[:MOST_NAMES]}


def count(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Bytes, as people say it."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number:.0f} B"


def duration(seconds: float | None) -> str:
    """Seconds, as people say it."""
    if seconds is None:
        return "unknown"
    if 0 < abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    if abs(seconds) < 100:
        return f"{seconds:.1f} s" if 0 < abs(seconds) < 9.95 else f"{seconds:.0f} s"
    if 0 < seconds < 600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    minutes = round(seconds / 60)
    if abs(minutes) < 100:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24:,} days"


def listed(names: Iterable[str], limit: int = 3) -> str:
    """Some names, and how many more there are."""
    every = tuple(names)
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return f"{', '.join(each[:100] for each in every[:limit])}{more}"
