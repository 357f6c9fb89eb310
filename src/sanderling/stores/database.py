"""One port to a SQL database: stores are written once, and a dialect says what SQLite and PostgreSQL say differently.

A store writes `async` functions that are given a `Transaction`. PostgreSQL awaits each statement. SQLite runs the whole
function in one piece in the thread of its executor, where nothing ever waits.

Statements have "?" or "?1" for their parameters, in either database. A list is one parameter (`Dialect.among`).
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

T = TypeVar("T")
Row = Sequence[Any]

# What cannot even be written down: half a character, a number of more bits, what is nested too deep.
UNWRITABLE = (UnicodeEncodeError, OverflowError, RecursionError)


class DatabaseTrouble(Enum):
    """What an error means for whoever asked."""

    REFUSED = auto()  # that data will not be taken, now or later
    BUSY = auto()  # others were in the way
    AWAY = auto()  # it cannot be reached, or is not ready
    FULL = auto()  # there is no room, which somebody has to make
    FAILED = auto()  # it fails at this one, for a reason that may be its own
    BROKEN = auto()  # the same, and it will not pass by itself
    AMISS = auto()  # somebody must do something first


Raised = Callable[[str, DatabaseTrouble], Exception]  # makes the error of a store out of a message and what it means


class RefusalError(Exception):
    """The database does not take what was written within a savepoint; that is undone."""


class Dialect(NamedTuple):
    """How a database says things; {0} is the column or the value."""

    seconds: str  # Unix seconds of a time
    moment: str  # the time of Unix seconds
    day: str  # how many days a time is after 1970
    among: str  # whether a column has one of the values of a list, which is the parameter
    pairs: str  # the rows `one, other` of a list of pairs of numbers
    given_pairs: Callable[[Sequence[tuple[int, int]]], Sequence[object]]  # the parameters for that
    skip_locked: str  # ends a SELECT of rows that are changed next, but for those that somebody else has


# What SQLite and PostgreSQL say.
SQLITE = Dialect(
    seconds="{0}",
    moment="{0}",
    # Rounded down, also before 1970.
    day=f"CAST({{0}} / {86_400.0} AS INTEGER) - ({{0}} < {86_400} * CAST({{0}} / {86_400.0} AS INTEGER))",
    among="{0} IN (SELECT value FROM json_each(?))",
    pairs="(SELECT json_extract(value, '$[0]') AS one, json_extract(value, '$[1]') AS other FROM json_each(?))",
    given_pairs=lambda pairs: ([*pairs],),
    skip_locked="",  # nobody else writes meanwhile
)
POSTGRES = Dialect(
    seconds="extract(epoch FROM {0})::float8",
    moment="to_timestamp({0})",
    day="floor(extract(epoch FROM {0}) / 86400)::bigint",
    among="{0} = ANY(?)",
    pairs="unnest(?::bigint[], ?::bigint[]) AS given (one, other)",
    given_pairs=lambda pairs: [*zip(*pairs, strict=True)],
    skip_locked="FOR UPDATE SKIP LOCKED",
)


class ColumnType(NamedTuple):
    """A kind of column, as each database declares and is given it."""

    sqlite: str
    postgres: str
    mark: str = "?"  # what SQLite makes of a value
    travels: str = ""  # the type with which a value goes to PostgreSQL, if it is not that of the column
    made: str = "{0}"  # what PostgreSQL makes of a value
    packed: Callable[[Any], object] | None = None  # what a value is made before it goes to either


@dataclass(frozen=True)
class Insert:
    """Inserts rows: one after another into SQLite, all with one statement into PostgreSQL.

    Rows are tuples in the order of `columns`, and go to PostgreSQL as one array per column; or they are objects with
    `fields`, and go there as one JSON document, which the server takes apart quicker than we could.
    """

    table: str
    columns: Mapping[str, ColumnType]
    then: str = ""  # what to do about a row that is there, which is `its`; and what to give back
    fields: Sequence[str] = ()
    same: Mapping[str, ColumnType] = field(default_factory=dict)  # columns that have one value for all rows

    @property
    def returns(self) -> bool:
        """Whether it gives something back."""
        return "RETURNING" in self.then

    @cached_property
    def sqlite(self) -> str:
        """What inserts one row into SQLite."""
        every = {**self.columns, **self.same}
        marks = ", ".join(kind.mark for kind in every.values())
        return f"INSERT INTO {self.table} AS its ({', '.join(every)}) VALUES ({marks}) {self.then}"

    @cached_property
    def given(self) -> str:
        """The rows as PostgreSQL is given them, under the name `given`."""
        names = self.fields or [*self.columns]
        kinds = [kind.travels or kind.postgres.split()[0] for kind in self.columns.values()]
        if self.fields:
            listed = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
            return f"json_to_recordset($1::json) AS given ({listed})"
        arrays = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(kinds, 1))
        return f"unnest({arrays}) AS given ({', '.join(names)})"

    @cached_property
    def postgres(self) -> str:
        """What inserts all rows into PostgreSQL."""
        names = self.fields or [*self.columns]
        first = 2 if self.fields else len(self.columns) + 1
        values = [kind.made.format(name) for name, kind in zip(names, self.columns.values(), strict=True)]
        values += [kind.made.format(f"${place}") for place, kind in enumerate(self.same.values(), first)]
        every = ", ".join([*self.columns, *self.same])
        return f"INSERT INTO {self.table} AS its ({every}) SELECT {', '.join(values)} FROM {self.given} {self.then}"

    @cached_property
    def _packs(self) -> list[tuple[int, Callable[[Any], object]]]:
        return [(place, kind.packed) for place, kind in enumerate(self.columns.values()) if kind.packed]

    @cached_property
    def _taken(self) -> Callable[[Any], Iterable[Any]]:
        return attrgetter(*self.fields) if self.fields else tuple

    def values(self, rows: Iterable[Any]) -> Iterable[Iterable[Any]]:
        """The rows as tuples."""
        if not self._packs:
            return map(self._taken, rows) if self.fields else rows
        return map(self._pack, rows)

    def _pack(self, row: Any) -> list[Any]:  # noqa: ANN401 - a row is a tuple or an object
        found = [*self._taken(row)]
        for place, packed in self._packs:
            found[place] = packed(found[place])
        return found

    def parameters(self, rows: Iterable[Any]) -> list[Any]:
        """The rows as PostgreSQL is given them; none if there are no rows."""
        if self.fields:
            every = [*rows]
            return [encoded(every)] if every else []
        return [*zip(*self.values(rows), strict=True)]


@dataclass(frozen=True)
class TableDefinition:
    """A table whose rows are tuples in the order of its columns. One with a key of several columns is kept by it."""

    name: str
    columns: Mapping[str, ColumnType]
    key: Sequence[str]

    @property
    def sqlite(self) -> str:
        """What makes it in SQLite."""
        kinds = {name: kind.sqlite for name, kind in self.columns.items()}
        if len(self.key) == 1:
            return self._create(kinds | {self.key[0]: "INTEGER PRIMARY KEY"}, ")")
        return self._create(kinds, f", PRIMARY KEY ({', '.join(self.key)})) WITHOUT ROWID")

    @property
    def postgres(self) -> str:
        """What makes it in PostgreSQL."""
        kinds = {name: kind.postgres for name, kind in self.columns.items()}
        return self._create(kinds, f", PRIMARY KEY ({', '.join(self.key)}))")

    def _create(self, kinds: Mapping[str, str], end: str) -> str:
        return f"CREATE TABLE {self.name} ({', '.join(f'{name} {kind}' for name, kind in kinds.items())}{end}"

    def insert(self, then: str = "") -> Insert:
        """What inserts rows."""
        return Insert(self.name, self.columns, then)

    def replace(self, *, newer: bool = False) -> Insert:
        """What inserts rows, or changes those that are there: all of them, or where the new one is greater."""
        rest = [name for name in self.columns if name not in self.key]
        changes = ", ".join(f"{name} = excluded.{name}" for name in rest)
        old, new = (", ".join(f"{of}.{name}" for name in rest) for of in ("its", "excluded"))
        condition = f" WHERE ({new}) > ({old})" if newer else ""
        return self.insert(f"ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {changes}{condition}")


class Transaction(Protocol):
    """What a store has in hand while it reads or writes."""

    dialect: Dialect
    unfit: tuple[type[Exception], ...]  # what is raised for a value that is too large, or is none

    async def fetch(self, statement: str, *values: object) -> list[Row]:
        """The rows that a statement gives."""

    def stream(self, statement: str, *values: object) -> AsyncGenerator[Row, None]:
        """The same, without having all of them in memory at once."""

    async def execute(self, statement: str, *values: object) -> int:
        """How many rows a statement has changed."""

    async def execute_many(self, statement: str, rows: Iterable[Any]) -> None:
        """Execute a statement for each of these."""

    async def insert(self, into: Insert, rows: Iterable[Any], *same: object) -> list[Row]:
        """What inserting these gives back."""

    async def lock(self, number: int) -> None:
        """Wait for others of this schema that hold this number, and hold it to the end of the transaction."""

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """Undo what is written meanwhile if it is refused, and raise RefusalError."""


class SqlCondition(NamedTuple):
    """What is meant, in SQL, with the values for it."""

    sql: str
    values: tuple[object, ...]


Work = Callable[[Transaction], Coroutine[Any, Any, T]]
First = Callable[[], object] | None


class Claim(NamedTuple):
    """What one process at a time may have: how its lock file ends in SQLite, and its number in PostgreSQL."""

    name: str
    number: int


class Database(Protocol):
    """A database that is open. All methods raise what the store's `Raised` makes."""

    place: str  # in words, without a password
    dialect: Dialect

    @property
    def connections(self) -> int:
        """How many connections to it are open."""

    async def read(self, work: Work[T], *, together: bool = False) -> T:
        """Do what only reads; with `together`, all that it reads is of one moment."""

    async def write(self, work: Work[T], *, durable: bool = True, first: First = None) -> T:
        """Do it in one transaction, which is on disk then. Without `durable` a crash may undo the last of it.

        What takes time and needs no database is done `first`, so that nobody need wait for it.
        """

    def claim(self, what: Claim) -> AbstractAsyncContextManager[bool]:
        """Whether we have it, until the end."""

    async def close(self) -> None:
        """Let go."""


def encoded(value: object) -> str:
    """A value as JSON."""
    return _ENCODER.encode(value).decode()


_ENCODER = msgspec.json.Encoder()
