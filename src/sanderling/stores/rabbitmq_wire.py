"""What goes over the wire to a RabbitMQ: where that is, a connection with a channel, messages, and what goes wrong.

A server is `amqp://user:password@host:5672/vhost`, or `amqps://` with TLS. The password may also come from
RABBITMQ_PASSWORD, or from the file that RABBITMQ_PASSWORD_FILE names; it is never shown.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aio_pika
from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange, AbstractIncomingMessage
from aio_pika.exceptions import CONNECTION_EXCEPTIONS, PublishError
from aiormq.exceptions import (
    AuthenticationError,
    ChannelAccessRefused,
    ChannelPreconditionFailed,
    InvalidFrameError,
    ProbableAuthenticationError,
)

from sanderling.stores.queue import EXPECTED, LONGEST_WHY, Dead, QueueError

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
# On the way and not confirmed, in letters and in bytes; a confirm of each by itself costs four times as much.
WINDOW, WINDOW_BYTES = 200, 8 << 20

AGAIN = "What was confirmed is safe; the rest will be tried again."


class RefusedError(QueueError):
    """The server is there and does not want us. Waiting will not help; somebody has to change something."""


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
class Link:
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


async def connect(server: Broker, name: str) -> Link:
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
            )
            try:
                return Link(connection, await connection.channel(on_return_raises=True))
            except BaseException:
                await _close(connection)
                raise


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
        raise RefusedError(f"RabbitMQ at {place}: user or password are wrong; see RABBITMQ_PASSWORD") from error
    except ChannelPreconditionFailed as error:
        raise RefusedError(
            f"RabbitMQ at {place} has a queue of that name with other settings ({_reason(error)}). "
            "Delete that one, or choose another name."
        ) from error
    except ChannelAccessRefused as error:
        raise RefusedError(f"RabbitMQ at {place} does not allow that: {_reason(error)}") from error
    except InvalidFrameError as error:
        if "Connection.OpenOk" not in str(error):  # all that the client says of a vhost that was refused
            raise QueueError(f"what answers at {place} is no RabbitMQ ({_reason(error)}). {AGAIN}") from error
        raise RefusedError(f"RabbitMQ at {place} has no vhost of that name, or not for this user") from error
    except CONNECTION_EXCEPTIONS as error:
        raise QueueError(f"no RabbitMQ answers at {place} ({_reason(error)}). {AGAIN}") from error


def _reason(error: BaseException) -> str:
    # The client's word for having tried every address of the host.
    nobody = "nobody listens there" if isinstance(error, StopAsyncIteration) else type(error).__name__
    said = str(error) or nobody
    return said if len(said) <= LONGEST_REASON else f"{said[:LONGEST_REASON]}…"


async def publish(exchange: AbstractExchange, to: str, messages: Sequence[Message]) -> list[Message]:
    """Return when all are confirmed; gives those for which there is no queue."""
    confirmed = 0
    returned: list[Message] = []
    troubles: list[BaseException] = []

    async def one(message: Message) -> None:
        nonlocal confirmed
        try:
            await exchange.publish(message, to, mandatory=True)
            confirmed += 1
        except PublishError:
            returned.append(message)
        except CONNECTION_EXCEPTIONS as error:
            troubles.append(error)

    async with asyncio.TaskGroup() as group:
        for message in messages:
            group.create_task(one(message))
    if troubles:
        raise troubles[0]
    # A task that the client has cancelled is no error to its group.
    if confirmed + len(returned) < len(messages):
        raise ConnectionError(f"{len(messages) - confirmed} of {len(messages)} letters were not confirmed")
    return returned


async def acknowledge(messages: Sequence[AbstractIncomingMessage]) -> None:
    """Have the server forget these. It does not answer."""
    for message in messages:
        if message.delivery_tag is not None:
            await message.channel.basic_ack(message.delivery_tag, wait=message is messages[-1])


def windows(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """As many at a time as may be on their way."""
    some: list[Message] = []
    size = 0
    for message in messages:
        some.append(message)
        size += message.body_size
        if len(some) >= WINDOW or size >= WINDOW_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def message_of(key: str, body: bytes, tries: int = 0, why: str = "", buried_at: float | None = None) -> Message:
    """A message that survives the server."""
    # The key is no message_id: by that the client tells which of those on their way came back, so all must differ.
    headers: dict[str, str | int] = {"x-key": key, "x-retry-count": tries}
    if why:
        headers["x-why"] = why[:LONGEST_WHY]
    if buried_at is not None:
        headers["x-buried-at"] = int(1000 * buried_at)  # milliseconds, since the client cuts a float short
    return Message(body, headers={**headers}, delivery_mode=DeliveryMode.PERSISTENT)


def key_of(message: AbstractIncomingMessage) -> str:
    """Of a message of somebody else it may be empty."""
    return str(message.headers.get("x-key") or message.message_id or "")


def tries_of(message: AbstractIncomingMessage) -> int:
    """How many failed."""
    tries = message.headers.get("x-retry-count")
    return tries if isinstance(tries, int) and tries > 0 else 0


def dead_of(message: AbstractIncomingMessage) -> Dead:
    """What is known of one that was given up."""
    at = message.headers.get("x-buried-at")
    return Dead(
        key=key_of(message),
        body=message.body,
        why=str(message.headers.get("x-why") or ""),
        tries=tries_of(message),
        at=at / 1000 if isinstance(at, int) else 0.0,
    )
