"""All parts of `events`, put together and run."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from random import Random
from typing import Any

from sanderling.clock import Clock
from sanderling.engine.loop import Engine
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import Writer, WriterRules
from sanderling.events.alarms import EventAlarms
from sanderling.events.handler import MessageHandler
from sanderling.events.intake import Intake
from sanderling.events.message import Message
from sanderling.events.outbox import OutboxSender
from sanderling.events.rules import ConsumeRules
from sanderling.events.sink import QueueSink
from sanderling.events.source import MessageSource, MessageWriter
from sanderling.events.stations import Station, Stations
from sanderling.limit import BreakerRules, Unpaced
from sanderling.observe.alerts import Alert
from sanderling.stores.control_file import NOTHING, Control
from sanderling.stores.queue import Delivery
from sanderling.stores.topic import Topic

AT_ONCE = WriterRules(items=1)  # a message that is done counts against what the queue hands out
DIFFERENT = 5  # messages in a row at which a station fails, until it counts as down
LOOK = 0.02  # seconds, to see whether what is in hand is done
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
    """Consumes until it is stopped. `run` it once; `stop` lets the batches in hand come to their end."""

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
        self.alarms = EventAlarms(say, clock)
        self.wanted = NOTHING
        self._rules = rules = rules or ConsumeRules()
        self._clock = clock
        self._sink = QueueSink(stations.queue, clock, rules.probe_every)
        writer: MessageWriter = Writer(self._sink, lambda: None, clock, AT_ONCE)
        self.source = MessageSource(writer, stations.modes, self.alarms, self, clock, rules)
        self.measures = self.source.measures
        self.sender = OutboxSender(stations.store, topic, clock, rng, arrived=self.measures.sent)
        self._permits = Unpaced(breaker_rules(rules), clock, rng)
        self._intake = Intake(stations.queue, self._room, self._receive, clock, rules)
        self._handler = MessageHandler(stations, self.source, self._permits, self._intake.look, clock, rules)
        self.engine = Engine(self.source, self._handler, writer, self._permits, clock, engine_rules(rules))
        self._stopping = False
        self._ending = asyncio.Event()  # set once nothing more is taken

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
                await self.engine.run(self._intake.run(), self._end_when_idle())
                for _ in self.source.waiting():
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
            return bool(self.source.hand) or self.wanted.paused
        up = (each for each in self.source.stations.values() if not self.is_down(each))
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
        self._intake.look()

    @property
    def inflight(self) -> int:
        """Messages in hand."""
        return self.measures.active

    @property
    def trouble(self) -> str:
        """What is away, while it is."""
        down = [each.trouble.detail for each in self.source.stations.values() if each.trouble and self.is_down(each)]
        return "; ".join(dict.fromkeys(filter(None, (*down, self._intake.trouble, self._sink.trouble))))

    def _room(self) -> int:
        """How many messages may be taken now."""
        resting = self._ending.is_set() or self.wanted.paused
        if resting or any(map(self.is_down, self.source.stations.values())):
            return 0
        return self._rules.batches - len(self.source.hand)

    def _receive(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            self.source.receive(delivery)

    # What the source says and asks.

    def wake(self, station: Station) -> None:
        """A message waits there."""
        self.engine.wake((station,))

    def changed(self) -> None:
        """Something may be taken that could not be before."""
        self._intake.look()

    def outgoing(self) -> None:
        """There is something in the outbox."""
        self.sender.wake()

    def release(self, message: Message) -> None:
        """A message holds nothing of its batch any more."""
        self._handler.memory.release(message.holder)

    def is_down(self, station: Station) -> bool:
        """Whether nothing but probes may be asked of the station."""
        return self._permits.is_down(station.name)


def engine_rules(rules: ConsumeRules) -> EngineRules:
    """The engine's part of the rules. Stores are ours: they are waited for, however long that takes."""
    batches = rules.batches
    return EngineRules(slots=batches, per_host=batches, again=rules.again, patience=inf, first_patience=inf)


def breaker_rules(rules: ConsumeRules) -> BreakerRules:
    """When a station counts as down: so many different messages in a row, or one that it does not even answer."""
    every = rules.probe_every
    return BreakerRules(
        consecutive=min(DIFFERENT, rules.batches), unreached=1, open_for=every, longest=every, jitter=0.0
    )
