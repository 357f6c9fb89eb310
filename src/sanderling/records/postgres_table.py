"""Tables of PostgreSQL, which has a type for every number. It has none for the character NUL: that is replaced."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.records.columns import StoredColumn, ValueKind, Widened
from sanderling.records.tables import MARKS, TableDatabase, quoted
from sanderling.records.target import TargetError
from sanderling.stores.database import DatabaseTrouble
from sanderling.stores.postgres_database import numbered
from sanderling.stores.postgres_server import CONNECT_SECONDS, SETTINGS, make_schema, plainly, read_url, relations

T = TypeVar("T")

EXPECTED = "expected postgresql://user@host:5432/database?schema=name"
ANSWER_SECONDS = 600.0  # a column of many rows is written anew when its type changes
REPLACED = "\N{REPLACEMENT CHARACTER}"


class PostgresTables(TableDatabase):
    """A schema of a server."""

    types = {  # noqa: RUF012 - of the protocol
        **dict.fromkeys((ValueKind.NULL, ValueKind.TEXT), "text"),
        **dict.fromkeys((ValueKind.SMALL, ValueKind.INTEGER), "bigint"),
        ValueKind.BOOLEAN: "boolean",
        ValueKind.FLOAT: "double precision",
        ValueKind.DIGITS: "numeric",
        ValueKind.JSON: "json",
    }

    def __init__(self, url: str) -> None:
        self._address = read_url(url, EXPECTED, _raised)
        self.place = self._address.place
        self._loop = asyncio.Runner()
        self._db: Any = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with plainly(self.place, _raised):
            return self._loop.run(work)

    def open(self) -> None:
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
        await make_schema(self._db, schema)
        if MARKS not in await relations(self._db, schema):
            await self._db.execute(f"CREATE TABLE IF NOT EXISTS {MARKS} (name text PRIMARY KEY, mark text NOT NULL)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        transaction = self._db.transaction()
        self._run(transaction.start())
        try:
            yield
        except BaseException:
            if not self._db.is_closed():
                self._run(transaction.rollback())
            raise
        self._run(transaction.commit())

    def run(self, statement: str, *values: object) -> Sequence[Sequence[Any]]:
        # What has no values may have a name with a "?" in it.
        found: list[tuple[Any, ...]] = self._run(self._db.fetch(numbered(statement) if values else statement, *values))
        return found

    def has_table(self, table: str) -> bool:
        return table in self._run(relations(self._db, self._address.schema))

    def convert(self, column: Widened) -> str:
        # By way of text: a cast from double to numeric rounds to 15 digits.
        name = quoted(column.name)
        return f"to_json({name})" if column.now is ValueKind.JSON else f"{name}::text::{self.types[column.now]}"

    def insert(self, table: str, columns: Sequence[StoredColumn], rows: Iterable[list[Any]]) -> None:
        kinds = [each.kind for each in columns]
        cells = [[_cell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows]
        if cells:
            names = [each.name for each in columns]
            copied = self._db.copy_records_to_table(
                table, records=cells, columns=names, schema_name=self._address.schema
            )
            self._run(copied)

    def close(self) -> None:
        if self._db is not None:
            self._db.terminate()
            self._db = None
        self._loop.close()


def _cell(value: Any, kind: ValueKind) -> Any:  # noqa: ANN401 - a cell
    if value is None:
        return None
    if kind is ValueKind.TEXT:
        return value.replace("\0", REPLACED)
    # In JSON a NUL is written \u0000, which `json` takes.
    return Decimal(value) if kind is ValueKind.DIGITS else value


def _raised(message: str, trouble: DatabaseTrouble) -> TargetError:
    del trouble
    return TargetError(message)
