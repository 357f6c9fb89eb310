"""Where the tables are: a SQLite file or a schema of PostgreSQL, with the same statements for both.

What stands in a statement as $1 is the first value. Reads do not wait for writes.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from sanderling.clock import Clock
from sanderling.files import Exit, FolderError
from sanderling.polling.tables import FORMAT, statements
from sanderling.stores.sqlite_file import SqliteFile

Values = Sequence[Any]
Statement = tuple[str, Sequence[Values]]  # for each of the values
_APPLICATION = 0x504F4C4C  # PRAGMA application_id of our files
_LEASE = 30.0  # seconds after which PostgreSQL takes a silent process for dead

_BEGIN = 'UPDATE stream SET "own" = 1'
_END = 'UPDATE stream SET "own" = 0'


class Database(Protocol):
    """What the store needs."""

    async def open(self) -> None:
        """Connect, and make the tables if there are none. Raises FolderError."""

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a query finds."""

    async def write(self, wanted: Sequence[Statement], *, by_hand: bool = False) -> None:
        """Carry out all statements in one transaction, on disk when this returns; `by_hand`: as people's edits."""

    async def close(self) -> None:
        """Disconnect."""


class SqliteDatabase:
    """A file, with a connection that writes, if it may, and one that reads."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._writer = SqliteFile(path, _APPLICATION)
        self._reader = SqliteFile(path, _APPLICATION, read_only=True)

    async def open(self) -> None:
        """Connect, and make the tables if there are none. Raises FolderError."""
        if self._read_only:
            await self._reader.open()
            return
        await self._writer.open()
        try:
            await self._writer.call(self._make)
            await self._reader.open()
        except BaseException:
            await self._writer.close()
            raise

    def _make(self) -> None:
        file = self._writer
        if file.db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            with file.transaction() as db:
                for each in statements("sqlite"):
                    db.execute(each)
                db.execute(f"PRAGMA application_id = {_APPLICATION}")
        _check_format(self._path, file.db.execute('SELECT "format" FROM stream').fetchone()[0])

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a query finds."""
        return await self._reader.call(lambda: self._reader.db.execute(_numbered(sql), values).fetchall())

    async def write(self, wanted: Sequence[Statement], *, by_hand: bool = False) -> None:
        """Carry out all statements in one transaction, on disk when this returns; `by_hand`: as people's edits."""

        def work() -> None:
            with self._writer.transaction() as db:
                if not by_hand:
                    db.execute(_BEGIN)
                for sql, rows in wanted:
                    db.executemany(_numbered(sql), rows)
                if not by_hand:
                    db.execute(_END)

        await self._writer.call(work)

    async def close(self) -> None:
        """Disconnect."""
        await self._reader.close()
        if not self._read_only:
            await self._writer.close()


def _numbered(sql: str) -> str:
    return sql.replace("$", "?")


def _check_format(place: object, found: int) -> None:
    if found != FORMAT:
        raise FolderError(f"{place} has format {found}, expected {FORMAT}", "use the release that wrote it")


class PostgresDatabase:
    """A schema, with a connection that writes and one that reads.

    The one that writes holds a lock on it, unless it is opened `beside` a scheduler, for what a person does.
    """

    def __init__(self, url: str, schema: str, clock: Clock, *, beside: bool = False) -> None:
        from sanderling.stores.postgres_link import PostgresLink, check_name  # noqa: PLC0415 - an extra

        check_name(schema)
        self._schema = schema
        self._beside = beside
        self._writer = PostgresLink(url, schema, clock, _LEASE)
        self._reader = PostgresLink(url, schema, clock, _LEASE)
        self._locked: object = None  # the connection that has the lock
        self._reads, self._writes = asyncio.Lock(), asyncio.Lock()  # a connection does one thing at a time

    async def open(self) -> None:
        """Connect, and make the tables if there are none. Raises FolderError."""
        await self._writer.open()
        await self._writer.call(self._make)
        await self._reader.open()

    async def _make(self, db: Any) -> None:  # noqa: ANN401 - asyncpg's connection
        await self._lock(db)
        async with db.transaction():
            await db.execute(f"CREATE SCHEMA IF NOT EXISTS {self._writer.schema}")
            names = {row[0] for row in await db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1",
                                                      self._schema)}  # fmt: skip
            if names and "stream" not in names:
                raise FolderError(f"{self._writer.place} holds something else", "choose another --schema")
            if not names:
                for each in statements("postgres"):
                    await db.execute(each)
        _check_format(self._writer.place, await db.fetchval('SELECT "format" FROM stream'))

    async def _lock(self, db: Any) -> None:  # noqa: ANN401
        if db is not self._locked and not self._beside:
            if not await db.fetchval("SELECT pg_try_advisory_lock(hashtextextended($1, 4))", self._schema):
                raise FolderError(
                    f"another scheduler works in {self._writer.place}",
                    "stop it, or choose another --schema",
                    Exit.LATER,
                )
            self._locked = db

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a query finds."""

        async def work(db: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
            return [tuple(row) for row in await db.fetch(sql, *values)]

        async with self._reads:
            return await self._reader.call(work)

    async def write(self, wanted: Sequence[Statement], *, by_hand: bool = False) -> None:
        """Carry out all statements in one transaction, on disk when this returns; `by_hand`: as people's edits."""

        async def work(db: Any) -> None:  # noqa: ANN401
            await self._lock(db)
            async with db.transaction():
                if not by_hand:
                    await db.execute(_BEGIN)
                for sql, rows in wanted:
                    await db.executemany(sql, rows)
                if not by_hand:
                    await db.execute(_END)

        async with self._writes:
            await self._writer.call(work)

    async def close(self) -> None:
        """Disconnect."""
        await self._reader.close()
        await self._writer.close()
