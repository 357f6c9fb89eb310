"""Consumes messages: takes them from the queue, has the stations process them one after the other, and ends each.

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

import asyncio
import gc
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from random import Random
from typing import Any

from sanderling.clock import Clock
from sanderling.engine.classes import Class
from sanderling.engine.loop import Engine
from sanderling.engine.ports import Settled
from sanderling.engine.writer import Writer, WriterRules
from sanderling.events.alarms import EventAlarms
from sanderling.events.envelopes import EnvelopeError, InlineEnvelope, read_envelope
from sanderling.events.handler import MessageHandler
from sanderling.events.measures import EventMeasures
from sanderling.events.outbox import OutboxSender
from sanderling.events.rows import Arrival, result_message
from sanderling.events.rules import ConsumeRules
from sanderling.events.sink import MessageSink
from sanderling.events.stations import (
    LOOKUPS,
    OBJECTS,
    ROWS,
    Buried,
    EventMessage,
    MessageDone,
    MessageEnd,
    MessageStep,
    Missing,
    Poison,
    Postponed,
    Station,
    StationAnswer,
    StationCall,
    Stations,
    note_trouble,
)
from sanderling.limit import Unpaced
from sanderling.observe.alerts import Alert
from sanderling.outcome import Outcome
from sanderling.stores.control_file import NOTHING, Control
from sanderling.stores.queue import Delivery, QueueError
from sanderling.stores.topic import Topic

AT_ONCE = WriterRules(items=1)  # a message that is done counts against what the queue hands out
LOOK = 0.02  # seconds, to see whether what is in hand is done
REMEMBERED = 10_000  # messages that failed and went back: another process may have them, and they never come again
# Objects that are made before the collector looks for rings among them. A batch makes thousands that go with it, and
# looked at by the usual 700 they take a twelfth of the CPU.
YOUNG = 20_000


@contextmanager
def _long_lived() -> Iterator[None]:
    """Spare the collector what is there already, mostly modules: a full look at 90,000 objects takes some 30 ms."""
    usual, others = gc.get_threshold(), gc.get_freeze_count()
    gc.set_threshold(YOUNG, *usual[1:])
    gc.freeze()
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        if not others:  # who uses us as a library may have put something aside before
            gc.unfreeze()


class EventsSystem:
    """The engine's source of messages. `run` it once; `stop` lets the batches in hand come to their end."""

    def __init__(
        self,
        stations: Stations,
        topic: Topic,
        *,
        say: Callable[[Alert], object],
        clock: Clock,
        rng: Random,
        rules: ConsumeRules | None = None,
    ) -> None:
        self.stations = stations
        self.hosts: Mapping[str, Station] = {name: Station(name) for name in (LOOKUPS, OBJECTS, ROWS)}
        self.alarms = EventAlarms(say, clock)
        self.measures = EventMeasures(clock)
        self.wanted = NOTHING
        self._rules = rules = rules or ConsumeRules()
        self._clock = clock
        self._hand: dict[EventMessage, None] = {}  # in the order in which they were taken
        self._numbers = count()
        self._failed: OrderedDict[tuple[str, str], None] = OrderedDict()  # stations, and keys that failed there
        self._take_trouble = ""  # why the queue gives nothing, while it refuses to
        self._news = asyncio.Event()  # more may be taken than before
        self._ending = asyncio.Event()  # nothing more is taken
        self._stopping = False
        self._sink = MessageSink(stations.queue, clock, rules.probe_every)
        self._writer: Writer[MessageEnd, object, None, list[EventMessage]] = Writer(
            self._sink, lambda: None, clock, AT_ONCE
        )
        self.sender = OutboxSender(stations.store, topic, clock, rng, arrived=self.measures.sent)
        self._permits = Unpaced(rules.breaker, clock, rng)
        handler = MessageHandler(stations, self.measures, self._permits, self._news, clock, rules)
        self._memory = handler.memory
        self.engine = Engine(self, handler, self._writer, self._permits, clock, rules.engine)

    async def run(self, *others: Coroutine[Any, Any, object]) -> None:
        """Consume, and send what goes out because of it; `others` run beside it, and end with it."""
        with _long_lived():
            await self._run(others)
        self.alarms.look()

    async def _run(self, others: Iterable[Coroutine[Any, Any, object]]) -> None:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self.sender.run())
            beside = [group.create_task(each) for each in (self.stations.modes.run(), self.alarms.run(), *others)]
            try:
                await self.engine.run(self._take_messages(), self._end_when_idle())
                for _ in chain.from_iterable(station.messages() for station in self.hosts.values()):
                    self.measures.postponed()  # left in the queue
                self.sender.stop()
                await sending
            finally:
                for task in beside:
                    task.cancel()

    async def _end_when_idle(self) -> None:
        """End when every message in hand has its end; once told to stop, those for what is down stay in the queue."""
        await self._ending.wait()
        while self._is_busy:
            await self._clock.sleep(LOOK)
        self.engine.stop()

    @property
    def _is_busy(self) -> bool:
        """Whether something in hand can still come to its end, as long as it may be waited for."""
        if not self._stopping:
            return bool(self._hand) or self.wanted.paused
        up = (each for each in self.hosts.values() if not self.is_down(each))
        return self.engine.inflight > 0 or any(each.ready for each in up)

    def stop(self) -> None:
        """Take nothing more; what is in hand comes to its end, or stays in the queue if a store is away."""
        self._stopping = True
        self._ending.set()

    def control(self, wanted: Control) -> None:
        """Rest, or go on; drain; stop. What is in hand ends: a queue does not wait for ever to hear of it."""
        self.wanted = wanted
        if wanted.ending == "stop":
            self.stop()
        elif wanted.ending == "drain":
            self._ending.set()
        self._news.set()

    @property
    def inflight(self) -> int:
        """Messages in hand."""
        return self.measures.active

    @property
    def trouble(self) -> str:
        """What is away, while it is."""
        down = [each.trouble.detail for each in self.hosts.values() if each.trouble and self.is_down(each)]
        return "; ".join(dict.fromkeys(filter(None, (*down, self._take_trouble, self._sink.trouble))))

    def is_down(self, station: Station) -> bool:
        """Whether nothing but probes may be asked of the station."""
        return self._permits.is_down(station.name)

    # Taking from the queue.

    async def _take_messages(self) -> None:
        """Take as many messages as may be in hand; none while a station is down or somebody wants a rest."""
        while True:
            self._news.clear()
            room = self._room()
            if room <= 0:
                await self._news.wait()
                continue
            try:
                taken = await self.stations.queue.take(room, self._rules.wait)
            except QueueError as error:
                self._take_trouble = note_trouble("taking", self._take_trouble, str(error))
                await self._clock.sleep(self._rules.probe_every)
                continue
            self._take_trouble = note_trouble("taking", self._take_trouble, "")
            for delivery in taken:
                self._receive(delivery)

    def _room(self) -> int:
        """How many messages may be taken now."""
        resting = self._ending.is_set() or self.wanted.paused
        if resting or any(map(self.is_down, self.hosts.values())):
            return 0
        return self._rules.batches - len(self._hand)

    def _receive(self, delivery: Delivery) -> None:
        wall, last = self._clock.wall(), delivery.tries >= self._rules.most_tries
        arrival = Arrival(wall, delivery.body, self._rules.exchange, last)
        message = EventMessage(delivery, next(self._numbers), self._clock.now(), arrival)
        self._hand[message] = None
        self.measures.received()
        try:
            message.envelope = read_envelope(delivery.body)
        except EnvelopeError as error:
            self._bury(message, str(error))
            return
        if why := self.stations.modes.now.refuses(message.envelope):
            # A format that is switched off says nothing about the message.
            self._postpone(message, self._rules.switched_off, why)
        else:
            self._move(message, LOOKUPS)

    # What is next: the engine asks.

    @property
    def loading(self) -> bool:
        """More may always come."""
        return True

    def enough(self, inflight: int) -> bool:  # noqa: ARG002 - the port's
        """There is never enough."""
        return False

    def drain(self) -> None:
        """`control` sees to it that nothing more is taken."""

    def classes(self, host: Station, now: float) -> Sequence[Class]:
        """Messages that have not failed at the station, and such as had to wait."""
        classes = [Class.NEW] if host.ready else []
        return [*classes, Class.AGAIN] if any(each.due <= now for each in host.again) else classes

    def due(self, host: Station, now: float) -> float | None:  # noqa: ARG002 - the port's
        """When there is next something to take; also if there is nothing, so that one that is down is probed."""
        return 0.0 if self.is_down(host) else host.due()

    def take(self, host: Station, of: Class, now: float) -> StationCall | None:
        """The next message."""
        message = host.ready.popleft() if of is Class.NEW else host.pop_again(now)
        return None if message is None else StationCall(host, message)

    def take_untried(self, host: Station, now: float) -> StationCall | None:  # noqa: ARG002 - the port's
        """A message that has not failed at the station."""
        return StationCall(host, host.ready.pop()) if host.ready else None

    # What became of it: the engine tells.

    def settled(self, host: Station, work: StationCall, settled: Settled[StationAnswer], now: float) -> None:
        """The station has answered."""
        message = work.message
        assert message is not None  # noqa: S101 - who only probes is not told
        self._failed.pop((host.name, message.key), None)
        match settled.result:
            case MessageStep.KNOWN:
                self.measures.duplicate()
                self._done(message, now)
            case MessageStep.LOOKED_UP:
                self._move(message, ROWS if isinstance(message.envelope, InlineEnvelope) else OBJECTS)
            case MessageStep.FETCHED:
                self._move(message, ROWS)
            case MessageStep.KEPT:
                self._kept(message, now)
            case MessageStep.RIVALLED:  # whether with this batch is to be seen
                self._release(message)
                self._move(message, LOOKUPS)
            case MessageStep.TOLD:
                self._bury(message, message.burial)
            case Missing(why):
                self._miss(message, why)
            case Poison(why):
                self._give_up(message, why)

    def _kept(self, message: EventMessage, now: float) -> None:
        processed, envelope = message.processed, message.envelope
        assert processed is not None and envelope is not None  # noqa: PT018, S101 - it was kept
        self.measures.kept(processed)
        self.alarms.processed(processed)
        if processed.batch.outbox:
            self.sender.wake()
        if message.renamed:
            self.measures.reused()
            self.alarms.reused(read_envelope(message.delivery.body).context.event_id, envelope.context.event_id)
        self._done(message, now)

    def later(self, host: Station, work: StationCall, outcome: Outcome, due: float) -> None:  # noqa: ARG002 - the port's
        """The station was at fault: the message stays in hand."""
        if work.message is not None:
            host.last_failed = work.message
            work.message.due = due
            host.again.append(work.message)

    def failed(self, host: Station, work: StationCall, outcome: Outcome, failures: int, due: float | None) -> None:
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
            self.hosts[name].forget(key)
        self._postpone(message, due - self._clock.now(), outcome.detail)

    def leave(self, host: Station, outcome: Outcome, due: float) -> None:
        """No station is ever set aside: messages wait for it."""

    def welcome(self, host: Station) -> None:
        """So none comes back from there."""

    def written(self, result: list[EventMessage]) -> Iterable[Station]:
        """The queue knows what became of these."""
        for message in result:
            self._hand.pop(message, None)
        self._news.set()
        return ()

    # How a message goes on, and how it ends.

    def _move(self, message: EventMessage, station: str) -> None:
        message.station = station
        self.hosts[station].ready.append(message)
        self.engine.wake((self.hosts[station],))

    def _done(self, message: EventMessage, now: float) -> None:
        envelope = message.envelope
        self.measures.processed("" if envelope is None else envelope.context.platform, now - message.began)
        self._end(MessageDone(message))

    def _miss(self, message: EventMessage, why: str) -> None:
        tries = message.delivery.tries
        if tries >= self._rules.most_tries:
            self._give_up(message, f"{why}; after {tries} tries")
        else:
            self._postpone(message, self._rules.delay(tries), why, failed=True)

    def _postpone(self, message: EventMessage, seconds: float, why: str, *, failed: bool = False) -> None:
        self.measures.postponed()
        self._end(Postponed(message, seconds, why, failed))

    def _give_up(self, message: EventMessage, why: str) -> None:
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

    def _bury(self, message: EventMessage, why: str) -> None:
        if message.note is not None:
            self.sender.wake()
        self.measures.failed()
        self.alarms.buried(message.key, why)
        self._end(Buried(message, why))

    def _release(self, message: EventMessage) -> None:
        """Let go of what was read of its batch."""
        message.items = message.processed = None
        message.size = 0
        self._memory.release(message.holder)

    def _end(self, ended: MessageEnd) -> None:
        message = ended.message
        message.station, message.items = "", None
        self._memory.release(message.holder)
        self._writer.add(ended)
