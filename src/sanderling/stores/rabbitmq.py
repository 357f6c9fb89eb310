"""A queue of a RabbitMQ server, 3.10 or later, under names that its operators see.

| queue | type | what |
|---|---|---|
| `NAME` | classic, durable | letters that are ready; messages of other programs are taken too (`Binding`) |
| `NAME.later.5s`, `.30s`, `.300s`, `.1800s` | quorum | letters that come back after so long |
| `NAME.dead` | classic, durable | letters that were given up |

A message is persistent and has the headers `x-key`, `x-retry-count`, `x-why` and, if dead, `x-buried-at` (in
milliseconds).

Tricky bits:

- A delay is rounded up to the next of those queues, and is half an hour at most. There, all wait equally long, so
  nobody stands in front of somebody who is due.
- They are quorum queues since only those dead-letter at least once: a letter is dropped from there when it has arrived
  in the main queue, and not before. If that was deleted meanwhile, the server looks again every three minutes.
- What is published and what is taken goes over two connections: a server short of memory stops to read from those who
  publish, and must go on to hear what is done.
- A server says of nobody else what they have taken, so `depth` knows only what this process has.
- A queue that other programs have made is used, if it is durable, classic and without settings. So is a topic exchange
  that is durable.
- To look at dead letters is to take them and to give them back, all those before the page too. While one looks, others
  see fewer; and one that is buried twice is there twice.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from aio_pika import Message
from aio_pika.abc import AbstractIncomingMessage

from sanderling.clock import Clock
from sanderling.stores.queue import (
    MOST_PREFETCH,
    Binding,
    Dead,
    Delivery,
    Depth,
    Letter,
    QueueError,
    checked,
    too_large,
)
from sanderling.stores.rabbitmq_messages import (
    WINDOW,
    Parcel,
    acknowledge,
    dead_of,
    key_of,
    message_of,
    publish,
    tries_of,
    windows,
)
from sanderling.stores.rabbitmq_wire import (
    AGAIN,
    ANSWER_SECONDS,
    BrokerRefusedError,
    OversizeError,
    Publisher,
    QueueLayout,
    RabbitmqLink,
    broker,
    plainly,
)

DELAYS = (5.0, 30.0, 300.0, 1800.0)
# Taken and not done, or here and not taken: some 40 MB of usual letters.
PREFETCH = 500
# A page of dead letters ends with the one that makes it larger.
PAGE_BYTES = 64 << 20
# How long a taker waits before it looks again for a server that is gone.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0


@dataclass(frozen=True, slots=True)
class QueueIntake:
    """What a queue is fed from besides what we publish, and how many letters are handed to us before any is done."""

    binding: Binding | None = None
    prefetch: int = PREFETCH

    def __post_init__(self) -> None:
        if not 1 <= self.prefetch <= MOST_PREFETCH:
            raise ValueError(f"prefetch is {self.prefetch}, expected 1 to {MOST_PREFETCH:,}")
        for name in self.binding or ():
            if not 1 <= len(name.encode()) <= 255:
                raise ValueError(f"{name[:50]!r} is nothing to bind to, expected 1 to 255 bytes")


class Inbox:
    """What one connection has delivered. It dies with it: the server delivers anew what was not acknowledged."""

    def __init__(self, link: RabbitmqLink, news: asyncio.Event) -> None:
        self.link = link
        self.waiting: deque[AbstractIncomingMessage] = deque()
        self.taken: dict[int, AbstractIncomingMessage] = {}
        self.fed = False  # whether the server delivers to us
        self._news = news

    async def arrive(self, message: AbstractIncomingMessage) -> None:
        """A message was delivered."""
        self.waiting.append(message)
        self._news.set()

    def cancel(self, *_: object) -> None:
        """The server will deliver no more: the connection is lost, or somebody has deleted the queue."""
        self.fed = False
        self._news.set()

    def hand_out(self, most: int) -> list[Delivery]:
        """Up to so many."""
        deliveries: list[Delivery] = []
        while self.waiting and len(deliveries) < most:
            message = self.waiting.popleft()
            if (number := message.delivery_tag) is not None:
                self.taken[number] = message
                deliveries.append(Delivery(key_of(message), message.body, tries_of(message), DeliveryTag(self, number)))
        return deliveries


class DeliveryTag(NamedTuple):
    """The tag of a delivery."""

    inbox: Inbox
    number: int


class RabbitmqQueue:
    """A queue at a URL like amqp://user@127.0.0.1:5672/vhost, which is reached when it is needed."""

    def __init__(
        self,
        url: str,
        name: str,
        clock: Clock,
        *,
        environment: Mapping[str, str] = os.environ,
        delays: Sequence[float] = DELAYS,
        intake: QueueIntake | None = None,
    ) -> None:
        self._broker = broker(url, environment)
        self._intake = intake or QueueIntake()
        self._queues = QueueLayout(name, tuple(sorted(delays)), self._intake.binding)
        self._clock = clock
        self._publisher = Publisher(self._broker, f"sanderling {name}", self._queues.declare)
        self._inbox: Inbox | None = None
        self._receiving = asyncio.Lock()
        self._news = asyncio.Event()
        self._again, self._pause = float("-inf"), FIRST_PAUSE

    async def publish(self, letters: Sequence[Letter]) -> None:
        """Return when the server has them all on disk. After an error it may have some."""
        bodies = checked(letters)
        try:
            await self._send(self._queues.name, [message_of(key, body) for key, body in bodies.items()])
        except OversizeError as error:  # which does not say of which of them
            largest = max(bodies, key=lambda key: len(bodies[key]))
            raise too_large(largest, len(bodies[largest]), error.most) from error

    async def publish_dead(self, letter: Letter, why: str) -> None:
        """Put it among the dead letters. After an error it may be there."""
        ((key, body),) = checked([letter]).items()
        await self._send(self._queues.dead, [message_of(key, body, 0, why, self._clock.wall())])

    async def take(self, most: int, wait: float) -> list[Delivery]:
        """Up to `most` letters; waits up to `wait` seconds for the first, and longer to reach the server.

        While that is away there is nothing to take: `depth` says why. Raises QueueError if it refuses us.
        """
        if most < 1:
            raise ValueError(f"cannot take {most} letters")
        deadline = self._clock.now() + wait
        while True:
            self._news.clear()
            inbox = await self._listen()
            if inbox and (deliveries := inbox.hand_out(most)):
                return deliveries
            left = deadline - self._clock.now()
            if left <= 0:
                return []
            pause = left if inbox else min(left, self._again - self._clock.now())
            alarm = self._clock.call_later(pause, self._news.set)
            try:
                await self._news.wait()
            finally:
                alarm.cancel()

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge these. If that does not reach the server, they are delivered again."""
        marks = [_mark(each) for each in deliveries]
        for inbox in {mark.inbox for mark in marks}:
            messages = [inbox.taken.pop(mark.number, None) for mark in marks if mark.inbox is inbox]
            await self._acknowledge(inbox, [message for message in messages if message])

    async def later(self, delivery: Delivery, seconds: float, why: str, *, failed: bool = True) -> None:
        """Deliver it again after the next delay that is not shorter, or the longest."""
        message = message_of(delivery.key, delivery.body, delivery.tries + failed, why)
        await self._move(delivery, self._queues.later(seconds), message)

    async def bury(self, delivery: Delivery, why: str) -> None:
        message = message_of(delivery.key, delivery.body, delivery.tries, why, self._clock.wall())
        await self._move(delivery, self._queues.dead, message)

    async def depth(self) -> Depth:
        """How many letters there are; as taken count only those that this process has taken."""
        async with self._publisher.channel() as channel:
            counts = await self._queues.declare(channel)
        inbox = self._inbox if self._inbox and self._inbox.link.alive else None
        return Depth(
            ready=counts[self._queues.name] + (len(inbox.waiting) if inbox else 0),
            taken=len(inbox.taken) if inbox else 0,
            delayed=sum(counts[name] for name in self._queues.laters),
            dead=counts[self._queues.dead],
        )

    async def dead(self, limit: int, after: str = "") -> list[Dead]:
        seen: set[str] = set()
        found: dict[str, Dead] = {}
        size = 0
        async with self._dead_letters() as next_one:
            while len(found) < limit and size < PAGE_BYTES and (message := await next_one()):
                key = key_of(message)
                if key not in seen and (not after or after in seen):
                    found[key] = dead_of(message)
                    size += len(message.body)
                seen.add(key)
        if after and after not in seen:
            raise QueueError(f"{self._queues.dead} has no letter {after!r} any more; begin with the first page")
        return list(found.values())

    async def replay(self, keys: Collection[str] | None = None) -> int:
        """Make these ready again, or all. If an error comes in between, some are, and the rest is still dead."""
        replayed = 0
        async with self._dead_letters() as next_one:
            wanted: list[AbstractIncomingMessage] = []
            while message := await next_one():
                if keys is None or key_of(message) in keys:
                    wanted.append(message)
                if len(wanted) >= WINDOW:
                    replayed += await self._revive(wanted)
                    wanted = []
            replayed += await self._revive(wanted)
        return replayed

    async def close(self) -> None:
        """Let go of the connections; the server delivers to others what was taken and not done."""
        inbox, self._inbox = self._inbox, None
        await self._publisher.close()
        if inbox is not None:
            await inbox.link.close()

    # Publishing.

    async def _send(self, to: str, messages: Sequence[Message]) -> None:
        for some in windows(messages, lambda message: message.body_size):
            async with self._publisher.channel() as channel:
                parcels = [Parcel(channel.default_exchange, to, message) for message in some]
                returned = await publish(parcels)
                if returned:  # somebody has deleted the queue
                    await self._queues.declare(channel)
                    returned = await publish([parcels[place] for place in returned])
            if returned:
                raise QueueError(f"RabbitMQ at {self._broker.place} has no queue {to} to put letters in. {AGAIN}")

    async def _move(self, delivery: Delivery, to: str, message: Message) -> None:
        mark = _mark(delivery)
        # One of a lost connection is delivered again anyway; to publish it as well would make two of it.
        if mark.inbox.link.alive and mark.number in mark.inbox.taken:
            await self._send(to, [message])
            await self.done([delivery])

    # Taking.

    async def _listen(self) -> Inbox | None:
        """What is delivered to us; None while the server is away."""
        async with self._receiving:
            if self._inbox and not self._inbox.link.alive:
                lost, self._inbox = self._inbox, None
                await lost.link.close()
            if self._inbox and self._inbox.fed:
                return self._inbox
            if self._clock.now() < self._again:
                return None
            try:
                self._inbox = await self._subscribe(self._inbox)
            except BrokerRefusedError:
                raise
            except QueueError:
                self._again = self._clock.now() + self._pause
                self._pause = min(LONGEST_PAUSE, 2 * self._pause)
                return None
            self._pause = FIRST_PAUSE
            return self._inbox

    async def _subscribe(self, inbox: Inbox | None) -> Inbox:
        """Have letters delivered to `inbox`, or to a new one."""
        inbox = inbox or Inbox(await self._publisher.connect(), self._news)
        channel = inbox.link.channel
        try:
            with plainly(self._broker.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._queues.declare(channel)  # what was deleted
                    await channel.set_qos(prefetch_count=self._intake.prefetch)
                    (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(inbox.cancel)
                    channel.close_callbacks.add(inbox.cancel)
                    queue = await channel.get_queue(self._queues.name, ensure=False)
                    inbox.fed = True
                    await queue.consume(inbox.arrive)
        except BaseException:
            await inbox.link.close()
            raise
        return inbox

    async def _acknowledge(self, inbox: Inbox, messages: Sequence[AbstractIncomingMessage]) -> None:
        if not messages or not inbox.link.alive:
            return
        try:
            with plainly(self._broker.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await acknowledge(messages)
        except QueueError:
            # Some may not have arrived, and would be ours for ever; without the connection they are delivered again.
            await inbox.link.close()
        except BaseException:
            await inbox.link.close()
            raise

    # The dead.

    @asynccontextmanager
    async def _dead_letters(self) -> AsyncIterator[Callable[[], Awaitable[AbstractIncomingMessage | None]]]:
        """One after the other, as many as there are now, then None.

        They come over a connection of their own: when that closes, those not acknowledged go back to their places.
        """
        link = await self._publisher.connect()
        try:
            with plainly(self._broker.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    left = (await self._queues.declare(link.channel))[self._queues.dead]
                queue = await link.channel.get_queue(self._queues.dead, ensure=False)

                async def next_one() -> AbstractIncomingMessage | None:
                    nonlocal left
                    left -= 1
                    return await queue.get(fail=False, timeout=ANSWER_SECONDS) if left >= 0 else None

                yield next_one
        finally:
            await link.close()

    async def _revive(self, messages: Sequence[AbstractIncomingMessage]) -> int:
        await self._send(self._queues.name, [message_of(key_of(each), each.body) for each in messages])
        async with asyncio.timeout(ANSWER_SECONDS):
            await acknowledge(messages)
        return len(messages)

    def __repr__(self) -> str:
        return f"<RabbitmqQueue {self._queues.name} at {self._broker.place}>"


def _mark(delivery: Delivery) -> DeliveryTag:
    if not isinstance(delivery.tag, DeliveryTag):
        raise TypeError(f"letter {delivery.key!r} is of another queue")
    return delivery.tag
