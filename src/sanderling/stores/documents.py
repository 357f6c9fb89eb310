"""Documents as rows of tables, and the error of a document that cannot be read.

The key of a table is `id`, the upstream's. A row may refer to rows of tables before its own, so rows written in the
order of the tables find their parents there. Parents that are in no row of the document itself are what it *needs*; as
long as one of them is not stored, the document waits.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sanderling.outcome import Code, Outcome

Value = str | int | float | bool | None

# A race has some hundred rows and an event some thousand. More than this is no document to be polled.
MOST_ROWS = 20_000
LONGEST_DETAIL = 200
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class SourceError(Exception):
    """A document cannot be used. The outcome's detail says what was found, what was expected and where."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


def source_error(code: Code, detail: str) -> SourceError:
    """The error of that code."""
    return SourceError(Outcome(code, detail=detail[:LONGEST_DETAIL]))


class ColumnKind(StrEnum):
    """What a column holds. Every column may also hold nothing."""

    TEXT = "text"
    INTEGER = "integer"  # of 64 bits
    REAL = "real"
    BOOLEAN = "boolean"


HOLDS: Mapping[ColumnKind, type] = {
    ColumnKind.TEXT: str,
    ColumnKind.INTEGER: int,
    ColumnKind.REAL: float,
    ColumnKind.BOOLEAN: bool,
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `references` is the table whose key it holds."""

    name: str
    kind: ColumnKind = ColumnKind.TEXT
    references: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == "id":
            raise ValueError(f"column is called {self.name[:80]!r}, expected up to 63 of a-z, 0-9 and _, and not 'id'")
        if self.references is not None and self.kind is not ColumnKind.TEXT:
            raise ValueError(f"column {self.name} refers to {self.references} and is {self.kind}, expected text")


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table; besides its columns it has the key `id`, a text."""

    name: str
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"table is called {self.name[:80]!r}, expected up to 63 of a-z, 0-9 and _")
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise ValueError(f"table {self.name} has a column twice: {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row: a value for every column of its table."""

    table: str
    key: str
    values: Mapping[str, Value]


class Parent(NamedTuple):
    """A row that others refer to."""

    table: str
    key: str


@dataclass(frozen=True, slots=True)
class Whole:
    """All the children of a parent: rows of `table` with `parent` in `column` and none of `keys` go.

    A row that goes takes along those that refer to it.
    """

    table: str
    column: str
    parent: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Document:
    """What a document says. Made by `Schema.document`."""

    rows: tuple[SourceRow, ...]  # parents before children
    whole: tuple[Whole, ...] = ()
    needs: tuple[Parent, ...] = ()  # what must be stored already
    notes: tuple[str, ...] = ()  # values that could not be read and are left out, in words


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a source: each refers only to those before it."""

    tables: tuple[SourceTable, ...]

    def __post_init__(self) -> None:
        known: set[str] = set()
        for table in self.tables:
            for column in table.columns:
                if column.references is not None and column.references not in known:
                    where = f"{table.name}.{column.name}"
                    raise ValueError(f"{where} refers to {column.references}, expected a table before it")
            if table.name in known:
                raise ValueError(f"table {table.name} is there twice")
            known.add(table.name)

    def document(self, rows: Iterable[SourceRow], whole: Iterable[Whole] = (), notes: Iterable[str] = ()) -> Document:
        """The document of these rows, in order. Raises SourceError for too many of them, or one key twice."""
        place = {table.name: number for number, table in enumerate(self.tables)}
        in_order = tuple(sorted(rows, key=lambda row: place[row.table]))
        if len(in_order) > MOST_ROWS:
            raise source_error(Code.TOO_LARGE, f"{len(in_order)} rows, expected at most {MOST_ROWS}")
        listed: set[Parent] = set()
        for row in in_order:
            itself = Parent(row.table, row.key)
            if itself in listed:
                raise source_error(Code.INVALID_RESPONSE, f"{row.table} {row.key[:60]!r} is listed twice")
            listed.add(itself)
        needs = {parent: None for row in in_order for parent in self._parents(row, place) if parent not in listed}
        return Document(in_order, tuple(whole), tuple(needs), tuple(notes))

    def _parents(self, row: SourceRow, place: Mapping[str, int]) -> Iterable[Parent]:
        table = self.tables[place[row.table]]
        if len(row.values) != len(table.columns):
            raise ValueError(f"row of {row.table} has {sorted(row.values)}, which are not its columns")
        for column in table.columns:
            value = row.values[column.name]
            if value is not None and type(value) is not HOLDS[column.kind]:
                raise ValueError(f"{row.table}.{column.name} is {value!r:.60}, expected {column.kind}")
            if column.references is not None and isinstance(value, str):
                yield Parent(column.references, value)


class WaitingForParent(SourceError):  # noqa: N818 - nothing went wrong
    """A document needs a row which is not stored yet: not now, and nobody's failure."""

    def __init__(self, parent: Parent) -> None:
        detail = f"waiting for {parent.table}:{parent.key}"
        super().__init__(Outcome(Code.DEFERRED, detail=detail[:LONGEST_DETAIL]))
        self.parent = parent


def waiting(parent: Parent) -> WaitingForParent:
    """The error of a document that needs that row."""
    return WaitingForParent(parent)
