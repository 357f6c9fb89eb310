"""Tables of a SQLite file. Each value is stored as what it is: a column has no type that could change it.

Numbers beyond 64 bits, and fractions that no float holds, are texts of their digits. What is nested is JSON.
"""
# ruff: noqa: S608 - names are quoted, values are parameters

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sanderling.formats.exact_json import encode_exact
from sanderling.records.columns import StoredColumn, ValueKind, Widened
from sanderling.records.tables import MARKS
from sanderling.records.target import TargetError
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.sqlite_file import transaction

BUSY_SECONDS = 30.0
# What becomes of values that are there, when a column holds JSON from now on. Digits and nulls are JSON already.
TO_JSON = {
    **dict.fromkeys((ValueKind.TEXT, ValueKind.SMALL, ValueKind.INTEGER, ValueKind.FLOAT), "exact_json({0})"),
    ValueKind.BOOLEAN: "CASE {0} WHEN 1 THEN 'true' ELSE 'false' END",
}


class SqliteTables:
    """A file."""

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self._path = path
        self._opened: sqlite3.Connection | None = None

    @property
    def _db(self) -> sqlite3.Connection:
        if self._opened is None:
            raise ValueError(f"{self._path} is not open")
        return self._opened

    def open(self) -> None:
        """Open the file, which is made."""
        with self._plainly():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._opened = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
            # SQLite's own json_quote writes fifteen digits of a float.
            self._db.create_function("exact_json", 1, lambda value: encode_exact(value).decode(), deterministic=True)
            self._db.execute(f"CREATE TABLE IF NOT EXISTS {MARKS} (name TEXT PRIMARY KEY, mark TEXT NOT NULL)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it, or nothing."""
        with self._plainly(), transaction(self._db):
            yield

    def has_table(self, table: str) -> bool:
        """Whether there is one."""
        with self._plainly():
            return bool(
                self._db.execute("SELECT 1 FROM sqlite_schema WHERE lower(name) = lower(?)", (table,)).fetchall()
            )

    def read_mark(self, table: str) -> str | None:
        """The mark of a table."""
        with self._plainly():
            row = self._db.execute(f"SELECT mark FROM {MARKS} WHERE name = ?", (table,)).fetchone()
        return row[0] if row else None

    def move_mark(self, table: str, before: str | None, now: str) -> bool:
        """Write a mark."""
        if before is None:
            return self._db.execute(f"INSERT OR IGNORE INTO {MARKS} VALUES (?, ?)", (table, now)).rowcount == 1
        moved = self._db.execute(f"UPDATE {MARKS} SET mark = ? WHERE name = ? AND mark = ?", (now, table, before))
        return moved.rowcount == 1

    def create(self, table: str, columns: Sequence[StoredColumn]) -> None:
        """Make a table."""
        self._db.execute(f"CREATE TABLE {quoted(table)} ({', '.join(quoted(each.name) for each in columns)})")

    def add(self, table: str, column: StoredColumn) -> None:
        """Add a column."""
        self._db.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(column.name)}")

    def widen(self, table: str, column: Widened) -> None:
        """Make JSON of what is there, if need be."""
        way = TO_JSON.get(column.before) if column.now is ValueKind.JSON else None
        if way is not None:
            name = quoted(column.name)
            self._db.execute(f"UPDATE {quoted(table)} SET {name} = {way.format(name)} WHERE {name} IS NOT NULL")

    def insert(self, table: str, columns: Sequence[StoredColumn], rows: Iterable[list[Any]]) -> None:
        """Add rows."""
        if not columns:
            return
        names = ", ".join(quoted(each.name) for each in columns)
        places = ", ".join("?" * len(columns))
        self._db.executemany(f"INSERT INTO {quoted(table)} ({names}) VALUES ({places})", rows)

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            with plainly(self._path):
                yield
        except FolderError as error:
            raise TargetError(str(error)) from None


def quoted(name: str) -> str:
    """A name, so that no word of SQL is mistaken for one."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
