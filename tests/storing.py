"""A process that stores, until it is killed: batch after batch, or one batch of a queue that never hears it is done."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from raids import rows, usual

from sanderling.clock import SystemClock
from sanderling.sequence.store import DepthRules, StoreRules, StoreWorkers
from sanderling.stores.instances import RawInstances, open_instances
from sanderling.stores.queue import Delivery
from sanderling.stores.sqlite_queue import SqliteQueue

BATCH = 20


class DeafQueue(SqliteQueue):
    async def done(self, deliveries: Sequence[Delivery]) -> None:
        print("stored", len(deliveries), flush=True)  # noqa: T201 - for whoever wants to kill it
        await asyncio.Event().wait()


async def store_letters(queue: SqliteQueue, url: str, letters: int, raw: RawInstances | None = None) -> StoreWorkers:
    """Store until so many were, or were already."""
    store = await open_instances(url)
    rules = StoreRules(batch=BATCH, wait=0.2, gather=0.0, first_pause=0.05, depth=DepthRules(start=1))
    workers = StoreWorkers(queue, store, raw, SystemClock(), rules)
    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        group.create_task(workers.run())
        while workers.tally.stored + workers.tally.duplicates < letters:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.02)
        workers.stop()
    await store.close()
    return workers


async def store_batches(url: str) -> None:
    store = await open_instances(url)
    number = await store.latest() or 0
    while True:
        await store.keep(rows(*usual(BATCH, number + 1)))
        print("stored", flush=True)  # noqa: T201 - for whoever wants to kill it
        number += BATCH


if __name__ == "__main__":
    if len(sys.argv) > 2:
        asyncio.run(store_letters(DeafQueue(Path(sys.argv[2]), SystemClock()), sys.argv[1], sys.maxsize))
    else:
        asyncio.run(store_batches(sys.argv[1]))
