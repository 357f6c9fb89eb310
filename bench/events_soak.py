"""Does memory grow? So many items through the whole consumer on SQLite, and how large the process is on the way.

The simulated crawler is another process: it publishes, stays some batches ahead, takes what it is told, and removes
what was consumed, objects and rows, since 50,000 items are 400 MB of rows, and the disk is not what is measured.
"""

import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import uvloop
from events_parts import Place, Supply, Urls, items_of, letters_of, place, put_objects
from harness import Report, at_most

from sanderling.clock import SystemClock
from sanderling.events.system import EventsSystem
from sanderling.stores.objects import open_objects
from sanderling.stores.queue import open_queue

LOOK_EVERY = 20_000  # items
PAUSE = 0.05  # seconds between two looks at what the other one has done
CHUNK, AHEAD = 20, 60  # batches that are published at a time, and that wait at most
NAME = "soak"
OLD = 120.0  # seconds after which an object was consumed; the queue is a few seconds long


def urls_in(folder: Path) -> Urls:
    """Files for everything."""
    return Urls(f"sqlite:{folder}", f"file:{folder}/objects", f"sqlite:{folder}/events.db")


async def soak(report: Report, items: int) -> None:
    """Consume so many."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with place(urls_in(folder), folder, NAME) as at:
            crawler = get_context("spawn").Process(target=crawl, args=(folder, items), daemon=True)
            crawler.start()
            looks = await _watched(at, items)
            crawler.join()
    half = [look for look in looks if look[0] > items / 2]
    slope = _slope(half)
    print(f"  {slope:+.2f} MB for each 100,000 items in the last half")
    report.figures |= {"MB at the end": round(looks[-1][1], 1), "MB for each 100,000 items": round(slope, 3)}
    report.bars.append(at_most("MB that 100,000 items add, in the last half", 1.0, slope))


async def _watched(at: Place, items: int) -> list[tuple[int, float]]:
    """How many megabytes there were after how many items."""
    looks: list[tuple[int, float]] = []
    began = time.monotonic()

    async def watch(system: EventsSystem) -> None:
        done = 0
        while done < items:
            await asyncio.sleep(PAUSE)
            done = sum(system.measures.items.values())
            if done // LOOK_EVERY > len(looks) or done >= items:
                looks.append((done, _size()))
                print(f"  {done:10,} items{looks[-1][1]:8.1f} MB{time.monotonic() - began:8.0f} s", flush=True)
        system.stop()

    with at.system() as system:
        await system.run(watch(system))
    return looks


def _size() -> float:
    """Megabytes of this process in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _slope(looks: list[tuple[int, float]]) -> float:
    """Megabytes for each 100,000 items, by least squares."""
    if len(looks) < 2:
        return 0.0
    mean_x, mean_y = (sum(column) / len(looks) for column in zip(*looks, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in looks)
    return float(sum((x - mean_x) * (y - mean_y) for x, y in looks) / spread * 100_000)


# What the other process does.


def crawl(folder: Path, items: int) -> None:
    """Publish at least so many items."""
    uvloop.run(_crawl(folder, items))


async def _crawl(folder: Path, items: int) -> None:
    urls, supply, made, cleared = urls_in(folder), Supply(), 0, 0
    queue, *told = (
        open_queue(urls.queue, f"{NAME}.{each}", SystemClock()) for each in ("incoming", "results", "retries")
    )
    objects = open_objects(urls.objects)
    while made < items:
        if (await queue.depth()).ready > AHEAD:
            await asyncio.sleep(PAUSE)
            continue
        some = supply.some(CHUNK)
        await put_objects(objects, some)
        await queue.publish(letters_of(some))
        made += items_of(some)
        for each in told:
            await each.done(await each.take(1_000, 0.0))
        if made // LOOK_EVERY > cleared:
            cleared += 1
            _clear(folder)
    for each in (queue, *told):
        await each.close()
    await objects.close()


def _clear(folder: Path) -> None:
    """Remove all rows, and all objects but for the latest."""
    with closing(sqlite3.connect(folder / "events.db", timeout=60)) as db, db:
        for table in ("post_comments", "post_analytics", "crawl_errors", "processed_events"):
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - ours
    for path in (folder / "objects").rglob("*"):
        if path.is_file() and path.stat().st_mtime < time.time() - OLD:
            path.unlink()
