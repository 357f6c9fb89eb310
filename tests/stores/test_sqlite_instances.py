import asyncio
import resource
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from instances_contract import InstancesContract, Place, Tables, as_rows, assert_holds
from looping import in_loop
from raids import raid, rows, usual

from sanderling.stores.instances import InsertResult, Instances, InstancesError, InstancesFault, open_instances
from sanderling.stores.instances_store import InstanceStore, open_sqlite_instances
from sanderling.stores.sqlite_database import SqliteDatabase


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "instances.db"


@pytest.fixture
def place(path: Path) -> Place:
    @asynccontextmanager
    async def opens() -> AsyncIterator[Instances]:
        store = await open_instances(f"sqlite:{path}")
        yield store
        await store.close()

    async def tables() -> Tables:
        with closing(sqlite3.connect(path)) as db:
            return Tables(*(as_rows(name, db.execute(f"SELECT * FROM {name}")) for name in Tables._fields))  # noqa: S608 - ours

    async def wipe() -> None:
        with closing(sqlite3.connect(path)) as db, db:
            for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                db.execute(f"DELETE FROM {name}")  # noqa: S608 - ours

    async def sql(statement: str) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(statement)

    return Place(opens, tables, wipe, sql, f"sqlite:{path}")


class TestSqliteInstances(InstancesContract):
    pass


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file of ours may grow beyond `size`."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@in_loop
async def test_a_full_disk_is_the_stores_fault_and_leaves_nothing_half(place: Place) -> None:
    batch = rows(*usual(50))
    async with place.opens() as store:
        await store.keep(batch[:1])
        with full_disk(100_000), pytest.raises(InstancesError, match=r"disk is well and not full|disk is full") as told:
            await store.keep(batch)
        assert told.value.fault is InstancesFault.DOWN
        assert told.value.transient
        await assert_holds(place, batch[:1])

        assert await store.keep(batch) == InsertResult(49, 1)
    await assert_holds(place, batch)


@in_loop
async def test_a_file_that_another_program_holds_is_the_stores_fault(
    place: Place, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect: Any = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, **{**kwargs, "timeout": 0.05}))
    async with place.opens() as store:
        with closing(connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(InstancesError, match="is in use by another program") as told:
                await store.keep(rows(raid(1)))

        assert told.value.fault is InstancesFault.DOWN
        assert await store.keep(rows(raid(1))) == InsertResult(1, 0)


@in_loop
async def test_a_commit_is_on_disk_when_it_returns(place: Place) -> None:
    async with place.opens() as store:
        assert isinstance(store, InstanceStore)
        assert isinstance(store._database, SqliteDatabase)
        await store.keep(rows(raid(1)))
        assert store._database.db.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        assert store._database.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@in_loop
async def test_what_lies_there_is_packed(place: Place) -> None:
    (only,) = rows(raid(1))
    assert only.raw is not None
    large = only._replace(raw=only.raw._replace(data=b'{"values": 0}' * 5000))
    async with place.opens() as store:
        await store.keep([large])

        (row,) = (await place.tables()).raw_instance
        assert len(row.data) < 1000
        assert await store.raw(1) == b'{"values": 0}' * 5000


@in_loop
async def test_damage_to_what_the_api_said_is_said(place: Place, path: Path) -> None:
    async with place.opens() as store:
        await store.keep(rows(raid(1)))
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE raw_instance SET data = x'00112233'")

        with pytest.raises(InstancesError, match=r"instances.db has of instance 1 is damaged"):
            await store.raw(1)


@pytest.mark.parametrize("url", ["sqlite:", "file.db", "redis://host/0", ""])
def test_what_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(InstancesError, match="expected sqlite:PATH or postgresql://user@host"):
        asyncio.run(open_instances(url))


def test_the_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
    before = path.read_bytes()

    with pytest.raises(InstancesError, match=r"instances.db is no store of instances; choose another") as told:
        open_sqlite_instances(path)
    assert path.read_bytes() == before
    assert told.value.fault is InstancesFault.DOWN


def test_a_later_version_is_refused(path: Path) -> None:
    asyncio.run(open_sqlite_instances(path).close())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9")

    with pytest.raises(InstancesError, match=r"is of format 9, this version reads 2; use a newer version"):
        open_sqlite_instances(path)
