"""Records in a database beside the folder: `instance` and `instance_player` for the game, `record` for any API.

Each is written before the folder's commit, and again after a kill; what is there already stays as it is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec

from sanderling.files import Exit, FolderError
from sanderling.sequence.instances import INSTANCE, INSTANCE_PLAYER, rows_of
from sanderling.stores.sqlite_file import SqliteFile

_APPLICATION = 0x53516E32
TABLES = """
CREATE TABLE IF NOT EXISTS instance (
    instance_id BIGINT PRIMARY KEY, hash BIGINT NOT NULL, completed BOOLEAN NOT NULL, flawless BOOLEAN, fresh BOOLEAN,
    player_count INTEGER NOT NULL, date_started BIGINT NOT NULL, date_completed BIGINT NOT NULL,
    duration_seconds INTEGER NOT NULL, membership_type INTEGER NOT NULL, score INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS instance_player (
    instance_id BIGINT NOT NULL, membership_id BIGINT NOT NULL, completed BOOLEAN NOT NULL, finished BOOLEAN NOT NULL,
    time_played_seconds INTEGER NOT NULL, date_completed BIGINT NOT NULL, PRIMARY KEY (instance_id, membership_id));
CREATE TABLE IF NOT EXISTS record (id BIGINT PRIMARY KEY, record TEXT NOT NULL)
"""
_COLUMNS = {"instance": INSTANCE, "instance_player": INSTANCE_PLAYER, "record": ("id", "record")}
Tables = dict[str, list[tuple[Any, ...]]]


class DatabaseAway(Exception):  # noqa: N818 - it says what happened
    """The database cannot be reached now. The message says why."""


class RecordsDatabase(Protocol):
    """A database for records."""

    async def write(self, tables: Tables) -> None:
        """Write rows; those whose key is there stay as they are. Raises DatabaseAway."""

    async def latest(self, table: str) -> int | None:
        """The largest id of a table."""

    async def __aenter__(self) -> Self:
        """Connect, and make what is missing."""

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""


def tables_of(lines: Sequence[tuple[int, bytes]], *, game: bool) -> tuple[Tables, list[int]]:
    """The rows of records, and the ids of those that are no reports."""
    if not game:
        return {"record": [(number, line.decode()) for number, line in lines]}, []
    found: Tables = {"instance": [], "instance_player": []}
    bad = []
    for number, line in lines:
        try:
            instance, players = rows_of(number, msgspec.json.decode(line))
        except ValueError:
            bad.append(number)
            continue
        found["instance"].append(instance)
        found["instance_player"] += players
    return found, bad


def open_database(url: str) -> RecordsDatabase:
    """The database that is named. Raises FolderError."""
    if url.startswith(("postgres://", "postgresql://")):
        return PostgresRecords(url)
    return SqliteRecords(Path(url.removeprefix("sqlite:")))


class SqliteRecords:
    """A file of SQLite."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, _APPLICATION)

    async def __aenter__(self) -> Self:
        await self._file.open()

        def make() -> None:
            with self._file.transaction() as db:
                for statement in (*TABLES.split(";\n"), f"PRAGMA application_id = {_APPLICATION}"):
                    db.execute(statement)

        await self._file.call(make)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._file.close()

    async def write(self, tables: Tables) -> None:
        """Write rows; those whose key is there stay as they are."""

        def insert() -> None:
            with self._file.transaction() as db:
                for name, rows in tables.items():
                    marks = ", ".join("?" * len(_COLUMNS[name]))
                    db.executemany(f"INSERT OR IGNORE INTO {name} VALUES ({marks})", rows)  # noqa: S608 - our names

        await self._file.call(insert)

    async def latest(self, table: str) -> int | None:
        """The largest id of a table."""
        column = _COLUMNS[table][0]
        rows = f"SELECT max({column}) FROM {table}"  # noqa: S608 - our names
        found = await self._file.call(lambda: self._file.db.execute(rows).fetchone())
        return None if found is None else found[0]


class PostgresRecords:
    """A database of PostgreSQL, in the schema that its search path names."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: Any = None

    async def __aenter__(self) -> Self:
        try:
            import asyncpg  # noqa: PLC0415 - an extra
        except ImportError:
            raise FolderError("PostgreSQL needs asyncpg", 'pip install "sanderling[postgres]"') from None
        self._away = (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)
        try:
            self._pool = await asyncpg.create_pool(self._url, min_size=1, max_size=2, timeout=10)
            async with self._pool.acquire() as connection, connection.transaction():
                for statement in TABLES.split(";\n"):
                    await connection.execute(statement)
        except (*self._away, asyncpg.PostgresError) as error:
            said = f"PostgreSQL cannot be used: {type(error).__name__}: {error}"
            raise FolderError(said, "check that it runs and --database names it", Exit.LATER) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.terminate()

    async def write(self, tables: Tables) -> None:
        """Write rows; those whose key is there stay as they are. Raises DatabaseAway."""
        try:
            async with self._pool.acquire(timeout=10) as connection, connection.transaction():
                for name, rows in tables.items():
                    marks = ", ".join(f"${each}" for each in range(1, len(_COLUMNS[name]) + 1))
                    await connection.executemany(
                        f"INSERT INTO {name} VALUES ({marks}) ON CONFLICT DO NOTHING",  # noqa: S608 - our names
                        rows,
                    )
        except self._away as error:
            raise DatabaseAway(f"PostgreSQL: {type(error).__name__}: {error}") from None

    async def latest(self, table: str) -> int | None:
        """The largest id of a table."""
        async with self._pool.acquire(timeout=10) as connection:
            found = await connection.fetchval(f"SELECT max({_COLUMNS[table][0]}) FROM {table}")  # noqa: S608
        return None if found is None else int(found)
