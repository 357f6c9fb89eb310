"""The report: what a system does, as one typed value. Every page, screen, metric and summary is drawn from it.

A system makes its report from its status (`pages/report.py`, `sequence/report.py`); nobody else needs to know what its
status looks like. Reports are read often and by many, so texts and lists of names are bounded (`shorten`, `largest`).
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

# Bounds of what is shown, whatever a status has: a report is drawn every second for everyone who looks.
MOST_NAMES, MOST_LISTED, MOST_TROUBLES, MOST_NUMBERS = 50, 20, 10, 8
LONGEST = 500  # characters of a text
LONGEST_NAME = 100  # characters of a name within a list of names

ASKED, ALLOWED, KEPT, FAILED, WAITING = "asked", "allowed", "kept", "failed", "waiting"

Facts_co = TypeVar("Facts_co", bound=msgspec.Struct, covariant=True)


class WorkCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Work in the items of the system: pages, records, messages. All but `waiting` only grow while the process runs.

    Those of `pages` go on from earlier runs of the crawl.
    """

    asked: int  # requests sent, or messages taken
    refused: int  # of those, the ones that the host or the queue did not accept
    kept: int  # items stored
    failed: int  # items given up
    waiting: int  # items that wait now


class HostCondition(StrEnum):
    """How a host stands."""

    GOING = "going"  # it is asked, and answers
    DONE = "done"  # nothing waits for it, and nothing is in flight
    THROTTLED = "throttled"  # it told us to wait
    FAILING = "failing"  # its circuit is open, or it says that it is switched off: only probes are sent
    SET_ASIDE = "set aside"  # it has not answered for so long that its items wait for the next run


class AtFault(StrEnum):
    """Who caused a failure."""

    HOST = "host"
    ITEMS = "items"  # as far as is known: the circuit of the host is closed


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """One host."""

    host: str
    state: HostCondition
    waiting: int  # items that wait for it
    in_flight: int  # requests to it that have no answer yet
    trouble: str = ""  # why it does not go well, in words; empty if it does
    at_fault: AtFault | None = None  # who caused the trouble; None without one, and for a host that only throttles


class Report(msgspec.Struct, Generic[Facts_co], frozen=True, kw_only=True):
    """What a system does. `Report[PagesFacts]` is that of `pages`, and the type that its JSON is decoded with."""

    system: str  # which of the systems: "pages", "sequence", …
    doing: str  # what it is at, in one sentence
    paused: bool = False  # whether somebody paused it
    troubles: tuple[str, ...] = ()  # what is wrong, a sentence each, the most important first
    work: WorkCounts
    set_aside: int = 0  # of the items that wait, those of hosts that do not answer
    hosts: tuple[HostReport, ...] = ()  # the hosts that are asked most; empty if the system does not list any
    classes: Mapping[str, int] = {}  # requests given to each class of work since the start; empty if it has no classes
    counters: Mapping[str, float] = {}  # further counts that only grow; the rate of each is a series
    gauges: Mapping[str, float | None] = {}  # further values that go up and down, each a series; None if unknown
    numbers: tuple[tuple[str, str], ...] = ()  # label and text of the figures that matter most, in their order
    facts: Facts_co  # what only this system has

    def totals(self) -> dict[str, float]:
        """Return all counts of which the rate is of interest, by name."""
        work = self.work
        allowed = max(0, work.asked - work.refused)
        return {ASKED: work.asked, ALLOWED: allowed, KEPT: work.kept, FAILED: work.failed, **self.counters}


AnyReport = Report[msgspec.Struct]


def paced_by(pace: str) -> str:
    """Say what moves the pace of hosts, if that is not what usually does."""
    return "" if pace == "governor" else f", paced by {pace}"


def shorten(text: str) -> str:
    """Cut a text that is too long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def shorten_all(texts: Iterable[str], most: int = MOST_TROUBLES) -> tuple[str, ...]:
    """Return the first texts, each cut if it is too long; the last then says how many more there are."""
    every = tuple(texts)
    more = (f"and {len(every) - most + 1:,} more",) if len(every) > most else ()
    return (*(shorten(each) for each in every[: most - len(more)]), *more)


def largest(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the largest counts by name, the largest first."""
    several = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return {shorten(name): number for name, number in several[:MOST_NAMES]}


def join_names(names: Iterable[str], most: int = 3) -> str:
    """Return the first names on one line, and how many more there are."""
    every = tuple(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return f"{', '.join(each[:LONGEST_NAME] for each in every[:most])}{more}"
