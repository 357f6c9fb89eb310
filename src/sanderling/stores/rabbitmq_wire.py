"""The wire to a RabbitMQ: where that is, connections, the queues of a name, and what goes wrong.

A server is `amqp://user:password@host:5672/vhost`, or `amqps://` with TLS. The password may also come from
RABBITMQ_PASSWORD, or from the file that RABBITMQ_PASSWORD_FILE names; it is never shown.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aio_pika
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import CONNECTION_EXCEPTIONS
from aiormq.exceptions import (
    AuthenticationError,
    ChannelAccessRefused,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    InvalidFrameError,
    ProbableAuthenticationError,
)

from sanderling.stores.queue import EXPECTED, Binding, QueueError

PORTS = {"amqp": 5672, "amqps": 5671}
# A caller waits no longer than this for a server that is gone: its own retries are the better place to wait.
CONNECT_SECONDS = 10.0
# One step: a declaration, or the confirms of some 8 MB. A disk that needs longer is in trouble.
ANSWER_SECONDS = 10.0
# To say goodbye. The client itself gives a server that is silent two seconds to answer, and cleans up after that.
CLOSE_SECONDS = 3.0
# A peer that vanished without a word is noticed after some three of these, by us and by the server.
HEARTBEAT_SECONDS = 10
LONGEST_REASON = 300
AGAIN = "What was confirmed is safe; the rest will be tried again."


class BrokerRefusedError(QueueError):
    """The server is there and does not want us. Waiting will not help; somebody has to change something."""


class OversizeError(BrokerRefusedError):
    """The server takes no message as large as one of those that were published; at most `most` bytes."""

    def __init__(self, place: str, most: int) -> None:
        super().__init__(f"RabbitMQ at {place} takes at most {most:,} bytes in a message; see its max_message_size")
        self.most = most


@dataclass(frozen=True, slots=True)
class Broker:
    """Where a server is; only `place` is ever shown."""

    place: str
    tls: bool
    host: str
    port: int
    vhost: str
    login: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RabbitmqLink:
    """A connection and its channel, on which what is published is confirmed or comes back."""

    connection: AbstractConnection
    channel: AbstractChannel

    @property
    def alive(self) -> bool:
        """Whether it was alive when last heard of."""
        return not (self.connection.is_closed or self.channel.is_closed)

    async def close(self) -> None:
        """Let go of it, whatever state it is in."""
        await _close(self.connection)


def broker(url: str, environment: Mapping[str, str]) -> Broker:
    """What `url` says. Raises QueueError."""
    # The URL may hold a password, in the wrong place too: no message quotes it, or what is said of it.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise QueueError(f"the URL of the RabbitMQ is none; {EXPECTED}, special characters as %2F") from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise QueueError(f"the URL of the RabbitMQ names no host; {EXPECTED}")
    if parts.query or parts.fragment or "/" in parts.path[1:]:
        raise QueueError(f"the URL of {parts.hostname} goes on behind its vhost; {EXPECTED}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = port or PORTS[parts.scheme]
    return Broker(
        place=f"{parts.scheme}://{host}:{port}{parts.path or '/'}",
        tls=parts.scheme == "amqps",
        host=parts.hostname,
        port=port,
        vhost=unquote(parts.path[1:]) or "/",
        login=unquote(parts.username) if parts.username else "guest",
        password=unquote(parts.password) if parts.password else _password(environment),
    )


def _password(environment: Mapping[str, str]) -> str:
    if path := environment.get("RABBITMQ_PASSWORD_FILE"):
        try:
            return Path(path).read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise QueueError(f"RABBITMQ_PASSWORD_FILE: cannot read {path} ({type(error).__name__})") from None
    # A fresh server knows one user and this password, and lets it in from its own machine only.
    return environment.get("RABBITMQ_PASSWORD", "guest")


class _Connection(aio_pika.Connection):
    """One that fails to connect is closed at once: the client would do so when it is forgotten, in whatever thread."""

    async def connect(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the client's
        try:
            await super().connect(timeout)
        except BaseException:
            await self.close()
            raise


async def connect(server: Broker, name: str) -> RabbitmqLink:
    """A new link, which operators see under `name`. Raises QueueError."""
    # What they log of an error, with all its traces, we report in a line.
    for library in ("aio_pika", "aiormq"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    with plainly(server.place):
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await aio_pika.connect(
                host=server.host,
                port=server.port,
                login=server.login,
                password=server.password,
                virtualhost=server.vhost,
                ssl=server.tls,
                heartbeat=HEARTBEAT_SECONDS,
                name=name,
                connection_class=_Connection,
            )
            try:
                return RabbitmqLink(connection, await connection.channel(on_return_raises=True))
            except BaseException:
                await _close(connection)
                raise


class Publisher:
    """A link to publish on, which is made anew when the last one broke; each is prepared before it is used."""

    def __init__(
        self, server: Broker, name: str, prepare: Callable[[AbstractChannel], Awaitable[object]] | None = None
    ) -> None:
        self.link: RabbitmqLink | None = None
        self._server = server
        self._name = name
        self._prepare = prepare
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[AbstractChannel]:
        """The channel to publish on. Whatever goes wrong with it, the next one who asks gets a new one."""
        link = await self._alive()
        try:
            with plainly(self._server.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    yield link.channel
        except BaseException:
            if self.link is link:
                self.link = None
            await link.close()
            raise

    async def connect(self) -> RabbitmqLink:
        """A new link, for whoever needs one apart."""
        link = await connect(self._server, self._name)
        if self._prepare is None:
            return link
        try:
            with plainly(self._server.place):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._prepare(link.channel)
        except BaseException:
            await link.close()
            raise
        return link

    async def close(self) -> None:
        """Let go of the link; the next one who asks gets a new one."""
        link, self.link = self.link, None
        if link is not None:
            await link.close()

    async def _alive(self) -> RabbitmqLink:
        with plainly(self._server.place):
            # Also who waits for others to connect waits no longer than that.
            async with asyncio.timeout(CONNECT_SECONDS), self._turn:
                if self.link is not None and not self.link.alive:
                    await self.close()
                self.link = self.link or await self.connect()
                return self.link


@dataclass(frozen=True, slots=True)
class QueueLayout:
    """The queues that letters of one name are in, and what else is put into the first."""

    name: str
    delays: tuple[float, ...]  # seconds, the shortest first
    binding: Binding | None = None

    @property
    def dead(self) -> str:
        """The queue of letters that were given up."""
        return f"{self.name}.dead"

    @property
    def laters(self) -> list[str]:
        """The queues of letters that come back, the soonest first."""
        return [f"{self.name}.later.{seconds:g}s" for seconds in self.delays]

    def later(self, seconds: float) -> str:
        """The one with the next delay that is not shorter, or the longest."""
        fits = (name for delay, name in zip(self.delays, self.laters, strict=True) if delay >= seconds)
        return next(fits, self.laters[-1])

    async def declare(self, channel: AbstractChannel) -> dict[str, int]:
        """Make the queues that are not there; say how many letters wait in each."""
        # The first has no settings at all: so it is the same as the one that other programs make of that name.
        arguments: dict[str, dict[str, str | int]] = {self.name: {}, self.dead: {}}
        for seconds, name in zip(self.delays, self.laters, strict=True):
            arguments[name] = {
                "x-queue-type": "quorum",
                "x-message-ttl": int(1000 * seconds),
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": self.name,
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",  # which that strategy needs; there is no limit to overflow
            }
        counts = {}
        for name, settings in arguments.items():
            queue = await channel.declare_queue(name, durable=True, arguments={**settings})
            counts[name] = queue.declaration_result.message_count or 0
        if self.binding is not None:
            exchange = await channel.declare_exchange(self.binding.exchange, ExchangeType.TOPIC, durable=True)
            await (await channel.get_queue(self.name, ensure=False)).bind(exchange, self.binding.routing_key)
        return counts


async def _close(connection: AbstractConnection) -> None:
    with suppress(*CONNECTION_EXCEPTIONS):
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.close()


@contextmanager
def plainly(place: str) -> Iterator[None]:
    """Turn whatever the client raises into a QueueError."""
    try:
        yield
    except asyncio.CancelledError:
        # When a connection dies of silence, the client cancels whoever waits for an answer on it.
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        raise QueueError(f"RabbitMQ at {place} has gone silent. {AGAIN}") from None
    except TimeoutError as error:
        raise QueueError(f"RabbitMQ at {place} does not answer in time. {AGAIN}") from error
    except (AuthenticationError, ProbableAuthenticationError) as error:
        raise BrokerRefusedError(f"RabbitMQ at {place}: user or password are wrong; see RABBITMQ_PASSWORD") from error
    except ChannelPreconditionFailed as error:
        raise _precondition(place, error) from error
    except ChannelAccessRefused as error:
        raise BrokerRefusedError(f"RabbitMQ at {place} does not allow that: {_reason(error)}") from error
    except InvalidFrameError as error:
        if "Connection.OpenOk" not in str(error):  # all that the client says of a vhost that was refused
            raise QueueError(f"what answers at {place} is no RabbitMQ ({_reason(error)}). {AGAIN}") from error
        raise BrokerRefusedError(f"RabbitMQ at {place} has no vhost of that name, or not for this user") from error
    except CONNECTION_EXCEPTIONS as error:
        known = isinstance(error, ChannelNotFoundEntity)
        found = f"RabbitMQ at {place} does not have that" if known else f"no RabbitMQ answers at {place}"
        raise QueueError(f"{found} ({_reason(error)}). {AGAIN}") from error


def _precondition(place: str, error: ChannelPreconditionFailed) -> BrokerRefusedError:
    """What a server means that closes the channel for a condition of its own."""
    if most := re.search(r"larger than (?:configured )?max size (\d+)", str(error)):
        return OversizeError(place, int(most[1]))
    what = "an exchange" if "for exchange" in str(error) else "a queue"
    found = f"RabbitMQ at {place} has {what} of that name with other settings ({_reason(error)})."
    return BrokerRefusedError(f"{found} Delete that one, or choose another name.")


def _reason(error: BaseException) -> str:
    # The client's word for having tried every address of the host.
    nobody = "nobody listens there" if isinstance(error, StopAsyncIteration) else type(error).__name__
    said = str(error) or nobody
    return said if len(said) <= LONGEST_REASON else f"{said[:LONGEST_REASON]}…"
