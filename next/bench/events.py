"""Batches of 50 posts into rows: items a second of a core on SQLite and PostgreSQL, p95 of a batch, memory.

bench/events.py [--json] [--quick] [--soak ITEMS]
"""

import asyncio
import os
import resource
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import quantiles
from time import perf_counter, process_time

import msgspec
from bars import Bar, report

from sanderling.clock import SystemClock
from sanderling.events.consume import Consumer
from sanderling.events.queues import FileQueue
from sanderling.events.store import EventStore, PostgresEvents, SqliteEvents
from sanderling.events.work import BUILT_IN, WorkOptions
from sanderling.formats.envelope import QUEUE
from sanderling.observe.log import configure
from sanderling.readers.pool import Readers
from sanderling.readers.reader import ReaderLimits
from sanderling.stores.objects import ObjectFolder
from sanderling.stores.queue_file import QueueFile

sys.path.append(str(Path(__file__).parents[1] / "simulators"))
from crawled_posts import CrawledPosts

QUICK = "--quick" in sys.argv
BATCHES = 40 if QUICK else 300
SOAK = int(sys.argv[sys.argv.index("--soak") + 1]) if "--soak" in sys.argv else 0
NEED = {"SQLite": 1300, "PostgreSQL": 1000}
P95 = 0.25


class Timed(Consumer):
    """Notes how long each batch took."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.took: list[float] = []
        add = self.figures.took.add

        def note(seconds: float) -> None:
            self.took.append(seconds)
            add(seconds)

        self.figures.took.add = note  # type: ignore[method-assign]


@asynccontextmanager
async def consuming(
    folder: Path, store: EventStore, clock: SystemClock
) -> AsyncIterator[tuple[QueueFile, Timed, Readers]]:
    async with AsyncExitStack() as stack:
        file = await stack.enter_async_context(QueueFile(folder))
        argument = msgspec.msgpack.encode(WorkOptions(BUILT_IN, str(folder), False))
        limits = ReaderLimits(cpu=30.0, answer=64 << 20, host_cpu=1e15)
        readers = Readers("sanderling.events.work:open_work", argument, count=1, clock=clock, limits=limits)
        await stack.enter_async_context(readers)
        await store.open()
        stack.push_async_callback(store.close)
        queue = FileQueue(file, QUEUE, clock)
        yield file, Timed([queue], store, ObjectFolder(folder), readers, clock, drain=True), readers


async def put(world: CrawledPosts, file: QueueFile, folder: Path, begin: int, number: int) -> None:
    messages = []
    for each in range(begin, begin + number):
        message, path, body, _ = world.batch(each)
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body)
        messages.append(message)
    await file.put(QUEUE, messages)


async def throughput(name: str, store: EventStore) -> list[Bar]:
    clock, world = SystemClock(), CrawledPosts(1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        async with consuming(folder, store, clock) as (file, consumer, readers):
            await put(world, file, folder, 0, BATCHES)
            before, cpu, began = readers.report().cpu, process_time(), perf_counter()
            await consumer.run()
            own, wall = process_time() - cpu, perf_counter() - began
            theirs = readers.report().cpu - before
            items = BATCHES * 50
            late = quantiles(consumer.took, n=20)[-1]
        print(f"  {name}: {items / wall:,.0f} items a second; µs an item: {1e6 * own / items:.0f} here,"
              f" {1e6 * theirs / items:.0f} in its reader", file=sys.stderr)  # fmt: skip
        return [
            Bar(f"{name}: items a second of a core", items / (own + theirs), NEED[name], least=True),
            Bar(f"{name}: seconds of a batch of 50, p95, five at once", late, P95),
        ]


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def soak() -> list[Bar]:
    clock, world = SystemClock(), CrawledPosts(2)
    sizes = []
    with tempfile.TemporaryDirectory() as place:
        folder, done = Path(place), 0
        async with consuming(folder, SqliteEvents(folder / "events.db"), clock) as (file, consumer, _):
            while done < SOAK:
                await put(world, file, folder, done // 50, 200)
                await consumer.run()
                done += 10_000
                sizes.append(resident())
    return [Bar("MiB after a tenth", sizes[len(sizes) // 10] / 2**20),
            Bar("MiB that the rest added", (sizes[-1] - sizes[len(sizes) // 10]) / 2**20, 32)]  # fmt: skip


async def main() -> int:
    configure("text", verbose=False)
    import logging  # noqa: PLC0415

    logging.disable(logging.WARNING)
    if SOAK:
        return report(await soak())
    with tempfile.TemporaryDirectory() as place:
        bars = await throughput("SQLite", SqliteEvents(Path(place) / "events.db"))
    if url := os.environ.get("BENCH_POSTGRES"):
        bars += await throughput("PostgreSQL", PostgresEvents(url, SystemClock(), 20, 10))
    return report(bars)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
