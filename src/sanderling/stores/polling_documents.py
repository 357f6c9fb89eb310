"""Rows and changes of `polling` in a SQL database. Each function is called within a transaction.

Whoever writes rows asks for the number of the last change first. A server locks it: so there is one at a time, also
among processes, and numbers are in the order of commits.
"""
# ruff: noqa: S608 - all names are quoted, all values are parameters

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sanderling.outcome import Code
from sanderling.stores.database import ColumnType, Dialect, Insert, Transaction
from sanderling.stores.database import Row as StoredRow
from sanderling.stores.documents import (
    ColumnKind,
    Document,
    Parent,
    SourceRow,
    SourceTable,
    Value,
    source_error,
    waiting,
)
from sanderling.stores.polling import ChangeSpan, Op, PolledDocument, PollingStoreError, RowChange
from sanderling.stores.polling_rows import (
    LARGEST,
    LARGEST_PAGE,
    SMALLEST,
    Difference,
    Update,
    cascade,
    changes_of,
    check_going,
    difference,
    is_text,
    packed,
    unpacked,
    validator,
)

VALUES = 5  # the place of the column of a change that may be large
KINDS = {
    ColumnKind.TEXT: ColumnType("TEXT", "text"),
    ColumnKind.INTEGER: ColumnType("INTEGER", "bigint"),
    ColumnKind.REAL: ColumnType("REAL", "float8"),
    ColumnKind.BOOLEAN: ColumnType("BOOLEAN", "boolean"),
}


class Tables(NamedTuple):
    """The tables of the source: as it has them now, and all that are in the database, parents before children."""

    known: dict[str, SourceTable]
    all: tuple[SourceTable, ...]
    prefix: str = ""  # a table of a source may be called as one of the server's own, which would be found first

    def named(self, table: str) -> str:
        """Its name in a statement."""
        return f'{self.prefix}"{table}"'


class DocumentStatements(NamedTuple):
    """What a database says in its own words."""

    at_once: bool  # whether many rows go with one statement
    newest: str  # asks for the number of the last change
    by_us: Sequence[str]  # before and after rows are written, which is no edit by hand then
    make_index: str  # lets children be found by what is in a column, if nobody has asked by it before
    changes: Insert
    number: str  # sets the number of the last change; writes the changes, too, if they go at once
    page: str  # the changes behind a number, up to so many
    remember: str  # kind, source_id, etag, modified, digest, and the time if something has changed
    read_again: Sequence[str]  # lets the other targets of an event be read again: kind, source_id, event
    span: str
    trim: str


def insert_changes(table: str, values: str) -> Insert:
    """Inserts changes; `table` and `values` are the names of two columns."""
    text, json = ColumnType("", "text"), ColumnType("", "json")
    told = dict.fromkeys(("kind", "source_id", "event"), text)
    columns = {"seq": ColumnType("", "bigint"), "at": ColumnType("", "float8"), "op": text, table: text, "key": text}
    return Insert("polling_changes", {**columns, values: json, "fields": json, **told})


class RowTable:
    """A table of the source, and the statements for it, which are made once."""

    def __init__(self, table: SourceTable, name: str, dialect: Dialect) -> None:
        kinds = {f'"{column.name}"': KINDS[column.kind] for column in table.columns}
        self.table = table
        self.name = name
        self.names = [column.name for column in table.columns]
        self.flags = [column.name for column in table.columns if column.kind is ColumnKind.BOOLEAN]
        self.columns = ", ".join(("id", *kinds))
        self.insert = Insert(name, {"id": KINDS[ColumnKind.TEXT], **kinds})
        self.stored = f"SELECT {self.columns} FROM {name} WHERE {dialect.among.format('id')}"
        self.delete = f"DELETE FROM {name} WHERE {dialect.among.format('id')}"
        values = ", ".join(f"{column} = given.{column}" for column in kinds)
        self.update = f"UPDATE {name} AS its SET {values} FROM {self.insert.given} WHERE its.id = given.id"

    def tuples(self, rows: Iterable[SourceRow]) -> list[tuple[Value, ...]]:
        """The rows in the order of columns."""
        return [(row.key, *map(row.values.__getitem__, self.names)) for row in rows]

    def values(self, row: StoredRow) -> dict[str, Value]:
        """Values of a row that begins with its key."""
        values: dict[str, Value] = dict(zip(self.names, row[1:], strict=True))
        for name in self.flags:
            if values[name] is not None:
                values[name] = bool(values[name])
        return values


class Documents:
    """Rows and changes. Each method is called within a transaction."""

    def __init__(self, said: DocumentStatements, tables: Tables, dialect: Dialect) -> None:
        self._said = said
        self._all = tables.all
        every = {table.name: table for table in tables.all} | tables.known
        self._tables = {name: RowTable(table, tables.named(name), dialect) for name, table in every.items()}
        self._known = tables.known
        self._among = dialect.among

    async def keep(self, db: Transaction, told: PolledDocument) -> list[RowChange]:
        """Store what differs. Raises SourceError for what must wait, or cannot be."""
        try:
            return await self._keep(db, told)
        except db.unfit as error:
            raise source_error(Code.INVALID_RESPONSE, f"cannot be stored: {error}") from error

    async def _keep(self, db: Transaction, told: PolledDocument) -> list[RowChange]:
        document = told.document
        self._check_tables(document)
        newest = await self._newest(db)
        await self._check_needs(db, document.needs)
        found = await self._difference(db, document)
        going: list[Parent] = []
        if any(found):
            async with self._by_us(db):
                await self._write(db, found)
                going = await self._going(db, found.delete)  # after that: a row may have moved from a parent that goes
                check_going(document, going)
                for table, keys in _keys(going).items():
                    await db.execute(self._tables[table].delete, keys)
        changes = changes_of(told, found, going, newest + 1)
        await self._number(db, changes)
        name = (told.kind, told.source_id)
        if len(going) > len(found.delete):
            for statement in self._said.read_again:
                await db.execute(statement, *name, told.event)
        if all(map(is_text, name)):
            known = (validator(told.etag), validator(told.modified), told.digest)
            await db.execute(self._said.remember, *name, *known, told.at if changes else None)
        return changes

    @asynccontextmanager
    async def _by_us(self, db: Transaction) -> AsyncIterator[None]:
        """What is written to the rows meanwhile is no edit by hand. What is rolled back takes the word for it along."""
        for statement in self._said.by_us[:1]:
            await db.execute(statement)
        yield
        for statement in self._said.by_us[1:]:
            await db.execute(statement)

    async def _newest(self, db: Transaction) -> int:
        return int((await db.fetch(self._said.newest))[0][0])

    def _check_tables(self, document: Document) -> None:
        parts = ((row.table for row in document.rows), (each.table for each in document.whole))
        for name in sorted({name for part in parts for name in part} - set(self._known)):
            said = f"there is no table {name}, expected one of {', '.join(self._known) or 'none'}"
            raise PollingStoreError(said, transient=False)

    async def _check_needs(self, db: Transaction, needs: Sequence[Parent]) -> None:
        there = {name: await self._there(db, name, "id", keys) for name, keys in _keys(needs).items()}
        for each in needs:
            if each.key not in there[each.table]:
                raise waiting(each)

    async def _there(self, db: Transaction, table: str, column: str, values: Collection[str]) -> set[str]:
        """The keys of the rows that have one of these in a column."""
        among = self._among.format(f'"{column}"')
        query = f"SELECT id FROM {self._tables[table].name} WHERE {among}"
        return {key for (key,) in await db.fetch(query, [*values])}

    async def _difference(self, db: Transaction, document: Document) -> Difference:
        stored: dict[Parent, Mapping[str, Value]] = {}
        for name, keys in _keys(document.rows).items():
            table = self._tables[name]
            for row in await db.fetch(table.stored, keys):
                stored[Parent(name, row[0])] = table.values(row)
        there = []
        for whole in document.whole:
            if self._said.make_index:
                await db.execute(self._said.make_index.format(whole.table, whole.column))
            there.append(await self._there(db, whole.table, whole.column, [whole.parent]))
        return difference(document, stored, there)

    async def _write(self, db: Transaction, found: Difference) -> None:
        for name, rows in groupby(found.insert, attrgetter("table")):
            await db.insert(self._tables[name].insert, self._tables[name].tuples(rows))
        for name, updates in groupby(found.update, attrgetter("row.table")):
            await self._update(db, self._tables[name], [*updates])

    async def _update(self, db: Transaction, table: RowTable, updates: Sequence[Update]) -> None:
        if self._said.at_once:
            await db.execute(table.update, *table.insert.parameters(table.tuples(row for row, _ in updates)))
            return
        for fields, same in groupby(updates, attrgetter("fields")):
            # Only these: to write a reference is to look for its parent again.
            changed = ", ".join(f'"{field}" = ?' for field in fields)
            values = [(*map(row.values.__getitem__, fields), row.key) for row, _ in same]
            await db.execute_many(f"UPDATE {table.name} SET {changed} WHERE id = ?", values)

    async def _going(self, db: Transaction, delete: Sequence[Parent]) -> list[Parent]:
        """All that goes, children before parents."""
        asking = cascade(self._all, delete)
        try:
            asked = next(asking)
            while True:
                asked = asking.send(await self._there(db, asked.table, asked.column, asked.keys))
        except StopIteration as end:
            going: list[Parent] = end.value
            return going

    async def _number(self, db: Transaction, changes: Sequence[RowChange]) -> None:
        """Write changes, the last of which is the newest now."""
        if not changes:
            return
        into, made, last = self._said.changes, [packed(change) for change in changes], changes[-1].seq
        if self._said.at_once:
            await db.execute(self._said.number, *into.parameters(made), last)
        else:
            await db.insert(into, made)
            await db.execute(self._said.number, last)

    async def rows(self, db: Transaction, name: str, event: str | None, after: str, most: int) -> list[SourceRow]:
        """Rows behind a key."""
        table = self._tables[name]
        of_event = event is not None and "event" in table.names
        if not is_text(after) or (of_event and not is_text(event or "")):
            return []
        where, wanted = ("event = ? AND ", (event,)) if of_event else ("", ())
        query = f"SELECT {table.columns} FROM {table.name} WHERE {where}id > ? ORDER BY id LIMIT ?"
        found = await db.fetch(query, *wanted, after, _bounded(most, 0))
        return [SourceRow(name, row[0], table.values(row)) for row in found]

    async def purge(self, db: Transaction, wall: float) -> dict[str, int]:
        """Remove all rows and targets; children first."""
        newest = await self._newest(db)
        async with self._by_us(db):
            names = [table.name for table in reversed(self._all)]
            counts = {name: await db.execute(f"DELETE FROM {self._tables[name].name}") for name in names}
        targets = await db.execute("DELETE FROM polling_targets")
        await self._number(db, [RowChange(seq=newest + 1, at=wall, op=Op.PURGE, table="", key="")])
        # A source may have a table of that name.
        return counts | {"targets": counts.get("targets", 0) + targets}

    async def changes(self, db: Transaction, after: int, most: int) -> list[RowChange]:
        """The next ones, up to those that are LARGEST_PAGE together: what is before a change is what counts."""
        bounds = (_bounded(after), _bounded(most, 0))
        if self._said.at_once:
            return [unpacked(tuple(row)) for row in await db.fetch(self._said.page, *bounds)]
        found: list[RowChange] = []
        size = 0
        async with aclosing(db.stream(self._said.page, *bounds)) as rows:
            async for row in rows:
                found.append(unpacked(tuple(row)))
                size += len(row[VALUES])
                if size > LARGEST_PAGE:
                    break
        return found

    async def span(self, db: Transaction) -> ChangeSpan:
        """From where to where they go."""
        ((oldest, newest),) = await db.fetch(self._said.span)
        return ChangeSpan(oldest or 0, newest)

    async def trim(self, db: Transaction, keep: int) -> int:
        """Forget all but the last; there are no gaps between them."""
        return await db.execute(self._said.trim, _bounded(keep, 0))


def _keys(rows: Iterable[Parent | SourceRow]) -> dict[str, list[str]]:
    """Keys by table, in the order in which the tables come."""
    keys: dict[str, list[str]] = {}
    for row in rows:
        keys.setdefault(row.table, []).append(row.key)
    return keys


def _bounded(number: int, least: int = SMALLEST) -> int:
    """A number that a database has. To SQLite a negative limit is none."""
    return max(least, min(number, LARGEST))
