"""From items to events: the object store, the outbox, and whoever sends from there; for `publish` and for crawls.

Only the first two have to be there. While the queue is away, messages wait in the outbox, and nothing waits for them.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from sanderling.cli import CommandError
from sanderling.cli.events.place import OWN_BODIES, OWN_LETTERS, OWN_ROWS, USUAL, Bodies, Folder, Letters, Rows
from sanderling.clock import Clock
from sanderling.events.outbox import OutboxSender
from sanderling.events.producer import BatchSink, SinkRules, Source
from sanderling.stores.analytics import AnalyticsStore, OutboxMessage
from sanderling.stores.objects import Objects
from sanderling.stores.queue import WholeQueue
from sanderling.stores.topic import Topic
from sanderling.words import printable

# Values about which nothing can be wrong, to find out which flag is to blame.
HARMLESS = (
    ("--project", "project_id", ""),
    ("--project", "project_id", "00000000-0000-4000-8000-000000000000"),
    ("--platform", "platform", "web"),
    ("--brand", "brand_name", ""),
    ("--keyword", "keyword", ""),
    ("--task-type", "task_type", ""),
    ("--bucket", "bucket", "bucket"),
)


@dataclass(frozen=True, slots=True)
class Where:
    """All places of `events`."""

    folder: Folder = USUAL
    rows: Rows = OWN_ROWS
    bodies: Bodies = OWN_BODIES
    letters: Letters = OWN_LETTERS


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where batches go, and their messages."""

    objects: Objects
    outbox: AnalyticsStore
    sender: OutboxSender
    clock: Clock

    def sink(self, source: Source, rules: SinkRules | None = None) -> BatchSink:
        """What makes batches of items; whoever sends is told of each."""
        sink = BatchSink(self.objects, self.outbox, self.clock, Random(), source, rules)
        sink.told = self.sender.wake
        return sink


@asynccontextmanager
async def outlet(where: Where, clock: Clock, say: Callable[[str], object] | None = None) -> AsyncIterator[Outlet]:
    """Database and object store, reached; the queue when there is something to send. Raises CommandError."""
    where.folder.made()
    async with AsyncExitStack() as stack:
        queue = where.letters.open_queue(where.folder, clock)
        stack.push_async_callback(queue.close)
        store = await stack.enter_async_context(where.rows.opened(where.folder, say, writers=2, readers=1))
        objects = await stack.enter_async_context(where.bodies.opened(where.folder, say))
        topic = await stack.enter_async_context(where.letters.topic(where.folder, clock, queue))
        yield Outlet(objects, store, OutboxSender(store, Announced(topic, queue), clock, Random()), clock)


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


def source_of(where: Where, prefix: str = "--", **said: str) -> Source:
    """Whose batches they are. Raises CommandError, which names the flag that is to blame."""
    fixed = {"bucket": where.bodies.bucket, "exchange": where.letters.exchange}
    values: dict[str, Any] = {**fixed, "routing_key": where.letters.routing_key, **said}
    try:
        return Source(**values)
    except ValueError as error:
        flag = _to_blame(values).replace("--", prefix, 1)
        raise CommandError(printable(f"{flag}: {error}"), code=2) from None


def _to_blame(values: dict[str, Any]) -> str:
    for flag, name, harmless in HARMLESS:
        if _makes_sense({**values, name: harmless}):
            return flag
    return "--job"


def _makes_sense(values: dict[str, Any]) -> bool:
    try:
        Source(**values)
    except ValueError:
        return False
    return True
