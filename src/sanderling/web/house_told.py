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


def listed(names: Iterable[str], limit: int = 3) -> str:
    """Some names, and how many more there are."""
    every = tuple(names)
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return f"{', '.join(each[:100] for each in every[:limit])}{more}"
