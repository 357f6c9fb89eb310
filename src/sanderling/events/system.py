"""All parts of `events`, put together and run."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from sanderling.clock import Clock
from sanderling.events.alarms import EventAlarms
from sanderling.events.consume import Consumer, ConsumeRules, Stations
from sanderling.events.outbox import OutboxSender
from sanderling.observe.alerts import Alert
from sanderling.stores.topic import Topic


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
        self.alarms.look()

    def stop(self) -> None:
        """Take nothing more; what is in hand comes to its end."""
        self.consumer.stop()
