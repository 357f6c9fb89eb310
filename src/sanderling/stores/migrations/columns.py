"""The kinds of columns that all revisions are made of, for both databases.

Each takes what its name says and refuses all else: what only SQLite would take, and what no sum can be made of. Texts
are in the order of code points. Times are Unix seconds in SQLite, and `timestamptz` in PostgreSQL.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

# The first moment of the year 1, and that of the year 10000.
EARLIEST, LATEST = (-62_135_596_800, "0001-01-01 00:00:00+00"), (253_402_300_800, "10000-01-01 00:00:00+00")
NOW = "(julianday('now') - 2440587.5) * 86400.0"  # Unix seconds, in a SQLite of any age

Column = sa.Column[Any]


def on_sqlite() -> bool:
    """Whether it is run there; otherwise it is PostgreSQL."""
    return op.get_context().dialect.name == "sqlite"


def serial(name: str) -> Column:
    """A number that the database gives to each row."""
    if on_sqlite():
        return sa.Column(name, sa.Integer, primary_key=True)
    return sa.Column(name, sa.BigInteger, sa.Identity(always=True), primary_key=True)


def text(name: str, most: int, *, default: str | None = None, empty: bool = False, key: bool = False) -> Column:
    """A text of up to so many characters; `empty`: or none."""
    if on_sqlite():
        check = f"length({name}) <= {most} AND instr({name}, char(0)) = 0"
        return _column(name, sa.Text(), check, default, empty=empty, key=key)
    return _column(name, postgresql.VARCHAR(most, collation="C"), "", default, empty=empty, key=key)


def long_text(name: str, *, default: str | None = None, empty: bool = False) -> Column:
    """A text of any length."""
    check = f"instr({name}, char(0)) = 0" if on_sqlite() else ""
    return _column(name, sa.Text(), check, default, empty=empty)


def whole(name: str, *, default: str | None = None, empty: bool = False) -> Column:
    """An integer of 64 bits."""
    check = f"typeof({name}) IN ('integer', 'null')" if on_sqlite() else ""
    return _column(name, sa.BigInteger(), check, default, empty=empty)


def real(name: str, *, empty: bool = False) -> Column:
    """A number that is finite."""
    return _column(name, sa.Double(), f"{name} BETWEEN -1e308 AND 1e308", empty=empty)


def flag(name: str, *, default: bool | None = None) -> Column:
    """Yes or no."""
    said = {None: None, True: "true", False: "false"}[default]
    return _column(name, sa.Boolean(), f"{name} IN (0, 1)" if on_sqlite() else "", said)


def moment(name: str, *, now: bool = False, empty: bool = False) -> Column:
    """A time; `now`: that of the database, if none is given."""
    if on_sqlite():
        check = f"{name} >= {EARLIEST[0]} AND {name} < {LATEST[0]}"
        return _column(name, sa.REAL(), check, f"({NOW})" if now else None, empty=empty)
    check = f"{name} >= '{EARLIEST[1]}' AND {name} < '{LATEST[1]}'"
    return _column(name, sa.TIMESTAMP(timezone=True), check, "now()" if now else None, empty=empty)


def json(name: str, *, default: str | None = None, empty: bool = False) -> Column:
    """An object or a list."""
    return _column(name, sa.Text() if on_sqlite() else postgresql.JSONB(), "", default, empty=empty)


def _column(
    name: str,
    kind: sa.types.TypeEngine[Any],
    check: str,
    default: str | None = None,
    *,
    empty: bool = False,
    key: bool = False,
) -> Column:
    checks = (sa.CheckConstraint(check),) if check else ()
    said = None if default is None else sa.text(default)
    return sa.Column(name, kind, *checks, nullable=empty, primary_key=key, server_default=said)
