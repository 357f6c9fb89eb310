"""What a crawl finds goes on to `events`: where that is, and as whose, by flags and environment."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import again
from sanderling.cli.events.onward import Onward
from sanderling.cli.events.place import EventsDatabase, EventsFolder, EventsObjects, EventsQueue
from sanderling.cli.events.sink import EventsLocations, outlet, source_of
from sanderling.clock import Clock
from sanderling.events.handover import EventsHandOver, HandedItem
from sanderling.events.producer import BatchSource
from sanderling.executor import in_threads
from sanderling.words import count

VARIABLES = ("database", "objects", "queue")

T = TypeVar("T")


def places(onward: Onward) -> EventsLocations:
    """Where `events` is: servers that the environment names, or the folder."""
    database, objects, queue = (os.environ.get(f"SANDERLING_EVENTS_{name.upper()}") for name in VARIABLES)
    return EventsLocations(
        EventsFolder(out=onward.events_out),
        EventsDatabase(database=database),
        EventsObjects(objects=objects),
        EventsQueue(queue=queue),
    )


def source(onward: Onward, platform: str) -> BatchSource:
    """Whose batches they are. Raises CommandError."""
    said = {"project_id": onward.events_project, "brand_name": onward.events_brand, "keyword": onward.events_keyword}
    return source_of(places(onward), "--events-", job_id=onward.events_job or "", platform=platform, **said)


@asynccontextmanager
async def feeding(
    onward: Onward, read: Callable[[T], HandedItem], clock: Clock, say: Callable[[str], object]
) -> AsyncIterator[EventsHandOver[T]]:
    """A hand-over, and beside it whoever sends what it puts into the outbox. Raises CommandError."""
    async with AsyncExitStack() as stack:
        desk = in_threads(stack.enter_context(ThreadPoolExecutor(1, "items")))
        try:
            out = await stack.enter_async_context(outlet(places(onward), clock, lambda told: say(_by_variable(told))))
        except CommandError as error:
            raise CommandError(_by_variable(str(error)), error.code) from None
        group = await stack.enter_async_context(asyncio.TaskGroup())
        group.create_task(out.sender.run())
        yield EventsHandOver(out, partial(source, onward), read, desk)
        out.sender.stop()


def _by_variable(told: str) -> str:
    """A message that names the variable, where a command of `events` would name a flag."""
    for name in VARIABLES:
        if told.startswith(f"--{name}: "):
            return f"SANDERLING_EVENTS_{name.upper()}{told.removeprefix(f'--{name}')}"
    return told


def words(handed: EventsHandOver[Any], onward: Onward) -> Iterator[str]:
    """What went on, and what to do next, as lines; those that are indented must not be broken."""
    tally = handed.tally
    batches = f"{tally.batches:,} batch{'es' * (tally.batches != 1)}"
    yield f"Handed on to events, as {onward.events_job}: {count(tally.items, 'item')} in {batches}."
    if tally.odd:
        yield f"{count(tally.odd, 'row')} could not be handed on: {tally.last_odd}"
    if handed.unsent:
        safe = "They are safe in the outbox, and whoever consumes sends them."
        yield f"Not all messages went out ({handed.unsent}). {safe}"
    yield "To have them analysed:"
    yield ""
    yield f"    {again('events consume', EventsFolder(out=onward.events_out))}"
    yield ""
