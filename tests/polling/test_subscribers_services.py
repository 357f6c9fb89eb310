"""Subscribers as processes that are killed, and with a broker whose connections are cut."""

import asyncio
import json
import random
import sys
import uuid
from asyncio.subprocess import Process, create_subprocess_exec
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika
import pytest
from aiohttp import web
from memory_changes import MemoryChanges

from sanderling.clock import ScaledClock, SystemClock
from sanderling.polling.change_feed import ChangeFeed
from sanderling.polling.change_sinks import ChangeQueueSink
from sanderling.polling.subscribers import Subscriber
from sanderling.stores.rabbitmq import DELAYS, RabbitmqQueue

NEWEST = 5_000  # a post has at most five hundred


class Killer:
    """A receiver that kills whoever talks to it, now and then: before it has answered, or soon after."""

    def __init__(self, seed: int) -> None:
        self.numbers: list[int] = []
        self.all_there = asyncio.Event()
        self._rng = random.Random(seed)
        self._victim: Process | None = None
        self._spared = 0

    async def serve_until_killed(self, *command: str) -> None:
        self._spared = self._rng.randint(0, 2)
        self._victim = await create_subprocess_exec(sys.executable, *command)
        await self._victim.wait()

    def _kill(self) -> None:
        assert self._victim is not None
        if self._victim.returncode is None:
            self._victim.kill()

    async def take(self, request: web.Request) -> web.Response:
        told = json.loads(await request.read())
        self.numbers += [change["seq"] for change in told["changes"]]
        if self.numbers[-1] == NEWEST:
            self.all_there.set()
        if self._spared == 0 or self.all_there.is_set():
            if self._rng.random() < 0.5:
                self._kill()
            else:
                asyncio.get_running_loop().call_later(self._rng.uniform(0, 0.005), self._kill)
        self._spared -= 1
        return web.Response(status=204)


@asynccontextmanager
async def served(killer: Killer) -> AsyncIterator[str]:
    app = web.Application(client_max_size=2 << 20)
    app.router.add_post("/hook", killer.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    finally:
        await runner.cleanup()


def test_a_subscriber_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    """While documents are stored, too."""
    script, database = str(Path(__file__).with_name("subscribing.py")), f"sqlite:{tmp_path / 'race.db'}"

    async def main() -> tuple[Killer, int]:
        killer, lives = Killer(seed=11), 0
        async with asyncio.timeout(90), served(killer) as url:
            while not killer.all_there.is_set():
                await killer.serve_until_killed(script, url, database, str(NEWEST))
                lives += 1
        return killer, lives

    killer, lives = asyncio.run(main())

    assert lives > 2
    assert [*dict.fromkeys(killer.numbers)] == [*range(1, NEWEST + 1)]
    assert len(killer.numbers) > NEWEST  # what was not confirmed in time came twice


# --- a broker ---


@pytest.fixture
def name(rabbitmq: str) -> Iterator[str]:
    """Nobody else's, in a server that may be somebody's."""
    name = f"sanderling-test-{uuid.uuid4().hex}"
    yield name
    asyncio.run(delete(rabbitmq, name))


async def delete(url: str, name: str) -> None:
    async with asyncio.timeout(300), await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        for each in (name, f"{name}.dead", *(f"{name}.later.{seconds:g}s" for seconds in DELAYS)):
            await channel.queue_delete(each, if_unused=False, if_empty=False)


class Relay:
    """Stands between us and the broker, and cuts all connections after so many bytes."""

    def __init__(self, url: str, rng: random.Random) -> None:
        parts = urlsplit(url)
        self._there = (parts.hostname or "", parts.port or 5672)
        self._login = parts.netloc.rpartition("@")[0]
        self._rng = rng
        self._left = self._allowance()
        self._ends: set[asyncio.StreamWriter] = set()
        self.cuts = 0
        self.cutting = True

    def _allowance(self) -> int:
        # To connect takes some 2 kB, and a batch up to 100 kB.
        return self._rng.randrange(60_000)

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._carry, "127.0.0.1", 0) as server:
            yield f"amqp://{self._login}@127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            self._cut()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._there)
        self._ends |= {writer, far_writer}
        async with asyncio.TaskGroup() as both_ways:
            both_ways.create_task(self._pump(reader, far_writer))
            both_ways.create_task(self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(4_096):
                self._left -= len(data)
                if self.cutting and self._left < 0:
                    self._cut()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def _cut(self) -> None:
        self.cuts += 1
        self._left = self._allowance()
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()


def test_every_change_reaches_a_broker_whose_connections_are_cut(rabbitmq: str, name: str) -> None:
    rng, store = random.Random(5), MemoryChanges()
    store.positions["board"] = 0

    async def publish(relay: Relay) -> None:
        clock = ScaledClock(50)  # pauses of a minute, in a second
        feed = ChangeFeed(store, clock)
        await feed.open()
        async with relay.laid() as url, asyncio.TaskGroup() as group:
            sink = ChangeQueueSink(RabbitmqQueue(url, name, SystemClock()))
            group.create_task(Subscriber("board", sink, feed, store, clock, rng).run())
            for _ in range(20):
                feed.note(store.commit(rng.randint(1, 120)))
                await asyncio.sleep(0.02)
            while relay.cuts < 5:
                feed.note(store.commit(50))
                await asyncio.sleep(0.02)
            relay.cutting = False
            while store.positions["board"] < store.newest:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.02)
            feed.close()
            await sink.close()

    async def drain() -> set[str]:
        queue, keys = RabbitmqQueue(rabbitmq, name, SystemClock()), set[str]()
        while some := await queue.take(200, 1.0):
            keys |= {each.key for each in some}
            await queue.done(some)
        await queue.close()
        return keys

    async def main() -> tuple[Relay, set[str]]:
        relay = Relay(rabbitmq, rng)
        async with asyncio.timeout(300):
            await publish(relay)
            return relay, await drain()

    relay, keys = asyncio.run(main())

    assert relay.cuts >= 5
    assert keys == {f"{number:020d}" for number in range(1, store.newest + 1)}
