"""The port to SQL databases: what SQLite and PostgreSQL do alike."""

import asyncio
import errno
import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from looping import in_loop
from postgres_polling_place import at, connected, fresh_schema

from sanderling.stores.database import (
    POSTGRES,
    SQLITE,
    Claim,
    ColumnType,
    Database,
    DatabaseTrouble,
    Insert,
    RefusalError,
    TableDefinition,
    Transaction,
    encoded,
)
from sanderling.stores.postgres_database import PostgresDatabase, numbered, pool_of
from sanderling.stores.postgres_server import read_url
from sanderling.stores.sqlite_database import SqliteDatabase, plainly, run

ID = ColumnType("INTEGER NOT NULL", "bigint NOT NULL")
TEXT = ColumnType("TEXT", "text", mark="nullif(?, '')", made="nullif({0}, '')")
LIST = ColumnType("TEXT", "jsonb", packed=encoded)
TIME = ColumnType("REAL", "timestamptz", travels="float8", made="to_timestamp({0})")
WORDS = TableDefinition("word", {"id": ID, "text": TEXT, "at": TIME}, ("id",))
PAIRS = TableDefinition("pair", {"left_one": ID, "right_one": ID, "sum": ID}, ("left_one", "right_one"))
LISTS = TableDefinition("list", {"id": ID, "all_of_it": LIST, "at": TIME}, ("id",))
READ = {
    each: f"SELECT id, text, {each.seconds.format('at')} FROM word WHERE id < 99 ORDER BY id"  # noqa: S608 - ours
    for each in (SQLITE, POSTGRES)
}


class StoreError(Exception):
    def __init__(self, message: str, trouble: DatabaseTrouble) -> None:
        super().__init__(message)
        self.trouble = trouble


class Listed(msgspec.Struct):
    number: int
    all_of_it: list[object]


@pytest.fixture(params=["sqlite", "postgres"])
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Any:  # noqa: ANN401 - what opens it
    @asynccontextmanager
    async def in_file() -> AsyncIterator[Database]:
        db = sqlite3.connect(tmp_path / "x.db", isolation_level=None, check_same_thread=False)
        for table in (WORDS, PAIRS, LISTS):
            db.execute(table.sqlite)
        database = SqliteDatabase(tmp_path / "x.db", db, None, StoreError)
        yield database
        await database.close()

    @asynccontextmanager
    async def on_server() -> AsyncIterator[Database]:
        async with connected(url) as db:
            await db.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}")
            for table in (WORDS, PAIRS, LISTS):
                await db.execute(table.postgres)
        address = read_url(at(url, schema), "", StoreError)
        pools = {name: pool_of(address, 2, {}) for name in ("read", "write", "claim")}
        for pool in pools.values():
            await pool
        database = PostgresDatabase(address, pools, StoreError, 2)
        yield database
        await database.close()

    if request.param == "sqlite":
        yield in_file
    else:
        url = request.getfixturevalue("postgres")
        with fresh_schema(url) as schema:
            yield on_server


async def words(database: Database) -> list[tuple[Any, ...]]:
    found = await database.read(lambda db: db.fetch(READ[db.dialect]))
    return [tuple(row) for row in found]


@in_loop
async def test_rows_go_in_and_out_alike(opens: Any) -> None:  # noqa: ANN401 - a fixture
    newer = WORDS.replace(newer=True)
    new = WORDS.insert("ON CONFLICT DO NOTHING RETURNING id")
    listed = Insert("list", {"id": ID, "all_of_it": LIST}, fields=("number", "all_of_it"), same={"at": TIME})

    async def write(db: Transaction) -> None:
        assert await db.insert(new, [(1, "", 1.5), (2, "b", 2.5)])
        assert [tuple(row) for row in await db.insert(new, [(2, "x", 9.0), (3, "c", -1.5)])] == [(3,)]
        assert await db.insert(newer, [(2, "a", 9.0), (3, "d", 0.0)]) == []
        await db.insert(listed, [Listed(1, [1, "é"]), Listed(2, [])], 5.5)
        for nothing in (new, newer, listed):
            assert await db.insert(nothing, []) == []

    async with opens() as database:
        await database.write(write)

        assert await words(database) == [(1, None, 1.5), (2, "b", 2.5), (3, "d", 0.0)]
        rows = await database.read(lambda db: db.fetch("SELECT all_of_it FROM list WHERE id < 99 ORDER BY id"))
        assert [msgspec.json.decode(row[0]) for row in rows] == [[1, "é"], []]


@in_loop
async def test_a_list_and_a_list_of_pairs_are_parameters(opens: Any) -> None:  # noqa: ANN401 - a fixture
    async def write(db: Transaction) -> None:
        await db.insert(PAIRS.insert(), [(one, other, one + other) for one in range(4) for other in range(4)])
        of_pairs = f"SELECT sum FROM {db.dialect.pairs} CROSS JOIN pair WHERE left_one = one AND right_one = other"  # noqa: S608
        found = await db.fetch(of_pairs, *db.dialect.given_pairs([(1, 2), (3, 3), (9, 9)]))
        assert sorted(row[0] for row in found) == [3, 6]
        gone = f"DELETE FROM pair WHERE {db.dialect.among.format('left_one')} AND right_one > ?"  # noqa: S608 - ours
        assert await db.execute(gone, [1, 3, 9], 1) == 4
        assert await db.execute(gone, [], 1) == 0

    async with opens() as database:
        await database.write(write)


@in_loop
async def test_what_is_refused_within_a_savepoint_is_undone_alone(opens: Any) -> None:  # noqa: ANN401 - a fixture
    async def offer(db: Transaction, row: tuple[int, str, float]) -> None:
        async with db.savepoint():
            await db.insert(WORDS.insert(), [(5, "taken back", 1.0)])
            await db.insert(WORDS.insert(), [row])

    async def write(db: Transaction) -> None:
        await db.insert(WORDS.insert(), [(1, "a", 1.0)])
        for bad in ((1, "again", 1.0), (2, "\ud800", 1.0), (2**70, "large", 1.0)):
            with pytest.raises(RefusalError):
                await offer(db, bad)
        async with db.savepoint():
            await db.insert(WORDS.insert(), [(6, "stays", 6.0)])

    async with opens() as database:
        await database.write(write)

        assert await words(database) == [(1, "a", 1.0), (6, "stays", 6.0)]


@pytest.mark.parametrize(
    ("bad", "trouble"),
    [((1, "again", 1.0), DatabaseTrouble.REFUSED), ((2, "\ud800", 1.0), DatabaseTrouble.REFUSED), (None, None)],
)
@in_loop
async def test_what_fails_leaves_nothing_and_is_told_once(
    opens: Any,  # noqa: ANN401
    bad: Any,  # noqa: ANN401
    trouble: DatabaseTrouble | None,
) -> None:
    async def write(db: Transaction) -> None:
        await db.insert(WORDS.insert(), [(2, "b", 2.0)])
        if bad is None:
            raise LookupError
        await db.insert(WORDS.insert(), [bad, (1, "again", 1.0)])

    async with opens() as database:
        await database.write(lambda db: db.insert(WORDS.insert(), [(1, "a", 1.0)]))

        with pytest.raises(StoreError if trouble else LookupError) as told:
            await database.write(write)
        assert getattr(told.value, "trouble", None) is trouble
        assert await words(database) == [(1, "a", 1.0)]


@in_loop
async def test_rows_may_be_read_one_by_one_and_not_to_the_end(opens: Any) -> None:  # noqa: ANN401 - a fixture
    async def read(db: Transaction) -> list[int]:
        found: list[int] = []
        async with aclosing(db.stream("SELECT id FROM word WHERE id > ? ORDER BY id", 10)) as rows:
            async for (number,) in rows:
                found.append(number)
                if len(found) == 60:
                    break
        return found

    async with opens() as database:
        await database.write(lambda db: db.insert(WORDS.insert(), [(each, "x", 0.0) for each in range(100)]))

        assert await database.read(read, together=True) == [*range(11, 71)]


@in_loop
async def test_one_at_a_time_has_a_claim(opens: Any) -> None:  # noqa: ANN401 - a fixture
    claim, other = Claim("x", 1), Claim("y", 2)
    async with opens() as database:
        async with database.claim(claim) as first, database.claim(other) as beside:
            assert (first, beside) == (True, True)
        for _ in range(2):
            async with database.claim(claim) as first, database.claim(claim) as second:
                assert (first, second) == (True, False)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [("a = ? AND b = ?", "a = $1 AND b = $2"), ("?2 ?1 ?2", "$2 $1 $2"), ("$1", "$1"), ("", "")],
)
def test_parameters_are_numbered(statement: str, expected: str) -> None:
    assert numbered(statement) == expected


def test_whoever_waits_for_something_else_in_a_file_is_told() -> None:
    with pytest.raises(RuntimeError, match="waited for something else than the database"):
        run(asyncio.sleep(0))


def of_sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (of_sqlite(sqlite3.SQLITE_FULL), DatabaseTrouble.FULL),
        (of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), DatabaseTrouble.AWAY),
        (of_sqlite(sqlite3.SQLITE_IOERR_WRITE), DatabaseTrouble.FAILED),
        (of_sqlite(sqlite3.SQLITE_CORRUPT), DatabaseTrouble.BROKEN),
        (of_sqlite(sqlite3.SQLITE_READONLY), DatabaseTrouble.AMISS),
        (OSError(errno.ENOSPC, "x"), DatabaseTrouble.FULL),
        (OSError(errno.EIO, "x"), DatabaseTrouble.FAILED),
        (OSError(errno.EACCES, "x"), DatabaseTrouble.AMISS),
        (sqlite3.IntegrityError("x"), DatabaseTrouble.REFUSED),
        (OverflowError("x"), DatabaseTrouble.REFUSED),
    ],
)
def test_an_error_of_a_file_means(error: Exception, trouble: DatabaseTrouble, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as told, plainly(tmp_path, StoreError):
        raise error
    assert told.value.trouble is trouble
