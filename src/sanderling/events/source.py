"""Messages in hand: which station each goes to next, and what becomes of it.

| what happens | what becomes of the message |
|---|---|
| it is no message that anyone could read, or its batch is nothing that anyone could | buried, with the reason |
| it has more items than a batch may have, or the database refuses it | buried, with the reason |
| it is of a format that is switched off, or outside the canary's share | back into the queue, for half a minute |
| its batch is not there, or only half | back into the queue, ever longer |
| that is so after many tries | its items that are whole are stored, the rest is an error row; without any, buried |
| a station fails at it, and works for others | back into the queue, ever longer; at the fourth failure buried |
| a station is down | kept in hand until it is back, and nothing more is taken |
| that is not so yet, and we are to stop | left in the queue, as if nobody had taken it |
| its batch is in the rows already | done: it changes nothing |
| its event is in the rows, with another batch | stored under an id of its own, and people are told |

One bad item is an error row, and its 49 neighbours are rows all the same.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Protocol

from sanderling.clock import Clock
from sanderling.engine.classes import Class
from sanderling.engine.ports import Settled
from sanderling.engine.writer import Writer
from sanderling.events.digest import Arrival, Digested
from sanderling.events.envelopes import EnvelopeError, InlineEnvelope, read_envelope
from sanderling.events.measures import Measures
from sanderling.events.message import (
    Buried,
    Done,
    Ended,
    Fetched,
    Found,
    Kept,
    Known,
    Message,
    Missing,
    Poison,
    Postponed,
    Step,
    Told,
    Unknown,
)
from sanderling.events.modes import LiveModes
from sanderling.events.rows import result_message
from sanderling.events.rules import ConsumeRules
from sanderling.events.stations import LOOKUPS, OBJECTS, ROWS, Station
from sanderling.outcome import Outcome
from sanderling.stores.queue import Delivery

MessageWriter = Writer[Ended, object, None, list[Message]]

REMEMBERED = 10_000  # messages that failed and went back: another process may have them, and they never come again


class Watches(Protocol):
    """Who is told what came of batches: alerts."""

    def digested(self, done: Digested) -> None:
        """A batch is in the rows."""

    def buried(self, key: str, why: str) -> None:
        """A message was given up."""

    def reused(self, event_id: str, own_id: str) -> None:
        """A batch came under the event id of another, and is in the rows under one of its own."""


class Around(Protocol):
    """Whoever must know what a source does."""

    def wake(self, station: Station) -> None:
        """A message waits there."""

    def changed(self) -> None:
        """Something may be taken that could not be before."""

    def outgoing(self) -> None:
        """There is something in the outbox."""

    def release(self, message: Message) -> None:
        """A message holds nothing of its batch any more."""

    def is_down(self, station: Station) -> bool:
        """Whether nothing but probes may be asked of the station."""


class MessageSource:
    """What is in hand. `receive` what was taken."""

    def __init__(
        self,
        writer: MessageWriter,
        modes: LiveModes,
        watches: Watches,
        around: Around,
        clock: Clock,
        rules: ConsumeRules,
    ) -> None:
        self.measures = Measures(clock)
        self.hand: dict[Message, None] = {}
        self.stations: Mapping[str, Station] = {
            name: Station(name, good=Step(name)) for name in (LOOKUPS, OBJECTS, ROWS)
        }
        self._writer = writer
        self._modes = modes
        self._watches = watches
        self._around = around
        self._clock = clock
        self._rules = rules
        self._numbers = count()
        self._failed: OrderedDict[tuple[str, str], None] = OrderedDict()  # stations, and keys that failed there

    def receive(self, delivery: Delivery) -> None:
        """A message was taken."""
        wall, last = self._clock.wall(), delivery.tries >= self._rules.most_tries
        arrival = Arrival(wall, delivery.body, self._rules.exchange, last)
        message = Message(delivery, next(self._numbers), self._clock.now(), arrival)
        self.hand[message] = None
        self.measures.received()
        try:
            message.envelope = read_envelope(delivery.body)
        except EnvelopeError as error:
            self._bury(message, str(error))
            return
        if why := self._modes.now.refuses(message.envelope):
            # A format that is switched off says nothing about the message.
            self._postpone(message, self._rules.switched_off, why)
        else:
            self._move(message, LOOKUPS)

    # What is next.

    @property
    def loading(self) -> bool:
        """More may always come."""
        return True

    def enough(self, inflight: int) -> bool:
        """There is never enough."""
        del inflight
        return False

    def drain(self) -> None:
        """Messages are taken by the intake, which is told."""

    def classes(self, host: Station, now: float) -> Sequence[Class]:
        """Messages that have not failed at the station, and such as had to wait."""
        classes = [Class.NEW] if host.ready else []
        return [*classes, Class.AGAIN] if host.is_due(now) else classes

    def due(self, host: Station, now: float) -> float | None:
        """When there is next something to take; also if there is nothing, so that one that is down is probed."""
        del now
        return 0.0 if self._around.is_down(host) else host.due()

    def take(self, host: Station, of: Class, now: float) -> Step | None:
        """The next message."""
        message = host.ready.popleft() if of is Class.NEW else host.pop_again(now)
        return None if message is None else Step(host.name, message)

    def take_untried(self, host: Station, now: float) -> Step | None:
        """A message that has not failed at the station."""
        del now
        return Step(host.name, host.ready.pop()) if host.ready else None

    # What became of it.

    def settled(self, host: Station, work: Step, settled: Settled[Found], now: float) -> None:
        """The station has answered."""
        message, result = work.message, settled.result
        assert message is not None  # noqa: S101 - who only probes is not told
        self._failed.pop((host.name, message.key), None)
        match result:
            case Known():
                self.measures.duplicate()
                self._done(message, now)
            case Unknown(envelope):
                message.renamed, message.envelope = message.renamed or envelope is not message.envelope, envelope
                self._move(message, ROWS if isinstance(envelope, InlineEnvelope) else OBJECTS)
            case Fetched(items, size):
                message.items, message.size = items, size
                self._move(message, ROWS)
            case Kept(digested, new):
                self._kept(message, digested, now, new=new)
            case Told():
                self._bury(message, message.burial)
            case Missing(why):
                self._miss(message, why)
            case Poison(why):
                self._give_up(message, why)

    def _kept(self, message: Message, digested: Digested, now: float, *, new: bool) -> None:
        if not new:  # its event came there meanwhile; whether with this batch is to be seen
            self._release(message)
            self._move(message, LOOKUPS)
            return
        self.measures.kept(digested)
        self._watches.digested(digested)
        if digested.batch.outbox:
            self._around.outgoing()
        if message.renamed and message.envelope is not None:
            own = message.envelope.context.event_id
            self.measures.reused()
            self._watches.reused(read_envelope(message.delivery.body).context.event_id, own)
        self._done(message, now)

    def later(self, host: Station, work: Step, outcome: Outcome, due: float) -> None:
        """The station was at fault: the message stays in hand."""
        del outcome
        if work.message is not None:
            host.last_failed = work.message
            work.message.due = due
            host.again.append(work.message)

    def failed(self, host: Station, work: Step, outcome: Outcome, failures: int, due: float | None) -> None:
        """The station fails at this message: others go first, and at last it is buried."""
        message = work.message
        if message is None:
            return
        host.last_failed = message
        if due is None:
            self._failed.pop((host.name, message.key), None)
            self._give_up(message, f"{outcome.detail}; after {failures} tries")
            return
        self._failed[host.name, message.key] = None
        if len(self._failed) > REMEMBERED:
            name, key = self._failed.popitem(last=False)[0]
            self.stations[name].forget(key)
        self._postpone(message, due - self._clock.now(), outcome.detail)

    def leave(self, host: Station, outcome: Outcome, due: float) -> None:
        """No station is ever set aside: messages wait for it."""

    def welcome(self, host: Station) -> None:
        """So none comes back from there."""

    def written(self, result: list[Message]) -> Iterable[Station]:
        """The queue knows what became of these."""
        for message in result:
            self.hand.pop(message, None)
        self._around.changed()
        return ()

    def waiting(self) -> Iterator[Message]:
        """Messages in hand that wait for a station."""
        return (message for station in self.stations.values() for message in station.messages())

    def _move(self, message: Message, station: str) -> None:
        message.station = station
        self.stations[station].ready.append(message)
        self._around.wake(self.stations[station])

    # How it ends.

    def _done(self, message: Message, now: float) -> None:
        envelope = message.envelope
        self.measures.processed("" if envelope is None else envelope.context.platform, now - message.began)
        self._end(Done(message))

    def _miss(self, message: Message, why: str) -> None:
        tries = message.delivery.tries
        if tries >= self._rules.most_tries:
            self._give_up(message, f"{why}; after {tries} tries")
        else:
            self._postpone(message, self._rules.delay(tries), why, failed=True)

    def _postpone(self, message: Message, seconds: float, why: str, *, failed: bool = False) -> None:
        self.measures.postponed()
        self._end(Postponed(message, seconds, why, failed=failed))

    def _give_up(self, message: Message, why: str) -> None:
        """Bury it, after those who wait for its batch were told that nothing came of it, if they can be."""
        self._release(message)
        context = None if message.envelope is None else message.envelope.context
        if context is not None and not message.burial:
            message.note = result_message(context, 0, context.content_count or 1, self._clock.wall())
        if message.note is None or message.burial:
            self._bury(message, message.burial or why)
        else:
            message.burial = why
            self._move(message, ROWS)

    def _bury(self, message: Message, why: str) -> None:
        if message.note is not None:
            self._around.outgoing()
        self.measures.failed()
        self._watches.buried(message.key, why)
        self._end(Buried(message, why))

    def _release(self, message: Message) -> None:
        """Let go of what was read of its batch."""
        message.items = message.digested = None
        message.size = 0
        self._around.release(message)

    def _end(self, ended: Ended) -> None:
        message = ended.message
        message.station, message.items = "", None
        self._around.release(message)
        self._writer.add(ended)
