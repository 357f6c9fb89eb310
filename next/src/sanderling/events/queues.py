"""Where messages come from: queues of RabbitMQ, or of a SQLite file in the folder.

A message that was taken is ours until it is done, given back, parked or buried; a kill gives all of them back. Parked
and dead ones lie in durable queues beside the first, `NAME.parked` and `NAME.dead`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from sanderling.clock import Clock
from sanderling.formats.envelope import Envelope
from sanderling.stores.queue_file import QueueFile

if TYPE_CHECKING:
    from sanderling.stores.rabbitmq import QueueConsumer, QueuePublisher

DEAD, PARKED = ".dead", ".parked"
LEGACY_QUEUE = "analytics_queue"
_LOOK_SECONDS = 0.1  # how often the file is looked at while it is empty
_LOOK_AGAIN = 30.0  # how often a queue is looked for


@dataclass(slots=True, eq=False)
class Delivery:
    """A message that was taken."""

    body: bytes
    file: str = ""  # it stands for a file that was named on the command line
    handle: Any = None  # as the queue knows it
    size: int = 0
    envelope: Envelope | None = None
    missing: int = 0  # how often its object was not there
    first_wall: float = 0.0


class MessageQueue(Protocol):
    """One queue."""

    name: str

    async def take(self, seconds: float) -> Delivery | None:
        """The next message; waits so long for it."""

    async def done(self, delivery: Delivery) -> None:
        """It is forgotten."""

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """They come again, in their place."""

    async def make_room(self, wanted: int) -> None:
        """Those that are held do not count: let so many more come."""

    async def rest(self, deliveries: Sequence[Delivery]) -> None:
        """Give these back, and take no more until the next `take`."""

    async def move(self, delivery: Delivery, suffix: str, why: str) -> None:
        """Put it into the queue beside this one."""

    async def count(self, suffix: str = "") -> int:
        """The messages that wait, here or in a queue beside this one."""


class FileQueue:
    """A queue in the folder. Its messages are ours alone, so what is taken is only remembered here."""

    def __init__(self, file: QueueFile, name: str, clock: Clock) -> None:
        self.name = name
        self._file = file
        self._clock = clock
        self._after = 0
        self._again: list[int] = []

    async def take(self, seconds: float) -> Delivery | None:
        """The next message."""
        until = self._clock.now() + seconds
        while True:
            number = self._again.pop(0) if self._again else None
            if (found := await self._file.next(self.name, self._after, number)) is not None:
                number, body, file = found
                self._after = max(self._after, number)
                return Delivery(body, file, number, len(body))
            if self._clock.now() >= until:
                return None
            await self._clock.sleep(_LOOK_SECONDS)

    async def done(self, delivery: Delivery) -> None:
        """It is forgotten."""
        await self._file.done(delivery.handle)

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """They come again, in their place."""
        self._again = sorted([*self._again, *(each.handle for each in deliveries)])

    async def make_room(self, wanted: int) -> None:
        """There is always room."""

    async def rest(self, deliveries: Sequence[Delivery]) -> None:
        """Nobody else waits for them."""
        await self.give_back(deliveries)

    async def move(self, delivery: Delivery, suffix: str, why: str) -> None:
        """Put it into the queue beside this one."""
        await self._file.move(delivery.handle, self.name + suffix, why[:1000])

    async def count(self, suffix: str = "") -> int:
        """The messages that wait."""
        return await self._file.count(self.name + suffix)


class BrokerQueue:
    """A queue of RabbitMQ. `optional`: where there is none, it is looked for every half minute."""

    def __init__(self, consumer: "QueueConsumer", publisher: "QueuePublisher", clock: Clock, *, optional: bool) -> None:
        self.name = consumer.queue
        self._consumer = consumer
        self._publisher = publisher
        self._prefetch = consumer.prefetch
        self._clock = clock
        self._missing = optional
        self._look_at = 0.0

    async def take(self, seconds: float) -> Delivery | None:
        """The next message. Raises BrokerAway."""
        if self._missing:
            if self._clock.now() >= self._look_at:
                self._look_at = self._clock.now() + _LOOK_AGAIN
                self._missing = await self._publisher.count(self.name) is None
            if self._missing:
                await self._clock.sleep(min(seconds, 1.0))
                return None
        found = await self._consumer.take(1, seconds)
        return Delivery(found[0].body, "", found[0], len(found[0].body)) if found else None

    async def done(self, delivery: Delivery) -> None:
        """It is forgotten. Raises BrokerAway."""
        await self._consumer.done([delivery.handle])

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """They come again, in their place. Raises BrokerAway."""
        if deliveries:
            await self._consumer.give_back([each.handle for each in deliveries])

    async def make_room(self, wanted: int) -> None:
        """Those that are held do not count: a consumer that begins anew may take as many again. Raises BrokerAway."""
        await self._consumer.pause()
        self._consumer.prefetch = wanted

    async def rest(self, deliveries: Sequence[Delivery]) -> None:
        """Give these back, and take no more until the next `take`. Raises BrokerAway."""
        await self._consumer.pause([each.handle for each in deliveries])
        self._consumer.prefetch = self._prefetch

    async def move(self, delivery: Delivery, suffix: str, why: str) -> None:
        """Put it into the queue beside this one: there first, then it is done here. Raises BrokerAway."""
        from sanderling.stores.rabbitmq import OutgoingMessage  # noqa: PLC0415 - an extra

        await self._publisher.publish(self.name + suffix, [OutgoingMessage(delivery.body, {"x-why": why[:1000]})])
        await self.done(delivery)

    async def count(self, suffix: str = "") -> int:
        """The messages that wait. Raises BrokerAway."""
        return await self._publisher.count(self.name + suffix) or 0


def light(delivery: Delivery) -> Delivery:
    """What has to be remembered of a message that is held: not its body."""
    if hasattr(delivery.handle, "taken"):
        delivery.handle.taken.body = b""
        delivery.handle = replace(delivery.handle, body=b"")
    delivery.body = b""
    return delivery
