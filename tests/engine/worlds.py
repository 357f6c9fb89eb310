"""A world for the engine: hosts with faults, a disk that survives a crash, and all that happened, in order.

One seed, one run. Nothing here knows how the engine works: the source, the handler and the sink keep to `engine.ports`,
and write down what they see. What must never be is noted in `World.wrong`, since an engine may catch an assertion.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf
from random import Random
from typing import NamedTuple

from sanderling.engine.classes import Class
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import WriterRules
from sanderling.limit import LimiterRules, PaceRules
from sanderling.outcome import Code, Outcome
from sanderling.testing import LoopClock

TRICKLE = 100.0  # bytes a second of an answer that trickles


class Fault(Enum):
    """What a host does with a request."""

    GOOD = auto()
    MISSING = auto()
    SLOW = auto()  # answers, after seconds without a byte
    HANG = auto()  # never answers
    CUT = auto()
    ERROR = auto()
    AWAY = auto()  # a 503 that says no time
    BUSY = auto()
    BUSY_FOR = auto()  # with a Retry-After
    UNREACHED = auto()
    OWN = auto()  # a document of the host's own fails, before the item is asked for
    TRICKLE = auto()
    SILENT = auto()  # a stream that is meant to be silent
    FLAWED = auto()  # answers, and not with what was asked for


FAILURES = (Fault.HANG, Fault.CUT, Fault.ERROR)  # which may be the item's fault
OUTAGES = (*FAILURES, Fault.AWAY, Fault.UNREACHED, Fault.OWN)
REFUSALS = (Fault.BUSY, Fault.BUSY_FOR)
CODES = {Fault.HANG: Code.TIMEOUT, Fault.CUT: Code.CONNECTION_RESET, Fault.ERROR: Code.HOST_UNAVAILABLE}
CODES[Fault.FLAWED] = Code.HTTP_ERROR

Key = tuple[str, str]


class Item(NamedTuple):
    """One item. Its name is another's only at another host."""

    host: str
    name: str
    of: Class = Class.NEW
    due: float = 0.0
    fault: Fault = Fault.GOOD
    size: int = 2000
    children: tuple["Item", ...] = ()  # which are found in its answer
    skip: bool = False  # the source decides without asking

    @property
    def key(self) -> str:
        """As the engine knows it, of its host."""
        return self.name

    @property
    def id(self) -> Key:
        """As the disk knows it."""
        return self.host, self.name


class Spell(NamedTuple):
    """What a host does for a while, to a share of requests."""

    fault: Fault
    start: float = 0.0
    end: float = inf
    share: float = 1.0


class Plan(NamedTuple):
    """One simulated host."""

    name: str
    latency: float = 0.1
    spells: tuple[Spell, ...] = ()
    cap: float | None = None  # requests a second that somebody has asked us not to exceed


@dataclass(slots=True, eq=False)
class Request:
    """One request that was sent."""

    item: Item
    at: float
    probe: bool  # it is not waited for as long: to tell how the host is, or since the host hangs
    judges: bool  # its failure is the host's
    failures: int  # in a row before it, as the engine counts them
    untried: int  # items due at the host that were never asked for, or did not fail when they were
    fault: Fault = Fault.GOOD
    outcome: Outcome | None = None  # None while it is out, and for one that was cut off
    ended: float = inf

    @property
    def received(self) -> int | None:
        """Bytes of the answer so far."""
        now = asyncio.get_running_loop().time()
        if self.fault is Fault.SILENT:
            return None
        return int((now - self.at) * TRICKLE) if self.fault is Fault.TRICKLE else 0


class Ended(NamedTuple):
    """A record: an item has its end."""

    id: Key
    outcome: Outcome
    size: int = 0


class Waits(NamedTuple):
    """A record: an item is due again."""

    id: Key
    failures: int
    due: float


class Aside(NamedTuple):
    """A record: a host was set aside, or welcomed."""

    host: str
    outcome: Outcome | None


Record = Ended | Waits | Aside


@dataclass(slots=True)
class Row:
    """An item on disk."""

    item: Item
    due: float
    failures: int = 0
    ends: list[Outcome] = field(default_factory=list)


class Disk:
    """What survives."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.rows = {item.id: Row(item, item.due) for item in items}
        self.asides: dict[str, Outcome] = {}
        self.wrong: list[str] = []

    def commit(self, ended: Sequence[Record], found: Sequence[Item], open_then: frozenset[Key]) -> None:
        """Write a batch, all of it."""
        for record in ended:
            match record:
                case Ended(key, outcome, _):
                    self.rows[key].ends.append(outcome)
                case Waits(key, failures, due):
                    self.rows[key].failures, self.rows[key].due = failures, due
                case Aside(host, None):
                    self.asides.pop(host, None)
                case Aside(host, outcome):
                    assert outcome is not None
                    self.asides[host] = outcome
        unended = {key for key, row in self.rows.items() if not row.ends}
        if open_then != unended:
            self.wrong.append(f"open at the checkpoint and not so on disk: {sorted(open_then ^ unended)}")
        for item in found:
            if item.id not in self.rows:
                self.rows[item.id] = Row(item, item.due)

    @property
    def waiting(self) -> list[Row]:
        """What has no end yet."""
        return [row for row in self.rows.values() if not row.ends]


class StoreAwayError(Exception):
    """We stop, and the store is not there."""


@dataclass(frozen=True, slots=True)
class Store:
    """How the disk behaves: seconds of a write, and between when it is not there."""

    takes: float = 0.004
    away: tuple[float, float] = (inf, inf)


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers of a run."""

    engine: EngineRules = field(default_factory=EngineRules)
    writer: WriterRules = field(default_factory=WriterRules)
    limits: LimiterRules = field(default_factory=lambda: limits(8.0))
    store: Store = field(default_factory=Store)
    wanted: float = inf  # items that are enough


def limits(rps: float) -> LimiterRules:
    """A limiter that begins at its highest rate: where only faults slow it down."""
    return LimiterRules(PaceRules(initial_rps=rps, min_rps=min(0.25, rps), max_rps=rps))


class SpinningError(SystemExit):
    """Time stands still. Nobody may catch it, a loop that spins least of all."""


class CountingClock(LoopClock):
    """Counts how often it is read at one instant."""

    def __init__(self) -> None:
        super().__init__()
        self._last, self._reads = -1.0, 0

    def now(self) -> float:
        """The time, unless it stands still."""
        now = super().now()
        self._reads = self._reads + 1 if now == self._last else 0
        self._last = now
        if self._reads > 100_000:
            raise SpinningError(f"the time is {now}, again and again")
        return now


class World:
    """Hosts and a disk; machines come and go."""

    def __init__(self, plans: Iterable[Plan], items: Iterable[Item], rules: Rules | None = None, seed: int = 0) -> None:
        self.plans = {plan.name: plan for plan in plans}
        self.rules = rules or Rules()
        self.disk = Disk(items)
        self.seed = seed
        self.chance = {name: Random(f"{seed}/{name}") for name in self.plans}
        self.clock = CountingClock()
        self.sent: list[Request] = []
        self.ever: set[Key] = set()  # that was asked for
        self.flying: dict[str, list[Request]] = {name: [] for name in self.plans}
        self.quiet: dict[str, tuple[float, float]] = {}  # host: when it asked for quiet, and until when
        self.saved: bytes | None = None  # what a limiter has learned
        self.left: set[Key] = set()  # items that were refused for too long
        self.lines: list[str] = []
        self.wrong: list[str] = []
        self.asides: list[tuple[float, str]] = []  # when, and which host
        self.dues: list[tuple[str, float]] = []  # when a host that is set aside is next asked how it is
        self.welcomes: list[tuple[float, str]] = []
        self.writes: list[tuple[float, list[Record]]] = []  # when a batch was handed over, and what was in it
        self.ends: list[tuple[float, Ended]] = []
        self.clock_at_end = inf
        self.most = Counter[str]()  # the highest of what was counted: in flight, per host, unwritten

    def note(self, *words: object) -> None:
        """Write down what happened now."""
        self.lines.append(" ".join([repr(self.clock.now()), *map(str, words)]))

    def decide(self, item: Item) -> Fault:
        """What the host does with a request that is sent now."""
        now, chance = self.clock.now(), self.chance[item.host]
        for spell in self.plans[item.host].spells:
            if spell.start <= now < spell.end and (spell.share >= 1 or chance.random() < spell.share):
                return spell.fault
        return item.fault

    def asked(self, key: Key) -> list[Request]:
        """All requests for an item."""
        return [request for request in self.sent if request.item.id == key]

    def at(self, host: str) -> list[Request]:
        """All requests to a host."""
        return [request for request in self.sent if request.item.host == host]

    def good(self, host: str, until: float = inf) -> int:
        """How many items of a host were answered well."""
        return sum(1 for each in self.at(host) if each.outcome is not None and each.outcome.ok and each.ended <= until)
