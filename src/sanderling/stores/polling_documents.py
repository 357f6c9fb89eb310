"""Rows and changes of `polling` in a SQL database. Each function is called within a transaction.

Whoever writes rows asks for the number of the last change first. A server locks it: so there is one at a time, also
among processes, and numbers are in the order of commits.
"""
# ruff: noqa: S608 - all names are quoted, all values are parameters

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import groupby
from typing import NamedTuple

from sanderling.outcome import Code
from sanderling.stores.database import Insert, Kind, Transaction
from sanderling.stores.database import Row as StoredRow
from sanderling.stores.documents import ColumnKind, Document, Parent, Row, Table, Value, source_error, waiting
from sanderling.stores.polling import Change, Op, PollingStoreError, Span, Told
from sanderling.stores.polling_rows import (
    LARGEST,
    LARGEST_PAGE,
    SMALLEST,
    Difference,
    Update,
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

VALUES = 5  # the place of the column of a change that may be large
KINDS = {
    ColumnKind.TEXT: Kind("TEXT", "text"),
    ColumnKind.INTEGER: Kind("INTEGER", "bigint"),
    ColumnKind.REAL: Kind("REAL", "float8"),
    ColumnKind.BOOLEAN: Kind("BOOLEAN", "boolean"),
}


class Tables(NamedTuple):
    """The tables of the source: as it has them now, and all that are in the database, parents before children."""

    known: dict[str, Table]
    all: tuple[Table, ...]
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
    number: str  # sets the number of the last change
    page: str  # the changes behind a number, up to so many
    remember: str  # kind, source_id, etag, modified, digest, and the time if something has changed
    read_again: Sequence[str]  # lets the other targets of an event be read again: kind, source_id, event
    span: str
    trim: str


def insert_changes(table: str, values: str) -> Insert:
    """Inserts changes; `table` and `values` are the names of two columns."""
    text, json = Kind("", "text"), Kind("", "json")
    told = dict.fromkeys(("kind", "source_id", "event"), text)
    columns = {"seq": Kind("", "bigint"), "at": Kind("", "float8"), "op": text, table: text, "key": text}
    return Insert("polling_changes", {**columns, values: json, "fields": json, **told})


async def keep(db: Transaction, said: DocumentStatements, tables: Tables, told: Told) -> list[Change]:
    """Store what differs. Raises SourceError for what must wait, or cannot be."""
    check_document(told.document)
    try:
        return await _keep(db, said, tables, told)
    except db.unfit as error:
        raise source_error(Code.INVALID_RESPONSE, f"cannot be stored: {error}") from error


async def _keep(db: Transaction, said: DocumentStatements, tables: Tables, told: Told) -> list[Change]:
    document = told.document
    _check_tables(tables, document)
    newest = await _newest(db, said)
    await _check_needs(db, tables, document.needs)
    found = await _difference(db, said, tables, document)
    going: list[Parent] = []
    if any(found):
        async with _by_us(db, said):
            await _write(db, said, tables, found)
            going = await _going(db, tables, found.delete)  # after that: a row may have moved from a parent that goes
            check_going(document, going)
            for table, keys in _keys(going).items():
                await db.execute(f"DELETE FROM {tables.named(table)} WHERE {db.dialect.among.format('id')}", keys)
    changes = changes_of(told, found, going, newest + 1)
    await _number(db, said, changes)
    name = (told.kind, told.source_id)
    if len(going) > len(found.delete):
        for statement in said.read_again:
            await db.execute(statement, *name, told.event)
    if all(map(is_text, name)):
        known = (validator(told.etag), validator(told.modified), told.digest)
        await db.execute(said.remember, *name, *known, told.at if changes else None)
    return changes


@asynccontextmanager
async def _by_us(db: Transaction, said: DocumentStatements) -> AsyncIterator[None]:
    """What is written to the rows meanwhile is no edit by hand. What is rolled back takes the word for it along."""
    for statement in said.by_us[:1]:
        await db.execute(statement)
    yield
    for statement in said.by_us[1:]:
        await db.execute(statement)


async def _newest(db: Transaction, said: DocumentStatements) -> int:
    return int((await db.fetch(said.newest))[0][0])


def _check_tables(tables: Tables, document: Document) -> None:
    parts = ((row.table for row in document.rows), (each.table for each in document.whole))
    for name in sorted({name for part in parts for name in part} - set(tables.known)):
        said = f"there is no table {name}, expected one of {', '.join(tables.known) or 'none'}"
        raise PollingStoreError(said, transient=False)


async def _check_needs(db: Transaction, tables: Tables, needs: Sequence[Parent]) -> None:
    there = {name: await _there(db, tables, name, "id", keys) for name, keys in _keys(needs).items()}
    for each in needs:
        if each.key not in there[each.table]:
            raise waiting(each)


def _keys(rows: Iterable[Parent | Row]) -> dict[str, list[str]]:
    """Keys by table, in the order in which the tables come."""
    keys: dict[str, list[str]] = {}
    for row in rows:
        keys.setdefault(row.table, []).append(row.key)
    return keys


async def _there(db: Transaction, tables: Tables, table: str, column: str, values: Collection[str]) -> set[str]:
    """The keys of the rows that have one of these in a column."""
    among = db.dialect.among.format(f'"{column}"')
    query = f"SELECT id FROM {tables.named(table)} WHERE {among}"
    return {key for (key,) in await db.fetch(query, [*values])}


async def _difference(db: Transaction, said: DocumentStatements, tables: Tables, document: Document) -> Difference:
    stored: dict[Parent, Mapping[str, Value]] = {}
    for name, keys in _keys(document.rows).items():
        of = tables.known[name]
        query = f"SELECT {_columns(of)} FROM {tables.named(name)} WHERE {db.dialect.among.format('id')}"
        for row in await db.fetch(query, keys):
            stored[Parent(name, row[0])] = _values(of, row)
    there = []
    for whole in document.whole:
        if said.make_index:
            await db.execute(said.make_index.format(whole.table, whole.column))
        there.append(await _there(db, tables, whole.table, whole.column, [whole.parent]))
    return difference(document, stored, there)


def _columns(table: Table) -> str:
    return ", ".join(("id", *(f'"{column.name}"' for column in table.columns)))


def _values(table: Table, row: StoredRow) -> dict[str, Value]:
    """Values of a row that begins with its key."""
    values: dict[str, Value] = {
        column.name: bool(value) if column.kind is ColumnKind.BOOLEAN and value is not None else value
        for column, value in zip(table.columns, row[1:], strict=True)
    }
    return values


async def _write(db: Transaction, said: DocumentStatements, tables: Tables, found: Difference) -> None:
    for name, rows in groupby(found.insert, lambda row: row.table):
        await db.insert(_insert(tables, name), _tuples(tables.known[name], rows))
    for name, updates in groupby(found.update, lambda update: update.row.table):
        await _update(db, said, tables, name, [*updates])


def _insert(tables: Tables, name: str) -> Insert:
    kinds = {f'"{column.name}"': KINDS[column.kind] for column in tables.known[name].columns}
    return Insert(tables.named(name), {"id": KINDS[ColumnKind.TEXT], **kinds})


def _tuples(table: Table, rows: Iterable[Row]) -> list[tuple[Value, ...]]:
    names = [column.name for column in table.columns]
    return [(row.key, *map(row.values.__getitem__, names)) for row in rows]


async def _update(db: Transaction, said: DocumentStatements, tables: Tables, name: str, updates: list[Update]) -> None:
    if said.at_once:
        insert = _insert(tables, name)
        values = ", ".join(f"{column} = given.{column}" for column in [*insert.columns][1:])
        statement = f"UPDATE {insert.table} AS its SET {values} FROM {insert.given} WHERE its.id = given.id"
        await db.execute(statement, *insert.parameters(_tuples(tables.known[name], (row for row, _ in updates))))
        return
    for row, fields in updates:
        # Only these: to write a reference is to look for its parent again.
        changed = ", ".join(f'"{field}" = ?' for field in fields)
        values_of = [row.values[field] for field in fields]
        await db.execute(f"UPDATE {tables.named(name)} SET {changed} WHERE id = ?", *values_of, row.key)


async def _going(db: Transaction, tables: Tables, delete: Sequence[Parent]) -> list[Parent]:
    """All that goes, children before parents."""
    asking = cascade(tables.all, delete)
    try:
        asked = next(asking)
        while True:
            asked = asking.send(await _there(db, tables, asked.table, asked.column, asked.keys))
    except StopIteration as end:
        going: list[Parent] = end.value
        return going


async def _number(db: Transaction, said: DocumentStatements, changes: Sequence[Change]) -> None:
    """Write changes, the last of which is the newest now."""
    if not changes:
        return
    made, last = [packed(change) for change in changes], changes[-1].seq
    if said.at_once:
        await db.execute(
            f"WITH written AS ({said.changes.postgres}) {said.number}", *said.changes.parameters(made), last
        )
    else:
        await db.insert(said.changes, made)
        await db.execute(said.number, last)


async def rows(db: Transaction, tables: Tables, table: Table, event: str | None, after: str, most: int) -> list[Row]:
    """Rows behind a key."""
    of_event = event is not None and any(column.name == "event" for column in table.columns)
    if not is_text(after) or (of_event and not is_text(event or "")):
        return []
    where, wanted = ("event = ? AND ", (event,)) if of_event else ("", ())
    query = f"SELECT {_columns(table)} FROM {tables.named(table.name)} WHERE {where}id > ? ORDER BY id LIMIT ?"
    found = await db.fetch(query, *wanted, after, _bounded(most, 0))
    return [Row(table.name, row[0], _values(table, row)) for row in found]


async def purge(db: Transaction, said: DocumentStatements, tables: Tables, wall: float) -> dict[str, int]:
    """Remove all rows and targets; children first."""
    newest = await _newest(db, said)
    async with _by_us(db, said):
        counts = {
            each.name: await db.execute(f"DELETE FROM {tables.named(each.name)}") for each in reversed(tables.all)
        }
    targets = await db.execute("DELETE FROM polling_targets")
    await _number(db, said, [Change(seq=newest + 1, at=wall, op=Op.PURGE, table="", key="")])
    # A source may have a table of that name.
    return counts | {"targets": counts.get("targets", 0) + targets}


async def changes(db: Transaction, said: DocumentStatements, after: int, most: int) -> list[Change]:
    """The next ones, up to those that are LARGEST_PAGE together: what is before a change is what counts."""
    bounds = (_bounded(after), _bounded(most, 0))
    if said.at_once:
        return [unpacked(tuple(row)) for row in await db.fetch(said.page, *bounds)]
    found: list[Change] = []
    size = 0
    async with aclosing(db.stream(said.page, *bounds)) as rows:
        async for row in rows:
            found.append(unpacked(tuple(row)))
            size += len(row[VALUES])
            if size > LARGEST_PAGE:
                break
    return found


async def span(db: Transaction, said: DocumentStatements) -> Span:
    """From where to where they go."""
    ((oldest, newest),) = await db.fetch(said.span)
    return Span(oldest or 0, newest)


async def trim(db: Transaction, said: DocumentStatements, keep: int) -> int:
    """Forget all but the last; there are no gaps between them."""
    return await db.execute(said.trim, _bounded(keep, 0))


def _bounded(number: int, least: int = SMALLEST) -> int:
    """A number that a database has. To SQLite a negative limit is none."""
    return max(least, min(number, LARGEST))
