"""A table of a database as a target: rows, columns that come later, and the mark, each batch in one transaction."""
# ruff: noqa: S608 - names are quoted, values are parameters

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from sanderling.formats.exact_json import decode_exact
from sanderling.records.columns import Columns, StoredColumn, ValueKind, Widened
from sanderling.records.target import Mark, TargetError, read_mark, write_mark

MARKS = "sanderling_export"  # the table of marks
READ_MARK = f"SELECT mark FROM {MARKS} WHERE name = ?"
FIRST_MARK = f"INSERT INTO {MARKS} (mark, name) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING name"
NEXT_MARK = f"UPDATE {MARKS} SET mark = ? WHERE name = ? AND mark = ? RETURNING name"


class TableDatabase(Protocol):
    """A database, in the words that all have in common; each says the rest. All methods raise TargetError."""

    place: str
    types: Mapping[ValueKind, str]

    def open(self) -> None:
        """Reach it; the table of marks is made."""

    def transaction(self) -> AbstractContextManager[None]:
        """All of it, or nothing."""

    def run(self, statement: str, *values: object) -> Sequence[Sequence[Any]]:
        """The rows that a statement gives, with "?" for its values."""

    def has_table(self, table: str) -> bool:
        """Whether there is such a table."""

    def insert(self, table: str, columns: Sequence[StoredColumn], rows: Iterable[list[Any]]) -> None:
        """Add rows."""

    def convert(self, column: Widened) -> str:
        """What makes a value of a column's new type of one of its old."""

    def close(self) -> None:
        """Let go."""

    def declare(self, column: StoredColumn) -> str:
        """The column in a statement that makes it."""
        return f"{quoted(column.name)} {self.types[column.kind]}".rstrip()

    def widen(self, table: str, column: Widened) -> None:
        """Let a column hold more."""
        name, now = quoted(column.name), self.types[column.now]
        if self.types[column.before] != now:
            self.run(f"ALTER TABLE {quoted(table)} ALTER COLUMN {name} TYPE {now} USING {self.convert(column)}")


def quoted(name: str) -> str:
    """A name, so that no word of SQL is mistaken for one."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


class TableTarget:
    """One table."""

    def __init__(self, database: TableDatabase, table: str) -> None:
        self.place = f"table {table} of {database.place}"
        self.notes: list[str] = []
        self._database = database
        self._table = table
        self._columns = Columns()
        self._mark: str | None = None
        self._is_there = False

    def open(self) -> Mark | None:
        self._database.open()
        self._is_there = self._database.has_table(self._table)
        found = self._database.run(READ_MARK, self._table)
        self._mark = found[0][0] if found else None
        if self._is_there and self._mark is None:
            raise TargetError(f"{self.place} is there, and no export of ours. Choose another with --table.")
        if self._mark is None:
            return None
        mark = read_mark(self._mark, f"the mark of {self.place} in {MARKS}")
        if mark.columns and not self._is_there:
            raise TargetError(
                f"{self.place} is gone, and {MARKS} counts {mark.records:,} records in it. Restore it, or delete"
                f" its row from {MARKS} and begin anew."
            )
        self._columns = Columns(mark.columns)
        return mark

    def write(self, records: Sequence[bytes], mark: Mark) -> None:
        """Add records and move the mark, in one transaction."""
        rows = [decode_exact(record) for record in records]
        learned = self._columns.learn(rows)
        stored = self._columns.stored
        database, table = self._database, quoted(self._table)
        with database.transaction():
            if rows and not self._is_there:
                database.run(f"CREATE TABLE {table} ({', '.join(map(database.declare, stored))})")
            else:
                for column in learned.added:
                    database.run(f"ALTER TABLE {table} ADD COLUMN {database.declare(column)}")
            for widened in learned.widened:
                database.widen(self._table, widened)
            if stored:
                database.insert(self._table, stored, self._columns.rows(rows))
            now = self._move(mark)
        if self._is_there and learned.added:
            self.notes.append(f"columns added: {', '.join(each.name for each in learned.added)}")
        for name, before, kind in learned.widened:
            if before is not ValueKind.NULL:
                self.notes.append(f"column {name} was {before}, and is {kind} now")
        self._is_there, self._mark = self._is_there or bool(rows), now

    def finish(self, mark: Mark) -> None:
        with self._database.transaction():
            now = self._move(mark)
        self._mark = now

    def _move(self, mark: Mark) -> str:
        """Write the mark in the place of the one that was read, unless that is not there any more."""
        now = write_mark(msgspec.structs.replace(mark, columns=self._columns.stored)).decode()
        if self._mark is None:
            moved = self._database.run(FIRST_MARK, now, self._table)
        else:
            moved = self._database.run(NEXT_MARK, now, self._table, self._mark)
        if not moved:
            raise TargetError(f"another export is writing to {self.place}. Wait until it has ended.")
        return now

    def close(self) -> None:
        self._database.close()
