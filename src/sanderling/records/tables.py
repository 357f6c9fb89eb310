"""A table of a database as a target: rows, columns that come later, and the mark, each batch in one transaction."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from sanderling.formats.exact_json import decode_exact
from sanderling.records.columns import Columns, StoredColumn, ValueKind, Widened
from sanderling.records.target import Mark, TargetError, read_mark, write_mark

MARKS = "sanderling_export"  # the table of marks


class TableDatabase(Protocol):
    """A database, spoken to in its own words. All methods raise TargetError."""

    place: str

    def open(self) -> None:
        """Reach it."""

    def transaction(self) -> AbstractContextManager[None]:
        """All of it, or nothing."""

    def has_table(self, table: str) -> bool:
        """Whether there is such a table."""

    def read_mark(self, table: str) -> str | None:
        """What stands in the mark of a table."""

    def move_mark(self, table: str, before: str | None, now: str) -> bool:
        """Write a mark in the place of another; False if that is not there any more."""

    def create(self, table: str, columns: Sequence[StoredColumn]) -> None:
        """Make a table."""

    def add(self, table: str, column: StoredColumn) -> None:
        """Give a table a column more."""

    def widen(self, table: str, column: Widened) -> None:
        """Let a column hold more."""

    def insert(self, table: str, columns: Sequence[StoredColumn], rows: Iterable[list[Any]]) -> None:
        """Add rows."""

    def close(self) -> None:
        """Let go."""


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
        """What the table holds."""
        self._database.open()
        self._is_there = self._database.has_table(self._table)
        self._mark = self._database.read_mark(self._table)
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
        with self._database.transaction():
            if rows and not self._is_there:
                self._database.create(self._table, stored)
            else:
                for column in learned.added:
                    self._database.add(self._table, column)
            for widened in learned.widened:
                self._database.widen(self._table, widened)
            self._database.insert(self._table, stored, self._columns.rows(rows))
            now = self._move(mark)
        if self._is_there and learned.added:
            self.notes.append(f"columns added: {', '.join(each.name for each in learned.added)}")
        for name, before, kind in learned.widened:
            if before is not ValueKind.NULL:
                self.notes.append(f"column {name} was {before}, and is {kind} now")
        self._is_there, self._mark = self._is_there or bool(rows), now

    def finish(self, mark: Mark) -> None:
        """Move the mark."""
        with self._database.transaction():
            now = self._move(mark)
        self._mark = now

    def _move(self, mark: Mark) -> str:
        now = write_mark(msgspec.structs.replace(mark, columns=self._columns.stored)).decode()
        if not self._database.move_mark(self._table, self._mark, now):
            raise TargetError(f"another export is writing to {self.place}. Wait until it has ended.")
        return now

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()
