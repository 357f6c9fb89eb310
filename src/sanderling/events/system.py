"""All parts of `events`, put together and run."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from sanderling.clock import Clock
from sanderling.events.alarms import EventAlarms
from sanderling.events.consume import Consumer, Stations
from sanderling.events.outbox import OutboxSender
from sanderling.events.rules import ConsumeRules
from sanderling.observe.alerts import Alert
from sanderling.stores.topic import Topic

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
        self.consumer = Consumer(stations, clock, self.alarms, rules)
        self.sender = OutboxSender(stations.store, topic, clock, rng)
        self.consumer.told = self.sender.wake
        self.sender.arrived = self.consumer.measures.sent

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
                await self.consumer.run()
                self.sender.stop()
                await sending
            finally:
                for task in beside:
                    task.cancel()

    def stop(self) -> None:
        """Take nothing more; what is in hand comes to its end."""
        self.consumer.stop()
