"""`polling` in a SQLite file: targets, rows, changes and settings; one process polls, others look and edit.

Tricky bits:

- Two connections. People look through one that only reads, so that a long list holds up no document.
- What must not be lost waits for the disk. That a target ran does not: the power may take the last quarter of a second
  of it, and then these run once more.
- Small pages. When targets are due in no order of their ids, each that is written back is on a page of its own, and
  all of that goes through the log: with 1 kB a page, a quarter of what it would be with the usual 4.
"""

import errno
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sanderling.stores import sqlite_polling_control as control
from sanderling.stores import sqlite_polling_documents as documents
from sanderling.stores import sqlite_polling_targets as targets
from sanderling.stores.documents import Row, Schema
from sanderling.stores.durable import FULL, FolderError, Lock, plainly
from sanderling.stores.polling import (
    Change,
    Counts,
    Edits,
    Field,
    Known,
    PollingStoreError,
    Query,
    Ran,
    Reconciliation,
    Span,
    Target,
    Told,
)
from sanderling.stores.polling_rows import check_document, check_names, checked_fields, checked_seconds
from sanderling.stores.sqlite_file import BUSY_SECONDS, LogBound, open_file, transaction
from sanderling.stores.sqlite_polling_tables import POLLING, prepare
from sanderling.stores.sqlite_queue import Desk

P = ParamSpec("P")
T = TypeVar("T")
Changes = list[Change]  # within the class, `list` is a method
Work = Callable[Concatenate[sqlite3.Connection, P], T]

POLLER_BUSY_SECONDS = 2.0  # that whoever polls waits for another process
PAGE_BYTES = 1024
CACHE_BYTES, LOG_BYTES = 64 << 20, 64 << 20
# What passes by itself, or when somebody makes room.
PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


async def open_sqlite_polling(path: Path, schema: Schema | None, source: str, desk: Desk) -> "SqlitePolling":
    """The store in that file, made where there is none. Its work is done by `desk`. Raises PollingStoreError.

    Without a schema the file must be there, and its tables are used; without a source it may be of any.
    """
    return await desk(SqlitePolling, path, schema, source, desk)


class SqlitePolling:
    """Opened with `open_sqlite_polling`."""

    def __init__(self, path: Path, schema: Schema | None, source: str, desk: Desk) -> None:
        self._path = path
        self._desk = desk
        self._lock: Lock | None = None
        self._writing, self._reading = threading.Lock(), threading.Lock()
        if schema is not None:
            check_names(schema)
        with _plainly(path):
            if schema is None and not path.exists():
                raise PollingStoreError(f"there is no {path}", transient=False)
            _make_file(path)
            self._db = open_file(path, POLLING)
            try:
                _set_up(self._db)
                self._log = LogBound(self._db, path, LOG_BYTES)
                self._tables = prepare(self._db, path, schema, source)
                self._reader = _reading(path)
            except BaseException:
                self._db.close()
                raise

    # --- for whoever polls ---

    async def claim(self, wall: float) -> None:
        """Be the one who polls."""
        await self._desk(self._claim, wall)

    async def due(self, after: tuple[float, int], until: float, most: int) -> list[Target]:
        """Those that are wanted and due."""
        return await self._run(targets.due, after, until, most)

    async def find(self, kind: str, source_id: str) -> Target | None:
        """The one of that name."""
        return await self._run(targets.find, kind, source_id)

    async def write(self, runs: Sequence[Ran]) -> None:
        """Write these back. The power may take the last of them."""
        if runs:
            await self._note(targets.write, runs)

    async def take_edits(self, wall: float) -> Edits:
        """What others changed."""
        return await self._desk(self._take_edits, wall)

    async def shift(self, seconds: float) -> None:
        """Move all times that are to come."""
        await self._change(targets.shift, seconds)

    # --- for discovery ---

    async def known(self) -> list[Known]:
        """All of them."""
        return await self._look(targets.known)

    async def apply(self, plan: Reconciliation, wall: float) -> None:
        """Do what discovery plans."""
        if any(plan):
            await self._change(targets.apply, plan, wall)

    async def fetched(self) -> set[tuple[str, str]]:
        """Event and kind of those that ever went well."""
        return await self._look(targets.fetched)

    # --- documents and changes ---

    async def keep(self, told: Told) -> list[Change]:
        """Store what differs."""
        return await self._desk(self._keep, told)

    async def rows(self, table: str, *, event: str | None = None, after: str = "", most: int = 1000) -> list[Row]:
        """Rows of a table. Raises KeyError if there is none of that name."""
        return await self._look(documents.rows, self._tables.known[table], event, after, most)

    async def purge(self, wall: float) -> dict[str, int]:
        """Remove all rows and targets."""
        return await self._change(documents.purge, self._tables, wall)

    async def changes(self, after: int, most: int) -> list[Change]:
        """The next ones after a number."""
        return await self._look(documents.changes, after, most)

    async def span(self) -> Span:
        """From where to where they go."""
        return await self._look(documents.span)

    async def trim(self, keep: int) -> int:
        """Forget all but the last."""
        return await self._note(documents.trim, keep)

    # --- for people ---

    async def change(self, kind: str, source_id: str, fields: Mapping[Field, bool | float | int | None]) -> bool:
        """Set what an admin may set. Raises ValueError for what cannot be set."""
        return await self._change(control.change, kind, source_id, checked_fields(fields))

    async def promote(self, query: Query, seconds: float) -> int:
        """Ask for all that a query means, not only for a page of them. Raises ValueError."""
        return await self._change(control.promote, query, checked_seconds(seconds))

    async def count(self, wall: float) -> Counts:
        """How many there are."""
        return await self._look(control.count, wall)

    async def settings(self) -> dict[str, str]:
        """All of them."""
        return await self._look(control.settings)

    async def position(self, name: str) -> int | None:
        """How far a subscriber is."""
        return await self._look(control.position, name)

    async def advance(self, name: str, seq: int) -> None:
        """Note how far it is. The power may take the last of it: then it is told once more."""
        await self._note(control.advance, name, seq)

    # Last, since these are the names of types.

    async def set(self, key: str, value: str | None) -> None:
        """Write a setting; None removes it."""
        await self._change(control.put, key, value)

    async def list(self, query: Query) -> "list[Target]":
        """A page of targets."""
        return await self._look(control.listed, query)

    async def close(self) -> None:
        """Let go."""
        await self._desk(self._close)

    def __repr__(self) -> str:
        return f"<SqlitePolling {self._path}>"

    # --- at the desk ---

    async def _run(self, work: Work[P, T], *args: P.args, **_: P.kwargs) -> T:
        """Have it done with the connection that writes, where each statement is by itself."""
        return await self._desk(self._ran, work, *args)

    async def _change(self, work: Work[P, T], *args: P.args, **_: P.kwargs) -> T:
        """All of it or nothing, and on disk."""
        return await self._desk(self._changed, "FULL", work, *args)

    async def _note(self, work: Work[P, T], *args: P.args, **_: P.kwargs) -> T:
        """All of it or nothing; on disk with what must be there next."""
        return await self._desk(self._changed, "NORMAL", work, *args)

    async def _look(self, work: Work[P, T], *args: P.args, **_: P.kwargs) -> T:
        """Have it done with the connection that only reads, at one moment."""
        return await self._desk(self._looked, work, *args)

    def _ran(self, work: Callable[..., T], *args: object) -> T:
        with self._writing, _plainly(self._path):
            return work(self._db, *args)

    def _changed(self, synchronous: str, work: Callable[..., T], *args: object) -> T:
        with self._writing, _plainly(self._path):
            self._db.execute(f"PRAGMA synchronous = {synchronous}")
            self._log.look()
            with transaction(self._db):
                return work(self._db, *args)

    def _looked(self, work: Callable[..., T], *args: object) -> T:
        with self._reading, _plainly(self._path), transaction(self._reader, "DEFERRED"):
            return work(self._reader, *args)

    def _keep(self, told: Told) -> Changes:
        check_document(told.document)  # before anybody has to wait for it
        return self._changed("FULL", documents.keep, self._tables, told)

    def _take_edits(self, wall: float) -> Edits:
        return self._changed("FULL", targets.take_edits, wall) if self._ran(targets.any_edits) else Edits()

    def _claim(self, wall: float) -> None:
        place = self._path.with_name(f"{self._path.name}-polls")
        with _plainly(place):
            try:
                lock = Lock(place)
            except FolderError:
                said = f"another process polls {self._path} (process {place.read_text().strip() or 'unknown'})"
                raise PollingStoreError(said, transient=False) from None
        try:
            self._changed("FULL", targets.clamp, wall)
        except BaseException:
            lock.release()
            raise
        self._lock = lock
        # What is polled waits in memory, so it is better to know soon that somebody else has the file.
        with _plainly(self._path):
            self._db.execute(f"PRAGMA busy_timeout = {POLLER_BUSY_SECONDS * 1000:.0f}")

    def _close(self) -> None:
        with self._writing, self._reading, _plainly(self._path):
            self._reader.close()
            self._db.close()
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


def _set_up(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA cache_size = -{CACHE_BYTES >> 10}")


def _reading(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA query_only = ON")
    return db


@contextmanager
def _plainly(path: Path) -> Iterator[None]:
    """Turn whatever the disk or SQLite raises into a PollingStoreError."""
    try:
        with plainly(path), _refusals(path):
            yield
    except FolderError as error:
        passes = _passes(error.__cause__)
        raise PollingStoreError(error.found if passes else str(error), transient=passes) from error


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError) as error:
        raise PollingStoreError(f"{path} refuses it: {error}", transient=False) from error


def _passes(cause: BaseException | None) -> bool:
    """Whether the same may go well later."""
    if isinstance(cause, OSError):
        return cause.errno in FULL or cause.errno == errno.EIO
    return getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in PASSING
