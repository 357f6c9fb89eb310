"""Alerts that wait to be sent: which is next, when, and which are dropped when there are too many. No I/O, no clock.

Terms. An alert that is *sparse* is one of a kind that comes in crowds: one of them is sent per minute, and one whose
turn does not come soon is dropped. Whatever is dropped is counted, and the next alert that is sent says how many.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How much an alert matters."""

    STATUS = "status"  # how it goes; the first to be dropped
    INFO = "info"
    WARNING = "warning"
    SERIOUS = "serious"
    ERROR = "error"
    CRITICAL = "critical"


class Field(NamedTuple):
    """A name and a value of an alert; `inline` ones may share a line."""

    name: str
    value: str
    inline: bool = True


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that whoever runs us should know."""

    kind: str  # in snake case; what a log is searched for
    title: str
    fields: tuple[Field, ...] = ()
    level: Level = Level.INFO
    ping: bool = False  # whether people are called
    patience: float | None = None  # makes it sparse: seconds that it waits for its turn


@dataclass(frozen=True, slots=True)
class AlertRules:
    """How many alerts, how fast and how stubbornly. Times in seconds."""

    most: int = 100  # that wait
    interval: float = 2.0  # between two; Discord takes 30 a minute for a channel
    sparse_interval: float = 60.0  # between two sparse ones
    attempts: int = 5  # for one alert, the first included
    backoff: float = 1.0  # before the second attempt; doubles from there
    longest: float = 60.0  # that it doubles to
    flush: float = 5.0  # for what is left when we end

    def __post_init__(self) -> None:
        for name in ("most", "attempts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 1")
        for name in ("interval", "sparse_interval", "backoff", "longest", "flush"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}, expected seconds from 0 up")


class Waiting(NamedTuple):
    """An alert, when it was said, in Unix seconds, and when it gives up waiting."""

    alert: Alert
    at: float
    until: float


class Outbox:
    """What waits, oldest first. `now` is any seconds that only go forward."""

    def __init__(self, rules: AlertRules) -> None:
        self.dropped = 0  # that nobody was told of yet
        self._rules = rules
        self._waiting: list[Waiting] = []
        self._ready = self._sparse_ready = -math.inf

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<Outbox of {len(self)} alerts, {self.dropped} dropped>"

    def put(self, alert: Alert, now: float, at: float) -> None:
        """Let it wait; if that makes too many, the one that matters least is dropped, which may be this."""
        patience = math.inf if alert.patience is None else alert.patience
        self._waiting.append(Waiting(alert, at, now + patience))
        if len(self._waiting) > self._rules.most:
            # min takes the first of equals, which is the oldest.
            self._waiting.remove(min(self._waiting, key=_worth))
            self.dropped += 1

    def take(self, now: float) -> Waiting | None:
        """The one to send now, which no longer waits; None if it is too early for any."""
        self._keep([each for each in self._waiting if each.until >= now])
        taken = next((each for each in self._waiting if self._turn(each) <= now), None)
        if taken is not None:
            self._waiting.remove(taken)
            self._ready = now + self._rules.interval
            if taken.alert.patience is not None:
                self._sparse_ready = now + self._rules.sparse_interval
        # Whoever's patience ends this instant may still be the one that is taken, but waits no longer.
        self._keep([each for each in self._waiting if each.until > now])
        return taken

    def due(self) -> float | None:
        """When the next one is to be taken, or gives up; None if nothing waits."""
        return min((min(each.until, self._turn(each)) for each in self._waiting), default=None)

    def _turn(self, waiting: Waiting) -> float:
        sparse = waiting.alert.patience is not None
        return max(self._ready, self._sparse_ready) if sparse else self._ready

    def _keep(self, alive: list[Waiting]) -> None:
        self.dropped += len(self._waiting) - len(alive)
        self._waiting = alive


def _worth(waiting: Waiting) -> int:
    """What calls people is dropped last, and how it goes first."""
    return 2 if waiting.alert.ping else int(waiting.alert.level is not Level.STATUS)
