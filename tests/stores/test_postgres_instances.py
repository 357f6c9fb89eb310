import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from instances_contract import NOTHING, InstancesContract, Place, Tables, as_rows, assert_holds
from looping import in_loop
from raids import EPOCH, letter, member, raid, rows, usual
from storing import BATCH, store_letters
from wire import Wire

from sanderling.clock import SystemClock
from sanderling.stores import postgres_instances
from sanderling.stores.instances import (
    InsertResult,
    InstanceRows,
    Instances,
    InstancesError,
    InstancesFault,
    open_instances,
)
from sanderling.stores.queue import Depth
from sanderling.stores.sqlite_queue import SqliteQueue

LOCK = "SELECT pg_advisory_lock(1396788809, hashtext($1))"
WAITING = """SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 1396788809 AND NOT granted
    AND objid = (hashtext($1)::bigint & 4294967295)::oid"""


@pytest.fixture
def schema(postgres: str) -> Iterator[str]:
    name = f"sanderling_{uuid.uuid4().hex}"
    yield name

    async def drop() -> None:
        db = await asyncpg.connect(postgres)
        await db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        await db.close()

    asyncio.run(drop())


@pytest.fixture
def place(postgres: str, schema: str) -> Place:
    url = at(postgres, schema)

    async def tables() -> Tables:
        async with connected(postgres) as db:
            found = {name: await db.fetch(f"SELECT * FROM {schema}.{name}") for name in Tables._fields}  # noqa: S608 - ours
            return Tables(*(as_rows(name, found[name]) for name in Tables._fields))

    async def wipe() -> None:
        async with connected(postgres) as db:
            await db.execute(f"TRUNCATE {', '.join(f'{schema}.{name}' for name in Tables._fields)}")

    async def sql(statement: str) -> None:
        async with connected(postgres) as db:
            await db.execute(f"SET search_path = {schema}; {statement}")

    return Place(lambda: opened(url), tables, wipe, sql, url)


def at(url: str, schema: str) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}schema={schema}"


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Instances]:
    store = await open_instances(url)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    db = await asyncpg.connect(url)
    try:
        yield db
    finally:
        await db.close()


class TestPostgresInstances(InstancesContract):
    pass


# --- when it is gone ---


async def stuck(db: Any, schema: str) -> int:  # noqa: ANN401 - no types
    """The process of the server whose batch waits for the lock that we hold: all its rows are in, and not committed."""
    async with asyncio.timeout(300):
        while True:
            if pid := await db.fetchval(WAITING, schema):
                return int(pid)
            await asyncio.sleep(0.01)


@in_loop
async def test_a_backend_that_is_ended_in_the_middle_leaves_nothing_and_may_be_asked_again(
    place: Place, postgres: str, schema: str
) -> None:
    batch = rows(*usual(50))
    async with place.opens() as store, connected(postgres) as other:
        await other.execute(LOCK, schema)
        keeping = asyncio.ensure_future(store.keep(batch))
        await other.execute("SELECT pg_terminate_backend($1)", await stuck(other, schema))

        with pytest.raises(InstancesError) as told:
            await keeping
        assert told.value.fault is InstancesFault.DOWN
        assert await place.tables() == NOTHING
        await other.execute("SELECT pg_advisory_unlock_all()")

        assert await store.keep(batch) == InsertResult(50, 0)
    await assert_holds(place, batch)


@in_loop
async def test_a_wire_that_is_cut_in_the_middle_leaves_nothing_and_may_be_asked_again(
    place: Place, postgres: str, schema: str
) -> None:
    batch, wire = rows(*usual(50)), Wire(postgres)
    async with wire.laid(postgres) as url, opened(at(url, schema)) as store, connected(postgres) as other:
        await other.execute(LOCK, schema)
        keeping = asyncio.ensure_future(store.keep(batch))
        await stuck(other, schema)
        wire.cut()

        with pytest.raises(InstancesError, match="cannot be") as told:
            await keeping
        assert told.value.fault is InstancesFault.DOWN
        await other.execute("SELECT pg_advisory_unlock_all()")
        assert await store.keep(batch) == InsertResult(50, 0)
    await assert_holds(place, batch)


@in_loop
async def test_a_commit_of_which_we_never_heard_is_found_when_asked_again(
    place: Place, postgres: str, schema: str
) -> None:
    batch, wire = rows(*usual(50)), Wire(postgres)
    async with wire.laid(postgres) as url, opened(at(url, schema)) as store:
        wire.before = lambda data: b"COMMIT\0" in data and b"Z" in data  # the server's word that it is done
        with pytest.raises(InstancesError) as told:
            await store.keep(batch)
        wire.before = lambda _: False

        assert told.value.fault is InstancesFault.DOWN
        await assert_holds(place, batch)
        assert await store.keep(batch) == InsertResult(0, 50)
    await assert_holds(place, batch)


@in_loop
async def test_workers_go_on_when_it_is_there_again_and_no_letter_has_lost_a_try(
    place: Place, postgres: str, schema: str, tmp_path: Path
) -> None:
    raids, queue = usual(3 * BATCH), SqliteQueue(tmp_path / "queue.db", SystemClock())
    await queue.publish([letter(each) for each in raids])
    async with place.opens(), connected(postgres) as other:
        await other.execute(LOCK, schema)
        storing = asyncio.ensure_future(store_letters(queue, place.url, 3 * BATCH))
        for _ in range(3):
            await other.execute("SELECT pg_terminate_backend($1)", await stuck(other, schema))
        await other.execute("SELECT pg_advisory_unlock_all()")
        tally = (await storing).tally

    assert (tally.stored, tally.duplicates, tally.retried, tally.buried) == (3 * BATCH, 0, 0, 0)
    assert tally.outages >= 1
    assert tally.trouble == ""
    assert await queue.depth() == Depth(0, 0, 0, 0)
    await queue.close()
    await assert_holds(place, rows(*raids))


@in_loop
async def test_nobody_there_is_said_without_the_password() -> None:
    with pytest.raises(InstancesError, match=r"postgresql://127.0.0.1:1/x, schema public cannot be reached") as told:
        await open_instances("postgresql://reader:hunter2@127.0.0.1:1/x")

    assert told.value.fault is InstancesFault.DOWN
    assert "hunter2" not in f"{told.value!r}"


@in_loop
async def test_a_database_that_is_not_there_is_said(postgres: str) -> None:
    url = postgres.rpartition("/")[0] + "/nothing_of_that_name"

    with pytest.raises(InstancesError, match=r"nothing_of_that_name, schema public cannot be used: .*does not exist"):
        await open_instances(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:hunt/er2@host/x",
        "postgresql://reader:123/er2@host/x",
        "postgresql://reader:hunter2@host:port/x",
        "postgresql://reader:hunter2@host:99999/x",
        "postgresql://reader:hunter2@host/x#y",
    ],
)
def test_what_is_no_url_of_a_postgresql_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(InstancesError, match="the address of the PostgreSQL is no URL; expected") as told:
        asyncio.run(open_instances(url))

    assert not re.search("hunt|123|er2", str(told.value))


@pytest.mark.parametrize("schema", ["", "A", "a b", "a;b", 'a"', "1", "x" * 64])
def test_what_is_no_name_of_a_schema_is_refused(schema: str) -> None:
    with pytest.raises(InstancesError, match="is no schema; expected a name of a-z, 0-9 and _"):
        asyncio.run(open_instances(f"postgresql://127.0.0.1:1/x?schema={schema}"))


# --- what is there already ---


@in_loop
async def test_a_later_version_is_refused(place: Place, postgres: str, schema: str) -> None:
    async with place.opens(), connected(postgres) as db:
        await db.execute(f"UPDATE {schema}.instance_store SET version = 9")  # noqa: S608 - ours

    with pytest.raises(InstancesError, match="is of format 9, this version reads 2; use a newer version"):
        async with place.opens():
            pass


@in_loop
async def test_a_table_of_something_else_is_refused_and_left_alone(place: Place, postgres: str, schema: str) -> None:
    async with connected(postgres) as db:
        await db.execute(f"CREATE SCHEMA {schema} CREATE TABLE player (x text)")

        with pytest.raises(InstancesError, match=r"has a table player that is not ours; choose another with \?schema="):
            async with place.opens():
                pass

        tables = await db.fetch("SELECT table_name FROM information_schema.tables WHERE table_schema = $1", schema)
        assert [tuple(row) for row in tables] == [("player",)]


@in_loop
async def test_many_that_open_it_for_the_first_time_make_it_once(place: Place) -> None:
    async def use(number: int) -> None:
        async with place.opens() as store:
            await store.keep(rows(raid(number)))

    async with asyncio.TaskGroup() as group:
        for number in range(1, 9):
            group.create_task(use(number))

    assert len((await place.tables()).instance) == 8


@in_loop
async def test_two_schemas_do_not_see_each_other(place: Place, postgres: str, schema: str) -> None:
    other = f"{schema[:50]}_2"
    async with place.opens() as store, opened(at(postgres, other)) as second, connected(postgres) as db:
        await store.keep(rows(raid(1)))

        assert await second.latest() is None
        await db.execute(f"DROP SCHEMA {other} CASCADE")


@in_loop
async def test_two_that_change_the_same_statistics_by_different_raids_wait_for_each_other(
    place: Place, postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One arrives late and takes from player 3 a newcomer of raid 3, the other is another raid of that player."""
    monkeypatch.setitem(postgres_instances.SETTINGS, "application_name", schema)
    before = rows(raid(1, [member(3)], at=EPOCH), raid(3, [member(1), member(2), member(3)], at=EPOCH + 3))
    late, other = rows(raid(2, [member(1)], at=EPOCH + 2), raid(4, [member(3)], at=EPOCH + 4))
    async with place.opens() as store:
        await store.keep(before)
        lock = f"SELECT * FROM {schema}.player_stats FOR UPDATE"  # noqa: S608 - ours
        await keep_both(postgres, schema, lock, (store, store), ([late], [other]))
    await assert_holds(place, [*before, late, other])


@pytest.mark.parametrize("table", ["instance", "player"])
@in_loop
async def test_two_that_bring_the_same_rows_the_other_way_round_do_not_wait_in_a_ring(
    place: Place, postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setitem(postgres_instances.SETTINGS, "application_name", schema)
    if table == "instance":
        batches = rows(raid(1), raid(5), raid(2)), rows(raid(2), raid(5), raid(1))
        columns, values = "instance_id, api, skull_hashes, crawled", "5, 'bungie', '{}', now()"
    else:
        batches = rows(raid(1, [*map(member, (1, 5, 2))])), rows(raid(2, [*map(member, (2, 5, 1))]))
        columns = "membership_id, last_seen, membership_type, icon_path, display_name, global_display_name, "
        columns, values = f"{columns} global_display_name_code", f"{member(5).membership_id}, now(), 0, '', '', '', ''"
    async with place.opens() as one, place.opens() as two:
        lock = f"INSERT INTO {schema}.{table} ({columns}) VALUES ({values})"  # noqa: S608 - ours
        await keep_both(postgres, schema, lock, (one, two), batches)

    assert len((await place.tables()).instance) == (3 if table == "instance" else 2)


async def keep_both(
    url: str,
    schema: str,
    lock: str,
    stores: tuple[Instances, Instances],
    batches: tuple[list[InstanceRows], list[InstanceRows]],
) -> None:
    """Keep both, from the moment both wait for what `lock` holds, or for each other."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'"
    async with connected(url) as db, connected(url) as watch, asyncio.TaskGroup() as group:
        transaction = db.transaction()
        await transaction.start()
        await db.execute(lock)
        for store, batch in zip(stores, batches, strict=True):
            group.create_task(store.keep(batch))
        async with asyncio.timeout(300):
            while await watch.fetchval(waiting, schema) < 2:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
        await transaction.rollback()


# --- whose fault it is ---


@in_loop
async def test_who_waits_too_long_for_others_is_told_to_come_again(
    place: Place, postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_instances.SETTINGS, "lock_timeout", "50ms")
    async with place.opens() as store, connected(postgres) as other:
        await other.execute(LOCK, schema)

        with pytest.raises(InstancesError, match="is busy: canceling statement due to lock timeout") as told:
            await store.keep(rows(*usual(2)))
        assert told.value.fault is InstancesFault.BUSY
        assert told.value.transient
    assert await place.tables() == NOTHING


@in_loop
async def test_the_default_of_the_server_does_not_decide_what_a_statement_sees(
    place: Place, postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even that of one who would be sent away because another had changed the same players meanwhile."""
    monkeypatch.setitem(postgres_instances.SETTINGS, "default_transaction_isolation", "repeatable read")
    everything = rows(*usual(6))
    async with place.opens() as store, connected(postgres) as other:
        await other.execute(LOCK, schema)
        async with asyncio.TaskGroup() as group:
            for each in everything[:3]:
                group.create_task(store.keep([each]))
            await stuck(other, schema)
            await other.execute("SELECT pg_advisory_unlock_all()")
        await store.keep(everything)
    await assert_holds(place, everything)
