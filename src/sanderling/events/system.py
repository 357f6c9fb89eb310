"""All parts of `events`, put together and run."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any

from sanderling.clock import Clock
from sanderling.events.alarms import Alarms
from sanderling.events.consume import Consumer, ConsumeRules, Stations
from sanderling.events.digest import Digested
from sanderling.events.outbox import OutboxSender
from sanderling.observe.alerts import Alert
from sanderling.stores.topic import Topic

LOOK = 5.0  # seconds between looks at whether there is something to say


@dataclass(frozen=True, slots=True)
class _Watched:
    """The alarms, told when."""

    alarms: Alarms
    clock: Clock

    def digested(self, done: Digested) -> None:
        """A batch is in the rows."""
        self.alarms.digested(done, self.clock.now())

    def buried(self, key: str, why: str) -> None:
        """A message was given up."""
        self.alarms.buried(key, why)


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
        self.alarms = Alarms()
        self.consumer = Consumer(stations, clock, _Watched(self.alarms, clock), rules)
        self.sender = OutboxSender(stations.store, topic, clock, rng)
        self.consumer.told = self.sender.wake
        self.sender.arrived = self.consumer.measures.sent
        self._say = say
        self._clock = clock

    async def run(self, *others: Coroutine[Any, Any, object]) -> None:
        """Consume, and send what goes out because of it; `others` run beside it, and end with it."""
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self.sender.run())
            beside = [group.create_task(each) for each in (self.stations.modes.run(), self._watch(), *others)]
            try:
                await self.consumer.run()
                self.sender.stop()
                await sending
            finally:
                for task in beside:
                    task.cancel()
        self._tell()

    def stop(self) -> None:
        """Take nothing more; what is in hand comes to its end."""
        self.consumer.stop()

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(LOOK)
            self._tell()

    def _tell(self) -> None:
        for alert in self.alarms.due(self._clock.now()):
            self._say(alert)
