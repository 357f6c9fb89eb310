"""What a system asks of the queue between those who collect and those who store.

A **letter** is a key and a body. Whoever publishes it is told when it is durable; whoever takes it says when it is
done, or that it should come back later, or that it is to be buried among the **dead letters**, from where an operator
may replay it.

Tricky bits:

- At least once. A publisher that was not told may publish again, and a letter whose consumer died comes back, with as
  many tries as before. So consumers must not mind to see a letter twice.
- The key says which letters are the same. A SQLite queue holds one waiting letter of a key, the latest; RabbitMQ cannot
  look, and holds them all.
- The order is the order of publishing, more or less: what came back may be before or behind what is new.
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from sanderling.clock import Clock
from sanderling.extras import load

# AMQP keeps names in 255 bytes; a key is a name and not a place for data.
LONGEST_KEY = 200
# The largest report is some 100 kB. RabbitMQ 4 takes 16 MiB, headers included, unless it was told otherwise.
LARGEST_BODY = 15 << 20
# A reason is for people. It may hold an exception, and that a whole answer.
LONGEST_WHY = 500
# Letters that a server hands out before any is done: as many as AMQP can count.
MOST_PREFETCH = 65_535

EXPECTED = "expected sqlite:FOLDER or amqp://user@host:5672/vhost"
# It becomes the name of a file and of queues, and stands in messages.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class QueueError(Exception):
    """The queue cannot be used, or not now. The message says where, what was found, and what will happen."""


class UnfitLetterError(ValueError):
    """A letter that the queue will never take, however often it is published; the others may be. `why` says why."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"letter {key!r:.100} {why}")
        self.key = key
        self.why = why


class Letter(NamedTuple):
    """What is published."""

    key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Delivery:
    """A letter that was taken, and is ours until we say what became of it."""

    key: str
    body: bytes
    tries: int  # that failed so far
    tag: object  # by which the queue knows it again


class Depth(NamedTuple):
    """How many letters there are, by what they wait for."""

    ready: int
    taken: int
    delayed: int
    dead: int


class Dead(NamedTuple):
    """A letter that was given up."""

    key: str
    body: bytes
    why: str
    tries: int
    at: float  # seconds since 1970


class Binding(NamedTuple):
    """What else is put into a queue of a server: messages of other programs to a topic exchange, under such a key."""

    exchange: str
    routing_key: str


class Queue(Protocol):
    """Letters on their way. All methods raise QueueError; all end within seconds, whatever the other side does."""

    async def publish(self, letters: Sequence[Letter]) -> None:
        """Return when all are durable. After an error some may be, so publish them all again.

        Raises UnfitLetterError for one that is never taken: publish the others without it.
        """

    async def publish_dead(self, letter: Letter, why: str) -> None:
        """Return when a letter that nobody has taken is durable among the dead letters."""

    async def take(self, most: int, wait: float) -> list[Delivery]:
        """Up to `most` letters; waits up to `wait` seconds for the first. No error while a server is away: nothing."""

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        """Forget these. Harmless for those that are no longer ours: they come, or came, again."""

    async def later(self, delivery: Delivery, seconds: float, why: str, *, failed: bool = True) -> None:
        """Deliver it again after so long, and count a failed try, unless it is not its own fault.

        After an error it is still taken: say it again.
        """

    async def bury(self, delivery: Delivery, why: str) -> None:
        """Put it among the dead letters. After an error it is still taken: say it again."""

    async def depth(self) -> Depth:
        """How many letters there are."""

    async def close(self) -> None:
        """Let go. What was taken and not done is there for others at once."""


class DeadLetters(Protocol):
    """Letters that were given up. All methods raise QueueError."""

    async def dead(self, limit: int, after: str = "") -> list[Dead]:
        """A page of them, each key once, the first buried first; `after` is the last key of the page before.

        A page may have fewer than `limit` if they are large; only an empty one is the last.
        """

    async def replay(self, keys: Collection[str] | None = None) -> int:
        """Make these ready again as if they had never failed, or all; say how many there were."""


class WholeQueue(Queue, DeadLetters, Protocol):
    """Both sides of a queue."""


def open_queue(
    url: str,
    name: str,
    clock: Clock,
    environment: Mapping[str, str] = os.environ,
    *,
    binding: Binding | None = None,
    prefetch: int | None = None,
) -> WholeQueue:
    """The queue `name` at `url`: a file of that name in `sqlite:FOLDER`, or of an `amqp://` or `amqps://` server.

    A file is opened here, a server reached with the first call: ask for the `depth` to know. Raises QueueError,
    or MissingExtraError.

    `prefetch` is how many letters a server hands to this process before it is told that some are done. Both, it and
    `binding`, mean nothing to a file: nobody but us puts letters there, and they are taken as they are asked for.
    """
    if not NAME.fullmatch(name):
        raise QueueError(f"{name[:100]!r} cannot be the name of a queue; expected letters, digits, '.', '-' and '_'")
    kind, _, rest = url.partition(":")
    if kind == "sqlite" and rest.removeprefix("//"):
        from sanderling.stores.sqlite_queue import SqliteQueue  # noqa: PLC0415 - it knows this file

        return SqliteQueue(Path(rest.removeprefix("//")) / f"{name}.db", clock)
    if kind not in ("amqp", "amqps"):
        # The URL may hold a password, in the wrong place too: no message quotes more than its beginning.
        shown = kind if kind in ("sqlite", "redis", "http", "https") else "that"
        raise QueueError(f"{shown!r} is no queue with a place; {EXPECTED}")
    rabbitmq = load("sanderling.stores.rabbitmq", "RabbitMQ")
    intake = rabbitmq.QueueIntake(binding, rabbitmq.PREFETCH if prefetch is None else prefetch)
    queue: WholeQueue = rabbitmq.RabbitmqQueue(url, name, clock, environment=environment, intake=intake)
    return queue


def too_large(key: str, size: int, most: int) -> UnfitLetterError:
    """Why a letter of so many bytes is not taken."""
    return UnfitLetterError(key, f"has {size:,} bytes, at most {most:,} are taken")


def checked(letters: Sequence[Letter]) -> dict[str, bytes]:
    """The bodies by key; of two with one key, the last. Raises UnfitLetterError for what no queue takes."""
    for key, body in letters:
        if not key:
            raise UnfitLetterError(key, "has an empty key")
        if (size := len(key.encode(errors="surrogatepass"))) > LONGEST_KEY or not key.isprintable():
            raise UnfitLetterError(key, f"has a key of {size} bytes; expected at most {LONGEST_KEY}, all printable")
        if len(body) > LARGEST_BODY:
            raise too_large(key, len(body), LARGEST_BODY)
    return dict(letters)
