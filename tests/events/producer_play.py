"""A batch sink between stores in memory, and what may happen to it, under virtual time."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from fake_objects import MemoryObjects
from fake_outbox import MemoryOutbox
from hypothesis import strategies as st
from producer_items import SOURCE, item

from sanderling.events.batches import decode, read_path
from sanderling.events.envelopes import EventEnvelope, read_envelope
from sanderling.events.items import read_item
from sanderling.events.posts import CrawlError, Post
from sanderling.events.producer import BatchSink, BatchSource, SinkRules
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.objects import Objects
from sanderling.testing.virtual import LoopClock, run_virtual

T = TypeVar("T")


class Play:
    """A sink, what it writes to, and what came of it."""

    def __init__(self, source: BatchSource = SOURCE, rules: SinkRules | None = None) -> None:
        self.objects = MemoryObjects()
        self.outbox = MemoryOutbox()
        self.clock = LoopClock()
        self.source, self.rules = source, rules
        self.sink = self.restart()

    def restart(self) -> BatchSink:
        self.sink = BatchSink(self.objects, self.outbox, self.clock, random.Random(1), self.source, self.rules)
        return self.sink

    def run(self, act: Callable[[], Awaitable[T]]) -> T:
        async def main() -> T:
            async with asyncio.timeout(100_000):
                return await act()

        return run_virtual(main())

    def add(self, count: int, first: int = 0) -> None:
        async def act() -> None:
            for number in range(first, first + count):
                await self.sink.add(item(number))
            await self.sink.flush()

        self.run(act)

    def events(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(each.body) for each in self.outbox.rows.values()]

    def paths(self) -> list[str]:
        return [event["payload"]["minio_path"] for event in self.events()]

    async def consumed(self) -> list[Post | CrawlError]:
        """What whoever reads our messages makes of them."""
        found: list[Post | CrawlError] = []
        for each in self.outbox.rows.values():
            found += await read_batch(self.objects, each)
        return found


async def read_batch(objects: Objects, message: OutboxMessage) -> list[Post | CrawlError]:
    envelope = read_envelope(message.body)
    assert isinstance(envelope, EventEnvelope)
    assert (envelope.version, envelope.notes) == ("2.0", ())
    place = read_path(envelope.path)
    stored = await objects.get(place.bucket, place.key, 1 << 30)
    batch = decode(stored.body, metadata=stored.metadata, key=place.key)
    assert batch.notes == ()
    assert envelope.context.content_count == len(batch.items)
    return [read_item(each, envelope.context, index) for index, each in enumerate(batch.items)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
