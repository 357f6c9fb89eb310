"""RabbitMQ, on the usual port: what is published is there, what is not acknowledged comes again, and who is away."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

import aio_pika
import pytest
from kit.postgres import FaultyWay

from sanderling.files import Exit, FolderError
from sanderling.options import OptionError
from sanderling.stores.broker import BrokerAway
from sanderling.stores.rabbitmq import OutgoingMessage, QueueConsumer, QueueMessage, QueuePublisher

pytestmark = pytest.mark.real
URL = "amqp://guest:guest@127.0.0.1:5672/"
NAME = f"test rabbitmq {os.getpid()}"


@asynccontextmanager
async def own_queue() -> AsyncIterator[None]:
    async with await aio_pika.connect(URL) as connection, connection.channel() as channel:
        yield
        for name in (NAME, f"{NAME} quorum"):
            await channel.queue_delete(name)


async def take(consumer: QueueConsumer, number: int) -> list[QueueMessage]:
    found: list[QueueMessage] = []
    async with asyncio.timeout(20):
        while len(found) < number:
            found += await consumer.take(number - len(found), 1.0)
    return found


def test_messages_come_once_until_they_are_given_back_or_the_connection_is_cut() -> None:
    async def act() -> None:
        way = FaultyWay(5672, Random(0))
        async with own_queue(), way, QueuePublisher(URL) as publisher:
            cut = way.url.replace("postgres://postgres", "amqp://guest:guest").replace("/postgres", "/")
            async with QueueConsumer(cut, NAME, prefetch=30) as consumer:
                assert await publisher.count(NAME) is None
                await publisher.publish(NAME, [OutgoingMessage(b"%d" % each, {"x-try": 1}) for each in range(500)])
                first = await take(consumer, 30)
                assert [each.body for each in first] == [b"%d" % each for each in range(30)]
                assert first[0].headers == {"x-try": 1}
                assert not first[0].redelivered
                assert await consumer.take(1, 0.1) == []  # the prefetch
                await consumer.done(first[:10])
                await consumer.give_back(first[10:])
                again = await take(consumer, 30)
                assert {each.body for each in again} == {b"%d" % each for each in range(10, 40)}
                assert sum(each.redelivered for each in again) == 20
                await consumer.pause()
                await consumer.done(again)
                assert await publisher.count(NAME) == 460
                lost = await take(consumer, 5)
                way.cut()
                with pytest.raises(BrokerAway):
                    await take(consumer, 100)
                with pytest.raises(BrokerAway):
                    await consumer.done(lost)
                rest = await take(consumer, 30)
                assert {each.body for each in lost} <= {each.body for each in rest}

    asyncio.run(act())


def test_a_queue_is_used_as_it_is_and_made_again_when_it_was_deleted() -> None:
    async def act() -> None:
        name = f"{NAME} quorum"
        async with (
            own_queue(),
            await aio_pika.connect(URL) as connection,
            connection.channel() as channel,
            QueuePublisher(URL) as publisher,
            QueueConsumer(URL, name, prefetch=5) as consumer,
        ):
            await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum"})
            await publisher.publish(name, [OutgoingMessage(b"1")])
            assert await consumer.take(1, 5.0)
            await channel.queue_delete(name)
            with pytest.raises(BrokerAway):
                await publisher.publish(name, [OutgoingMessage(b"2")])
            await publisher.publish(name, [OutgoingMessage(b"3")])
            with suppress(BrokerAway):  # unless the server has said by now that the queue is gone
                assert [each.body for each in await take(consumer, 1)] == [b"3"]
                return
            assert [each.body for each in await take(consumer, 1)] == [b"3"]

    asyncio.run(act())


@pytest.mark.parametrize(
    ("url", "error", "code"),
    [
        ("amqp://guest:wrong@127.0.0.1:5672/", FolderError, Exit.WRONG),
        ("amqp://guest:guest@127.0.0.1:5672/nothing", FolderError, Exit.WRONG),
        ("amqp://guest:guest@127.0.0.1:9/", FolderError, Exit.LATER),
        ("http://127.0.0.1:5672/", OptionError, None),
        ("amqp:nothing", OptionError, None),
    ],
)
def test_who_is_away_or_refuses(url: str, error: type[Exception], code: Exit | None) -> None:
    async def act() -> None:
        async with QueuePublisher(url):
            pass

    with pytest.raises(error) as raised:
        asyncio.run(act())
    assert getattr(raised.value, "code", None) == code
    assert "guest:" not in str(raised.value)
