"""`events` in a SQLite file: any number of processes write, one at a time, and people look meanwhile.

Tricky bits:

- Two connections. People look through one that only reads, so that a long list holds up no batch.
- A batch waits for the disk. That a message was sent does not: the power may take the last of it, and then it is sent
  once more.
"""

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sanderling.stores import analytics_sqlite_writing as writing
from sanderling.stores.analytics import Batch, EventFilter, Kept, OutboxMessage
from sanderling.stores.analytics_questions import Dialect, Question, Row, bounded, meant_events, next_to_replay
from sanderling.stores.analytics_reading import AnalyticsReading, Budget
from sanderling.stores.analytics_rows import RefusedError, RehearsedError, rehearsal
from sanderling.stores.analytics_sqlite_tables import open_tables, plainly
from sanderling.stores.durable import FolderError, Lock
from sanderling.stores.sqlite_file import BUSY_SECONDS, LogBound, transaction
from sanderling.stores.sqlite_queue import Desk

P = ParamSpec("P")
T = TypeVar("T")

CACHE_BYTES, LOG_BYTES = 64 << 20, 64 << 20
DIALECT = Dialect(
    seconds="{0}",
    moment="{0}",
    # Rounded down, also before 1970.
    day=f"CAST({{0}} / {86_400.0} AS INTEGER) - ({{0}} < {86_400} * CAST({{0}} / {86_400.0} AS INTEGER))",
    keywords="json_each(keywords) AS item",
    keyword="""CAST(CASE item.type WHEN 'text' THEN item.value
        WHEN 'object' THEN json_extract(item.value, '$.keyword') END AS TEXT)""",
    aspect="""CAST(coalesce(CASE item.type WHEN 'object' THEN json_extract(item.value, '$.aspect') END, '') AS TEXT)""",
    numbered=lambda statement: statement,
)


async def open_sqlite_analytics(path: Path, desk: Desk) -> "SqliteAnalytics":
    """The store in that file, made where there is none. Its work is done by `desk`. Raises AnalyticsError."""
    return await desk(SqliteAnalytics, path, desk)


class SqliteAnalytics(AnalyticsReading):
    """Opened with `open_sqlite_analytics`."""

    dialect = DIALECT

    def __init__(self, path: Path, desk: Desk) -> None:
        self._path = path
        self._desk = desk
        self._writing, self._reading = threading.Lock(), threading.Lock()
        with plainly(path):
            self._db = open_tables(path)
            try:
                _set_up(self._db)
                self._log = LogBound(self._db, path, LOG_BYTES)
                self._reader = _reading(path)
            except BaseException:
                self._db.close()
                raise

    async def keep(self, batch: Batch) -> Kept:
        """Write all of it in one transaction, durably; nothing if the event was processed and is not replayed."""
        return await self._desk(self._keep, batch)

    async def rehearse(self, batch: Batch) -> None:
        """Write it under ids of its own and take it back: whether batches can be kept now."""
        await self._desk(self._rehearse, rehearsal(batch))

    async def replay(self, chosen: EventFilter, *, exchange: str, routing_key: str, most: int = 1_000) -> int:
        """Mark events and put their messages into the outbox, in one transaction; how many. Others may do so, too."""
        found = next_to_replay(meant_events(chosen, self.dialect), most)
        return await self._change("FULL", writing.replay, found, exchange, routing_key)

    async def forget_errors(self, before: float, most: int = 10_000) -> int:
        """Remove errors that are older, up to so many at a time; how many that were."""
        return await self._change("FULL", writing.forget_errors, before, bounded(most))

    async def forget_events(self, before: float, most: int = 10_000) -> int:
        """Remove records of events that were processed before, up to so many at a time; how many that were."""
        return await self._change("FULL", writing.forget_events, before, bounded(most))

    @asynccontextmanager
    async def claim(self) -> AsyncIterator[bool]:
        """Whether we may send from the outbox now: whoever holds the lock file beside the database may."""
        # Not at the desk: it waits for nobody, and who is cancelled while it is asked for there would keep it for ever.
        with plainly(self._path):
            lock = _locked(self._path.with_name(f"{self._path.name}-sending"))
        try:
            yield lock is not None
        finally:
            if lock:
                lock.release()

    async def add(self, messages: Sequence[OutboxMessage]) -> None:
        """Put them in, in one transaction."""
        if messages:
            await self._change("FULL", writing.add, messages)

    async def sent(self, numbers: Sequence[int]) -> None:
        """Forget these. The power may take the last of it: then they are sent once more."""
        if numbers:
            await self._change("NORMAL", writing.sent, numbers)

    @property
    def connections(self) -> int:
        """How many connections to it are open: one writes, one reads."""
        return 2

    async def close(self) -> None:
        """Let go."""
        await self._desk(self._close)

    def __repr__(self) -> str:
        return f"<SqliteAnalytics {self._path}>"

    async def _ask(self, *asked: Question) -> list[list[Row]]:
        return await self._desk(self._looked, asked)

    async def _change(
        self, synchronous: str, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **_: P.kwargs
    ) -> T:
        return await self._desk(self._changed, synchronous, work, *args)

    # --- at the desk ---

    def _keep(self, batch: Batch) -> Kept:
        try:
            return self._changed("FULL", writing.keep, batch)
        except RefusedError:
            return self._changed("FULL", writing.keep_carefully, batch)

    def _rehearse(self, batch: Batch) -> None:
        def work(db: sqlite3.Connection) -> None:
            writing.keep(db, batch)
            raise RehearsedError

        with suppress(RehearsedError, RefusedError):
            self._changed("FULL", work)

    def _changed(self, synchronous: str, work: Callable[..., T], *args: object) -> T:
        with self._writing, plainly(self._path):
            self._db.execute(f"PRAGMA synchronous = {synchronous}")
            self._log.look()
            with transaction(self._db):
                return work(self._db, *args)

    def _looked(self, asked: Sequence[Question]) -> list[list[Row]]:
        with self._reading, plainly(self._path), transaction(self._reader, "DEFERRED"):
            return [self._rows(each) for each in asked]

    def _rows(self, asked: Question) -> list[Row]:
        budget = Budget(str(self._path))
        with closing(self._reader.execute(asked.sql, asked.values)) as found:
            return [budget.spent(row) for row in found] if asked.wide else found.fetchall()

    def _close(self) -> None:
        with self._writing, self._reading, plainly(self._path):
            self._reader.close()
            self._db.close()


def _locked(path: Path) -> Lock | None:
    try:
        return Lock(path)
    except FolderError:  # another has it
        return None


def _set_up(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA cache_size = -{CACHE_BYTES >> 10}")


def _reading(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA query_only = ON")
    return db
