"""Where records go besides the folder: what arrives there, what is away, and what is broken."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import aio_pika
import asyncpg
import pytest
from aiohttp import web
from kit.clickhouse import HttpClickhouse
from kit.postgres import FaultyWay, new_name, shared_postgres
from sequence.test_description import envelope, report

from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError
from sanderling.sequence.opening import open_run
from sanderling.sequence.options import SequenceOptions, StoreOptions
from sanderling.sequence.queue_store import QueueStorer
from sanderling.sequence.retries import Reason
from sanderling.stores.rabbitmq import OutgoingMessage, QueuePublisher

pytestmark = pytest.mark.real
URL = "amqp://guest:guest@127.0.0.1:5672/"
STORE, RETRY = f"test store {os.getpid()}", f"test retry {os.getpid()}"
LAST = 260
HIDDEN = frozenset({50, 51})


async def answer(request: web.Request) -> web.Response:
    number = int(request.match_info["id"])
    if number in HIDDEN:
        return web.json_response(envelope(12))
    return web.json_response(envelope(1653) if number > LAST else envelope(1, report(number)))


@asynccontextmanager
async def world() -> AsyncIterator[str]:
    """The game's API with 261 raids, and queues that nobody else uses."""
    app = web.Application()
    app.router.add_get("/Platform/Destiny2/Stats/PostGameCarnageReport/{id}/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
        async with await aio_pika.connect(URL) as connection, connection.channel() as channel:
            for name in (STORE, RETRY, f"{STORE}.dead"):
                await channel.queue_delete(name)


def options(out: Path, base: str, **more: object) -> SequenceOptions:
    return SequenceOptions(
        api="destiny2", base=base, out=out, begin=0, private=True, rps=200.0, store_queue=STORE,
        retry_queue=RETRY, **more,
    )  # fmt: skip


def test_records_go_through_a_queue_that_fails_into_postgresql_and_clickhouse(tmp_path: Path) -> None:
    schema = new_name("places").replace(" ", "_")
    postgres = shared_postgres()
    postgres.execute(f'CREATE SCHEMA "{schema}"')
    rows = f"{postgres.url}?search_path={schema}"

    async def act(server: HttpClickhouse) -> None:
        async with asyncio.timeout(100):
            await follow_and_store(server)

    async def follow_and_store(server: HttpClickhouse) -> None:
        way = FaultyWay(5672, Random(0))
        async with world() as base, way, QueuePublisher(URL) as publisher:
            url = way.url.replace("postgres://postgres", "amqp://guest:guest").replace("/postgres", "/")
            async with open_run(options(tmp_path / "out", base, queue=url), SystemClock()) as run:
                work = asyncio.create_task(run.run())
                while run.figures.stored < 40:
                    await asyncio.sleep(0.02)
                way.is_down = True
                way.cut()
                while not run.storing.trouble:
                    await asyncio.sleep(0.02)
                assert any("RabbitMQ" in each for each in run.report().troubles)
                assert run.state.position.next <= run.figures.stored + 60
                way.is_down = False
                while run.state.position.next <= LAST or await publisher.count(RETRY):  # ids are taken back
                    await asyncio.sleep(0.05)
                missed = await run.parts.store.missed()
                run.stop()
                await work
            assert {each.low: each.reason for each in missed if each.low <= LAST} == dict.fromkeys(
                HIDDEN, Reason.HIDDEN
            )
            broken = [b"", b"{", b'{"id": "x", "record": {}}', b'{"id": "5"}', b"\xff", b"[1]"]
            await publisher.publish(STORE, [OutgoingMessage(each) for each in broken])
            stored = StoreOptions(queue=URL, store_queue=STORE, database=rows, raw=server.address, once=True)
            assert await QueueStorer(stored, SystemClock()).run() >= LAST + 1 - len(HIDDEN)
            assert await publisher.count(STORE) == 0
            assert await publisher.count(f"{STORE}.dead") == len(broken)

    with HttpClickhouse(tmp_path) as server:
        asyncio.run(act(server))
        raw = {int(number) for (number,) in server.rows("SELECT instance_id FROM raw_instance FINAL")}

    async def read(connection: asyncpg.Connection) -> tuple[set[int], int, int]:
        await connection.execute(f'SET search_path = "{schema}"')
        found = {each["instance_id"] for each in await connection.fetch("SELECT instance_id FROM instance")}
        clears = await connection.fetchval("SELECT sum(clears) FROM player_stats")
        return found, await connection.fetchval("SELECT count(*) FROM instance_character_weapon"), int(clears)

    instances, weapons, clears = postgres.run(read)
    assert instances == raw == set(range(LAST + 1)) - HIDDEN
    assert weapons == clears == len(instances)


@pytest.mark.parametrize(
    "place",
    [
        {"queue": "amqp://guest:guest@127.0.0.1:9/"},
        {"database": "postgres://postgres@127.0.0.1:9/postgres"},
        {"raw": "127.0.0.1:9"},
    ],
    ids=lambda place: next(iter(place)),
)
def test_a_place_that_is_away_at_the_start(tmp_path: Path, place: dict[str, str]) -> None:
    async def act() -> None:
        async with open_run(options(tmp_path, "http://127.0.0.1:9", **place), SystemClock()):
            pass

    with pytest.raises(FolderError) as error:
        asyncio.run(act())
    assert error.value.code is Exit.LATER
