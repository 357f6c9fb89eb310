"""Where messages go out: to the topic exchanges of a server, or into queues of our own.

Tricky bits:

- A message that nobody waits for is **unroutable**. A server forgets it as soon as it has said so, and whether that
  matters is not for us to say: it is handed back.
- At least once. Whoever sends a message again because nothing was heard of the first sends it under the same id: a
  receiver that has seen the id has seen the message.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from sanderling.extras import load
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.queue import EXPECTED, LARGEST_BODY, Letter, Queue, QueueError

LONGEST_NAME = 255  # bytes, which is what the protocol has place for
LONGEST_SHOWN_KEY = 100


class Topic(Protocol):
    """Takes messages. All methods raise QueueError; all end within seconds, whatever the other side does."""

    async def send(self, messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
        """Return when all are durable; gives those that are nowhere, since nobody waits for them.

        Those under one key keep their order. After an error some may be durable, so send them all again. Raises
        ValueError for a message that nobody takes: `unfit`.
        """

    async def close(self) -> None:
        """Let go."""


def open_topic(url: str, queues: Mapping[str, Queue], environment: Mapping[str, str] = os.environ) -> Topic:
    """Exchanges of an `amqp://` server; for `sqlite:` these queues, by routing key.

    Raises QueueError, or MissingExtraError.
    """
    kind, _, _ = url.partition(":")
    if kind == "sqlite":
        return QueueTopic(queues)
    if kind not in ("amqp", "amqps"):
        # The URL may hold a password, in the wrong place too.
        raise QueueError(f"that is nowhere to send messages to; {EXPECTED}")
    topic: Topic = load("sanderling.stores.rabbitmq_topic", "RabbitMQ").RabbitmqTopic(url, environment=environment)
    return topic


def unfit(message: OutboxMessage) -> str:
    """Why nobody will ever take a message; empty if it may be taken."""
    if len(message.body) > LARGEST_BODY:
        return f"has {len(message.body):,} bytes, at most {LARGEST_BODY:,} are taken"
    for what, name in (("exchange", message.exchange), ("routing key", message.routing_key)):
        if len(name.encode(errors="replace")) > LONGEST_NAME or (name and not name.isprintable()):
            return f"has the {what} {name[:50]!r}, expected at most {LONGEST_NAME} bytes, all printable"
    return "" if message.routing_key else "has no routing key"


def ids(messages: Sequence[OutboxMessage]) -> list[str]:
    """An id for each: the same whenever the message is sent, and another for every other. Raises ValueError."""
    seen: Counter[str] = Counter()
    found = []
    for place, message in enumerate(messages):
        if why := unfit(message):
            raise ValueError(f"message {place} {why}")
        same = _id(message)
        # Two that have no number may be alike in everything.
        found.append(f"{same}-{seen[same]}" if seen[same] else same)
        seen[same] += 1
    return found


def _id(message: OutboxMessage) -> str:
    parts = (message.exchange, message.routing_key, str(message.number), repr(message.created_at))
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=16)
    digest.update(message.body)
    return f"{message.routing_key[:LONGEST_SHOWN_KEY]}-{digest.hexdigest()}"


class QueueTopic:
    """Queues of ours, by routing key; whoever opened them closes them."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = dict(queues)

    def __repr__(self) -> str:
        return f"<QueueTopic of {', '.join(self._queues) or 'nothing'}>"

    async def send(self, messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
        letters: dict[str, list[Letter]] = {key: [] for key in self._queues}
        unroutable = []
        for name, message in zip(ids(messages), messages, strict=True):
            if message.routing_key in letters:
                letters[message.routing_key].append(Letter(name, message.body))
            else:
                unroutable.append(message)
        for key, some in letters.items():
            if some:
                await self._queues[key].publish(some)
        return unroutable

    async def close(self) -> None:
        """Nothing is ours."""
