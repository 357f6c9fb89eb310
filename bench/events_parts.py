"""What the benchmark of events is made of: full batches of the simulated crawler, and the consumer between real parts.

A place is a queue, a folder or bucket of objects and a database, each with a name of its own, and left as it was found.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple

import aio_pika
import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.clock import SystemClock
from sanderling.events.analysis.analyse import Analyser
from sanderling.events.envelopes import read_envelope
from sanderling.events.modes import LiveModes, Modes
from sanderling.events.rules import ConsumeRules
from sanderling.events.stations import Stations
from sanderling.events.system import EventsSystem
from sanderling.executor import in_threads
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.objects import Objects, open_objects
from sanderling.stores.queue import Letter, WholeQueue, open_queue
from sanderling.stores.rabbitmq import DELAYS
from sanderling.stores.topic import QueueTopic
from sanderling.worlds.social import Social, SocialBatch
from sanderling.worlds.social_plan import day

SIZES = {"tiktok": 50, "youtube": 20}
THREADS, ROWS_THREADS = 2, 4  # as the command has them
LIMIT = 300.0  # seconds for one run
ANALYSER = Analyser()


class Cost(NamedTuple):
    """What a run took: seconds of the CPU of this process, all of its threads, and of the wall."""

    items: int
    cpu: float
    wall: float


class Urls(NamedTuple):
    """Where a side keeps things. The database of a server has a schema of its own."""

    queue: str
    objects: str
    database: str


def full_batches(social: Social, first: int) -> Iterator[SocialBatch]:
    """The batches from a number on that are full, and objects."""
    for number in count(first):
        truth = social.truth(number)
        size = SIZES.get(truth.platform.lower())
        if len(truth.items) == size and read_envelope(social.envelope(number)).mode == "new":
            yield social.batch(number)


class Supply:
    """Batches that nobody has had yet."""

    def __init__(self) -> None:
        self._batches = full_batches(Social(1, day()), 0)

    def some(self, batches: int) -> list[SocialBatch]:
        """So many."""
        return [next(self._batches) for _ in range(batches)]

    def of(self, platform: str, batches: int) -> list[SocialBatch]:
        """So many of one platform."""
        found: list[SocialBatch] = []
        while len(found) < batches:
            found += [batch for batch in self.some(1) if batch.truth.platform.lower() == platform]
        return found


def items_of(batches: Sequence[SocialBatch]) -> int:
    """How many items they have."""
    return sum(len(batch.truth.items) for batch in batches)


def letters_of(batches: Sequence[SocialBatch]) -> list[Letter]:
    """The messages that say where they are."""
    return [Letter(batch.truth.event_id, batch.envelope) for batch in batches]


async def put_objects(objects: Objects, batches: Sequence[SocialBatch]) -> None:
    """Put the objects of batches where their messages say."""
    for batch in batches:
        assert batch.body is not None
        bucket, _, key = batch.path.removeprefix("minio://").lstrip("/").partition("/")
        await objects.put(bucket, key, batch.body, batch.metadata)


@dataclass(slots=True)
class Place:
    """Where batches are consumed."""

    folder: Path
    queues: dict[str, WholeQueue]
    objects: Objects
    store: AnalyticsStore
    seconds: dict[str, list[float]] = field(default_factory=dict)  # from taken to committed, by platform

    async def consume(self, batches: Sequence[SocialBatch], at_once: int = 5) -> Cost:
        """Put these where they belong, and run the whole system until they are in the rows.

        Objects and messages are put by others as a rule, and so do not count.
        """
        await put_objects(self.objects, batches)
        await self.queues["incoming"].publish(letters_of(batches))
        with self.system(at_once) as system:
            return await self._timed(system, items_of(batches), len(batches))

    @contextmanager
    def system(self, at_once: int = 5) -> Iterator[EventsSystem]:
        """All that consumes here."""
        clock = SystemClock()
        with ThreadPoolExecutor(THREADS, "work") as threads:
            modes = LiveModes(self.folder, Modes(), clock)
            at = Stations(self.queues["incoming"], self.objects, self.store, ANALYSER, modes, in_threads(threads))
            topic = QueueTopic({"analyze.result": self.queues["results"], "crawl.retry": self.queues["retries"]})
            rules = ConsumeRules(batches=at_once, wait=0.2)
            yield EventsSystem(at, topic, say=lambda _: None, clock=clock, rng=Random(1), rules=rules)

    async def _timed(self, system: EventsSystem, items: int, wanted: int) -> Cost:
        """Run it; the clock stops when the last batch is committed."""
        all_done = asyncio.Event()
        measures, done = system.measures, 0
        count_it, ended = measures.processed, (0.0, 0.0)

        def processed(platform: str, seconds: float) -> None:
            nonlocal done, ended
            count_it(platform, seconds)
            self.seconds.setdefault(platform, []).append(seconds)
            done += 1
            if done == wanted:
                ended = (time.process_time(), time.perf_counter())
                all_done.set()

        measures.processed = processed  # type: ignore[method-assign]  # it hears each batch

        async def stop() -> None:
            await all_done.wait()
            system.stop()

        cpu, wall = time.process_time(), time.perf_counter()
        async with asyncio.timeout(LIMIT):
            await system.run(stop())
        counts = measures
        assert sum(counts.items.values()) == items, f"{counts.items} of {items} items"
        return Cost(items, ended[0] - cpu, ended[1] - wall)


@asynccontextmanager
async def place(urls: Urls, folder: Path, name: str = "") -> AsyncIterator[Place]:
    """Open everything of a side; what servers have of it is removed in the end."""
    name, clock = name or f"bench_events_{uuid.uuid4().hex[:8]}", SystemClock()
    async with AsyncExitStack() as stack:
        server = urls.queue.startswith("amqp")
        queues = {
            each: open_queue(urls.queue, f"{name}.{each}", clock, prefetch=5 if each == "incoming" else None)
            for each in ("incoming", "results", "retries")
        }
        if server:
            stack.push_async_callback(drop_queues, urls.queue, [f"{name}.{each}" for each in queues])
        for queue in queues.values():
            stack.push_async_callback(queue.close)
        objects = open_objects(urls.objects)
        stack.push_async_callback(objects.close)
        rows = in_threads(stack.enter_context(ThreadPoolExecutor(ROWS_THREADS, "rows")))
        database = urls.database
        if not database.startswith("sqlite"):
            database = await stack.enter_async_context(schema(database, name))
        store = await open_analytics(database, rows)
        stack.push_async_callback(store.close)
        yield Place(folder, queues, objects, store)


@asynccontextmanager
async def schema(url: str, name: str) -> AsyncIterator[str]:
    """The URL with a schema of its own, which is gone afterwards."""
    try:
        yield f"{url}?schema={name}"
    finally:
        db = await asyncpg.connect(url)
        await db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        await db.close()


async def make_tables(url: str) -> None:
    """The tables of ours in a schema that has none."""
    with ThreadPoolExecutor(1, "rows") as threads:
        store = await open_analytics(url, in_threads(threads))
        await store.close()


async def drop_queues(url: str, names: Sequence[str]) -> None:
    """Remove queues of ours, and those beside them."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        for name in names:
            for each in ("", ".dead", *(f".later.{seconds:g}s" for seconds in DELAYS)):
                await channel.queue_delete(f"{name}{each}", if_unused=False, if_empty=False)
