"""`polling` in a SQLite file: how it is opened, and who polls; any number of others look and edit.

Tricky bits:

- What must not be lost waits for the disk. That a target ran does not: the power may take the last quarter of a second
  of it, and then these run once more.
- Small pages. When targets are due in no order of their ids, each that is written back is on a page of its own, and
  all of that goes through the log: with 1 kB a page, a quarter of what it would be with the usual 4.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from sanderling.executor import Executor
from sanderling.stores.database import Work
from sanderling.stores.documents import Schema
from sanderling.stores.durable import FolderError, Lock
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_documents import Tables
from sanderling.stores.polling_lease import PolledElsewhereError
from sanderling.stores.polling_rows import check_names
from sanderling.stores.polling_store import PollingStore, raised
from sanderling.stores.sqlite_database import SqliteDatabase, plainly
from sanderling.stores.sqlite_file import BUSY_SECONDS, open_file, transaction
from sanderling.stores.sqlite_polling_tables import POLLING, prepare
from sanderling.stores.sqlite_polling_targets import SqlitePollingDialect

T = TypeVar("T")

POLLER_BUSY_SECONDS = 2.0  # that whoever polls waits for another process
PAGE_BYTES = 1024


async def open_sqlite_polling(path: Path, schema: Schema | None, source: str, executor: Executor) -> PollingStore:
    """The store in that file, made where there is none. Its work is done by `executor`. Raises PollingStoreError.

    Without a schema the file must be there, and its tables are used; without a source it may be of any.
    """
    database, tables = await executor(_open, path, schema, source, executor)
    return PollingStore(database, tables, SqlitePollingDialect())


def _open(path: Path, schema: Schema | None, source: str, executor: Executor) -> "tuple[SqlitePollingDatabase, Tables]":
    if schema is not None:
        check_names(schema)
    with plainly(path, raised):
        if schema is None and not path.exists():
            raise PollingStoreError(f"there is no {path}", transient=False)
        _make_file(path)
        db = open_file(path, POLLING)
        try:
            tables = prepare(db, path, schema, source)
        except BaseException:
            db.close()
            raise
    return SqlitePollingDatabase(path, db, executor, raised), tables


class SqlitePollingDatabase(SqliteDatabase):
    """Whoever polls holds the lock file beside it."""

    _lock: Lock | None = None

    async def edit(self, work: Work[T], *, durable: bool = True) -> T:
        return await self.write(work, durable=durable)

    async def take_over(self, work: Work[None]) -> None:
        await self._executor(self._take_over, work)

    async def hold(self, renewed: Callable[[], object]) -> None:
        """Return: the lock file is ours for as long as we live."""

    def may_send(self) -> bool:
        return self._lock is not None

    def _take_over(self, work: Work[None]) -> None:
        place = self._path.with_name(f"{self._path.name}-polls")
        with plainly(place, raised):
            try:
                lock = Lock(place)
            except FolderError:
                said = f"another process polls {self._path} (process {place.read_text().strip() or 'unknown'})"
                raise PolledElsewhereError(said) from None
        try:
            self._write(work, durable=True)
        except BaseException:
            lock.release()
            raise
        self._lock = lock
        # What is polled waits in memory, so it is better to know soon that somebody else has the file.
        self.db.execute(f"PRAGMA busy_timeout = {POLLER_BUSY_SECONDS * 1000:.0f}")

    def _close(self) -> None:
        super()._close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _make_file(path: Path) -> None:
    """If there is none yet, with small pages: that cannot be changed any more when it has tables."""
    if path.exists() and path.stat().st_size:  # an empty one is just being made by somebody else
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        with transaction(db):
            db.execute(f"PRAGMA application_id = {POLLING.application}")
