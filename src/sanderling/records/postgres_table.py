"""Tables of PostgreSQL, which has a type for every number. It has none for the character NUL: that is replaced."""
# ruff: noqa: S608 - names are quoted, values are parameters

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.records.columns import StoredColumn, ValueKind, Widened
from sanderling.records.sqlite_table import quoted
from sanderling.records.tables import MARKS
from sanderling.records.target import TargetError
from sanderling.stores.database import DatabaseTrouble
from sanderling.stores.postgres_server import CONNECT_SECONDS, SETTINGS, plainly, read_url, relations

T = TypeVar("T")

EXPECTED = "expected postgresql://user@host:5432/database?schema=name"
ANSWER_SECONDS = 600.0  # a column of many rows is written anew when its type changes
TYPES = {
    ValueKind.NULL: "text",
    ValueKind.BOOLEAN: "boolean",
    ValueKind.SMALL: "bigint",
    ValueKind.INTEGER: "bigint",
    ValueKind.FLOAT: "double precision",
    ValueKind.DIGITS: "numeric",
    ValueKind.TEXT: "text",
    ValueKind.JSON: "json",
}
REPLACED = "\N{REPLACEMENT CHARACTER}"


class PostgresTables:
    """A schema of a server."""

    def __init__(self, url: str) -> None:
        self._address = read_url(url, EXPECTED, _raised)
        self.place = self._address.place
        self._loop = asyncio.Runner()
        self._db: Any = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with plainly(self.place, _raised):
            return self._loop.run(work)

    def open(self) -> None:
        """Connect; the schema is made."""
        self._run(self._connect())

    async def _connect(self) -> None:
        schema = self._address.schema
        self._db = await asyncpg.connect(
            self._address.dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS,
            statement_cache_size=0,  # which would remember the types that columns had
            server_settings=SETTINGS | {"search_path": schema},
        )
        if not await self._db.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", schema):
            await self._db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        if MARKS not in await relations(self._db, schema):
            await self._db.execute(f"CREATE TABLE IF NOT EXISTS {MARKS} (name text PRIMARY KEY, mark text NOT NULL)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it, or nothing."""
        transaction = self._db.transaction()
        self._run(transaction.start())
        try:
            yield
        except BaseException:
            if not self._db.is_closed():
                self._run(transaction.rollback())
            raise
        self._run(transaction.commit())

    def has_table(self, table: str) -> bool:
        """Whether there is one."""
        return table in self._run(relations(self._db, self._address.schema))

    def read_mark(self, table: str) -> str | None:
        """The mark of a table."""
        mark: str | None = self._run(self._db.fetchval(f"SELECT mark FROM {MARKS} WHERE name = $1", table))
        return mark

    def move_mark(self, table: str, before: str | None, now: str) -> bool:
        """Write a mark."""
        if before is None:
            done = self._db.execute(f"INSERT INTO {MARKS} VALUES ($1, $2) ON CONFLICT DO NOTHING", table, now)
        else:
            done = self._db.execute(f"UPDATE {MARKS} SET mark = $2 WHERE name = $1 AND mark = $3", table, now, before)
        return str(self._run(done)).endswith(" 1")

    def create(self, table: str, columns: Sequence[StoredColumn]) -> None:
        """Make a table."""
        listed = ", ".join(f"{quoted(each.name)} {TYPES[each.kind]}" for each in columns)
        self._run(self._db.execute(f"CREATE TABLE {quoted(table)} ({listed})"))

    def add(self, table: str, column: StoredColumn) -> None:
        """Add a column."""
        added = f"ADD COLUMN {quoted(column.name)} {TYPES[column.kind]}"
        self._run(self._db.execute(f"ALTER TABLE {quoted(table)} {added}"))

    def widen(self, table: str, column: Widened) -> None:
        """Change the type of a column."""
        if TYPES[column.before] == TYPES[column.now]:
            return
        name, kind = quoted(column.name), TYPES[column.now]
        # By way of text: a cast from double to numeric rounds to 15 digits.
        way = f"to_json({name})" if column.now is ValueKind.JSON else f"{name}::text::{kind}"
        self._run(self._db.execute(f"ALTER TABLE {quoted(table)} ALTER COLUMN {name} TYPE {kind} USING {way}"))

    def insert(self, table: str, columns: Sequence[StoredColumn], rows: Iterable[list[Any]]) -> None:
        """Add rows."""
        kinds = [each.kind for each in columns]
        cells = [[_cell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows]
        if cells:
            names = [each.name for each in columns]
            copied = self._db.copy_records_to_table(
                table, records=cells, columns=names, schema_name=self._address.schema
            )
            self._run(copied)

    def close(self) -> None:
        """Let go of the connection."""
        if self._db is not None:
            self._db.terminate()
            self._db = None
        self._loop.close()


def _cell(value: Any, kind: ValueKind) -> Any:  # noqa: ANN401 - a cell
    if value is None:
        return None
    match kind:
        case ValueKind.TEXT:
            return value.replace("\0", REPLACED)
        case ValueKind.JSON:
            return value  # a NUL is written \u0000 in there, which `json` takes
        case ValueKind.DIGITS:
            return Decimal(value)
    return value


def _raised(message: str, trouble: DatabaseTrouble) -> TargetError:
    del trouble
    return TargetError(message)
