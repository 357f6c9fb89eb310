"""Columns and statements of the revisions of `events`, each for SQLite and for PostgreSQL. Pure.

Columns take what their kind says and refuse all else: what only SQLite would take, and what no sum can be made of.
Texts are in the order of code points. Times are Unix seconds in SQLite, and `timestamptz` in PostgreSQL.

A revision that was released is never changed, nor are the words that it is made of.
"""

from collections.abc import Iterable
from typing import NamedTuple

# The first moment of the year 1, and that of the year 10000.
EARLIEST, LATEST = (-62_135_596_800, "'0001-01-01 00:00:00+00'"), (253_402_300_800, "'10000-01-01 00:00:00+00'")
NOW = "((julianday('now') - 2440587.5) * 86400.0)"  # Unix seconds, in a SQLite of any age


class Both(NamedTuple):
    """The same in either database."""

    sqlite: str
    postgres: str


def same(statement: str) -> Both:
    """What both databases say alike."""
    return Both(statement, statement)


# --- columns; `default` is SQL, and an `empty` one may be NULL ---


def _column(name: str, kind: Both, check: Both, default: str | Both | None, *, empty: bool) -> Both:
    values = (default, default) if isinstance(default, str) or default is None else default
    parts = (
        (
            f"{name} {of}",
            "" if value is None else f"DEFAULT {value}",
            "" if empty else "NOT NULL",
            f"CHECK ({condition})" if condition else "",
        )
        for of, condition, value in zip(kind, check, values, strict=True)
    )
    return Both(*(" ".join(filter(None, part)) for part in parts))


def serial(name: str) -> Both:
    """A number that the database gives to each row."""
    return Both(f"{name} INTEGER NOT NULL", f"{name} BIGINT GENERATED ALWAYS AS IDENTITY")


def text(name: str, most: int, default: str | None = None, *, empty: bool = False) -> Both:
    """A text of up to so many characters."""
    kind = Both("TEXT", f'VARCHAR({most}) COLLATE "C"')
    check = Both(f"length({name}) <= {most} AND instr({name}, char(0)) = 0", "")
    return _column(name, kind, check, default, empty=empty)


def long_text(name: str, default: str | None = None, *, empty: bool = False) -> Both:
    """A text of any length."""
    return _column(name, same("TEXT"), Both(f"instr({name}, char(0)) = 0", ""), default, empty=empty)


def whole(name: str, default: str | None = None, *, empty: bool = False) -> Both:
    """An integer of 64 bits."""
    return _column(name, same("BIGINT"), Both(f"typeof({name}) IN ('integer', 'null')", ""), default, empty=empty)


def real(name: str, *, empty: bool = False) -> Both:
    """A number that is finite."""
    check = same(f"{name} BETWEEN -1e308 AND 1e308")
    return _column(name, Both("DOUBLE", "DOUBLE PRECISION"), check, None, empty=empty)


def flag(name: str) -> Both:
    """Yes or no; no, unless it is said."""
    return _column(name, same("BOOLEAN"), Both(f"{name} IN (0, 1)", ""), "false", empty=False)


def moment(name: str, *, now: bool = False, empty: bool = False) -> Both:
    """A time; `now`: that of the database, if none is given."""
    check = Both(*(f"{name} >= {low} AND {name} < {high}" for low, high in zip(EARLIEST, LATEST, strict=True)))
    default = Both(NOW, "now()") if now else None
    return _column(name, Both("REAL", "TIMESTAMP WITH TIME ZONE"), check, default, empty=empty)


def json(name: str, default: str | None = None, *, empty: bool = False) -> Both:
    """An object or a list."""
    return _column(name, Both("TEXT", "JSONB"), same(""), default, empty=empty)


def binary(name: str, *, empty: bool = False) -> Both:
    """Bytes."""
    return _column(name, Both("BLOB", "BYTEA"), same(""), None, empty=empty)


# --- statements ---


def create(table: str, *columns: Both) -> Both:
    """Make a table of these columns and constraints."""
    return Both(*(f"CREATE TABLE {table} ({', '.join(parts)})" for parts in zip(*columns, strict=True)))


def add(table: str, *columns: Both) -> list[Both]:
    """Add columns."""
    return [Both(*(f"ALTER TABLE {table} ADD COLUMN {said}" for said in column)) for column in columns]


def drop(table: str, *columns: str) -> list[Both]:
    """Remove columns."""
    return [same(f"ALTER TABLE {table} DROP COLUMN {name}") for name in columns]


def index(name: str, table: str, columns: str, where: str = "") -> Both:
    """Make an index, of all rows or of some."""
    return same(f"CREATE INDEX idx_{table}_{name} ON {table} ({columns})" + (f" WHERE {where}" if where else ""))


def drop_indexes(table: str, names: Iterable[str]) -> list[Both]:
    """Remove indexes."""
    return [same(f"DROP INDEX idx_{table}_{name}") for name in names]
