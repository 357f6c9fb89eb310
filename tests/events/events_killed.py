"""Run as a script: work in a folder, and say so, until killed."""

import asyncio
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fake_outbox import message
from producer_items import SOURCE, item

from sanderling.clock import SystemClock
from sanderling.events.outbox import OutboxRules, OutboxSender
from sanderling.events.producer import BatchSink, SinkRules
from sanderling.executor import in_threads
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.objects import open_objects
from sanderling.stores.queue import open_queue
from sanderling.stores.topic import QueueTopic


async def crawl(folder: Path, outbox: AnalyticsStore, first: int) -> None:
    """Hand items to a sink; those before the line are safe."""
    objects = open_objects(f"file:{folder}/objects")
    sink = BatchSink(objects, outbox, SystemClock(), random.Random(1), SOURCE, SinkRules(items=3))
    for number in range(first, sys.maxsize, 10):
        for each in range(number, number + 10):
            await sink.add(item(each))
        await sink.flush()
        print("safe", flush=True)  # noqa: T201 - for whoever wants to kill it


async def send(folder: Path, outbox: AnalyticsStore, life: str) -> None:
    """Add messages to the outbox, and send them; those before the line were added."""
    queue = open_queue(f"sqlite:{folder}", "letters", SystemClock())
    topic = QueueTopic({"crawl.retry": queue})
    sender = OutboxSender(outbox, topic, SystemClock(), random.Random(1), OutboxRules(batch=3))
    async with asyncio.TaskGroup() as group:
        group.create_task(sender.run())
        for number in range(sys.maxsize):
            await outbox.add([message(f"{life} {number} {place}") for place in range(5)])
            sender.wake()
            print("added", flush=True)  # noqa: T201 - the same


async def main(folder: Path, what: str, life: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        outbox = await open_analytics(f"sqlite:{folder}/events.db", in_threads(threads))
        await (send(folder, outbox, life) if what == "send" else crawl(folder, outbox, int(life)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
