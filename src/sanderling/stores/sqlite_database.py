"""A SQLite file as a `Database`: one connection writes, one reads; both are used by the thread of a executor.

People look through the connection that only reads, so that a long list holds up no batch.
"""

import errno
import sqlite3
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sanderling.executor import Executor, in_threads
from sanderling.stores.database import (
    SQLITE,
    UNWRITABLE,
    Claim,
    DatabaseTrouble,
    First,
    Insert,
    Raised,
    RefusalError,
    Row,
    Transaction,
    Work,
    encoded,
)
from sanderling.stores.durable import FULL, FolderError, Lock
from sanderling.stores.durable import plainly as plainly_of_disk
from sanderling.stores.sqlite_file import BUSY_SECONDS, LogBound, transaction

T = TypeVar("T")

MEMORY_BYTES = 64 << 20
REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, *UNWRITABLE)
# A full disk and other programs pass by themselves, or when somebody makes room. The others may be about one page of
# the file, or one statement.
TROUBLES = {
    sqlite3.SQLITE_FULL: DatabaseTrouble.FULL,
    sqlite3.SQLITE_BUSY: DatabaseTrouble.AWAY,
    sqlite3.SQLITE_LOCKED: DatabaseTrouble.AWAY,
    sqlite3.SQLITE_IOERR: DatabaseTrouble.FAILED,
    sqlite3.SQLITE_ERROR: DatabaseTrouble.BROKEN,
    sqlite3.SQLITE_CORRUPT: DatabaseTrouble.BROKEN,
    sqlite3.SQLITE_NOMEM: DatabaseTrouble.BROKEN,
}
PASSING = (DatabaseTrouble.AWAY, DatabaseTrouble.FULL, DatabaseTrouble.FAILED)


@contextmanager
def plainly(path: Path, raised: Raised) -> Iterator[None]:
    """Turn whatever the disk or SQLite raises into the error of the store."""
    try:
        with plainly_of_disk(path):
            try:
                yield
            except REFUSALS as error:
                raise raised(f"{path} refuses it: {error}", DatabaseTrouble.REFUSED) from error
    except FolderError as error:
        trouble = _trouble(error.__cause__)
        # What passes is tried again by whoever runs, and who does not run is told what to do.
        raise raised(error.found if trouble in PASSING else str(error), trouble) from error


def _trouble(cause: BaseException | None) -> DatabaseTrouble:
    if isinstance(cause, OSError):
        code = sqlite3.SQLITE_FULL if cause.errno in FULL else sqlite3.SQLITE_IOERR if cause.errno == errno.EIO else 0
    else:
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    return TROUBLES.get(code, DatabaseTrouble.AMISS)


class SqliteTransaction:
    """Statements over one connection. They are done when they return, and nothing waits."""

    dialect = SQLITE
    unfit: tuple[type[Exception], ...] = (sqlite3.DataError,)

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    async def fetch(self, statement: str, *values: object) -> list[Row]:
        return self.db.execute(statement, _bound(values)).fetchall()

    async def stream(self, statement: str, *values: object) -> AsyncGenerator[Row, None]:
        with closing(self.db.execute(statement, _bound(values))) as found:
            for row in found:
                yield row

    async def execute(self, statement: str, *values: object) -> int:
        return self.db.execute(statement, _bound(values)).rowcount

    async def execute_many(self, statement: str, rows: Iterable[Any]) -> None:
        self.db.executemany(statement, rows)

    async def insert(self, into: Insert, rows: Iterable[Any], *same: object) -> list[Row]:
        values = into.values(rows)
        if same:
            values = [(*row, *same) for row in values]
        if not into.returns:
            await self.execute_many(into.sqlite, values)
            return []
        return [row for each in values for row in self.db.execute(into.sqlite, each).fetchall()]  # type: ignore[arg-type]  # the same

    async def lock(self, number: int) -> None:
        """Nobody else writes meanwhile."""

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        self.db.execute("SAVEPOINT piece")
        try:
            yield
        except REFUSALS as error:
            self.db.execute("ROLLBACK TO piece")
            self.db.execute("RELEASE piece")
            raise RefusalError(str(error) or type(error).__name__) from error
        self.db.execute("RELEASE piece")


def connection_of(db: Transaction) -> sqlite3.Connection:
    """The connection of a transaction, for what only SQLite does."""
    if not isinstance(db, SqliteTransaction):
        raise TypeError(f"{db!r} is no transaction of SQLite")
    return db.db


def _bound(values: Sequence[object]) -> Sequence[Any]:
    """A list is one parameter: to ask for each of its values takes twice as long."""
    return [encoded(value) if type(value) is list else value for value in values]


class SqliteDatabase:
    """A file that was opened with `sqlite_file.open_file`. Without `executor` it has a thread of its own."""

    dialect = SQLITE
    connections = 2  # one writes, one reads

    def __init__(
        self,
        path: Path,
        db: sqlite3.Connection,
        executor: Executor | None,
        raised: Raised,
        *,
        memory: int = MEMORY_BYTES,
    ) -> None:
        self.place = str(path)
        self.db = db
        self._path, self._raised = path, raised
        self._threads = ThreadPoolExecutor(1, path.stem)
        self._executor = executor or in_threads(self._threads)
        self._writing, self._reading = threading.Lock(), threading.Lock()
        try:
            with plainly(path, raised):
                _set_up(db, memory)
                self._log = LogBound(db, path, memory)
                self._reader = _open_reader(path)
        except BaseException:
            db.close()
            raise

    async def read(self, work: Work[T], *, together: bool = False) -> T:  # noqa: ARG002 - it always is
        return await self._executor(self._read, work)

    async def write(self, work: Work[T], *, durable: bool = True, first: First = None) -> T:
        """Do it in one transaction, which is on disk then. Without `durable` the power may take the last of it."""
        return await self._executor(self._write, work, durable, first)

    async def peek(self, work: Work[T]) -> T:
        """Read over the connection that writes, so that nobody who looks at a long list is in the way."""
        return await self._executor(self._peek, work)

    @asynccontextmanager
    async def claim(self, what: Claim) -> AsyncIterator[bool]:
        # Not by the executor: it waits for nobody, and who is cancelled while it is asked for there would keep it.
        with plainly(self._path, self._raised):
            lock = _locked(self._path.with_name(f"{self._path.name}-{what.name}"))
        try:
            yield lock is not None
        finally:
            if lock:
                lock.release()

    async def close(self) -> None:
        await self._executor(self._close)
        self._threads.shutdown()

    # --- at the executor ---

    def _read(self, work: Work[T]) -> T:
        with self._reading, plainly(self._path, self._raised), transaction(self._reader, "DEFERRED"):
            return run(work(SqliteTransaction(self._reader)))

    def _write(self, work: Work[T], durable: bool, first: First = None) -> T:  # noqa: FBT001 - a executor passes no names
        if first:
            first()
        with self._writing, plainly(self._path, self._raised):
            self._log.look()
            self.db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with transaction(self.db):
                return run(work(SqliteTransaction(self.db)))

    def _peek(self, work: Work[T]) -> T:
        with self._writing, plainly(self._path, self._raised):
            return run(work(SqliteTransaction(self.db)))

    def _close(self) -> None:
        with self._writing, self._reading, plainly(self._path, self._raised):
            self._reader.close()
            self.db.close()


def run(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns, which must not wait for anything but this database."""
    try:
        work.send(None)
    except StopIteration as end:
        done: T = end.value
        return done
    work.close()
    raise RuntimeError(f"{work!r} waited for something else than the database")


def _locked(path: Path) -> Lock | None:
    try:
        return Lock(path)
    except FolderError:  # another has it
        return None


def _set_up(db: sqlite3.Connection, memory: int) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA cache_size = -{memory >> 10}")


def _open_reader(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA query_only = ON")
    return db
