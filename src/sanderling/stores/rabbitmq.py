"""A queue of a RabbitMQ server, 3.10 or later, under names that its operators see.

| queue | type | what |
|---|---|---|
| `NAME` | classic, durable | letters that are ready; messages of other programs are taken too |
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
- To look at dead letters is to take them and to give them back, all those before the page too. While one looks, others
  see fewer; and one that is buried twice is there twice.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from sanderling.clock import Clock
from sanderling.stores.queue import Dead, Delivery, Depth, Letter, QueueError, checked
from sanderling.stores.rabbitmq_wire import (
    AGAIN,
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    WINDOW,
    Link,
    RefusedError,
    acknowledge,
    broker,
    connect,
    dead_of,
    key_of,
    message_of,
    plainly,
    publish,
    tries_of,
    windows,
)

DELAYS = (5.0, 30.0, 300.0, 1800.0)
# Taken and not done, or here and not taken: some 40 MB of usual letters.
PREFETCH = 500
# A page of dead letters ends with the one that makes it larger.
PAGE_BYTES = 64 << 20
# How long a taker waits before it looks again for a server that is gone.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0


class Inbox:
    """What one connection has delivered. It dies with it: the server delivers anew what was not acknowledged."""

    def __init__(self, link: Link, news: asyncio.Event) -> None:
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
                deliveries.append(Delivery(key_of(message), message.body, tries_of(message), Mark(self, number)))
        return deliveries


class Mark(NamedTuple):
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
    ) -> None:
        self._broker = broker(url, environment)
        self._name, self._dead_name = name, f"{name}.dead"
        self._later_names = {seconds: f"{name}.later.{seconds:g}s" for seconds in sorted(delays)}
        self._clock = clock
        self._sender: Link | None = None
        self._sending = asyncio.Lock()
        self._inbox: Inbox | None = None
        self._receiving = asyncio.Lock()
        self._news = asyncio.Event()
        self._again, self._pause = float("-inf"), FIRST_PAUSE

    async def publish(self, letters: Sequence[Letter]) -> None:
        """Return when the server has them all on disk. After an error it may have some."""
        bodies = checked(letters)
        await self._send(self._name, [message_of(key, body) for key, body in bodies.items()])

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

    async def later(self, delivery: Delivery, seconds: float, why: str) -> None:
        """Count a failed try, and deliver it again after the next delay that is not shorter, or the longest."""
        to = next((name for delay, name in self._later_names.items() if delay >= seconds), None)
        message = message_of(delivery.key, delivery.body, delivery.tries + 1, why)
        await self._move(delivery, to or [*self._later_names.values()][-1], message)

    async def bury(self, delivery: Delivery, why: str) -> None:
        """Put it among the dead letters."""
        message = message_of(delivery.key, delivery.body, delivery.tries, why, self._clock.wall())
        await self._move(delivery, self._dead_name, message)

    async def depth(self) -> Depth:
        """How many letters there are; as taken count only those that this process has taken."""
        async with self._channel() as channel:
            counts = await self._declare(channel)
        inbox = self._inbox if self._inbox and self._inbox.link.alive else None
        return Depth(
            ready=counts[self._name] + (len(inbox.waiting) if inbox else 0),
            taken=len(inbox.taken) if inbox else 0,
            delayed=sum(counts[name] for name in self._later_names.values()),
            dead=counts[self._dead_name],
        )

    async def dead(self, limit: int, after: str = "") -> list[Dead]:
        """A page of dead letters."""
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
            raise QueueError(f"{self._dead_name} has no letter {after!r} any more; begin with the first page")
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
        links = [self._sender, self._inbox.link if self._inbox else None]
        self._sender = self._inbox = None
        for link in filter(None, links):
            await link.close()

    # Publishing.

    @asynccontextmanager
    async def _channel(self) -> AsyncIterator[AbstractChannel]:
        """The channel to publish on. Whatever goes wrong with it, the next one who asks gets a new one."""
        link = await self._link()
        try:
            with plainly(self._broker.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    yield link.channel
        except BaseException:
            if self._sender is link:
                self._sender = None
            await link.close()
            raise

    async def _link(self) -> Link:
        with plainly(self._broker.place):
            # Also who waits for others to connect waits no longer than that.
            async with asyncio.timeout(CONNECT_SECONDS), self._sending:
                if self._sender and not self._sender.alive:
                    lost, self._sender = self._sender, None
                    await lost.close()
                self._sender = self._sender or await self._connect()
                return self._sender

    async def _connect(self) -> Link:
        """A link to queues that exist."""
        link = await connect(self._broker, f"sanderling {self._name}")
        try:
            with plainly(self._broker.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._declare(link.channel)
        except BaseException:
            await link.close()
            raise
        return link

    async def _declare(self, channel: AbstractChannel) -> dict[str, int]:
        """Make the queues that are not there; say how many letters wait in each."""
        arguments: dict[str, dict[str, str | int]] = {self._name: {}, self._dead_name: {}}
        for seconds, name in self._later_names.items():
            arguments[name] = {
                "x-queue-type": "quorum",
                "x-message-ttl": int(1000 * seconds),
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": self._name,
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",  # which that strategy needs; there is no limit to overflow
            }
        counts = {}
        for name, settings in arguments.items():
            queue = await channel.declare_queue(name, durable=True, arguments={**settings})
            counts[name] = queue.declaration_result.message_count or 0
        return counts

    async def _send(self, to: str, messages: Sequence[Message]) -> None:
        for some in windows(messages):
            async with self._channel() as channel:
                returned = await publish(channel.default_exchange, to, some)
                if returned:  # somebody has deleted the queue
                    await self._declare(channel)
                    returned = await publish(channel.default_exchange, to, returned)
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
            except RefusedError:
                raise
            except QueueError:
                self._again = self._clock.now() + self._pause
                self._pause = min(LONGEST_PAUSE, 2 * self._pause)
                return None
            self._pause = FIRST_PAUSE
            return self._inbox

    async def _subscribe(self, inbox: Inbox | None) -> Inbox:
        """Have letters delivered to `inbox`, or to a new one."""
        inbox = inbox or Inbox(await self._connect(), self._news)
        channel = inbox.link.channel
        try:
            with plainly(self._broker.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._declare(channel)  # what was deleted
                    await channel.set_qos(prefetch_count=PREFETCH)
                    (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(inbox.cancel)
                    channel.close_callbacks.add(inbox.cancel)
                    queue = await channel.get_queue(self._name, ensure=False)
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
        link = await self._connect()
        try:
            with plainly(self._broker.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    left = (await self._declare(link.channel))[self._dead_name]
                queue = await link.channel.get_queue(self._dead_name, ensure=False)

                async def next_one() -> AbstractIncomingMessage | None:
                    nonlocal left
                    left -= 1
                    return await queue.get(fail=False, timeout=ANSWER_SECONDS) if left >= 0 else None

                yield next_one
        finally:
            await link.close()

    async def _revive(self, messages: Sequence[AbstractIncomingMessage]) -> int:
        await self._send(self._name, [message_of(key_of(each), each.body) for each in messages])
        async with asyncio.timeout(ANSWER_SECONDS):
            await acknowledge(messages)
        return len(messages)

    def __repr__(self) -> str:
        return f"<RabbitmqQueue {self._name} at {self._broker.place}>"


def _mark(delivery: Delivery) -> Mark:
    if not isinstance(delivery.tag, Mark):
        raise TypeError(f"letter {delivery.key!r} is of another queue")
    return delivery.tag
