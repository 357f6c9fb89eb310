"""`sequence store --queue`: takes records from RabbitMQ until it is stopped."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from sanderling.clock import Clock
from sanderling.files import ServiceAway
from sanderling.observe.log import log
from sanderling.sequence.options import StoreOptions, TargetOptions
from sanderling.sequence.store import KeptRecord
from sanderling.sequence.store_command import BATCH
from sanderling.sequence.targets import RecordTarget, open_targets, read_message
from sanderling.stores.rabbitmq import OutgoingMessage, QueueConsumer, QueueMessage, QueuePublisher

LOOK = 1.0  # seconds to wait for the first of a batch, and between looks for a service that is away


class QueueStorer:
    """Takes records from the queue until it is stopped. A message is acknowledged once its record is in all places.

    A broken message goes to the queue NAME.dead, with the reason in its header `x-why`.
    """

    def __init__(self, options: StoreOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._stopped = asyncio.Event()
        self._targets: dict[bool, list[RecordTarget]] = {}  # for reports of the game, and for other records
        self._stored = 0
        self._trouble = ""

    async def run(self) -> int:
        """Store until a signal comes, or with `once` until the queue is empty; how many records."""
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self._stopped.set)
        options = self._options
        async with AsyncExitStack() as stack:
            consumer = await stack.enter_async_context(QueueConsumer(options.queue, options.store_queue, BATCH))
            self._publisher = await stack.enter_async_context(QueuePublisher(options.queue))
            await self._places(stack, game=False)
            while not self._stopped.is_set():
                messages: list[QueueMessage] = []
                try:
                    messages = await consumer.take(BATCH, LOOK)
                    await self._store(stack, messages)
                    await consumer.done(messages)
                except ServiceAway as away:
                    if not self._trouble:
                        log.warning("away", say=f"Waiting, nothing is lost: {away}")
                    self._trouble = str(away)
                    with suppress(ServiceAway):
                        await consumer.give_back(messages)
                    await self._clock.sleep(LOOK)
                    continue
                self._trouble = ""
                if options.once and not messages:
                    break
        return self._stored

    async def _places(self, stack: AsyncExitStack, *, game: bool) -> list[RecordTarget]:
        if game not in self._targets:
            places = TargetOptions(database=self._options.database, raw=self._options.raw)
            self._targets[game], _ = await open_targets(stack, places, self._clock, game=game)
        return self._targets[game]

    async def _store(self, stack: AsyncExitStack, messages: Sequence[QueueMessage]) -> None:
        records: dict[bool, list[KeptRecord]] = {False: [], True: []}
        broken: list[OutgoingMessage] = []
        for each in messages:
            try:
                record, game = read_message(each.body)
            except ValueError as error:
                log.warning("broken", say=f"A broken message goes to {self._options.store_queue}.dead: {error}")
                broken.append(OutgoingMessage(each.body, {"x-why": str(error)[:200]}))
            else:
                records[game].append(record)
        for game, found in records.items():
            for target in await self._places(stack, game=game) if found else ():
                await target.write(found)
        await self._publisher.publish(f"{self._options.store_queue}.dead", broken)
        self._stored += len(messages) - len(broken)
