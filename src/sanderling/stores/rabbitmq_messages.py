"""Messages of a RabbitMQ: what a letter looks like there, and how many are published and confirmed."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage
from aio_pika.exceptions import CONNECTION_EXCEPTIONS, PublishError

from sanderling.stores.queue import LONGEST_KEY, LONGEST_WHY, Dead

T = TypeVar("T")

# On the way and not confirmed, in letters and in bytes; a confirm of each by itself costs four times as much.
WINDOW, WINDOW_BYTES = 200, 8 << 20


class Parcel(NamedTuple):
    """A message, to which exchange it goes, and under which key."""

    exchange: AbstractExchange
    to: str
    message: Message


async def publish(parcels: Sequence[Parcel]) -> list[int]:
    """Return when all are confirmed; gives the places of those for which there is no queue."""
    confirmed = 0
    returned: list[int] = []
    troubles: list[BaseException] = []

    async def one(place: int, parcel: Parcel) -> None:
        nonlocal confirmed
        try:
            await parcel.exchange.publish(parcel.message, parcel.to, mandatory=True)
            confirmed += 1
        except PublishError:
            returned.append(place)
        except CONNECTION_EXCEPTIONS as error:
            troubles.append(error)

    async with asyncio.TaskGroup() as group:
        for place, parcel in enumerate(parcels):
            group.create_task(one(place, parcel))
    if troubles:
        raise troubles[0]
    # A task that the client has cancelled is no error to its group.
    if confirmed + len(returned) < len(parcels):
        raise ConnectionError(f"{len(parcels) - confirmed} of {len(parcels)} letters were not confirmed")
    return sorted(returned)


async def acknowledge(messages: Sequence[AbstractIncomingMessage]) -> None:
    """Have the server forget these. It does not answer."""
    for message in messages:
        if message.delivery_tag is not None:
            await message.channel.basic_ack(message.delivery_tag, wait=message is messages[-1])


def windows(things: Sequence[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """As many at a time as may be on their way."""
    some: list[T] = []
    size = 0
    for thing in things:
        some.append(thing)
        size += size_of(thing)
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
    """The key of a letter. One of somebody else has the id that they gave it, or one that is made from its body.

    Either way it is the same whenever it is delivered.
    """
    given = str(message.headers.get("x-key") or message.message_id or "")
    if given and given.isprintable() and len(given.encode()) <= LONGEST_KEY:
        return given
    return f"body-{hashlib.sha256(message.body).hexdigest()[:32]}"


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
