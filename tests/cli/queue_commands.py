"""A queue to run commands on: a file, or at a RabbitMQ that may be somebody's."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import aio_pika

from sanderling.clock import SystemClock
from sanderling.stores.queue import Depth, Letter, WholeQueue, open_queue
from sanderling.stores.rabbitmq import DELAYS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Queued:
    """Where the queue is, and what to type behind a command to use it."""

    url: str
    name: str
    flags: tuple[str, ...]

    def named(self, system: str) -> tuple[str, ...]:
        """The words that say which it is, behind `dead list`: with a broker nothing need be in a folder."""
        if self.url.startswith("sqlite:"):
            return (self.url.removeprefix("sqlite:"),)
        return (system, f"--queue={self.url}", f"@{system}.queue-name", self.name)

    def use(self, work: Callable[[WholeQueue], Awaitable[T]]) -> T:
        """What comes of some work with the queue."""

        async def opened() -> T:
            queue = open_queue(self.url, self.name, SystemClock())
            try:
                return await work(queue)
            finally:
                await queue.close()

        return asyncio.run(opened())

    def publish(self, *letters: Letter) -> None:
        """Put letters into it."""
        self.use(lambda queue: queue.publish(letters))

    def bury(self, *reasons: tuple[Letter, str]) -> None:
        """Put letters among the dead."""

        async def work(queue: WholeQueue) -> None:
            for letter, why in reasons:
                await queue.publish([letter])
                (delivery,) = await queue.take(1, 10)
                await queue.bury(delivery, why)

        self.use(work)

    def depth(self) -> Depth:
        """How many letters there are."""
        return self.use(lambda queue: queue.depth())


def in_folder(folder: Path) -> Queued:
    """The embedded one, of a folder."""
    return Queued(f"sqlite:{folder}", "instance_store", (f"--out={folder}",))


@contextmanager
def at_broker(url: str, folder: Path, *, bound: bool = False) -> Iterator[Queued]:
    """One of a name that nobody else has, perhaps bound to an exchange of that name; all else is in the folder."""
    name = f"sanderling-test-{uuid.uuid4().hex}"
    exchange = ("@exchange", name) if bound else ()
    yield Queued(url, name, ("--queue", url, "@queue-name", name, *exchange, f"--out={folder}"))
    asyncio.run(_delete(url, name))


async def _delete(url: str, name: str) -> None:
    async with asyncio.timeout(300), await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        await channel.exchange_delete(name)
        for each in (name, f"{name}.dead", *(f"{name}.later.{seconds:g}s" for seconds in DELAYS)):
            await channel.queue_delete(each, if_unused=False, if_empty=False)
