"""One row a post, one row an error, one transaction a batch; in SQLite, and in PostgreSQL where it is there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from events.test_work import item, rows_of
from kit.postgres import new_name, shared_postgres

from sanderling.clock import SystemClock
from sanderling.events.store import EventStore, PostgresEvents, RowsRefused, SqliteEvents, StoreAway
from sanderling.events.work import Rows
from sanderling.files import FolderError

EARLY, LATE, LATEST = (f"2025-12-0{day}T00:00:00Z" for day in (1, 2, 3))
FAILED = {"fetch_status": "error", "error_code": "TIMEOUT"}


def batch(number: int, *items: Any) -> Rows:
    rows = rows_of(list(items))
    assert rows.envelope is not None
    rows.envelope.identity = rows.envelope.event_id = f"event-{number}"
    for place, row in enumerate(rows.errors):
        row[12] = f"event-{number}#{place}"
    return rows


@asynccontextmanager
async def postgres_store(url: str = "", **size: int) -> AsyncIterator[tuple[PostgresEvents, str]]:
    base = shared_postgres().url
    name = new_name()
    admin = await asyncpg.connect(base)
    await admin.execute(f'CREATE DATABASE "{name}"')
    await admin.close()
    url = base.rpartition("/")[0] + "/" + name
    store = PostgresEvents(url, SystemClock(), size.get("pool", 3), size.get("overflow", 2))
    try:
        yield store, url
    finally:
        await store.close()


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[EventStore]:
    if kind == "sqlite":
        store = SqliteEvents(folder / "events.db")
        await store.open()
        yield store
        await store.close()
        return
    async with postgres_store() as (postgres, _):
        await postgres.open()
        yield postgres


BOTH = pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.real)])


async def status(store: EventStore, one: str = "a") -> Any:
    found = await store.read("SELECT fetch_status, content_text FROM post_analytics WHERE id = $1", one)
    assert len(found) == 1
    return tuple(found[0])


@BOTH
async def test_a_post_is_its_latest_success_or_its_latest_error(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        steps = [
            (item("a", crawled_at=EARLY, **FAILED), ("error", "")),
            (item("a", {"text": "one"}, crawled_at=EARLY), ("success", "one")),
            (item("a", crawled_at=LATEST, **FAILED), ("success", "one")),  # an error never replaces a success
            (item("a", {"text": "three"}, crawled_at=LATEST), ("success", "three")),
            (item("a", {"text": "two"}, crawled_at=LATE), ("success", "three")),  # nor does what is older
        ]
        for number, (each, expected) in enumerate(steps):
            assert await store.keep("m", batch(number, each), 1.0)
            assert await status(store) == expected
        assert await store.read("SELECT count(*) FROM crawl_errors") == [(2,)]


@BOTH
async def test_a_batch_is_stored_once_and_an_error_item_is_one_row(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        rows = batch(1, item("a"), item("b", **FAILED), 17, {**item("c"), "comments": [{"id": "1", "text": "x"}]})

        assert await store.begin("m", 1.0) == 1
        assert await store.begin("m", 1.0) == 2
        assert await store.keep("m", rows, 1.0)
        assert not await store.keep("m", rows, 1.0)

        assert await store.known("event-1")
        assert not await store.known("event-2")
        for table, number in (("post_analytics", 3), ("crawl_errors", 2), ("post_comments", 1), ("event_attempts", 0)):
            assert await store.read(f"SELECT count(*) FROM {table}") == [(number,)]


@BOTH
async def test_posts_of_two_projects_are_two_and_those_of_nobody_one(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        for number, job in enumerate(("p-brand-0", "q-brand-0", "", "")):
            rows = batch(number, item("a"))
            rows.posts[0][1] = job.partition("-")[0] or None
            await store.keep("m", rows, 1.0)

        assert await store.read("SELECT count(*) FROM post_analytics") == [(3,)]


@BOTH
async def test_tries_are_counted_until_they_are_forgotten(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        await store.begin("m", 1.0)
        await store.end("m")
        assert await store.begin("m", 1.0) == 1
        assert await store.begin("n", 1.0) == 1


@pytest.mark.real
async def test_what_alone_is_refused_is_an_error_and_the_rest_is_stored() -> None:
    async with postgres_store() as (store, _):
        await store.open()
        rows = batch(1, item("a"), item("b"), item("c"))
        rows.posts[1][5] = "FAR TOO LONG A MOOD"

        assert await store.keep("m", rows, 1.0)

        assert await store.read("SELECT id FROM post_analytics ORDER BY id") == [("a",), ("c",)]
        ((one, code),) = await store.read("SELECT content_id, error_code FROM crawl_errors")
        assert (one, code) == ("b", "DATABASE_ERROR")
        rows = batch(2, item("d", **FAILED))
        rows.errors[0][3] = "a platform of far too many letters"
        with pytest.raises(RowsRefused):
            await store.keep("m", rows, 1.0)


@pytest.mark.real
async def test_five_at_once_never_wait_in_a_ring() -> None:
    async with postgres_store() as (store, _):
        await store.open()
        items = [item(str(number)) for number in range(40)]

        async def keep(number: int) -> None:
            await store.keep(str(number), batch(number, *(items if number % 2 else items[::-1])), 1.0)

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(keep(number))
        assert await store.read("SELECT count(*) FROM post_analytics") == [(40,)]


@pytest.mark.real
async def test_what_cannot_be_used_is_said_in_one_sentence() -> None:
    async with postgres_store() as (store, url):
        with pytest.raises(FolderError, match="allows 60"):
            await PostgresEvents(url, SystemClock(), 100, 10).open()
        db = await asyncpg.connect(url)
        await db.execute("CREATE TABLE post_analytics (id int)")
        with pytest.raises(FolderError, match="sanderling events migrate"):
            await store.open()
        await db.execute("DROP TABLE post_analytics")
        await store.open()
        await store.close()
        await db.execute("UPDATE sanderling_events_version SET version_num = '0099'")
        with pytest.raises(FolderError, match="version 0099, expected 0001"):
            await PostgresEvents(url, SystemClock(), 1, 0).open()
        await db.close()
    away = PostgresEvents("postgres://postgres@127.0.0.1:1/x", SystemClock(), 1, 0)
    with pytest.raises(FolderError) as raised:
        await away.open()
    assert raised.value.code == 75


@pytest.mark.real
async def test_a_server_that_goes_is_away_and_nothing_else() -> None:
    async with postgres_store() as (store, url):
        await store.open()
        db = await asyncpg.connect(url)
        await store.begin("m", 1.0)
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sanderling events'"
        await db.execute(end)
        await db.close()
        tries = 0
        for _ in range(10):  # each connection of the pool may find out for itself
            with suppress(StoreAway):
                tries = tries or await store.begin("n", 1.0)
        assert tries == 1


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events.db").write_bytes(b"no database" * 100)
    with pytest.raises(FolderError):
        asyncio.run(SqliteEvents(tmp_path / "events.db").open())
