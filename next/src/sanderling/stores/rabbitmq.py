"""RabbitMQ 3.10 or later: messages are published with confirmation, and consumed with acknowledgement.

A queue that exists is used as it is, whatever its kind; one that does not is made, durable and classic. A connection is
made anew when it is needed after it broke. The client's own reconnection is not used: it hides that what was taken and
not acknowledged is delivered again, and a publisher would wait without a word.

Publish and consume over two connections: a server that is short of memory stops to read from those who publish.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from sanderling.files import Exit, FolderError
from sanderling.options import OptionError
from sanderling.redact import redact
from sanderling.stores.broker import BrokerAway

try:
    import aio_pika
    from aio_pika.exceptions import CONNECTION_EXCEPTIONS
    from aiormq.exceptions import (
        AuthenticationError,
        ChannelAccessRefused,
        ChannelNotFoundEntity,
        ChannelPreconditionFailed,
        ConnectionNotAllowed,
        DeliveryError,
        InvalidFrameError,
        ProbableAuthenticationError,
    )
except ImportError:
    raise FolderError("RabbitMQ needs aio-pika", 'pip install "sanderling[rabbitmq]"') from None

ANSWER_SECONDS = 10.0  # for one step; connecting is one
CLOSE_SECONDS = 3.0
HEARTBEAT_SECONDS = 10  # a server that vanished is noticed after some three of these
# Published and not confirmed: waiting for each confirmation by itself takes four times as long.
WINDOW = 200


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message to publish; the server keeps it over a restart."""

    body: bytes
    headers: Mapping[str, Any] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message that was taken, and is this consumer's until it is done or given back."""

    body: bytes
    headers: Mapping[str, Any]
    redelivered: bool  # somebody has taken it before
    taken: Any = field(repr=False)  # as the client has it


class _Link:
    """A connection with a channel."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise OptionError(f"found {redact(url)[:100]!r}, expected amqp://user:password@host:5672/vhost")
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._url = url + ("&" if parts.query else "?") + f"heartbeat={HEARTBEAT_SECONDS}"
        self._connection: Any = None
        self._channel: Any = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            async with self._use():
                pass
        except BrokerAway as away:
            raise FolderError(str(away), "check that it runs and that the URL names it", Exit.LATER) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    @asynccontextmanager
    async def _use(self) -> AsyncIterator[Any]:
        """The channel. If anything goes wrong with it, the next use makes a new one."""
        try:
            with self._plainly():
                async with asyncio.timeout(ANSWER_SECONDS), self._opening:
                    if self._channel is None or self._channel.is_closed or self._connection.is_closed:
                        await self._open()
                async with asyncio.timeout(ANSWER_SECONDS):
                    yield self._channel
        except BaseException:
            await self._close()
            raise

    async def _open(self) -> None:
        for library in ("aio_pika", "aiormq"):  # they log with traces what is said here in one line
            logging.getLogger(library).setLevel(logging.CRITICAL)
        await self._close()
        self._connection = aio_pika.Connection(aio_pika.connection.make_url(self._url))
        await self._connection.connect()
        self._channel = await self._connection.channel(on_return_raises=True)

    async def _close(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with suppress(*CONNECTION_EXCEPTIONS, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await connection.close()

    async def _count(self, queue: str) -> int | None:
        """Messages that wait in a queue; None if there is no such queue."""
        try:
            async with self._connection.channel() as channel:  # of its own: the server closes it if there is none
                found = await channel.declare_queue(queue, passive=True)
        except ChannelNotFoundEntity:
            return None
        return int(found.declaration_result.message_count)

    async def _declare(self, queue: str, exchange: str = "", key: str = "") -> None:
        """Make a queue that does not exist, and bind it to a topic exchange."""
        if await self._count(queue) is None:
            made = await self._channel.declare_queue(queue, durable=True)
            if exchange:
                source = await self._channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC, durable=True)
                await made.bind(source, key)

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn what the client raises into BrokerAway, or into a FolderError where waiting does not help."""
        try:
            yield
        except asyncio.CancelledError:
            # When a connection dies of silence, the client cancels who waits for an answer.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise BrokerAway(f"RabbitMQ at {self.place} has gone silent") from None
        except TimeoutError:
            raise BrokerAway(f"RabbitMQ at {self.place} does not answer in time") from None
        except (AuthenticationError, ProbableAuthenticationError):
            raise FolderError(f"RabbitMQ at {self.place} refuses the user or the password", "check the URL") from None
        except (ChannelAccessRefused, ChannelPreconditionFailed, ConnectionNotAllowed) as error:
            raise FolderError(f"RabbitMQ at {self.place} refuses: {error}", "check names and rights") from None
        except InvalidFrameError as error:
            if "Connection.OpenOk" not in str(error):  # all that the client says of a vhost that is refused
                raise BrokerAway(f"what answers at {self.place} is no RabbitMQ") from None
            raise FolderError(f"RabbitMQ at {self.place} has no such vhost for this user", "check the URL") from None
        except DeliveryError as error:
            raise BrokerAway(f"RabbitMQ at {self.place} took no message: {type(error).__name__}") from None
        except CONNECTION_EXCEPTIONS as error:
            raise BrokerAway(f"no RabbitMQ answers at {self.place} ({type(error).__name__})") from None


class QueuePublisher(_Link):
    """Publishes to queues and exchanges of a server. Entering it connects: FolderError with exit code 75 if it is away.

    Every method raises BrokerAway while the server cannot be used.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._known: set[str] = set()  # queues that exist

    async def publish(self, to: str, messages: Sequence[OutgoingMessage], exchange: str = "") -> None:
        """Return when the server has all of them on disk; after an error it may have some.

        `to` is the queue, which is made if there is none; with an `exchange` it is the routing key.
        """
        for start in range(0, len(messages), WINDOW):
            async with self._use() as channel:
                if not exchange and to not in self._known:
                    await self._declare(to)
                    self._known.add(to)
                target = await channel.get_exchange(exchange, ensure=False) if exchange else channel.default_exchange
                try:
                    async with asyncio.TaskGroup() as group:
                        sent = [
                            group.create_task(target.publish(_message(each), to, mandatory=not exchange))
                            for each in messages[start : start + WINDOW]
                        ]
                except* BaseException as several:  # noqa: BLE001 - the first stands for all
                    self._known.discard(to)
                    raise several.exceptions[0] from None
                if any(each.cancelled() for each in sent):  # the client cancels, which is no error to a group
                    raise ConnectionError("not all messages were confirmed")

    async def declare(self, exchange: str, queue: str = "", key: str = "") -> None:
        """Make a durable topic exchange if there is none, and bind a queue that exists to it."""
        async with self._use() as channel:
            source = await channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC, durable=True)
            if queue:
                await (await channel.get_queue(queue, ensure=False)).bind(source, key)

    async def make(self, queue: str, exchange: str, key: str) -> None:
        """Make a queue that does not exist, bound to a topic exchange."""
        async with self._use():
            await self._declare(queue, exchange, key)

    async def count(self, queue: str) -> int | None:
        """Messages that wait in a queue; None if there is no such queue."""
        async with self._use():
            return await self._count(queue)


class QueueConsumer(_Link):
    """Takes messages from one queue. Entering it connects, as with a publisher.

    A queue that does not exist is made by the first `take`, and bound to the topic `exchange` with `key`. After
    BrokerAway, everything that was taken and not done is delivered again, to whoever comes first.
    """

    def __init__(self, url: str, queue: str, prefetch: int, exchange: str = "", key: str = "") -> None:
        super().__init__(url)
        self.queue = queue
        self.prefetch = prefetch  # a change holds from the next `take` after a `pause`
        self._exchange, self._key = exchange, key
        self._arrived: deque[QueueMessage] = deque()
        self._news = asyncio.Event()
        self._tag = ""

    async def _open(self) -> None:
        await super()._open()
        self._arrived.clear()
        self._tag = ""

    async def take(self, most: int, seconds: float) -> list[QueueMessage]:
        """Up to so many messages; waits so long for the first. At most `prefetch` are taken and not done."""
        if not self._tag or self._channel is None or self._channel.is_closed:
            async with self._use() as channel:
                await self._declare(self.queue, self._exchange, self._key)
                await channel.set_qos(prefetch_count=self.prefetch)
                channel.close_callbacks.add(self._cancelled)
                (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(self._cancelled)
                queue = await channel.get_queue(self.queue, ensure=False)
                self._tag = await queue.consume(self._arrive)
        if not self._arrived:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()
        if not self._tag:
            await self._close()
            raise BrokerAway(f"RabbitMQ at {self.place} does not deliver from {self.queue} any more")
        return [self._arrived.popleft() for _ in range(min(most, len(self._arrived)))]

    async def done(self, messages: Sequence[QueueMessage]) -> None:
        """Acknowledge messages: the server forgets them."""
        async with self._mine(messages):
            for each in messages:
                await each.taken.ack()

    async def give_back(self, messages: Sequence[QueueMessage]) -> None:
        """Have messages delivered again, in their old place."""
        async with self._mine(messages):
            for each in messages:
                await each.taken.reject(requeue=True)

    async def pause(self, taken: Sequence[QueueMessage] = ()) -> None:
        """Take no more, and give back what was taken, and then what has come since; the next `take` goes on."""
        if self._tag:
            tag, self._tag = self._tag, ""
            async with self._use() as channel:
                await (await channel.get_queue(self.queue, ensure=False)).cancel(tag)
        # In their order: a quorum queue delivers what comes back in the order in which it came back.
        waiting = [*taken, *self._arrived]
        self._arrived.clear()
        if waiting:
            await self.give_back(waiting)

    @asynccontextmanager
    async def _mine(self, messages: Sequence[QueueMessage]) -> AsyncIterator[None]:
        """Messages of this connection. Those of one that is lost are delivered again."""
        if self._channel is None or any(each.taken.channel.is_closed for each in messages):
            raise BrokerAway(f"the connection to RabbitMQ at {self.place} was lost")
        async with self._use():
            yield

    async def _arrive(self, message: Any) -> None:  # noqa: ANN401 - the client's
        self._arrived.append(QueueMessage(message.body, message.headers, bool(message.redelivered), message))
        self._news.set()

    def _cancelled(self, *_: object) -> None:
        """The connection is lost, or somebody has deleted the queue."""
        self._tag = ""
        self._news.set()


def _message(each: OutgoingMessage) -> Any:  # noqa: ANN401 - the client's
    persistent = aio_pika.DeliveryMode.PERSISTENT
    return aio_pika.Message(
        each.body, headers=dict(each.headers), content_type=each.content_type, delivery_mode=persistent
    )
