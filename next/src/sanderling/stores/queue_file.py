"""Queues of messages in a SQLite file, for one consumer, and for any number of processes that add to them.

Parked and dead messages of a queue lie in queues beside it, whose names begin with its own.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from sanderling.files import make_folder
from sanderling.stores.sqlite_file import SqliteFile

FILE = "queue.db"
_APPLICATION = 0x45765175
_TABLE = """CREATE TABLE message (id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, body BLOB NOT NULL,
    file TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '')"""
_INDEX = "CREATE INDEX message_queue ON message (queue, id)"
_INSERT = "INSERT INTO message (queue, body, file) VALUES (?1, ?2, ?3)"


class QueueFile:
    """The queues of a folder. Every change is on disk when its call returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = SqliteFile(folder / FILE, _APPLICATION)

    async def __aenter__(self) -> Self:
        make_folder(self._folder)
        await self._file.open()

        def make() -> None:
            with self._file.transaction() as db:
                if not db.execute("SELECT 1 FROM sqlite_schema").fetchone():
                    for each in (_TABLE, _INDEX, f"PRAGMA application_id = {_APPLICATION}"):
                        db.execute(each)

        try:
            await self._file.call(make)
        except BaseException:
            await self._file.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._file.close()

    async def put(self, queue: str, bodies: Sequence[bytes] = (), files: Sequence[Path] = ()) -> None:
        """Add messages, and such that stand for files."""
        rows = [*((queue, body, "") for body in bodies), *((queue, b"", str(path.absolute())) for path in files)]

        def work() -> None:
            with self._file.transaction() as db:
                db.executemany(_INSERT, rows)

        await self._file.call(work)

    async def next(self, queue: str, after: int, number: int | None = None) -> tuple[int, bytes, str] | None:
        """The first message behind one, or that with a number: number, body, file."""
        condition, value = ("id > ?2", after) if number is None else ("id = ?2", number)
        sql = f"SELECT id, body, file FROM message WHERE queue = ?1 AND {condition} ORDER BY id LIMIT 1"
        found: tuple[int, bytes, str] | None = await self._file.call(
            lambda: self._file.db.execute(sql, (queue, value)).fetchone()
        )
        return found

    async def done(self, number: int) -> None:
        """Forget a message."""
        await self._change("DELETE FROM message WHERE id = ?1", number)

    async def move(self, number: int, queue: str, why: str) -> None:
        """Put a message into another queue."""
        await self._change("UPDATE message SET queue = ?2, why = ?3 WHERE id = ?1", number, queue, why)

    async def count(self, queue: str) -> int:
        """How many there are."""
        sql = "SELECT count(*) FROM message WHERE queue = ?1"
        return int(await self._file.call(lambda: self._file.db.execute(sql, (queue,)).fetchone()[0]))

    async def replay(self, queue: str, suffix: str) -> int:
        """Put the messages beside a queue back into it, in their order; how many."""

        def work() -> int:
            with self._file.transaction() as db:
                # As new ones: a run that is at work has passed the old numbers.
                beside = queue + suffix
                rows = db.execute("SELECT ?2, body, file FROM message WHERE queue = ?1 ORDER BY id", (beside, queue))
                found = rows.fetchall()
                db.execute("DELETE FROM message WHERE queue = ?1", (beside,))
                db.executemany(_INSERT, found)
                return len(found)

        return await self._file.call(work)

    async def _change(self, sql: str, *values: object) -> None:
        def work() -> None:
            with self._file.transaction() as db:
                db.execute(sql, values)

        await self._file.call(work)
