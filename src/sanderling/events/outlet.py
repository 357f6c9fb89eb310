"""From items to events: the object store, the outbox, and whoever sends from there; for `publish` and for crawls.

Only the first two have to be there. While the queue is away, messages wait in the outbox, and nothing waits for them.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random

from sanderling.clock import Clock
from sanderling.events.outbox import OutboxSender
from sanderling.events.producer import BatchSink, SinkRules, Source
from sanderling.events.rows import RESULT_KEY, RETRY_KEY
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.objects import Objects
from sanderling.stores.queue import WholeQueue
from sanderling.stores.topic import Topic, open_topic

# Where everything is in a folder, where no server is named.
DATABASE, OBJECTS, QUEUE = "events.db", "objects", "analytics.data.collected"
OUTGOING = (RESULT_KEY, RETRY_KEY)  # queues of ours for what goes out, where no server has any


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where batches go, and their messages."""

    objects: Objects
    sender: OutboxSender
    clock: Clock

    def sink(self, source: Source, rules: SinkRules | None = None) -> BatchSink:
        """What makes batches of items."""
        return BatchSink(self.objects, self.sender, self.clock, Random(), source, rules)


class Announced:
    """A topic behind which our queue stands: made before anything is sent, or nobody would wait for it."""

    def __init__(self, topic: Topic, queue: WholeQueue) -> None:
        self._topic = topic
        self._queue = queue
        self._there = False

    async def send(self, messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
        """Return when all are durable; gives those for which nobody waits."""
        if not self._there:
            await self._queue.depth()
            self._there = True
        return await self._topic.send(messages)

    async def close(self) -> None:
        """Nothing is ours."""


@asynccontextmanager
async def opened_topic(
    url: str, routing_key: str, incoming: WholeQueue, open_one: Callable[[str], WholeQueue]
) -> AsyncIterator[Topic]:
    """Where messages go out: exchanges of the server at `url`, or queues of ours. Raises QueueError."""
    async with AsyncExitStack() as stack:
        queues: dict[str, WholeQueue] = {routing_key: incoming}
        for key in OUTGOING if url.startswith("sqlite:") else ():
            queues[key] = open_one(key)
            stack.push_async_callback(queues[key].close)
        topic = open_topic(url, queues)
        stack.push_async_callback(topic.close)
        yield topic
