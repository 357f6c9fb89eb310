import asyncio
import os
import random
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import aio_pika
import aiormq
import pytest
from pamqp.common import FieldValue
from queue_contract import DELAY, EMPTY, Opens, QueueContract, drained, keys, letters, played, script, settled, taken
from services.process import Missing, private_folder
from services.rabbitmq import start

from sanderling.clock import SystemClock
from sanderling.stores import rabbitmq as rabbitmq_module
from sanderling.stores import rabbitmq_wire
from sanderling.stores.queue import Delivery, Depth, Letter, QueueError, WholeQueue, open_queue
from sanderling.stores.rabbitmq import DELAYS, RabbitmqQueue
from sanderling.stores.rabbitmq_wire import broker

SHORT = (DELAY, 1.0)
NOBODY: Mapping[str, str] = {}


@pytest.fixture
def name(rabbitmq: str) -> Iterator[str]:
    """Nobody else's, in a server that may be somebody's."""
    name = f"sanderling-test-{uuid.uuid4().hex}"
    yield name
    asyncio.run(delete(rabbitmq, name))


async def delete(url: str, name: str) -> None:
    later = (f"{name}.later.{seconds:g}s" for seconds in (*SHORT, *DELAYS))
    async with asyncio.timeout(20), await aio_pika.connect(url) as connection:
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


class Proxy:
    """Stands between us and the server, and can cut, refuse or fall silent."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 5672
        self._login = parts.netloc.rpartition("@")[0]
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._speaks = asyncio.Event()
        self._speaks.set()
        self.refuses = False
        self.cut_after = sys.maxsize  # bytes to the server

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"amqp://{self._login}@127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    def cut(self) -> None:
        """End all connections."""
        self._speaks.set()
        self.cut_after = sys.maxsize
        for writer in self._writers:
            writer.transport.abort()

    def silence(self) -> None:
        """Connections stay, and nothing goes through them to the server."""
        self._speaks.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, back}
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, back, self._pass))
                group.create_task(self._carry(there, writer, None))
        finally:
            self._writers -= {writer, back}
            self._serving.discard(task)
            writer.transport.abort()
            back.transport.abort()

    async def _pass(self, size: int) -> None:
        await self._speaks.wait()
        self.cut_after -= size
        if self.cut_after < 0:
            self.cut()

    @staticmethod
    async def _carry(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may: Callable[[int], Awaitable[None]] | None
    ) -> None:
        try:
            while data := await reader.read(1024):
                if may is not None:
                    await may(len(data))
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


Play = Callable[[RabbitmqQueue, Proxy], Awaitable[None]]


@pytest.fixture
def weather(rabbitmq: str, name: str) -> Callable[[Play], None]:
    """Play with a queue behind a proxy."""

    async def run(play: Play) -> None:
        async with asyncio.timeout(60), Proxy(rabbitmq) as proxy:
            queue = RabbitmqQueue(proxy.url, name, SystemClock(), delays=SHORT)
            try:
                await play(queue, proxy)
            finally:
                await queue.close()

    return lambda play: asyncio.run(run(play))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiormq.Connection, "READER_CLOSE_TIMEOUT", 0.1)
    for module in (rabbitmq_module, rabbitmq_wire):
        monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(rabbitmq_module, "ANSWER_SECONDS", 0.5)


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
            assert queue._sender is not None
            transport = queue._sender.connection.transport
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
    """Those that are ready, delayed and dead."""

    async def before(queue: WholeQueue) -> None:
        await queue.publish(letters(0, 4))
        one, other, *_ = await taken(queue, 3)
        await queue.later(one, 0.01, "why")
        await queue.bury(other, "why")

    async def after(queue: WholeQueue) -> None:
        assert {each.key: each.tries for each in await taken(queue, 3)} == {"0": 1, "2": 0, "3": 0}
        assert [each.key for each in await queue.dead(9)] == ["1"]

    with ExitStack() as stack:
        folder = Path(stack.enter_context(private_folder()))
        for play in (before, after):
            with ExitStack() as life:
                try:
                    url = life.enter_context(start(folder)).url
                except Missing as why:
                    pytest.skip(str(why))
                played(partial(RabbitmqQueue, url, "letters", SystemClock(), delays=(3.0,)), play)


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
    monkeypatch.setattr(rabbitmq_wire, "WINDOW_BYTES", 10_000)
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


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sanderling.stores.rabbitmq", "sanderling.stores.rabbitmq_wire"):
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "aio_pika", None)  # which means: not there

    with pytest.raises(QueueError, match=r"not installed: pip install 'sanderling\[rabbitmq\]'"):
        open_queue("amqp://host", "letters", SystemClock())
