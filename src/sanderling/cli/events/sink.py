"""Where batches of ours go, by the flags of `publish` and of crawls."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from sanderling.cli.command_error import CommandError
from sanderling.cli.events.place import (
    OWN_BODIES,
    OWN_LETTERS,
    OWN_ROWS,
    USUAL,
    EventsDatabase,
    EventsFolder,
    EventsObjects,
    EventsQueue,
)
from sanderling.clock import Clock
from sanderling.events.handover import Outlet
from sanderling.events.outbox import OutboxSender, TopicOfQueue
from sanderling.events.producer import BatchSource
from sanderling.words import printable

# Values about which nothing can be wrong, to find out which flag is to blame.
HARMLESS = (
    ("--project", "project_id", ""),
    ("--project", "project_id", "00000000-0000-4000-8000-000000000000"),
    ("--platform", "platform", "web"),
    ("--brand", "brand_name", ""),
    ("--keyword", "keyword", ""),
    ("--task-type", "task_type", ""),
    ("bucket", "bucket", "bucket"),
)


@dataclass(frozen=True, slots=True)
class EventsLocations:
    """All places of `events`."""

    folder: EventsFolder = USUAL
    rows: EventsDatabase = OWN_ROWS
    bodies: EventsObjects = OWN_BODIES
    letters: EventsQueue = OWN_LETTERS


@asynccontextmanager
async def outlet(
    where: EventsLocations, clock: Clock, say: Callable[[str], object] | None = None
) -> AsyncIterator[Outlet]:
    """Database and object store, reached; the queue when there is something to send. Raises CommandError."""
    where.folder.made()
    async with AsyncExitStack() as stack:
        queue = where.letters.open_queue(where.folder, clock)
        stack.push_async_callback(queue.close)
        store = await stack.enter_async_context(where.rows.opened(where.folder, say, writers=2, readers=1))
        objects = await stack.enter_async_context(where.bodies.opened(where.folder, say))
        topic = await stack.enter_async_context(where.letters.topic(where.folder, clock, queue))
        yield Outlet(objects, OutboxSender(store, TopicOfQueue(topic, queue), clock, Random()), clock)


def source_of(where: EventsLocations, prefix: str = "--", **said: str) -> BatchSource:
    """Whose batches they are. Raises CommandError, which names the flag that is to blame."""
    fixed = {"bucket": where.bodies.bucket, "exchange": where.letters.exchange}
    values: dict[str, Any] = {**fixed, "routing_key": where.letters.routing_key, **said}
    try:
        return BatchSource(**values)
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
        BatchSource(**values)
    except ValueError:
        return False
    return True
