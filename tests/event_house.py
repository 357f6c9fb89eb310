"""A simulated crawler, a queue, objects and a database, all real and embedded, and the system that consumes."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any, ParamSpec, TypeVar

from sanderling.clock import Clock, SystemClock
from sanderling.events.analysis.analyse import Analyser
from sanderling.events.modes import LiveModes, Modes
from sanderling.events.rules import ConsumeRules
from sanderling.events.stations import Stations
from sanderling.events.system import EventsSystem
from sanderling.executor import Executor, in_threads
from sanderling.observe.alerts import Alert
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.objects import Objects, open_objects
from sanderling.stores.queue import Letter, WholeQueue, open_queue
from sanderling.stores.sqlite_queue import SqliteQueue
from sanderling.stores.topic import QueueTopic
from sanderling.testing import LoopClock
from sanderling.worlds.social import Social

QUICK = ConsumeRules(
    wait=0.05,
    first_delay=0.01,
    longest_delay=0.02,
    most_tries=2,
    switched_off=0.1,
    again=(0.02, 0.05, 0.1),
    probe_every=0.02,
)
ANALYSER = Analyser()
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class House:
    """All of it, in one folder."""

    folder: Path
    social: Social
    queue: WholeQueue
    objects: Objects
    store: AnalyticsStore
    results: WholeQueue
    retries: WholeQueue
    system: EventsSystem
    alerts: list[Alert] = field(default_factory=list)

    async def publish(self, first: int, end: int, *, again: bool = False) -> None:
        """Put the batches of the crawler where they belong, and say so."""
        for number in range(first, end):
            await self.put(number)
        numbers = range(first, end)
        letters = [Letter(f"{number}", self.social.envelope(number)) for number in numbers]
        if again:
            letters += [Letter(f"{number} again", self.social.envelope(number)) for number in numbers]
        await self.queue.publish(letters)

    async def put(self, number: int) -> None:
        """Only the object of a batch."""
        batch = self.social.batch(number)
        if batch.body is not None:
            bucket, _, key = batch.path.removeprefix("minio://").lstrip("/").partition("/")
            await self.objects.put(bucket, key, batch.body, batch.metadata)

    async def consume(self, seconds: float = 300.0, every: float = 0.02) -> None:
        """Until nothing is left to do, which is looked for every so many seconds."""

        async def watch() -> None:
            while True:
                depth = await self.queue.depth()
                if not (depth.ready or depth.taken or depth.delayed):
                    self.system.stop()
                    return
                await asyncio.sleep(every)

        async with asyncio.timeout(seconds):
            await self.system.run(watch())

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        """What the database has."""
        with sqlite3.connect(self.folder / "events.db") as db:
            return db.execute(question).fetchall()


@asynccontextmanager
async def house(
    folder: Path, social: Social, rules: ConsumeRules = QUICK, *, virtual: Objects | None = None
) -> AsyncIterator[House]:
    """Open everything; with objects that need no threads, under `virtual` time."""
    clock: Clock = LoopClock() if virtual else SystemClock()
    async with AsyncExitStack() as stack:
        desk: Executor = at_once if virtual else in_threads(stack.enter_context(ThreadPoolExecutor(2, "work")))
        names = ("data.collected", "results", "retries")
        queues: list[WholeQueue] = [
            SqliteQueue(folder / f"{name}.queue", clock, desk)
            if virtual
            else open_queue(f"sqlite:{folder}", name, clock)
            for name in names
        ]
        for queue in queues:
            stack.push_async_callback(queue.close)
        objects = virtual or open_objects(f"file:{folder / 'objects'}")
        stack.push_async_callback(objects.close)
        store = await open_analytics(f"sqlite:{folder / 'events.db'}", desk)
        stack.push_async_callback(store.close)
        modes = LiveModes(folder, Modes(), clock)
        stations = Stations(queues[0], objects, store, ANALYSER, modes, desk)
        topic = QueueTopic({"analyze.result": queues[1], "crawl.retry": queues[2]})
        said: list[Alert] = []
        system = EventsSystem(stations, topic, say=said.append, clock=clock, rng=Random(1), rules=rules)
        yield House(folder, social, queues[0], objects, store, queues[1], queues[2], system, said)


async def at_once(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk without threads: under virtual time nothing may happen elsewhere."""
    return work(*args)


async def everything(queue: WholeQueue) -> list[bytes]:
    """All letters of a queue."""
    found: list[bytes] = []
    while taken := await queue.take(100, 0.01):
        found += [each.body for each in taken]
        await queue.done(taken)
    return found


def awaited(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine, run on a loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
