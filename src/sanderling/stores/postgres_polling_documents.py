"""Rows and changes of a polling store in PostgreSQL.

Whoever writes rows locks the number of the last change first. So there is one at a time, also among processes, and
numbers are in the order of commits.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.outcome import Code
from sanderling.stores.documents import Document, Parent, Row, Schema, Table, Value, source_error, waiting
from sanderling.stores.polling import Change, Op, Span, Told
from sanderling.stores.polling_rows import (
    LARGEST,
    LARGEST_PAGE,
    SMALLEST,
    Difference,
    cascade,
    changes_of,
    check_document,
    check_going,
    difference,
    is_text,
    packed,
    unpacked,
    validator,
)
from sanderling.stores.postgres_polling_link import Link
from sanderling.stores.postgres_polling_tables import TYPES, WRITING, named

# What is written to rows in this transaction is no edit by hand.
NEWEST = f"SELECT newest, set_config('{WRITING}', 'on', true) FROM polling_meta FOR NO KEY UPDATE"  # noqa: S608 - ours
CHANGED = """WITH written AS (
        INSERT INTO polling_changes
        SELECT * FROM unnest($2::bigint[], $3::float8[], $4::text[], $5::text[], $6::text[], $7::json[], $8::json[],
            $9::text[], $10::text[], $11::text[]))
    UPDATE polling_meta SET newest = $1"""
_CHANGE = """seq, at, op, "table", key, "values", fields, kind, source_id, event"""
# Up to those that are LARGEST_PAGE together: what is before a change is what counts.
CHANGES = f"""SELECT {_CHANGE} FROM (
        SELECT *, sum(octet_length("values"::text)) OVER (ORDER BY seq) - octet_length("values"::text) AS before
        FROM (SELECT * FROM polling_changes WHERE seq > $1 ORDER BY seq LIMIT $2) AS following) AS counted
    WHERE before <= {LARGEST_PAGE} ORDER BY seq"""  # noqa: S608 - ours
SPAN = "SELECT coalesce((SELECT min(seq) FROM polling_changes), 0), newest FROM polling_meta"
TRIM = "DELETE FROM polling_changes WHERE seq <= (SELECT newest FROM polling_meta) - $1"
# Nobody waits for an admin who is just editing the target. What is not noted is read again, and found to be the same.
KNOWN_AGAIN = """UPDATE polling_targets SET etag = $3, modified = $4, digest = $5, changed = coalesce($6, changed)
    WHERE id = (SELECT id FROM polling_targets WHERE kind = $1 AND source_id = $2 FOR NO KEY UPDATE SKIP LOCKED)"""
READ_AGAIN = """WITH others AS MATERIALIZED (
        SELECT id FROM polling_targets WHERE event = $3 AND (kind, source_id) <> ($1, $2) ORDER BY id
        FOR NO KEY UPDATE),
    forgotten AS (
        UPDATE polling_targets SET etag = '', modified = '', digest = '' WHERE id IN (SELECT id FROM others))
    INSERT INTO polling_edits (target) SELECT id FROM others
    ON CONFLICT (target) DO UPDATE SET target = excluded.target"""


class PostgresDocuments:
    """The rows."""

    def __init__(self, link: Link, schema: Schema) -> None:
        self._link = link
        self._schema = schema
        self._tables = {table.name: RowTable(link.schema, table) for table in schema.tables}

    async def keep(self, told: Told) -> list[Change]:
        """Store what differs, and who said so: all of it or nothing. Gives the changes in order.

        If the connection breaks while it is committed, nobody knows whether it was. The same document can be kept again
        and changes what is left to change; what had been committed is among the changes, and in no other answer.
        """
        check_document(told.document)

        async def work(db: Any) -> list[Change]:  # noqa: ANN401 - asyncpg has no types
            with _the_documents_fault():
                return await self._keep(db, told)

        return await self._link.write(work)

    async def _keep(self, db: Any, told: Told) -> list[Change]:  # noqa: ANN401 - no types
        newest = await db.fetchval(NEWEST)
        await self._check_needs(db, told.document)
        found = await self._difference(db, told.document)
        await self._write(db, found)
        going = await self._going(db, found)
        check_going(told.document, going)
        for table, keys in _by_table(going):
            await db.execute(self._tables[table].delete, keys)
        changes = changes_of(told, found, going, newest + 1)
        await _write_changes(db, changes)
        name = (told.kind, told.source_id)
        if len(going) > len(found.delete):
            await db.execute(READ_AGAIN, *name, told.event)
        known = (validator(told.etag), validator(told.modified), told.digest)
        await db.execute(KNOWN_AGAIN, *name, *known, told.at if changes else None)
        return changes

    async def _check_needs(self, db: Any, document: Document) -> None:  # noqa: ANN401 - no types
        there: set[Parent] = set()
        for table, keys in _by_table(document.needs):
            there.update(Parent(table, key) for (key,) in await db.fetch(self._tables[table].there, keys))
        for need in document.needs:
            if need not in there:
                raise waiting(need)

    async def _difference(self, db: Any, document: Document) -> Difference:  # noqa: ANN401 - no types
        stored: dict[Parent, Mapping[str, Value]] = {}
        for table, keys in _by_table(Parent(row.table, row.key) for row in document.rows):
            for key, *values in await db.fetch(self._tables[table].stored, keys):
                stored[Parent(table, key)] = dict(zip(self._tables[table].columns, values, strict=True))
        there = [
            {key for (key,) in await db.fetch(self._tables[whole.table].children(whole.column), [whole.parent])}
            for whole in document.whole
        ]
        return difference(document, stored, there)

    async def _write(self, db: Any, found: Difference) -> None:  # noqa: ANN401 - no types
        for table, rows in groupby(found.insert, attrgetter("table")):
            await db.execute(self._tables[table].insert, *self._tables[table].arrays(rows))
        for table, rows in groupby((row for row, _ in found.update), attrgetter("table")):
            await db.execute(self._tables[table].update, *self._tables[table].arrays(rows))

    async def _going(self, db: Any, found: Difference) -> list[Parent]:  # noqa: ANN401 - no types
        """All that goes, children first."""
        asking = cascade(self._schema.tables, found.delete)
        try:
            asked = next(asking)
            while True:
                children = self._tables[asked.table].children(asked.column)
                asked = asking.send([key for (key,) in await db.fetch(children, [*asked.keys])])
        except StopIteration as end:
            going: list[Parent] = end.value
            return going

    async def rows(self, table: str, *, event: str | None = None, after: str = "", most: int = 1000) -> list[Row]:
        """Rows of a table behind a key, in the order of keys; of one event, if the table has such a column."""
        of = self._tables[table]
        if event is None or "event" not in of.columns:
            found = await self._link.read(of.page, after, _long(most))
        elif is_text(event):
            found = await self._link.read(of.page_of_event, after, _long(most), event)
        else:
            found = []  # no row has that
        return [Row(table, key, dict(zip(of.columns, values, strict=True))) for key, *values in found]

    async def purge(self, wall: float) -> dict[str, int]:
        """Remove all rows and all targets; settings stay. Gives how many, by table, and under "targets"."""

        async def work(db: Any) -> dict[str, int]:  # noqa: ANN401 - no types
            newest = await db.fetchval(NEWEST)
            gone = {name: _count(await db.execute(self._tables[name].clear)) for name in reversed(self._tables)}
            gone["targets"] = _count(await db.execute("DELETE FROM polling_targets"))
            await _write_changes(db, [Change(seq=newest + 1, at=wall, op=Op.PURGE, table="", key="")])
            return gone

        return await self._link.write(work)


class PostgresChanges:
    """What changed."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def changes(self, after: int, most: int) -> list[Change]:
        """The next ones after a number, in order."""
        return [unpacked(tuple(row)) for row in await self._link.read(CHANGES, _long(after), _long(most))]

    async def span(self) -> Span:
        """From where to where they go."""
        ((oldest, newest),) = await self._link.read(SPAN)
        return Span(oldest, newest)

    async def trim(self, keep: int) -> int:
        """Forget all but the last so many; say how many went."""
        return _count(await self._link.edit(lambda db: db.execute(TRIM, _long(keep))))


class RowTable:
    """The statements for a table of the source. Where there are many values, each column is an array."""

    def __init__(self, schema: str, table: Table) -> None:
        name = named(schema, table.name)
        self.columns = [column.name for column in table.columns]
        quoted = ["id", *(f'"{column}"' for column in self.columns)]
        kinds = ["text", *(TYPES[column.kind].split(" COLLATE")[0] for column in table.columns)]
        listed, arrays = ", ".join(quoted), ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(kinds, 1))
        given = f"unnest({arrays}) AS given ({listed})"
        values = ", ".join(f"{column} = given.{column}" for column in quoted[1:])
        self._children = f"SELECT id FROM {name} WHERE {{}} = ANY($1)"  # noqa: S608 - names are checked
        self.there = f"SELECT id FROM {name} WHERE id = ANY($1)"  # noqa: S608 - the same
        self.stored = f"SELECT {listed} FROM {name} WHERE id = ANY($1)"  # noqa: S608 - the same
        self.insert = f"INSERT INTO {name} ({listed}) SELECT {listed} FROM {given}"  # noqa: S608 - the same
        self.update = f"UPDATE {name} AS its SET {values} FROM {given} WHERE its.id = given.id"  # noqa: S608 - the same
        self.delete = f"DELETE FROM {name} WHERE id = ANY($1)"  # noqa: S608 - the same
        self.clear = f"DELETE FROM {name}"  # noqa: S608 - the same
        self.page = f"SELECT {listed} FROM {name} WHERE id > $1 ORDER BY id LIMIT $2"  # noqa: S608 - the same
        self.page_of_event = self.page.replace("WHERE", "WHERE event = $3 AND")

    def children(self, column: str) -> str:
        """What asks for the keys of rows with one of those in a column."""
        return self._children.format(f'"{column}"')

    def arrays(self, rows: Iterable[Row]) -> list[tuple[Value, ...]]:
        """The rows, column by column."""
        return list(zip(*((row.key, *map(row.values.__getitem__, self.columns)) for row in rows), strict=True))


async def _write_changes(db: Any, changes: list[Change]) -> None:  # noqa: ANN401 - no types
    """Write changes, the last of which is the newest now."""
    if changes:
        await db.execute(CHANGED, changes[-1].seq, *zip(*map(packed, changes), strict=True))


def _by_table(parents: Iterable[Parent]) -> list[tuple[str, list[str]]]:
    """Keys by table, in the order in which the tables come."""
    found: dict[str, list[str]] = {}
    for table, key in parents:
        found.setdefault(table, []).append(key)
    return list(found.items())


def _long(number: int) -> int:
    """The nearest number of 64 bits."""
    return max(SMALLEST, min(number, LARGEST))


def _count(status: str) -> int:
    """How many rows a statement has changed, by what the server says of it: "DELETE 5"."""
    return int(status.rpartition(" ")[2])


@contextmanager
def _the_documents_fault() -> Iterator[None]:
    try:
        yield
    except (asyncpg.DataError, asyncpg.ProgramLimitExceededError) as error:
        raise source_error(Code.INVALID_RESPONSE, f"cannot be stored: {error}") from error
