"""Where a polling store in PostgreSQL is tested: schemas of our own on a server, which go again."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import msgspec
from polling_play import SCHEMA, WALL, Place

from sanderling.stores.documents import Schema
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.postgres_polling import PollingConnections, open_postgres_polling
from sanderling.stores.postgres_polling_tables import OWN

EMPTIED = [name for name in OWN if name != "polling_meta"] + [table.name for table in SCHEMA.tables] + ["lease"]
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'"
TABLES = "SELECT count(*) FROM information_schema.tables WHERE table_schema = $1"


def at(url: str, schema: str) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}schema={schema}"


@asynccontextmanager
async def opened(url: str, schema: Schema | None = SCHEMA, source: str = "race") -> AsyncIterator[PollingStore]:
    store = await open_postgres_polling(url, schema, source)
    try:
        yield store
    finally:
        await store.close()


def link_of(store: PollingStore) -> PollingConnections:
    assert isinstance(store._database, PollingConnections)
    return store._database


def process_of(store: PollingStore) -> int:
    """The server's process behind whoever polls."""
    return int(link_of(store)._db.get_server_pid())


@asynccontextmanager
async def polling(url: str) -> AsyncIterator[PollingStore]:
    async with opened(url) as store:
        await store.claim(WALL)
        yield store


async def until_waiting(db: Any, process: int) -> None:  # noqa: ANN401 - asyncpg has no types
    async with asyncio.timeout(300):
        while not await db.fetchval(WAITING, process):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)


@asynccontextmanager
async def connected(url: str, **settings: str) -> AsyncIterator[Any]:
    db = await asyncpg.connect(url, server_settings=settings)
    try:
        yield db
    finally:
        await db.close()


@contextmanager
def fresh_schema(postgres: str) -> Iterator[str]:
    name = f"sanderling_{uuid.uuid4().hex}"
    yield name
    asyncio.run(drop(postgres, name))


async def drop(postgres: str, schema: str) -> None:
    async with connected(postgres) as db:
        await db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def place_in(postgres: str, schema: str) -> Place:
    async def sql(statement: str) -> list[tuple[Any, ...]]:
        async with connected(postgres, search_path=schema) as db:
            return [tuple(row) for row in await db.fetch(statement)]

    # What a crash of the server may undo is not what is tested.
    url = f"{at(postgres, schema)}&synchronous_commit=off"
    return Place(lambda of=SCHEMA, source="race": opened(url, of, source), sql, lambda: wipe(postgres, schema))


async def wipe(postgres: str, schema: str) -> None:
    """Make it as if nothing had ever been there. If the tables are the usual ones, it is enough to empty them."""
    async with connected(postgres, search_path=schema, synchronous_commit="off") as db:
        usual = await db.fetchval(TABLES, schema) == len(EMPTIED) + 1
        if usual and await db.fetchval("SELECT tables FROM polling_meta") == msgspec.json.encode(SCHEMA).decode():
            await db.execute("; ".join(f"DELETE FROM {name}" for name in reversed(EMPTIED)))  # noqa: S608 - ours
            await db.execute("DELETE FROM polling_edits; UPDATE polling_meta SET newest = 0")
        else:
            await drop(postgres, schema)
