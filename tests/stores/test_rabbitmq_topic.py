import asyncio
import random
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika
import aiormq
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from services.rabbitmq_proxy import Proxy

from sanderling.clock import SystemClock
from sanderling.events.outbox import OutboxRules, OutboxSender
from sanderling.executor import in_threads
from sanderling.limit.backoff import BackoffRules
from sanderling.stores import rabbitmq_wire
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.queue import LARGEST_BODY, Binding, QueueError, open_queue
from sanderling.stores.rabbitmq import DELAYS
from sanderling.stores.rabbitmq_topic import RabbitmqTopic
from sanderling.stores.topic import QueueTopic, Topic, ids, open_topic, unfit

KEY = "analyze.result"


def message(number: int, exchange: str = "", key: str = KEY, body: bytes | None = None) -> OutboxMessage:
    said = f"body of {number}".encode() if body is None else body
    return OutboxMessage(exchange=exchange, routing_key=key, body=said, number=number, created_at=1_700_000_000.5)


@pytest.fixture
def exchange(rabbitmq: str) -> Iterator[str]:
    """Nobody else's, in a server that may be somebody's."""
    exchange = f"sanderling-test-{uuid.uuid4().hex}"
    yield exchange
    asyncio.run(delete(rabbitmq, exchange))


async def delete(url: str, exchange: str) -> None:
    async with asyncio.timeout(300), await aio_pika.connect(url) as connection:
        await (await connection.channel()).exchange_delete(exchange)


class Receiver:
    """A program that waits for messages, and knows nothing of us."""

    def __init__(self, channel: AbstractChannel) -> None:
        self.channel = channel
        self.queues: dict[str, AbstractQueue] = {}

    async def wait_for(self, exchange: str, key: str) -> None:
        queue = await self.channel.declare_queue(exclusive=True)
        await queue.bind(exchange, key)
        self.queues[key] = queue

    async def received(self, key: str = KEY) -> list[AbstractIncomingMessage]:
        """All that are there."""
        found = []
        while (each := await self.queues[key].get(no_ack=True, fail=False)) is not None:
            found.append(each)
        return found


@asynccontextmanager
async def receiver(url: str) -> AsyncIterator[Receiver]:
    async with asyncio.timeout(300), await aio_pika.connect(url) as connection:
        yield Receiver(await connection.channel())


Play = Callable[[Topic, Receiver], Awaitable[None]]


def played(url: str, play: Play) -> None:
    async def run() -> None:
        async with receiver(url) as there:
            topic = open_topic(url, {})
            try:
                await play(topic, there)
            finally:
                await topic.close()

    asyncio.run(run())


def test_a_message_arrives_where_somebody_waits_for_it(rabbitmq: str, exchange: str) -> None:
    async def play(topic: Topic, there: Receiver) -> None:
        assert await topic.send([message(1, exchange)]) == [message(1, exchange)]
        await there.channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC, durable=True, passive=True)
        await there.wait_for(exchange, KEY)

        assert await topic.send([message(2, exchange), message(3, exchange, "crawl.retry")]) == [
            message(3, exchange, "crawl.retry")
        ]

        (found,) = await there.received()
        assert (found.body, found.routing_key, found.exchange) == (b"body of 2", KEY, exchange)
        assert found.delivery_mode is aio_pika.DeliveryMode.PERSISTENT
        assert found.content_type == "application/json"
        assert found.timestamp is not None
        assert found.timestamp.timestamp() == 1_700_000_000

    played(rabbitmq, play)


def test_the_exchange_we_make_is_durable(rabbitmq: str, exchange: str) -> None:
    async def play(topic: Topic, there: Receiver) -> None:
        await topic.send([message(1, exchange)])
        # Who says otherwise is told.
        await there.channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC, durable=True)

    played(rabbitmq, play)


def test_many_messages_keep_their_order_and_their_ids(rabbitmq: str, exchange: str) -> None:
    chance = random.Random(5)
    keys = ("analyze.result", "crawl.retry", "nobody.waits")
    messages = [message(number, exchange, chance.choice(keys)) for number in range(500)]

    async def play(topic: Topic, there: Receiver) -> None:
        await topic.send(messages[:1])
        for key in keys[:2]:
            await there.wait_for(exchange, key)
        for _ in range(2):
            returned = await topic.send(messages)
            assert returned == [each for each in messages if each.routing_key == "nobody.waits"]
        for key in keys[:2]:
            found = await there.received(key)
            expected = [each for each in messages if each.routing_key == key]
            assert [each.body for each in found] == [each.body for each in expected] * 2
            assert [each.message_id for each in found] == ids(expected) * 2

    played(rabbitmq, play)


def test_one_call_may_speak_to_several_exchanges(rabbitmq: str, exchange: str) -> None:
    async def play(topic: Topic, there: Receiver) -> None:
        other = f"{exchange}-other"
        plain = await there.channel.declare_queue(exclusive=True)
        try:
            await topic.send([message(0, exchange), message(0, other)])
            await there.wait_for(exchange, "a")
            await there.wait_for(other, "b")
            sent = [message(1, exchange, "a"), message(2, other, "b"), message(3, "", plain.name)]
            assert await topic.send(sent) == []
            assert [each.body for each in await there.received("a")] == [b"body of 1"]
            assert [each.body for each in await there.received("b")] == [b"body of 2"]
            assert (await plain.get(no_ack=True)).body == b"body of 3"
        finally:
            await there.channel.exchange_delete(other)

    played(rabbitmq, play)


def test_an_exchange_that_others_made_is_used_as_it_is(rabbitmq: str, exchange: str) -> None:
    async def play(topic: Topic, there: Receiver) -> None:
        await there.channel.declare_exchange(exchange, aio_pika.ExchangeType.FANOUT)
        await there.wait_for(exchange, KEY)
        for _ in range(2):
            assert await topic.send([message(1, exchange)]) == []
        assert len(await there.received()) == 2

    played(rabbitmq, play)


def test_an_exchange_that_was_deleted_is_made_again(rabbitmq: str, exchange: str) -> None:
    async def play(topic: Topic, there: Receiver) -> None:
        await topic.send([message(1, exchange)])
        await there.channel.exchange_delete(exchange)
        with pytest.raises(QueueError, match=r"does not have that \(NOT_FOUND - no exchange"):
            await topic.send([message(1, exchange)])
        await topic.send([message(1, exchange)])
        await there.wait_for(exchange, KEY)
        assert await topic.send([message(2, exchange)]) == []

    played(rabbitmq, play)


# --- a server that comes and goes ---


def test_messages_sent_through_cuts_all_arrive(rabbitmq: str, exchange: str) -> None:
    """Each is sent until it is confirmed; some arrive twice, and have the same id then."""
    messages = [message(number, exchange) for number in range(1000)]

    async def play(_: Topic, there: Receiver) -> None:
        chance, left, failures = random.Random(3), list(range(0, 1000, 50)), 0
        async with Proxy(rabbitmq) as proxy:
            topic = RabbitmqTopic(proxy.url)
            await topic.send([message(-1, exchange)])
            await there.wait_for(exchange, KEY)
            while left and failures < 200:
                proxy.cut_after = chance.randrange(40_000)
                try:
                    for first in [*left]:
                        assert await topic.send(messages[first : first + 50]) == []
                        left.remove(first)
                except QueueError:
                    failures += 1
            proxy.cut_after = sys.maxsize
            await topic.close()
        assert failures > 5
        found = await there.received()
        assert {each.message_id: each.body for each in found} == {
            name: each.body for name, each in zip(ids(messages), messages, strict=True)
        }

    played(rabbitmq, play)


async def weather(proxy: Proxy, over: asyncio.Event) -> None:
    """The connection is cut again and again, and for a while nobody answers at all."""
    chance = random.Random(8)
    for turn in range(12):
        proxy.cut_after = chance.randrange(4_000, 40_000)
        await asyncio.sleep(0.05)
        proxy.refuses = turn % 4 == 3
        if proxy.refuses:
            proxy.cut()
            await asyncio.sleep(0.2)
            proxy.refuses = False
    proxy.cut_after = sys.maxsize
    over.set()


def test_an_outbox_empties_itself_through_any_weather(rabbitmq: str, exchange: str, tmp_path: Path) -> None:
    """Into a queue of ours that is bound to the exchange; each message is there once or more."""
    sent = [f"body of {number}".encode() for number in range(600)]
    rules = OutboxRules(batch=20, every=0.01, backoff=BackoffRules(base=0.01, longest=0.05))
    binding = Binding(exchange, KEY)

    async def play(_: Topic, there: Receiver) -> None:
        await there.channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC, durable=True)
        queue = open_queue(rabbitmq, exchange, SystemClock(), binding=binding)
        await queue.depth()
        over = asyncio.Event()
        with ThreadPoolExecutor(1) as threads:
            outbox = await open_analytics(f"sqlite:{tmp_path}/events.db", in_threads(threads))
            async with Proxy(rabbitmq) as proxy:
                topic = RabbitmqTopic(proxy.url)
                sender = OutboxSender(outbox, topic, SystemClock(), random.Random(1), rules)
                async with asyncio.TaskGroup() as group:
                    group.create_task(sender.run())
                    group.create_task(weather(proxy, over))
                    for place in range(0, 600, 10):
                        await outbox.add([message(0, exchange, body=body) for body in sent[place : place + 10]])
                        sender.wake()
                        await asyncio.sleep(0.01)
                    await over.wait()
                    while await outbox.depth():
                        sender.wake()
                        await asyncio.sleep(0.01)
                    sender.stop()
                assert sender.tally.failures > 3
                assert sender.tally.sent == {KEY: 600}
                await topic.close()
            await outbox.close()
        found: Counter[bytes] = Counter()
        while some := await queue.take(100, 0.5):
            found.update(each.body for each in some)
            await queue.done(some)
        assert set(found) == set(sent)
        await queue.close()
        await delete_queues(there.channel, exchange)

    played(rabbitmq, play)


async def delete_queues(channel: AbstractChannel, name: str) -> None:
    for each in (name, f"{name}.dead", *(f"{name}.later.{seconds:g}s" for seconds in DELAYS)):
        await channel.queue_delete(each, if_unused=False, if_empty=False)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiormq.Connection, "READER_CLOSE_TIMEOUT", 0.1)
    monkeypatch.setattr(rabbitmq_wire, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(rabbitmq_wire, "ANSWER_SECONDS", 0.5)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_away_or_silent_is_said_and_comes_back(rabbitmq: str, exchange: str) -> None:
    async def play(_: Topic, there: Receiver) -> None:
        async with Proxy(rabbitmq) as proxy:
            topic = RabbitmqTopic(proxy.url)
            await topic.send([message(1, exchange)])
            await there.wait_for(exchange, KEY)
            proxy.refuses = True
            proxy.cut()
            with pytest.raises(QueueError, match=r"no RabbitMQ answers at amqp://127.0.0.1:\d+/ \("):
                await topic.send([message(2, exchange)])
            proxy.refuses = False
            await topic.send([message(3, exchange)])
            proxy.silence()
            with pytest.raises(QueueError, match=r"does not answer in time"):
                await topic.send([message(4, exchange)])
            proxy.cut()
            assert await topic.send([message(5, exchange)]) == []
            await topic.close()
        assert {b"body of 3", b"body of 5"} <= {each.body for each in await there.received()}

    played(rabbitmq, play)


def test_a_wrong_password_is_said_and_not_shown(rabbitmq: str) -> None:
    url = f"amqp://guest:hidden@{urlsplit(rabbitmq).netloc.rpartition('@')[2]}/"

    async def play() -> None:
        topic = RabbitmqTopic(url)
        with pytest.raises(QueueError, match="user or password are wrong") as refused:
            await topic.send([message(1, "e")])
        assert "hidden" not in str(refused.value) + repr(topic)

    asyncio.run(play())


# --- without a server ---


def test_without_a_server_messages_go_into_queues_by_their_keys(tmp_path: Path) -> None:
    async def play() -> None:
        queues = {key: open_queue(f"sqlite:{tmp_path}", key, SystemClock()) for key in ("crawl.retry", KEY)}
        topic = open_topic(f"sqlite:{tmp_path}", queues)
        sent = [message(1, "e", KEY), message(2, "e", "crawl.retry"), message(3, "e", "nobody.waits"), message(4, "f")]

        for _ in range(2):  # the second time they are the same
            assert await topic.send(sent) == [sent[2]]

        results = await queues[KEY].take(9, 0)
        assert [(each.key, each.body) for each in results] == [
            (ids(sent)[0], b"body of 1"),
            (ids(sent)[3], b"body of 4"),
        ]
        assert [each.body for each in await queues["crawl.retry"].take(9, 0)] == [b"body of 2"]
        assert repr(topic) == "<QueueTopic of crawl.retry, analyze.result>"
        await topic.close()
        for queue in queues.values():
            await queue.close()

    asyncio.run(play())


def test_messages_that_are_alike_are_still_two(tmp_path: Path) -> None:
    """Two batches of a job may end alike; only their numbers differ, or not even these."""
    alike = [message(1, body=b"same"), message(2, body=b"same"), message(0, body=b"same"), message(0, body=b"same")]

    async def play() -> int:
        queue = open_queue(f"sqlite:{tmp_path}", "letters", SystemClock())
        await QueueTopic({KEY: queue}).send(alike)
        ready = (await queue.depth()).ready
        await queue.close()
        return ready

    assert asyncio.run(play()) == 4
    assert len(set(ids(alike))) == 4
    assert ids(alike) == ids(alike)
    assert ids(alike[:1]) != ids(alike[1:2])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (message(1, body=bytes(LARGEST_BODY + 1)), "has 15,728,641 bytes, at most 15,728,640 are taken"),
        (message(1, key=""), "has no routing key"),
        (message(1, key="k" * 256), "has the routing key"),
        (message(1, exchange="é" * 128), "has the exchange"),
        (message(1, exchange="a\nb"), "has the exchange 'a\\nb', expected at most 255 bytes, all printable"),
        (message(1, key="\ud800"), "has the routing key"),
    ],
)
def test_a_message_that_nobody_takes_is_a_mistake(bad: OutboxMessage, why: str) -> None:
    assert unfit(bad).startswith(why)
    assert unfit(message(1, "e" * 255, "k" * 255)) == ""
    for topic in (QueueTopic({}), RabbitmqTopic("amqp://127.0.0.1:1")):
        with pytest.raises(ValueError, match="message 1 has"):
            asyncio.run(topic.send([message(1), bad]))


@pytest.mark.parametrize("url", ["", "http://u:hidden@host", "hidden"])
def test_what_is_nowhere_is_refused(url: str) -> None:
    with pytest.raises(QueueError, match="nowhere to send messages to; expected sqlite:FOLDER or amqp://") as refused:
        open_topic(url, {})
    assert "hidden" not in str(refused.value)
