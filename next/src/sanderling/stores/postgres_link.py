"""Connections to PostgreSQL: opened with checks, made anew when they are lost, every error in plain words."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg
from asyncpg import Connection

from sanderling.clock import Clock
from sanderling.files import Exit, FolderError

T = TypeVar("T")

# What says that the connection is gone, and nothing about the statement.
LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InternalClientError,  # what came makes no sense after what was cut off
)
# The server undid the transaction, and it may go well now.
_UNDONE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_UNDONE_TIMES = 10
_END_OWN = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE usename = current_user AND application_name = $1 AND pid <> pg_backend_pid()"""
_OLDEST = 140_000  # of the server: client_connection_check_interval
CONNECT_SECONDS = 10.0
AWAY_SECONDS = 600.0  # that a server is waited for
_LONGEST_NAME = 63


class PostgresLink:
    """One connection to a schema of a database, used for one thing at a time."""

    def __init__(self, url: str, name: str, clock: Clock, lease: float) -> None:
        self.schema = quoted(name)
        self.place = f'"{name}" in PostgreSQL at {_address(url)}'
        self.label = ""  # of its session, for operators, and for others to end it when we are dead
        self.losses = 0  # how often the connection was lost
        self.patience = AWAY_SECONDS  # with a server that is away
        self.away = ""  # why the server cannot be reached now; empty: it can
        self._url = url
        self._clock = clock
        self._milliseconds = str(round(lease * 1000))
        self._connection: Connection | None = None
        self._closing = False
        self._lost_at: float | None = None  # when it was first

    async def open(self) -> None:
        """Connect, at the first time; raises FolderError if the server cannot be reached."""
        try:
            await self.ready()
        except (*LOST, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise self.explained(error) from error

    async def connect(self) -> Connection:
        """A new connection, with the settings that all of ours have."""
        connection = await asyncpg.connect(
            self._url, timeout=CONNECT_SECONDS, statement_cache_size=200, max_cached_statement_lifetime=0
        )
        try:
            settings = {
                "search_path": self.schema,
                # A commit that was answered is on disk, whatever the server, the database or the role say.
                "synchronous_commit": "on",
                # Plans from when a table was empty, or for an array of one, would be wrong ever after.
                "plan_cache_mode": "force_generic_plan",
                "enable_seqscan": "off",
                "jit": "off",
                "default_transaction_isolation": "read committed",
                "statement_timeout": "0",
                "lock_timeout": "0",
                # So that nothing which a dead process had locked stays locked.
                "idle_in_transaction_session_timeout": self._milliseconds,
                "client_connection_check_interval": self._milliseconds,
                "tcp_user_timeout": self._milliseconds,
                "tcp_keepalives_idle": "10",
                "tcp_keepalives_interval": "5",
                "tcp_keepalives_count": "4",
                "application_name": self.label,
            }
            calls = ", ".join(f"set_config('{name}', ${number}, false)" for number, name in enumerate(settings, 1))
            if connection.get_server_version()[0] * 10_000 >= _OLDEST:
                await connection.execute(f"SELECT {calls}", *settings.values())
            if self.label:
                # The server may not have heard that our last connection is gone, and keeps what it had locked.
                await connection.execute(_END_OWN, self.label)
            await connection.set_type_codec(
                "uuid", schema="pg_catalog", encoder=bytes, decoder=bytes, format="binary"
            )  # fmt: skip
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def check(self, read_only: bool, db: Connection) -> None:  # noqa: FBT001 - its one flag
        """Raise FolderError if a ledger would lose something here, or be slow for ever."""
        version = db.get_server_version()
        if version[0] * 10_000 < _OLDEST:
            raise self._refused(f"is version {version[0]}", "use PostgreSQL 14 or newer")
        if await self._is_shared(db):
            raise self._refused(
                "is behind a pooler that gives each transaction another session",
                "name the server itself, or a pool in session mode",
            )
        if read_only:
            return
        if await db.fetchval("SHOW transaction_read_only") == "on":
            raise self._refused("is read-only", "name the primary server, or a role that may write")
        if await db.fetchval("SHOW fsync") != "on":
            raise self._refused("runs with fsync = off, and loses what it stored when the power fails", "turn it on")
        if await db.fetchval("SHOW autovacuum") != "on":
            raise self._refused("runs with autovacuum = off, and would slow down for ever", "turn it on")

    async def _is_shared(self, db: Connection) -> bool:
        """Whether a pooler stands between us and the server, and our session is not ours alone."""
        own = await db.fetchval("SELECT pg_backend_pid()")
        if own == db.get_server_pid():
            return False
        other = await self.connect()  # a pooler made up the number; does it give its session to others?
        try:
            for _ in range(5):
                async with other.transaction():
                    if await other.fetchval("SELECT pg_backend_pid()") == own:
                        return True
                    async with asyncio.timeout(CONNECT_SECONDS):
                        if await db.fetchval("SELECT pg_backend_pid()") != own:
                            return True
        finally:
            other.terminate()
        return False

    def _refused(self, found: str, advice: str) -> FolderError:
        return FolderError(f"PostgreSQL at {_address(self._url)} {found}", advice)

    async def ready(self) -> Connection:
        """The connection, made anew if it was lost."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await self.connect()
        return self._connection

    async def name_session(self, label: str, db: Connection) -> None:
        """Name the session, this one and those that follow it."""
        self.label = label
        await db.execute("SELECT set_config('application_name', $1, false)", label)

    async def call(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """What `work` returns, called again for as long as the connection is lost meanwhile."""
        pause, undone = 0.1, 0
        while True:
            try:
                answer = await work(await self.ready())
            except _UNDONE as error:
                undone += 1
                if undone == _UNDONE_TIMES:
                    raise self.explained(error) from error
            except (*LOST, asyncpg.InterfaceError) as error:
                lost = self._connection is None or self._connection.is_closed() or isinstance(error, LOST)
                if not lost or isinstance(error, asyncpg.ClientConfigurationError):
                    raise self.explained(error) from error  # our own mistake
                self.losses += 1
                self._lost_at = self._clock.now() if self._lost_at is None else self._lost_at
                if self._closing or self._clock.now() - self._lost_at >= self.patience:
                    raise self.explained(error) from error
                self.away = (
                    f"PostgreSQL at {_address(self._url)} is away and waited for ({error or type(error).__name__})"
                )
                self.drop()
                await self._clock.sleep(pause)
                pause = min(5.0, 2 * pause)
            except (asyncpg.PostgresError, ValueError) as error:
                raise self.explained(error) from error
            else:
                self.away, self._lost_at = "", None
                return answer

    def drop(self) -> None:
        """Let whatever waits for an answer wait no longer: the connection is taken for dead."""
        if self._connection is not None:
            self._connection.terminate()

    async def close(self, farewell: str = "", *values: Any) -> None:  # noqa: ANN401 - of a statement
        """End, with a last statement if the server is there to hear it."""
        self._closing = True
        if self._connection is not None and not self._connection.is_closed():
            with suppress(*LOST, asyncpg.PostgresError, asyncpg.InterfaceError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    if farewell:
                        await self._connection.execute(farewell, *values)
                    await self._connection.close()
        self.drop()

    def explained(self, error: Exception) -> FolderError:
        """What PostgreSQL or the way to it said, in plain words."""
        where = f"PostgreSQL at {_address(self._url)}"
        match error:
            case asyncpg.InvalidAuthorizationSpecificationError():
                return FolderError(f"{where} does not let us in ({error})", "check the user and the password")
            case asyncpg.InvalidCatalogNameError():
                return FolderError(f"{where} has no database of that name", "create it, or check the spelling")
            case asyncpg.ReadOnlySQLTransactionError():
                return FolderError(f"{where} is read-only", "name the primary server, or a role that may write")
            case asyncpg.InsufficientPrivilegeError():
                return FolderError(f"{where} does not allow it ({error})", "let this role create the schema, or own it")
            case asyncpg.DiskFullError():
                return FolderError(
                    f"the disk of {where} is full",
                    "nothing that was stored is lost; free some space and run the same command again",
                    Exit.LATER,
                )
            case asyncpg.DataCorruptedError() | asyncpg.IndexCorruptedError():
                return FolderError(f"{self.place} is damaged ({error})", "restore it from a backup")
            case asyncpg.UndefinedTableError() | asyncpg.UndefinedColumnError():
                return FolderError(f"{self.place} lacks tables ({error})", "restore it, or choose another name")
            case asyncpg.ClientConfigurationError() | ValueError():
                return FolderError(f"{where} is no address: {error}", "expected postgres://USER@HOST:5432/DATABASE")
            case asyncpg.TooManyConnectionsError():
                advice = "raise max_connections, or end other clients, and run the same command again"
                return FolderError(f"{where} has no connection left", advice, Exit.LATER)
        later = (*LOST, *_UNDONE, asyncpg.InsufficientResourcesError, asyncpg.LockNotAvailableError)
        if isinstance(error, later):
            found = str(error) or type(error).__name__
            advice = "nothing that was stored is lost; run the same command again when it is back"
            return FolderError(f"{where} cannot be used now ({found})", advice, Exit.LATER)
        return FolderError(f"cannot use {self.place}: {error}")


def check_name(name: str) -> None:
    """Raise FolderError unless a schema may have this name."""
    if not name or len(name.encode()) > _LONGEST_NAME or "\0" in name or name.startswith("pg_"):
        raise FolderError(f"{name!r} cannot be the name of a schema", f"use 1 to {_LONGEST_NAME} bytes, and not pg_…")


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _address(url: str) -> str:
    """Host and database of a URL, without its secrets."""
    try:
        parts = urlsplit(url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        return "an address that cannot be read"


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[Sequence[Any]]:
    """Rows as one array a column, for `unnest`."""
    return list(zip(*rows, strict=True)) if rows else [()] * width
