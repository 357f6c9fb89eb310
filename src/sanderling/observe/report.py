"""The report: all that is to be known of a system, as one typed value, from which it is shown everywhere.

A running system makes its report (`pages/report.py`, `sequence/report.py`), and status.json is that report as JSON. It
is read often and by many, who compute nothing, so texts and lists of names are bounded (`shorten`, `largest`).
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from sanderling.observe.metric import Metric

# Bounds of what is shown, whatever a status has: a report is drawn every second for everyone who looks.
MOST_NAMES, MOST_LISTED, MOST_TROUBLES, MOST_NUMBERS = 50, 20, 10, 8
LONGEST = 500  # characters of a text
LONGEST_NAME = 100  # characters of a name within a list of names

ASKED, ALLOWED, KEPT, FAILED, WAITING = "asked", "allowed", "kept", "failed", "waiting"

F = TypeVar("F", bound=msgspec.Struct)
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
    FAILED = "failed"  # the same, and its last answer was no good one
    THROTTLED = "throttled"  # it told us to wait, or refused requests above the rate that was learned
    SLOW = "slow"  # its answers take long, or longer the more it is asked
    FLAKY = "flaky"  # some of its answers fail
    CAPPED = "capped"  # it is asked as fast as a rule allows
    FAILING = "failing"  # its circuit is open, or it says that it is switched off: only probes are sent
    SET_ASIDE = "set aside"  # it has not answered for so long that its items wait for the next run


class Severity(StrEnum):
    """How bad a trouble is."""

    INFO = "info"  # worth knowing
    WARNING = "warning"  # part of the work waits or fails; the rest goes on
    ERROR = "error"  # the work stands still, or something is lost unless somebody acts


class Trouble(msgspec.Struct, frozen=True):
    """What is wrong, in a sentence."""

    severity: Severity
    text: str


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """The process that reports. Times are Unix seconds."""

    pid: int
    started: float
    wall: float  # when it reported
    running: bool = True  # as far as it could say: one that was killed did not
    paused: bool = False  # whether somebody paused it, or its disk has no room
    space: str = ""  # where the pid counts, and when that process began: by these its end is known at once
    start: str = ""

    @property
    def seconds(self) -> float:
        """How long it had run when it reported."""
        return self.wall - self.started


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is, where the whole is known."""

    done: int
    whole: int
    what: str  # is counted, in the plural
    failed: int = 0  # of those that are done


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """A value that a screen plots over time."""

    label: str
    value: float | None  # None if it is unknown
    text: str  # the value in words
    counts: bool = False  # whether it is a count that only grows: its growth is plotted


class Event(msgspec.Struct, frozen=True):
    """Something that happened."""

    wall: float  # when, in Unix seconds
    text: str


TROUBLED = (HostCondition.FAILING, HostCondition.SET_ASIDE)
WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


class AtFault(StrEnum):
    """Who caused a failure."""

    HOST = "host"
    ITEMS = "items"  # as far as is known: the circuit of the host is closed


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """One host. Rates are requests a second, times are seconds."""

    host: str
    state: HostCondition
    waiting: int  # items that wait for it
    in_flight: int  # requests to it that have no answer yet
    trouble: str = ""  # why it does not go well, in words; empty if it does
    said: str = ""  # the last thing it said instead of a good answer, if that was the last thing it said
    at_fault: AtFault | None = None  # who caused the trouble; None without one, and for a host that only throttles
    requests: int = 0  # that were sent to it
    refused: int = 0  # of those, the ones that it did not accept
    rate: float = 0.0  # that is allowed now
    ceiling: float | None = None  # that it allows, as far as was learned
    learned: str | None = None  # from what
    cap: float | None = None  # that somebody has asked us not to exceed
    cap_why: str | None = None
    latency: float | None = None  # until it answers
    p95: float | None = None  # the same of all but the slowest twentieth
    usual: float | None = None  # the latency that answers are judged by
    error_rate: float = 0.0  # the share of its last answers that failed
    circuit: str = "closed"  # or open, or half-open
    failures: int = 0  # in a row
    not_before: float = 0.0  # from now on until it may be asked at all
    callers: int = 0  # who wait for leave to ask it
    policy: str = "crawl"  # by which its pace is found
    shares: tuple[str, ...] = ()  # what it draws on together with other hosts: "credential/key 1"
    due: float = 0.0  # when what waits for it is asked again if it was set aside, in Unix seconds
    why: str = ""  # it is asked at this rate, in words


class Report(msgspec.Struct, Generic[Facts_co], frozen=True, kw_only=True):
    """What a system does. `Report[PagesFacts]` is that of `pages`, and the type that its JSON is decoded with."""

    system: str  # which of the systems: "pages", "sequence", …
    doing: str  # what it is at, in one sentence
    process: Process
    troubles: tuple[Trouble, ...] = ()  # what is wrong, the most important first
    time_left: float | None = None  # seconds until all is done; None if that is unknown, or it never ends by itself
    progress: Progress | None = None  # None where no whole is known
    work: WorkCounts
    set_aside: int = 0  # of the items that wait, those of hosts that do not answer
    hosts: tuple[HostReport, ...] = ()  # the hosts that are asked most; empty if the system does not list any
    hosts_known: int = 0  # how many hosts there are, listed or not
    shared: tuple[HostReport, ...] = ()  # what hosts share: a key, a domain, an address
    pace: str = "governor"  # what moves the pace of hosts
    classes: Mapping[str, int] = {}  # requests given to each class of work since the start; empty if it has no classes
    counters: Mapping[str, float] = {}  # further counts that only grow; the rate of each is a series
    gauges: Mapping[str, float | None] = {}  # further values that go up and down, each a series; None if unknown
    numbers: tuple[tuple[str, str], ...] = ()  # label and text of the figures that matter most, in their order
    lines: tuple[tuple[str, str], ...] = ()  # label and text of what needs a line of its own
    activity: tuple[Activity, ...] = ()  # values that are plotted
    events: tuple[Event, ...] = ()  # what happened lately, the oldest first
    metrics: tuple[Metric, ...] = ()  # what only this system counts, for Prometheus
    facts: Facts_co  # what only this system has

    def totals(self) -> dict[str, float]:
        """Return all counts of which the rate is of interest, by name."""
        work = self.work
        allowed = max(0, work.asked - work.refused)
        return {ASKED: work.asked, ALLOWED: allowed, KEPT: work.kept, FAILED: work.failed, **self.counters}

    def texts(self, *severities: Severity) -> tuple[str, ...]:
        """Return the troubles of these severities, in words; without any, all that are wrong."""
        wanted = severities or (Severity.WARNING, Severity.ERROR)
        return tuple(each.text for each in self.troubles if each.severity in wanted)


AnyReport = Report[msgspec.Struct]


def bound_troubles(troubles: Sequence[Trouble], most: int = MOST_TROUBLES) -> tuple[Trouble, ...]:
    """Return the worst troubles, each cut if it is too long; the last then says how many more there are."""
    ordered = sorted(troubles, key=lambda each: WORST_FIRST.index(each.severity))
    texts = shorten_all((each.text for each in ordered), most)
    return tuple(Trouble(each.severity, text) for each, text in zip(ordered, texts, strict=False))


def throttled(hosts: Iterable[HostReport]) -> str:
    """Say which hosts told us to wait."""
    return join_names((each.host for each in hosts if each.circuit == "closed" and each.not_before > 0), 2) or "no host"


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


def add_up(start: F, facts: Iterable[F]) -> F:
    """Add what the parts of one system say to `start`: numbers, and counts by name. All else is as in `start`."""
    sums = msgspec.structs.asdict(start)
    for each in facts:
        for name, value in msgspec.structs.asdict(each).items():
            if isinstance(value, dict):
                sums[name] = {key: sums[name].get(key, 0) + value.get(key, 0) for key in sums[name] | value}
            elif isinstance(value, int) and not isinstance(value, bool):
                sums[name] += value
    return type(start)(**sums)


def join_names(names: Iterable[str], most: int = 3) -> str:
    """Return the first names on one line, and how many more there are."""
    every = tuple(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return f"{', '.join(each[:LONGEST_NAME] for each in every[:most])}{more}"
