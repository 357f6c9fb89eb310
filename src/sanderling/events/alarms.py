"""What people are told about batches, and when: at once, but not again and again.

| alert | when | over when |
|---|---|---|
| Items Cannot Be Read | items are errors of parsing: a crawler or we must be repaired | |
| Message Buried | a message was given up | |
| Event Id Reused | a batch came under the event id of another: whoever publishes must be repaired | |
| Storage Errors Persist | several batches within minutes have errors of storage | as long without, and a batch came |
| Error Rate High | more than a tenth of the last minutes' items are errors | well below, for minutes |
| Error Rate Critical | more than a fifth | the same |

The first three are counted: one is said at once, and what comes within the next minutes is said together when they are
over. The others are said when they begin and when they are over. `Alarms` decides and knows no clock; `EventAlarms` is
what the consumer tells, and what speaks.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from sanderling.clock import Clock
from sanderling.events.lately import Spans, in_short
from sanderling.events.measures import code_label
from sanderling.events.rows import Numbered, ProcessedBatch
from sanderling.observe.alerts import Alert, Field, Level, duration
from sanderling.outcome import Category

ROLL_BACK = "`sanderling events mode --no-new`"
EVERY = 5.0  # seconds between looks
MOST_CODES = 3  # that an alert names
ITEMS = ""  # where all items are counted, beside the codes of those that are errors


@dataclass(frozen=True, slots=True)
class AlarmRules:
    """When to speak. Times in seconds, rates are shares of items."""

    every: float = 600.0  # between two alerts of one kind
    window: float = 600.0  # that a rate is taken over
    least: int = 100  # items for a rate: two full batches, of which one may be the exception
    warning: float = 0.1
    critical: float = 0.2
    over: float = 0.8  # of a threshold, below which it is over: a rate at the threshold is not over every minute
    calm: float = 300.0  # that it must be over before that is said
    storage_batches: int = 3  # with errors of storage: one is an accident
    storage_window: float = 300.0


RULES = AlarmRules()


@dataclass(slots=True)
class Counted:
    """Something that happens. It is said at once, and then at most every so often, with how often it was."""

    every: float
    number: int = 0  # since it was last said
    last: tuple[Field, ...] = ()  # what the last case was
    ready: float = -inf  # when it may be said again

    def add(self, number: int, last: tuple[Field, ...]) -> None:
        """It happened."""
        self.number += number
        self.last = last

    def take(self, now: float) -> tuple[Field, ...]:
        """What is to be said now; nothing if it did not happen, or was said a moment ago."""
        if not self.number or now < self.ready:
            return ()
        fields = (Field("Count", str(self.number)), *self.last)
        self.number, self.ready = 0, now + self.every
        return fields


@dataclass(slots=True)
class AlarmCondition:
    """Something that is so for a while, by its level; 0 is well. Said when it gets worse, and when it is over."""

    every: float
    calm: float
    level: int = 0
    told: int = 0  # the level that people know
    since: float = 0.0  # when it got worse than well, as far as people know
    well: float | None = None  # since when it has been; None while it is not
    ready: dict[int, float] = field(default_factory=dict)  # when a level may be said again

    def move(self, level: int, now: float) -> None:
        """The level is this now."""
        self.level = level
        if not level:
            self.well = now if self.well is None else self.well
            return
        self.well = None
        # What got a little better, and then worse again, is said again.
        self.told = min(self.told, level)

    def worse(self, now: float) -> int:
        """The level that is to be said now; 0 if none is."""
        if self.level <= self.told or now < self.ready.get(self.level, -inf):
            return 0
        if not self.told:
            self.since = now
        self.told, self.ready[self.level] = self.level, now + self.every
        return self.level

    def over(self, now: float) -> float | None:
        """How long it was not well, if it is to be said now that it is over."""
        if not self.told or self.well is None or now - self.well < self.calm:
            return None
        self.told = 0
        return self.well - self.since


class Alarms:
    """What is to be said. `now` is any seconds that only go forward."""

    def __init__(self) -> None:
        self._unread, self._buried, self._reused = (Counted(RULES.every) for _ in range(3))
        self._rate = AlarmCondition(RULES.every, RULES.calm)
        self._storage = AlarmCondition(RULES.every, 0.0)
        # In parts, so that what is kept is bounded however many batches come.
        self._items = Spans(RULES.window / 60, 60)
        self._batches = Spans(RULES.storage_window / 60, 60)

    def processed(self, done: ProcessedBatch, now: float) -> None:
        """A batch is in the rows."""
        by_category: dict[Category, list[Numbered]] = {}
        for each in done.errors:
            by_category.setdefault(each.error.category, []).append(each)
        if unread := by_category.get(Category.PARSING):
            self._unread.add(len(unread), _case(unread, done))
        self._batches.add(now, {"batches": 1, "storage": Category.STORAGE in by_category})
        codes = Counter(code_label(error.code) for _, error in done.errors)
        self._items.add(now, {ITEMS: len(done.posts) + len(done.errors), **codes})

    def buried(self, key: str, why: str) -> None:
        """A message was given up."""
        self._buried.add(1, (Field("Message", _name(key)), Field("Why", in_short(why) or "not said", inline=False)))

    def reused(self, event_id: str, own_id: str) -> None:
        """A batch came under the event id of another."""
        self._reused.add(1, (Field("Event", _name(event_id)), Field("Kept As", _name(own_id))))

    def due(self, now: float) -> list[Alert]:
        """What is to be said now."""
        said = []
        if fields := self._unread.take(now):
            said.append(Alert("items_unreadable", "Items Cannot Be Read", fields, Level.ERROR))
        if fields := self._buried.take(now):
            said.append(Alert("message_buried", "Message Buried", fields, Level.ERROR))
        if fields := self._reused.take(now):
            said.append(Alert("event_id_reused", "Event Id Reused", fields, Level.WARNING))
        return [*said, *self._due_storage(now), *self._due_rate(now)]

    # Errors of storage.

    def _due_storage(self, now: float) -> list[Alert]:
        seen = self._batches.total(now)
        if seen["storage"] >= RULES.storage_batches:
            self._storage.move(1, now)
        elif seen["batches"] and not seen["storage"]:
            self._storage.move(0, now)
        if self._storage.worse(now):
            fields = (
                Field("Batches", f"{seen['storage']} of {seen['batches']}"),
                Field("Within", duration(RULES.storage_window)),
            )
            return [Alert("storage_errors", "Storage Errors Persist", fields, Level.ERROR)]
        lasted = self._storage.over(now)
        return [] if lasted is None else [_over("storage_recovered", "Storage Recovered", lasted)]

    # The error rate.

    def _due_rate(self, now: float) -> list[Alert]:
        codes = self._items.total(now)
        items = codes.pop(ITEMS, 0)
        # Too few of them prove nothing: it stays as it was.
        if items >= RULES.least:
            rate = codes.total() / items
            self._rate.move(self._level(rate), now)
            if worse := self._rate.worse(now):
                return [_worse(worse, self._rates(rate, items, codes))]
        lasted = self._rate.over(now)
        return [] if lasted is None else [_over("error_rate_recovered", "Error Rate Recovered", lasted)]

    def _level(self, rate: float) -> int:
        """0 is well, 1 a warning, 2 critical: up as soon as it is above a bound, down when it is well below."""
        bounds, level = enumerate((RULES.warning, RULES.critical)), self._rate.level
        return sum(rate > bound * (RULES.over if level > place else 1) for place, bound in bounds)

    def _rates(self, rate: float, items: int, codes: Counter[str]) -> tuple[Field, ...]:
        return (
            Field("Rate", f"{rate:.1%}"),
            Field("Items", str(items)),
            Field("Within", duration(RULES.window)),
            Field("Codes", _codes(codes), inline=False),
        )


def _worse(level: int, fields: tuple[Field, ...]) -> Alert:
    if level == 1:
        return Alert("error_rate_high", "Error Rate High", fields, Level.WARNING)
    fields = (*fields, Field("Roll Back", ROLL_BACK, inline=False))
    return Alert("error_rate_critical", "Error Rate Critical", fields, Level.CRITICAL, ping=True)


def _case(unread: list[Numbered], done: ProcessedBatch) -> tuple[Field, ...]:
    """The first of a batch's errors, and where it is."""
    error = unread[0].error
    return (
        Field("Codes", _codes(Counter(code_label(each.error.code) for each in unread))),
        Field("Platform", in_short(error.platform) or "unknown"),
        Field("Job", _name(done.batch.job_id)),
        Field("Event", _name(done.batch.event_id)),
        Field("For Example", in_short(error.message) or "not said", inline=False),
    )


def _name(text: str) -> str:
    """A stranger's name for something, between backticks, so that a chat leaves it as it is."""
    name = in_short(text).replace("`", "'")
    return f"`{name}`" if name else "none"


def _codes(codes: Counter[str]) -> str:
    return ", ".join(f"{code} {number}" for code, number in codes.most_common(MOST_CODES))


def _over(kind: str, title: str, lasted: float) -> Alert:
    return Alert(kind, title, (Field("Time Elapsed", duration(lasted)),))


class EventAlarms:
    """Who the consumer tells what came of batches, and who says to people what follows. `say` is that of `Alerts`."""

    def __init__(self, say: Callable[[Alert], object], clock: Clock) -> None:
        self._say = say
        self._clock = clock
        self._alarms = Alarms()

    def processed(self, done: ProcessedBatch) -> None:
        """A batch is in the rows."""
        self._alarms.processed(done, self._clock.now())
        self.look()

    def buried(self, key: str, why: str) -> None:
        """A message was given up."""
        self._alarms.buried(key, why)
        self.look()

    def reused(self, event_id: str, own_id: str) -> None:
        """A batch came under the event id of another."""
        self._alarms.reused(event_id, own_id)
        self.look()

    def look(self) -> None:
        """Say what is to be said now."""
        for alert in self._alarms.due(self._clock.now()):
            self._say(alert)

    async def run(self) -> None:
        """Look now and then, until cancelled: what was counted is said also if nothing more comes."""
        while True:
            self.look()
            await self._clock.sleep(EVERY)
