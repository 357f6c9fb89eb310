"""Tell people what happens: into the log at once, and to a webhook as fast as it takes them.

Whoever has something to say never waits for that and never learns that it failed: a crawl must not stand still because
a chat does. An alert that is *sparse* is one of a kind that comes in crowds: one of them is sent per minute, and one
whose turn does not come soon is dropped. What is dropped, or could not be sent, is counted, and the next alert that is
sent says how many there were.
"""

import asyncio
import logging
import math
import random
import re
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from sanderling.clock import Clock
from sanderling.observe import logs

log = logs.get(__name__)


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


class Fate(Enum):
    """What came of an attempt to send."""

    SENT = auto()
    LATER = auto()  # it may work if it is tried again
    NEVER = auto()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of an attempt, and why, in words without secrets."""

    fate: Fate
    why: str = ""
    wait: float = 0.0  # seconds that the receiver asked for


class AlertSink(Protocol):
    """Where alerts go besides the log."""

    async def send(self, alert: Alert, at: float) -> Receipt:
        """Try once; `at` is when it was said, in Unix seconds. Does not raise."""


SEVERITY = {
    Level.WARNING: logging.WARNING,
    Level.SERIOUS: logging.WARNING,
    Level.ERROR: logging.ERROR,
    Level.CRITICAL: logging.ERROR,
}
# What a line of the log has anyway, or is called inside the logger: a field of an alert must not take its place.
TAKEN = {"title", "event", "level", "timestamp", "where", "exc_info", "exception", "exception_type", "traceback"}
TAKEN |= {"self", "method_name"}


class Alerts:
    """`async with Alerts(sink, clock, rng) as alerts: alerts.say(alert)`. Without a sink they go only into the log."""

    def __init__(
        self, sink: AlertSink | None, clock: Clock, rng: random.Random, rules: AlertRules | None = None
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._rng = rng
        self._rules = rules or AlertRules()
        self._outbox = Outbox(self._rules)
        self._news = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._close_by: float | None = None
        self._unsent = 0  # by an attempt that is under way
        self._failing = False  # and the log knows

    def __repr__(self) -> str:
        return f"<Alerts to {self._sink or 'the log'}, {len(self._outbox)} waiting>"

    def say(self, alert: Alert) -> None:
        """Log it and have it sent, some time; returns at once."""
        _write(alert)
        if self._sink is not None and self._close_by is None:
            self._outbox.put(alert, self._clock.now(), self._clock.wall())
            self._news.set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        if self._sink is not None:
            self._group.create_task(self._send_all(self._sink))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send what is left, for a few seconds; what ended us is not the group's concern, and comes out as it was."""
        self._close_by = self._clock.now() + self._rules.flush
        self._news.set()
        try:
            async with asyncio.timeout(self._rules.flush):
                await self._group.__aexit__(None, None, None)
        except TimeoutError:
            pass  # said below
        if left := len(self._outbox) + self._outbox.dropped + self._unsent:
            log.warning("ALERTS_NOT_SENT", number=left)

    async def _send_all(self, sink: AlertSink) -> None:
        while True:
            waiting = self._outbox.take(self._clock.now())
            if waiting is not None:
                await self._deliver(sink, waiting)
            elif self._over():
                return
            else:
                await self._next()

    def _over(self) -> bool:
        """Whether we close, and what is left would not go in time."""
        due = self._outbox.due()
        return self._close_by is not None and (due is None or due > self._close_by)

    async def _next(self) -> None:
        """Return when there is something to look at: an alert that was said, or one whose time has come."""
        due = self._outbox.due()
        timer = None if due is None else self._clock.call_later(due - self._clock.now(), self._news.set)
        try:
            await self._news.wait()
        finally:
            self._news.clear()
            if timer is not None:
                timer.cancel()

    async def _deliver(self, sink: AlertSink, waiting: Waiting) -> None:
        dropped, self._outbox.dropped = self._outbox.dropped, 0
        self._unsent = 1 + dropped
        alert, receipt = _with_dropped(waiting.alert, dropped), Receipt(Fate.LATER)
        for attempt in range(self._rules.attempts):
            receipt = await sink.send(alert, waiting.at)
            if receipt.fate is not Fate.LATER:
                break
            # After the last one too: what the receiver asked for holds for the next alert as well.
            await self._clock.sleep(max(receipt.wait, self._backoff(attempt)))
        if receipt.fate is Fate.SENT:
            self._failing = False
        else:
            self._outbox.dropped += self._unsent
            self._complain(receipt)
        self._unsent = 0

    def _backoff(self, attempt: int) -> float:
        return min(self._rules.longest, self._rules.backoff * 2.0 ** min(attempt, 60)) * self._rng.uniform(0.5, 1)

    def _complain(self, receipt: Receipt) -> None:
        """Log it once, until one is sent again: whoever reads the log has the alerts themselves before their eyes."""
        if not self._failing:
            self._failing = True
            log.warning("ALERTS_FAIL", why=receipt.why, again=receipt.fate is Fate.LATER)


def _write(alert: Alert) -> None:
    fields = {_key(field.name): field.value.replace("`", "") for field in alert.fields}
    log.log(SEVERITY.get(alert.level, logging.INFO), alert.kind.upper(), title=alert.title, **fields)


def _key(name: str) -> str:
    """The name of a field as logs write it."""
    key = re.sub(r"\W+", "_", name.lower()).strip("_") or "field"
    return f"{key}_" if key in TAKEN else key


def _with_dropped(alert: Alert, dropped: int) -> Alert:
    if not dropped:
        return alert
    return replace(alert, fields=(*alert.fields, Field("Alerts Not Sent Before", str(dropped))))


def duration(seconds: float | None) -> str:
    """Seconds as alerts write them: 500ms, 45.5s, 5m, 5m 30.5s, 1h 30m 15.5s; None is not known."""
    if seconds is None or not math.isfinite(seconds):
        return "unknown"
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if round(seconds, 3) < 1:
        return f"{seconds * 1000:.0f}ms"
    # Rounded first: 59.97 seconds are a minute and not 60.0 seconds.
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest / 10, "s"))
    return " ".join(f"{number:.12g}{unit}" for number, unit in parts if number)
