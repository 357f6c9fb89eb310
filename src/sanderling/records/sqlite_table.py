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
from sanderling.records.tables import MARKS, TableDatabase, quoted
from sanderling.records.target import target_errors
from sanderling.stores.sqlite_file import transaction

BUSY_SECONDS = 30.0
# What becomes of values that are there, when a column holds JSON from now on. Digits and nulls are JSON already.
TO_JSON = {
    **dict.fromkeys((ValueKind.TEXT, ValueKind.SMALL, ValueKind.INTEGER, ValueKind.FLOAT), "exact_json({0})"),
    ValueKind.BOOLEAN: "CASE {0} WHEN 1 THEN 'true' ELSE 'false' END",
}


class SqliteTables(TableDatabase):
    """A file."""

    types = dict.fromkeys(ValueKind, "")

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
        with target_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._opened = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        # SQLite's own json_quote writes fifteen digits of a float.
        self._db.create_function("exact_json", 1, lambda value: encode_exact(value).decode(), deterministic=True)
        self.run(f"CREATE TABLE IF NOT EXISTS {MARKS} (name TEXT PRIMARY KEY, mark TEXT NOT NULL)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with target_errors(self._path), transaction(self._db):
            yield

    def run(self, statement: str, *values: object) -> Sequence[Sequence[Any]]:
        with target_errors(self._path):
            return self._db.execute(statement, values).fetchall()

    def has_table(self, table: str) -> bool:
        return bool(self.run("SELECT 1 FROM sqlite_schema WHERE lower(name) = lower(?)", table))

    def widen(self, table: str, column: Widened) -> None:
        """Make JSON of what is there, if need be."""
        if column.now is ValueKind.JSON and column.before in TO_JSON:
            name = quoted(column.name)
            self.run(f"UPDATE {quoted(table)} SET {name} = {self.convert(column)} WHERE {name} IS NOT NULL")

    def convert(self, column: Widened) -> str:
        return TO_JSON[column.before].format(quoted(column.name))

    def insert(self, table: str, columns: Sequence[StoredColumn], rows: Iterable[list[Any]]) -> None:
        names = ", ".join(quoted(each.name) for each in columns)
        places = ", ".join("?" * len(columns))
        self._db.executemany(f"INSERT INTO {quoted(table)} ({names}) VALUES ({places})", rows)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None
