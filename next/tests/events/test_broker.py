"""RabbitMQ under the loop: cut connections, what is held and parked, queues that are not there yet."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import aio_pika
import msgspec
import pytest
from events.plays import MemoryObjects, event, inline
from kit.postgres import FaultyWay

from sanderling.clock import SystemClock
from sanderling.events import consume
from sanderling.events.consume import Consumer, Modes
from sanderling.events.queues import BrokerQueue
from sanderling.events.store import SqliteEvents
from sanderling.events.work import BUILT_IN, WorkOptions
from sanderling.readers.pool import Readers
from sanderling.stores.rabbitmq import OutgoingMessage, QueueConsumer, QueuePublisher

pytestmark = pytest.mark.real
URL = os.environ.get("TEST_AMQP", "amqp://guest:guest@127.0.0.1:5672/")
NAME = f"test events {os.getpid()}"
ALL = Modes()


@asynccontextmanager
async def consumer_of(
    folder: Path,
    url: str,
    *,
    modes: Modes = ALL,
    drain: bool = True,
    optional: bool = False,
) -> AsyncIterator[tuple[Consumer, SqliteEvents]]:
    clock, store = SystemClock(), SqliteEvents(folder / "events.db")
    argument = msgspec.msgpack.encode(WorkOptions(BUILT_IN, ".", False))
    await store.open()
    readers = Readers("sanderling.events.work:open_work", argument, count=0, clock=clock)
    async with readers, QueuePublisher(url) as publisher, QueueConsumer(url, NAME, 3) as taken:
        queue = BrokerQueue(taken, publisher, clock, optional=optional)
        yield Consumer([queue], store, MemoryObjects(), readers, clock, modes=modes, workers=3, drain=drain), store
    await store.close()


@asynccontextmanager
async def own_queue(bodies: list[bytes]) -> AsyncIterator[QueuePublisher]:
    async with (
        await aio_pika.connect(URL) as connection,
        connection.channel() as channel,
        QueuePublisher(URL) as publisher,
    ):
        try:
            if bodies:
                await publisher.publish(NAME, [OutgoingMessage(body) for body in bodies])
            yield publisher
        finally:
            for name in (NAME, f"{NAME}.parked", f"{NAME}.dead"):
                await channel.queue_delete(name)


async def ids(store: SqliteEvents) -> list[str]:
    return [row[0] for row in await store.read("SELECT id FROM post_analytics ORDER BY id")]


def test_connections_that_are_cut_lose_nothing(tmp_path: Path) -> None:
    async def act() -> None:
        expected = sorted(str(number) for number in range(150))
        way = FaultyWay(5672, Random(0))
        async with own_queue([inline(each) for each in expected]) as publisher, way:
            cut = way.url.replace("postgres://postgres", "amqp://guest:guest").replace("/postgres", "/")
            async with consumer_of(tmp_path, cut, drain=False) as (consumer, store), asyncio.TaskGroup() as group:
                work = group.create_task(consumer.run())
                for _ in range(3):
                    seen = len(await ids(store))
                    async with asyncio.timeout(60):
                        while len(await ids(store)) < min(150, seen + 30):
                            await asyncio.sleep(0.02)
                    way.cut()
                async with asyncio.timeout(60):
                    while await ids(store) != expected or await publisher.count(NAME):
                        await asyncio.sleep(0.1)
                consumer.stop()
                await work
            assert await publisher.count(NAME) == 0

    asyncio.run(act())


def test_what_is_off_is_held_then_parked_and_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        news = [event(number) for number in range(40)]
        async with own_queue([inline("first"), *news, inline("last"), b"bad"]) as publisher:
            monkeypatch.setattr(consume, "MOST_HELD", 25)
            async with consumer_of(tmp_path, URL, modes=Modes(new=False)) as (consumer, store):
                await consumer.run()
                assert await ids(store) == ["first", "last"]
                assert consumer.figures.parked == 15
            counts = [await publisher.count(f"{NAME}{suffix}") for suffix in ("", ".parked", ".dead")]
            assert counts == [25, 15, 1]
            async with QueueConsumer(URL, NAME, 100) as taken:
                found: list[bytes] = []
                async with asyncio.timeout(20):
                    while len(found) < 25:
                        found += [each.body for each in await taken.take(25, 1.0)]
            assert found == news[:25]

    asyncio.run(act())


def test_a_queue_that_is_not_there_is_looked_for_and_not_made(tmp_path: Path) -> None:
    async def act() -> None:
        async with own_queue([]) as publisher, consumer_of(tmp_path, URL, optional=True) as (consumer, store):
            await consumer.run()
            assert await publisher.count(NAME) is None
            assert await ids(store) == []

    asyncio.run(act())
