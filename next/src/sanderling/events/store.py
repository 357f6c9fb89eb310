"""Where the rows are: a SQLite file in the folder, or PostgreSQL. A batch is one transaction.

Messages are known by what they name (`identity`), so none is stored twice; how often one was begun is counted before
its work begins, in the database that all consumers share.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sanderling.clock import Clock
from sanderling.events.tables import (
    ADDED,
    INSERT_ERROR,
    INSERT_EVENT,
    MADE,
    POST_KEY,
    TABLES,
    UPSERT_COMMENT,
    VERSION,
    VERSION_TABLE,
    as_datetime,
    create,
    time_places,
    upsert_post,
)
from sanderling.events.work import Rows
from sanderling.files import Exit, FolderError
from sanderling.outcome import Code
from sanderling.redact import redact
from sanderling.stores.sqlite_file import SqliteFile

T = TypeVar("T")
Values = Sequence[Any]
_APPLICATION = 0x45766E74
_BEGIN = """INSERT INTO event_attempts (message, tries, since) VALUES ($1, 1, $2)
    ON CONFLICT (message) DO UPDATE SET tries = event_attempts.tries + 1 RETURNING tries"""
_END = "DELETE FROM event_attempts WHERE message = $1"


class StoreAway(Exception):  # noqa: N818 - it says what happened
    """The database cannot be used now, whatever the message. The message says why."""


class RowsRefused(Exception):  # noqa: N818 - the same
    """The database does not take these rows, now or later."""


class EventStore(Protocol):
    """What the loop needs of a database."""

    async def open(self) -> None:
        """Connect, and make the tables if there are none. Raises FolderError."""

    async def begin(self, message: str, wall: float) -> int:
        """Count that a message is begun; how often it was, this time included. Raises StoreAway."""

    async def end(self, message: str) -> None:
        """Forget its tries: it is done, or was not finished by no fault of its own. Raises StoreAway."""

    async def known(self, identity: str) -> bool:
        """Whether the rows of that batch are stored. Raises StoreAway."""

    async def keep(self, message: str, rows: Rows, wall: float) -> bool:
        """Store a batch; False if another process was faster. Raises StoreAway and RowsRefused."""

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a query finds; $1 is its first value. Raises StoreAway."""

    async def close(self) -> None:
        """Disconnect."""


def _event_row(rows: Rows, wall: float) -> list[Any]:
    envelope = rows.envelope
    assert envelope is not None  # noqa: S101 - a batch has one
    owner = rows.posts[0][1] if rows.posts else rows.errors[0][1] if rows.errors else None
    return [envelope.identity, envelope.event_id, envelope.job_id, owner, envelope.platform, envelope.mode, wall,
            *(sum(each[place] for each in rows.counts.values()) for place in (0, 1))]  # fmt: skip


def _as_errors(rows: Rows, places: dict[int, str], wall: float) -> list[list[Any]]:
    """Rows of errors for posts that the database refuses."""
    envelope = rows.envelope
    assert envelope is not None  # noqa: S101 - the same
    return [
        [post[0], post[1], envelope.job_id, post[2], Code.DATABASE_ERROR.value, "storage",
         f"the database refuses it: {why}"[:500], None, None, wall, envelope.event_id, None,
         f"{envelope.identity}#{post[0]}", True]
        for place, why in places.items() for post in [rows.posts[place]]
    ]  # fmt: skip


class SqliteEvents:
    """A file in the folder, for one process; others read."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, _APPLICATION)
        self._reader = SqliteFile(path, _APPLICATION, read_only=True)
        self._upsert = _numbered(upsert_post(POST_KEY))

    async def open(self) -> None:
        """Connect, and make the tables if there are none. Raises FolderError."""
        await self._file.open()

        def make() -> None:
            if not self._file.db.execute("SELECT 1 FROM sqlite_schema").fetchone():
                with self._file.transaction() as db:
                    for table in TABLES:
                        for statement in create("sqlite", table):
                            db.execute(statement)
                    db.execute(f"PRAGMA application_id = {_APPLICATION}")

        await self._file.call(make)
        await self._reader.open()

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            return await self._file.call(work)
        except FolderError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError | sqlite3.InterfaceError | sqlite3.DataError):
                raise RowsRefused(str(error.__cause__)) from None
            if error.code is Exit.LATER:
                raise StoreAway(str(error)) from None
            raise

    async def begin(self, message: str, wall: float) -> int:
        """Count that a message is begun; how often it was, this time included."""

        def work() -> int:
            with self._file.transaction() as db:
                return int(db.execute(_numbered(_BEGIN), (message, wall)).fetchone()[0])

        return await self._call(work)

    async def end(self, message: str) -> None:
        """Forget its tries."""
        await self._call(lambda: self._file.db.execute(_numbered(_END), (message,)))

    async def known(self, identity: str) -> bool:
        """Whether the rows of that batch are stored."""
        return bool(await self.read("SELECT 1 FROM processed_events WHERE identity = $1", identity))

    async def keep(self, message: str, rows: Rows, wall: float) -> bool:
        """Store a batch."""

        def work() -> bool:
            with self._file.transaction() as db:
                new = db.execute(_numbered(INSERT_EVENT), _event_row(rows, wall)).rowcount
                if new:
                    db.executemany(self._upsert, rows.posts)
                    db.executemany(_numbered(UPSERT_COMMENT), rows.comments)
                    db.executemany(_numbered(INSERT_ERROR), rows.errors)
                db.execute(_numbered(_END), (message,))
            return bool(new)

        return await self._call(work)

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a query finds."""
        return await self._reader.call(lambda: self._reader.db.execute(_numbered(sql), values).fetchall())

    async def close(self) -> None:
        """Disconnect."""
        await self._reader.close()
        await self._file.close()


def _numbered(sql: str) -> str:
    return sql.replace("$", "?")


class PostgresEvents:
    """A database that any number of consumers share. A connection is opened when it is needed."""

    def __init__(self, url: str, clock: Clock, pool: int, overflow: int) -> None:
        self._url = url
        self._clock = clock
        self._size = pool + overflow
        self._pool: Any = None
        self._upsert = ""

    async def open(self) -> None:
        """Connect, and make the tables if there are none. Raises FolderError."""
        try:
            import asyncpg  # noqa: PLC0415 - an extra
        except ImportError:
            raise FolderError("PostgreSQL needs asyncpg", 'pip install "sanderling[postgres]"') from None
        self._away = (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError,
                      asyncpg.OperatorInterventionError, asyncpg.InsufficientResourcesError,
                      asyncpg.InternalClientError)  # fmt: skip # the last: what came makes no sense after a cut
        self._again = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
        self._refused = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
        self._error = asyncpg.PostgresError
        place = redact(self._url)
        try:
            self._pool = await asyncpg.create_pool(
                self._url, min_size=1, max_size=self._size, timeout=10, command_timeout=60,
                server_settings={"application_name": "sanderling events", "timezone": "UTC"},
            )  # fmt: skip
            try:
                async with self._pool.acquire() as db:
                    await self._check(db, place)
            except BaseException:
                await self.close()
                raise
        except (*self._away, asyncpg.PostgresError, ValueError) as error:
            said = f"{place} cannot be used: {type(error).__name__}: {error}"
            raise FolderError(said, "check that it runs, and what --database names", Exit.LATER) from None

    async def _check(self, db: Any, place: str) -> None:  # noqa: ANN401 - asyncpg's connection
        most = int(await db.fetchval("SHOW max_connections"))
        if self._size > most:
            raise FolderError(
                f"the pool is {self._size} connections with its overflow, and {place} allows {most}",
                "set --database-pool-size and --database-max-overflow lower",
            )
        async with db.transaction():
            await db.execute("SELECT pg_advisory_xact_lock(4575736)")  # several consumers may start at once
            version = None
            if await db.fetchval("SELECT to_regclass($1)", VERSION_TABLE):
                version = await db.fetchval(f"SELECT version_num FROM {VERSION_TABLE}")
            there = await db.fetchval("SELECT to_regclass('post_analytics')")
            if version is None and there is None:
                await make_postgres(db.execute)
                version = VERSION
        if version is None:
            raise FolderError(
                f"post_analytics of {place} has no column {ADDED[0].name}",
                f"bring it up to date with: sanderling events migrate --database '{place}'",
            )
        if version != VERSION:
            raise FolderError(f"the tables of {place} have version {version}, expected {VERSION}",
                              "use the release that made them, or its migration")  # fmt: skip
        key = await db.fetchval("SELECT 1 FROM pg_index WHERE indrelid = 'post_analytics'::regclass AND indisprimary")
        self._upsert = upsert_post("id" if key else POST_KEY)

    async def _call(self, work: Callable[[Any], Awaitable[T]]) -> T:
        for tries in range(5):
            try:
                async with self._pool.acquire(timeout=10) as db:
                    return await work(db)
            except self._again:
                await self._clock.sleep(0.05 * 2**tries)
            except self._refused as error:
                raise RowsRefused(f"{type(error).__name__}: {error}") from None
            except (*self._away, self._error) as error:
                raise StoreAway(f"PostgreSQL: {type(error).__name__}: {error}") from None
        raise StoreAway("PostgreSQL: deadlocks, five times in a row")

    async def begin(self, message: str, wall: float) -> int:
        """Count that a message is begun; how often it was, this time included."""
        return int(await self._call(lambda db: db.fetchval(_BEGIN, message, as_datetime(wall))))

    async def end(self, message: str) -> None:
        """Forget its tries."""
        await self._call(lambda db: db.execute(_END, message))

    async def known(self, identity: str) -> bool:
        """Whether the rows of that batch are stored."""
        return bool(await self.read("SELECT 1 FROM processed_events WHERE identity = $1", identity))

    async def keep(self, message: str, rows: Rows, wall: float) -> bool:
        """Store a batch. What alone is refused becomes a row of errors."""
        try:
            return await self._call(lambda db: self._keep(db, message, rows, wall, alone=False))
        except RowsRefused:
            return await self._call(lambda db: self._keep(db, message, rows, wall, alone=True))

    async def _keep(self, db: Any, message: str, rows: Rows, wall: float, *, alone: bool) -> bool:  # noqa: ANN401
        async with db.transaction():
            new = await db.execute(INSERT_EVENT, *_timed("processed_events", [_event_row(rows, wall)])[0])
            if new.endswith(" 1"):
                errors, refused = rows.errors, dict[int, str]()
                if alone:
                    for place, post in enumerate(_timed("post_analytics", rows.posts)):
                        try:
                            async with db.transaction():
                                await db.execute(self._upsert, *post)
                        except self._refused as error:
                            refused[place] = str(error)
                    errors = [*errors, *_as_errors(rows, refused, wall)]
                else:
                    await db.executemany(self._upsert, _timed("post_analytics", rows.posts))
                gone = {tuple(rows.posts[place][:3]) for place in refused}
                comments = [each for each in rows.comments if (each[2], each[0], each[1]) not in gone]
                if comments:
                    await db.executemany(UPSERT_COMMENT, _timed("post_comments", comments))
                if errors:
                    await db.executemany(INSERT_ERROR, _timed("crawl_errors", errors))
            await db.execute(_END, message)
        return bool(new.endswith(" 1"))

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a query finds."""
        return [tuple(row) for row in await self._call(lambda db: db.fetch(sql, *values))]

    async def close(self) -> None:
        """Disconnect."""
        if self._pool is not None:
            try:
                async with asyncio.timeout(5):
                    await self._pool.close()
            except TimeoutError:
                self._pool.terminate()


async def make_postgres(execute: Callable[[str], Awaitable[object]]) -> None:
    """Make all tables, and note their version."""
    for table in TABLES:
        for statement in create("postgres", table):
            await execute(statement)
    await execute(f"COMMENT ON TABLE post_analytics IS '{MADE}'")
    await execute(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) PRIMARY KEY)")
    await execute(f"INSERT INTO {VERSION_TABLE} VALUES ('{VERSION}')")


def _timed(table: str, rows: Sequence[Values]) -> list[list[Any]]:
    """Rows with their times as PostgreSQL takes them."""
    places = time_places(table)
    found = [list(row) for row in rows]
    for row in found:
        for place in places:
            row[place] = as_datetime(row[place])
    return found
