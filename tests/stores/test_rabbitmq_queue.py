import asyncio
import hashlib
import os
import random
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika
import aiormq
import pytest
from pamqp.common import FieldValue
from queue_contract import DELAY, EMPTY, Opens, QueueContract, drained, keys, letters, played, script, settled, taken
from services.process import Missing, private_folder
from services.rabbitmq import start
from services.rabbitmq_proxy import Proxy

from sanderling.clock import SystemClock
from sanderling.stores import rabbitmq as rabbitmq_module
from sanderling.stores import rabbitmq_messages, rabbitmq_wire
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.queue import (
    MOST_PREFETCH,
    Binding,
    Delivery,
    Depth,
    Letter,
    QueueError,
    UnfitLetterError,
    WholeQueue,
    open_queue,
)
from sanderling.stores.rabbitmq import DELAYS, QueueIntake, RabbitmqQueue
from sanderling.stores.rabbitmq_topic import RabbitmqTopic
from sanderling.stores.rabbitmq_wire import broker

# What a server says of a message above its max_message_size.
OVERSIZE = "PRECONDITION_FAILED - message size 135266304 is larger than configured max size 134217728"
SHORT = (DELAY, 1.0)
NOBODY: Mapping[str, str] = {}
DATA = "data.collected"


@pytest.fixture
def name(rabbitmq: str) -> Iterator[str]:
    """Nobody else's, in a server that may be somebody's."""
    name = f"sanderling-test-{uuid.uuid4().hex}"
    yield name
    asyncio.run(delete(rabbitmq, name))


async def delete(url: str, name: str) -> None:
    later = (f"{name}.later.{seconds:g}s" for seconds in (*SHORT, *DELAYS))
    async with asyncio.timeout(300), await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        for each in (name, f"{name}.dead", *later):
            await channel.queue_delete(each, if_unused=False, if_empty=False)


@pytest.fixture
def opens(rabbitmq: str, name: str) -> Opens:
    return lambda: RabbitmqQueue(rabbitmq, name, SystemClock(), delays=SHORT)


@pytest.fixture
def child(rabbitmq: str, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return script(rabbitmq, name)


class TestRabbitmqQueue(QueueContract):
    pass


# --- a server that comes and goes ---


Play = Callable[[RabbitmqQueue, Proxy], Awaitable[None]]


@pytest.fixture
def weather(rabbitmq: str, name: str) -> Callable[[Play], None]:
    """Play with a queue behind a proxy."""

    async def run(play: Play) -> None:
        async with asyncio.timeout(300), Proxy(rabbitmq) as proxy:
            queue = RabbitmqQueue(proxy.url, name, SystemClock(), delays=SHORT)
            try:
                await play(queue, proxy)
            finally:
                await queue.close()

    return lambda play: asyncio.run(run(play))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiormq.Connection, "READER_CLOSE_TIMEOUT", 0.1)
    monkeypatch.setattr(rabbitmq_wire, "CONNECT_SECONDS", 0.5)
    for module in (rabbitmq_module, rabbitmq_wire):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)


AWAY = r"no RabbitMQ answers at amqp://127.0.0.1:\d+/ \(.*\). What was confirmed is safe; the rest will be tried again"


def test_a_server_that_goes_away_is_said_and_comes_back(weather: Callable[[Play], None]) -> None:
    async def play(queue: RabbitmqQueue, proxy: Proxy) -> None:
        await queue.publish(letters(0, 10))
        held = await taken(queue, 4)
        proxy.refuses = True
        proxy.cut()

        for attempt in (queue.depth, lambda: queue.publish(letters(10, 1)), lambda: queue.dead(5), queue.replay):
            with pytest.raises(QueueError, match=AWAY):
                await attempt()
        assert await queue.take(5, 0.2) == []
        await queue.done(held)
        await queue.later(held[0], 1, "of a lost connection")
        await queue.bury(held[1], "of a lost connection")

        proxy.refuses = False
        await queue.publish(letters(10, 1))
        assert sorted(keys(await taken(queue, 11)), key=int) == [str(number) for number in range(11)]
        await settled(queue, Depth(ready=0, taken=11, delayed=0, dead=0))

    weather(play)


def test_who_takes_while_the_server_is_away_gets_the_next_letter(weather: Callable[[Play], None], opens: Opens) -> None:
    async def play(queue: RabbitmqQueue, proxy: Proxy) -> None:
        assert await queue.take(1, 0) == []
        async with asyncio.TaskGroup() as group:
            taking = group.create_task(queue.take(1, 30))
            await asyncio.sleep(0)
            proxy.refuses = True
            proxy.cut()
            straight = opens()
            await straight.publish(letters(0, 1))
            await straight.close()
            proxy.refuses = False
        assert keys(taking.result()) == ["0"]

    weather(play)


def test_letters_published_through_cuts_are_all_there(weather: Callable[[Play], None]) -> None:
    """Each is published until it is confirmed; some are there twice."""

    async def play(queue: RabbitmqQueue, proxy: Proxy) -> None:
        chance, left, failures = random.Random(3), list(range(0, 1500, 50)), 0
        while left and failures < 200:
            # To connect takes some 2 kB, to publish fifty letters 10 kB.
            proxy.cut_after = chance.randrange(60_000)
            try:
                for first in [*left]:
                    await queue.publish(letters(first, 50))
                    left.remove(first)
            except QueueError:
                failures += 1
        proxy.cut_after = sys.maxsize
        assert failures > 5
        assert {each.key for each in await drained(queue)} == {str(number) for number in range(1500)}

    weather(play)


@pytest.mark.usefixtures("impatient")
def test_a_silent_server_holds_nobody_up(weather: Callable[[Play], None]) -> None:
    async def play(queue: RabbitmqQueue, proxy: Proxy) -> None:
        await queue.publish(letters(0, 3))
        first, second, third = await taken(queue, 3)
        proxy.silence()

        slow = r"RabbitMQ at amqp://127.0.0.1:\d+/ does not answer in time. What was confirmed is safe"
        with pytest.raises(QueueError, match=slow):
            await queue.publish(letters(3, 1))
        for attempt in (queue.depth, lambda: queue.later(first, 0, "why"), lambda: queue.bury(second, "why")):
            with pytest.raises(QueueError, match=slow):
                await attempt()
        await queue.done([third])

        proxy.cut()
        assert {"0", "1"} <= {each.key for each in await drained(queue)} <= {"0", "1", "2", "3"}

    weather(play)


@pytest.mark.usefixtures("impatient")
def test_a_letter_is_not_confirmed_because_the_client_gave_up(weather: Callable[[Play], None]) -> None:
    """When heartbeats fail, the client cancels all who wait; that is neither a confirm nor a cancellation of ours."""

    async def play(queue: RabbitmqQueue, proxy: Proxy) -> None:
        await queue.depth()
        proxy.silence()

        def give_up() -> None:
            assert queue._publisher.link is not None
            transport = queue._publisher.link.connection.transport
            assert transport is not None
            transport.connection._reader_task.cancel()  # type: ignore[attr-defined] # as its heartbeat does

        for attempt in (lambda: queue.publish(letters(0, 5)), queue.depth):
            asyncio.get_running_loop().call_later(0.1, give_up)
            with pytest.raises(QueueError, match=r"has gone silent|5 of 5 letters were not confirmed"):
                await attempt()
            proxy.cut()
            await queue.depth()
            proxy.silence()

    weather(play)


def test_who_fails_to_put_a_letter_aside_still_has_it(weather: Callable[[Play], None], opens: Opens) -> None:
    async def play(queue: RabbitmqQueue, proxy: Proxy) -> None:
        straight = opens()
        await straight.publish(letters(0, 2))
        await straight.close()
        one, other = await taken(queue, 2)
        proxy.refuses = True
        with pytest.raises(QueueError, match=AWAY):
            await queue.later(one, DELAY, "why")
        with pytest.raises(QueueError, match=AWAY):
            await queue.bury(other, "why")

        proxy.refuses = False
        await queue.later(one, DELAY, "why")
        await queue.bury(other, "why")

        assert [(each.key, each.tries) for each in await taken(queue, 1)] == [("0", 1)]
        assert [each.key for each in await queue.dead(9)] == ["1"]

    weather(play)


def test_a_replay_that_is_cut_loses_nothing(weather: Callable[[Play], None]) -> None:
    async def play(queue: RabbitmqQueue, proxy: Proxy) -> None:
        await queue.publish(letters(0, 300))
        for each in await taken(queue, 300):
            await queue.bury(each, "why")
        proxy.cut_after = 40_000  # some are replayed, most are not
        with pytest.raises(QueueError):
            await queue.replay()

        for _ in range(100):
            if (await queue.depth()).dead + (await queue.depth()).ready >= 300:
                break
            await asyncio.sleep(0.02)
        await queue.replay()

        assert {each.key for each in await drained(queue)} == {str(number) for number in range(300)}

    weather(play)


def test_letters_survive_a_restart_of_the_server() -> None:
    """Those that are ready, delayed and dead; and what was sent to an exchange, and who waits for it there."""

    async def before(queue: WholeQueue) -> None:
        await queue.publish(letters(0, 4))
        one, other, *_ = await taken(queue, 3)
        await queue.later(one, 0.01, "why")
        await queue.bury(other, "why")

    async def after(queue: WholeQueue) -> None:
        assert {each.key: each.tries for each in await taken(queue, 3)} == {"0": 1, "2": 0, "3": 0}
        assert [each.key for each in await queue.dead(9)] == ["1"]

    async def also(url: str, number: int) -> list[bytes]:
        queue, topic = open_queue(url, "bound", SystemClock(), binding=Binding("events", DATA)), RabbitmqTopic(url)
        if number == 0:
            await queue.depth()
        said = OutboxMessage(exchange="events", routing_key=DATA, body=b"%d" % number)
        assert await topic.send([said]) == []
        await topic.close()
        found = [each.body for each in await taken(queue, number + 1)]
        await queue.close()
        return found

    with ExitStack() as stack:
        folder = Path(stack.enter_context(private_folder()))
        for number, play in enumerate((before, after)):
            with ExitStack() as life:
                try:
                    url = life.enter_context(start(folder)).url
                except Missing as why:
                    pytest.skip(str(why))
                played(partial(RabbitmqQueue, url, "letters", SystemClock(), delays=(3.0,)), play)
                assert asyncio.run(also(url, number)) == [b"0", b"1"][: number + 1]


# --- what operators do ---


def test_queues_that_were_deleted_are_made_again(opens: Opens, rabbitmq: str, name: str) -> None:
    async def play(queue: WholeQueue) -> None:
        await queue.publish(letters(0, 1))
        lost = await taken(queue, 1)
        async with asyncio.TaskGroup() as group:
            taking = group.create_task(queue.take(5, 30))
            await asyncio.sleep(0)
            await delete(rabbitmq, name)
            await queue.publish(letters(1, 1))
        assert keys(taking.result()) == ["1"]
        await queue.done([*lost, *taking.result()])

        await queue.publish(letters(2, 2))
        one, other = await taken(queue, 2)
        await delete(rabbitmq, name)
        assert await queue.take(1, 0.1) == []
        await queue.later(one, DELAY, "we have it, and the server has not")
        await queue.bury(other, "the same")
        assert keys(await taken(queue, 1)) == ["2"]
        assert [each.key for each in await queue.dead(9)] == ["3"]

    played(opens, play)


def test_a_publisher_makes_a_deleted_queue_again(opens: Opens, rabbitmq: str, name: str) -> None:
    async def play(queue: WholeQueue) -> list[str]:
        await queue.publish(letters(0, 1))
        await delete(rabbitmq, name)
        await queue.publish(letters(1, 300))
        return keys(await drained(queue))

    assert played(opens, play) == [str(number) for number in range(1, 301)]


def test_a_queue_with_other_settings_is_refused(opens: Opens, rabbitmq: str, name: str) -> None:
    async def play(queue: WholeQueue) -> None:
        async with await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            await channel.declare_queue(name, durable=True, arguments={"x-max-length": 5})
        expected = r"has a queue of that name with other settings \(.*x-max-length.*Delete that one, or choose another"
        for attempt in (lambda: queue.publish(letters(0, 1)), lambda: queue.take(1, 5), queue.depth):
            with pytest.raises(QueueError, match=expected):
                await attempt()

    played(opens, play)


def test_messages_of_others_are_taken_and_put_aside(opens: Opens, rabbitmq: str, name: str) -> None:
    async def play(queue: WholeQueue) -> None:
        await queue.depth()
        async with await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            odd: list[dict[str, FieldValue]] = [{}, {"x-retry-count": "many", "x-key": 5}, {"x-retry-count": -3}]
            for headers in odd:
                message = aio_pika.Message(b"1234", headers={**headers}, message_id="mine" if headers else None)
                await channel.default_exchange.publish(message, name)
        found = await taken(queue, 3)
        assert [(each.key if number else "", each.tries) for number, each in enumerate(found)] == [
            ("", 0), ("5", 0), ("mine", 0)
        ]  # fmt: skip
        for each in found[:2]:
            await queue.later(each, DELAY, "why")
        for each in await taken(queue, 2):
            assert (each.body, each.tries) == (b"1234", 1)
            await queue.bury(each, "why")
        assert len(await queue.dead(9)) == 2

    played(opens, play)


def test_a_letter_that_is_dead_twice_is_listed_once_and_replayed_twice(opens: Opens) -> None:
    async def play(queue: WholeQueue) -> None:
        for number in (0, 1, 0, 1, 2):
            await queue.publish(letters(number, 1))
            (delivery,) = await taken(queue, 1)
            await queue.bury(delivery, "why")

        pages = [await queue.dead(2), await queue.dead(2, "1"), await queue.dead(2, "2")]

        assert [[each.key for each in page] for page in pages] == [["0", "1"], ["2"], []]
        assert await queue.replay(["0"]) == 2
        assert keys(await drained(queue)) == ["0", "0"]

    played(opens, play)


@pytest.mark.parametrize(
    ("seconds", "delay"), [(-5, 5), (0, 5), (5, 5), (5.1, 30), (299, 300), (1800, 1800), (1e9, 1800)]
)
def test_a_delay_is_the_next_that_is_not_shorter(rabbitmq: str, name: str, seconds: float, delay: int) -> None:
    async def play(queue: WholeQueue) -> None:
        await queue.publish(letters(0, 1))
        (delivery,) = await taken(queue, 1)
        await queue.later(delivery, seconds, "why")
        async with await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            found = await channel.declare_queue(f"{name}.later.{delay}s", passive=True)
        assert found.declaration_result.message_count == 1

    played(lambda: open_queue(rabbitmq, name, SystemClock()), play)


def test_the_delivery_of_another_queue_is_a_mistake(opens: Opens) -> None:
    with pytest.raises(TypeError, match="letter 'a' is of another queue"):
        played(opens, lambda queue: queue.done([Delivery("a", b"", 0, tag=None)]))


def test_many_letters_are_more_than_one_window(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq_messages, "WINDOW_BYTES", 10_000)
    sent = [Letter(str(number), bytes(number * 10)) for number in range(600)]

    async def play(queue: WholeQueue) -> list[Delivery]:
        await queue.publish(sent)
        return await drained(queue)

    assert [Letter(each.key, each.body) for each in played(opens, play)] == sent


# --- where it is, and who we are ---


def test_a_wrong_password_is_said_and_not_shown(rabbitmq: str, name: str) -> None:
    url = f"amqp://guest:wrong-secret@{urlsplit(rabbitmq).netloc.rpartition('@')[2]}/"

    async def play(queue: WholeQueue) -> None:
        for attempt in (lambda: queue.publish(letters(0, 1)), lambda: queue.take(1, 5), queue.depth):
            with pytest.raises(QueueError, match="user or password are wrong; see RABBITMQ_PASSWORD") as refused:
                await attempt()
            assert "secret" not in str(refused.value)
        assert "secret" not in repr(queue)

    played(lambda: open_queue(url, name, SystemClock()), play)


def test_a_vhost_that_is_not_there_is_said(rabbitmq: str) -> None:
    url = f"{rabbitmq.rstrip('/')}/no-such-vhost"

    with pytest.raises(QueueError, match=r"/no-such-vhost has no vhost of that name, or not for this user"):
        played(lambda: open_queue(url, "letters", SystemClock()), lambda queue: queue.depth())


@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
def test_where_nobody_listens_nobody_answers(scheme: str) -> None:
    url = f"{scheme}://guest:secret@127.0.0.1:1/"

    with pytest.raises(QueueError, match=rf"no RabbitMQ answers at {scheme}://127.0.0.1:1/ \(") as refused:
        played(lambda: open_queue(url, "letters", SystemClock()), lambda queue: queue.depth())
    assert "secret" not in str(refused.value)


def test_a_server_without_tls_is_none_with_it(rabbitmq: str) -> None:
    url = f"amqps{rabbitmq.removeprefix('amqp')}"

    with pytest.raises(QueueError, match=r"no RabbitMQ answers at amqps://|does not answer in time"):
        played(lambda: open_queue(url, "letters", SystemClock()), lambda queue: queue.depth())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("amqp://", "names no host"),
        ("amqp:secret", "names no host"),
        ("amqp://u:secret@host:port/", "is none"),
        ("amqp://u:secret/@host/", "is none|goes on behind"),
        ("amqp://u:secret@host/v/w", "goes on behind its vhost"),
        ("amqp://u:secret@host/v?heartbeat=5", "goes on behind its vhost"),
    ],
)
def test_what_is_no_url_of_a_rabbitmq_is_refused(url: str, expected: str) -> None:
    with pytest.raises(QueueError, match=rf"({expected}).*expected sqlite:FOLDER or amqp://") as refused:
        open_queue(url, "letters", SystemClock(), NOBODY)
    assert "secret" not in str(refused.value)


def test_a_url_says_where_and_who(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from a file\n")

    full = broker("amqps://me%40home:pa%2Fss@host.example:99/my%2Fhost", NOBODY)
    bare = broker("amqp://[::1]", {"RABBITMQ_PASSWORD": "given"})
    filed = broker("amqp://me@host/", {"RABBITMQ_PASSWORD_FILE": str(tmp_path / "password")})

    assert (full.host, full.port, full.tls, full.vhost) == ("host.example", 99, True, "my/host")
    assert (full.login, full.password, full.place) == ("me@home", "pa/ss", "amqps://host.example:99/my%2Fhost")
    assert (bare.host, bare.port, bare.tls, bare.vhost) == ("::1", 5672, False, "/")
    assert (bare.login, bare.password, bare.place) == ("guest", "given", "amqp://[::1]:5672/")
    assert (filed.login, filed.password) == ("me", "from a file")
    assert "pa/ss" not in repr(full)
    with pytest.raises(QueueError, match=r"RABBITMQ_PASSWORD_FILE: cannot read .*nowhere"):
        broker("amqp://host", {"RABBITMQ_PASSWORD_FILE": str(tmp_path / "nowhere")})


def test_the_password_may_come_from_the_environment(rabbitmq: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = urlsplit(rabbitmq)
    monkeypatch.setenv("RABBITMQ_PASSWORD", parts.password or "guest")
    monkeypatch.delenv("RABBITMQ_PASSWORD_FILE", raising=False)
    url = f"amqp://{parts.username}@{parts.netloc.rpartition('@')[2]}{parts.path}"

    assert played(lambda: open_queue(url, name, SystemClock(), os.environ), lambda queue: queue.depth()) == EMPTY


# --- what other programs send ---


@pytest.fixture
def exchange(rabbitmq: str) -> Iterator[str]:
    """Nobody else's; whoever needs it makes it."""
    exchange = f"sanderling-test-{uuid.uuid4().hex}"
    yield exchange
    asyncio.run(delete_exchange(rabbitmq, exchange))


async def delete_exchange(url: str, exchange: str) -> None:
    async with asyncio.timeout(300), await aio_pika.connect(url) as connection:
        await (await connection.channel()).exchange_delete(exchange)


@pytest.fixture
def bound(rabbitmq: str, name: str, exchange: str) -> Opens:
    intake = QueueIntake(Binding(exchange, DATA), prefetch=3)
    return lambda: RabbitmqQueue(rabbitmq, name, SystemClock(), delays=SHORT, intake=intake)


async def sent(url: str, exchange: str, messages: list[tuple[str, aio_pika.Message]]) -> None:
    """By a program that knows nothing of us."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        there = await channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC, durable=True)
        for key, message in messages:
            await there.publish(message, key)


def test_messages_under_the_key_arrive_and_others_do_not(bound: Opens, rabbitmq: str, exchange: str) -> None:
    keys_sent = [DATA, "project.created", "data", "data.collected.again", DATA, "analysis.finished"]

    async def play(queue: WholeQueue) -> list[bytes]:
        await queue.depth()
        messages = [(key, aio_pika.Message(f"{key} {place}".encode())) for place, key in enumerate(keys_sent)]
        await sent(rabbitmq, exchange, messages)
        await queue.publish([Letter("ours", b"ours")])
        return [each.body for each in await drained(queue)]

    assert played(bound, play) == [b"data.collected 0", b"data.collected 4", b"ours"]


def test_what_others_have_made_is_used_and_bound(bound: Opens, rabbitmq: str, name: str, exchange: str) -> None:
    """They made both, as the services did that were here first; what they sent waits already."""

    async def before() -> None:
        async with await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            there = await channel.declare_exchange(exchange, aio_pika.ExchangeType.TOPIC, durable=True)
            queue = await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "classic"})
            await queue.bind(there, DATA)
            await there.publish(aio_pika.Message(b"early"), DATA)

    async def play(queue: WholeQueue) -> None:
        await sent(rabbitmq, exchange, [(DATA, aio_pika.Message(b"late"))])
        early, late = await taken(queue, 2)
        assert (early.body, late.body) == (b"early", b"late")
        await queue.later(early, DELAY, "why")
        await queue.bury(late, "why")
        assert [(each.body, each.tries) for each in await taken(queue, 1)] == [(b"early", 1)]
        assert [each.body for each in await queue.dead(9)] == [b"late"]

    asyncio.run(before())
    played(bound, play)


def test_a_queue_that_was_deleted_is_bound_again(bound: Opens, rabbitmq: str, name: str, exchange: str) -> None:
    async def play(queue: WholeQueue) -> list[bytes]:
        await queue.depth()
        await delete(rabbitmq, name)
        assert await queue.take(1, 0.1) == []
        await queue.depth()
        await sent(rabbitmq, exchange, [(DATA, aio_pika.Message(b"after"))])
        return [each.body for each in await taken(queue, 1)]

    assert played(bound, play) == [b"after"]


def test_a_message_of_others_keeps_its_key_whenever_it_comes(bound: Opens, rabbitmq: str, exchange: str) -> None:
    named = aio_pika.Message(b"named", message_id="evt_abc123")
    nameless = [aio_pika.Message(body, message_id="x" * 201) for body in (b"one", b"two")]
    odd = aio_pika.Message(b"odd", headers={"x-key": "a\nb"}, message_id="evt_other")

    async def play(queue: WholeQueue) -> None:
        await queue.depth()
        await sent(rabbitmq, exchange, [(DATA, named), (DATA, nameless[0]), (DATA, nameless[1])])
        first = {each.body: each.key for each in await taken(queue, 3)}
        await queue.close()
        again = await taken(queue, 3)
        assert {each.body: each.key for each in again} == first
        assert first[b"named"] == "evt_abc123"
        assert first[b"one"] == f"body-{hashlib.sha256(b'one').hexdigest()[:32]}" != first[b"two"]
        for each in again:
            await queue.later(each, DELAY, "why")
        later = await taken(queue, 3)
        assert {each.body: each.key for each in later} == first
        await queue.done(later)
        await sent(rabbitmq, exchange, [(DATA, odd)])
        assert keys(await taken(queue, 1))[0].startswith("body-")

    played(bound, play)


def test_no_more_are_handed_out_than_may_be_undone(bound: Opens) -> None:
    async def play(queue: WholeQueue) -> None:
        await queue.publish(letters(0, 7))
        first = await taken(queue, 3)
        assert await queue.take(9, 0.3) == []
        await queue.done(first[:2])
        assert keys(await taken(queue, 2)) == ["3", "4"]

    played(bound, play)


def test_an_exchange_of_another_kind_is_refused(bound: Opens, rabbitmq: str, exchange: str) -> None:
    async def play(queue: WholeQueue) -> None:
        async with await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            await channel.declare_exchange(exchange, aio_pika.ExchangeType.FANOUT, durable=True)
        with pytest.raises(QueueError, match=r"has an exchange of that name with other settings \(.*fanout"):
            await queue.depth()

    played(bound, play)


def test_what_feeds_a_queue_is_said_when_it_is_opened(rabbitmq: str, name: str, exchange: str) -> None:
    async def play(queue: WholeQueue) -> list[str]:
        await queue.depth()
        await sent(rabbitmq, exchange, [(DATA, aio_pika.Message(b"1", message_id=str(number))) for number in range(3)])
        first = await taken(queue, 2)
        assert await queue.take(9, 0.3) == []
        return keys(first)

    opens = partial(open_queue, rabbitmq, name, SystemClock(), binding=Binding(exchange, DATA), prefetch=2)
    assert played(opens, play) == ["0", "1"]


@pytest.mark.parametrize("intake", [(None, 0), (None, 65_536), (Binding("", DATA), 1), (Binding("e", "k" * 256), 1)])
def test_an_intake_that_cannot_be_is_a_mistake(intake: tuple[Binding | None, int]) -> None:
    with pytest.raises(ValueError, match="expected 1 to"):
        QueueIntake(*intake)


class SmallServerQueue(RabbitmqQueue):
    """One whose server takes ten bytes in a message; it closes the channel, and does not say for which message."""

    async def _send(self, to: str, messages: Sequence[aio_pika.Message]) -> None:
        with rabbitmq_wire.plainly("amqp://small"):
            if any(message.body_size > 10 for message in messages):
                raise aiormq.exceptions.ChannelPreconditionFailed(OVERSIZE.replace("134217728", "10"))
        await super()._send(to, messages)


def test_a_message_over_the_limit_of_the_server_is_told_from_those_beside_it(rabbitmq: str, name: str) -> None:
    async def play(queue: WholeQueue) -> Depth:
        with pytest.raises(UnfitLetterError, match="letter 'b' has 11 bytes, at most 10 are taken") as unfit:
            await queue.publish([Letter("a", b"x"), Letter("b", b"x" * 11), Letter("c", b"x")])
        assert unfit.value.key == "b"
        await queue.publish([Letter("a", b"x"), Letter("c", b"x")])
        return await queue.depth()

    assert played(lambda: SmallServerQueue(rabbitmq, name, SystemClock(), delays=SHORT), play) == Depth(2, 0, 0, 0)


@pytest.mark.parametrize("prefetch", [0, MOST_PREFETCH + 1])
def test_letters_are_handed_out_one_at_a_time_at_least_and_not_without_end(prefetch: int) -> None:
    assert [QueueIntake(prefetch=each).prefetch for each in (1, MOST_PREFETCH)] == [1, MOST_PREFETCH]

    with pytest.raises(ValueError, match=f"prefetch is {prefetch}, expected 1 to"):
        QueueIntake(prefetch=prefetch)
