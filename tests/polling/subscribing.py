"""A process that makes changes and sends them to a webhook, until it is killed."""

import asyncio
import random
import sys
from concurrent.futures import ThreadPoolExecutor

from sanderling.clock import SystemClock
from sanderling.executor import in_threads
from sanderling.polling.change_feed import ChangeFeed
from sanderling.polling.change_sinks import WebhookSink
from sanderling.polling.subscribers import Subscriber
from sanderling.stores.documents import Column, ColumnKind, Schema, SourceRow, SourceTable
from sanderling.stores.polling import PolledDocument
from sanderling.stores.polling_store import PollingStore, open_polling

SCHEMA = Schema((SourceTable("laps", (Column("seconds", ColumnKind.REAL),)),))
ROWS = 200  # that change with each document


def told(number: int) -> PolledDocument:
    """A document in which all is different from any other."""
    rows = [SourceRow("laps", f"lap-{place}", {"seconds": number + place / ROWS}) for place in range(ROWS)]
    return PolledDocument("race", "heat-1", "cup", SCHEMA.document(rows), at=float(number))


async def make_changes(store: PollingStore, feed: ChangeFeed, newest: int) -> None:
    while feed.newest < newest:
        feed.note(await store.keep(told(feed.newest)))


async def subscribe(url: str, database: str, newest: int) -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(2) as threads:
        store = await open_polling(database, SCHEMA, "race", in_threads(threads))
        if await store.position("board") is None:
            await store.advance("board", 0)
        feed = ChangeFeed(store, clock)
        await feed.open()
        subscriber = Subscriber("board", WebhookSink(url, clock), feed, store, clock, random.Random())
        async with asyncio.TaskGroup() as group:
            group.create_task(subscriber.run())
            group.create_task(make_changes(store, feed, newest))


if __name__ == "__main__":
    asyncio.run(subscribe(sys.argv[1], sys.argv[2], int(sys.argv[3])))
