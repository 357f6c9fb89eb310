"""Rows and changes in a SQLite file."""
# ruff: noqa: S608 - all names are quoted, all values are parameters

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from sanderling.stores.documents import ColumnKind, Document, Parent, Row, Table, Value, Whole, waiting
from sanderling.stores.polling import Change, Op, PollingStoreError, Span, Told
from sanderling.stores.polling_rows import (
    LARGEST,
    LARGEST_PAGE,
    SMALLEST,
    Asked,
    Difference,
    cascade,
    changes_of,
    check_going,
    difference,
    is_text,
    packed,
    unpacked,
    validator,
)
from sanderling.stores.sqlite_polling_tables import WRITING, Tables, index_on, quoted

CHANGES = "SELECT * FROM polling_changes WHERE seq > ? ORDER BY seq LIMIT ?"
VALUES = 5  # the place of the column that may be large
SAME_AS_BEFORE = "etag IS :etag AND modified IS :modified AND digest IS :digest"
REMEMBER = f"""UPDATE polling_targets
    SET etag = :etag, modified = :modified, digest = :digest, changed = coalesce(:changed, changed)
    WHERE kind = :kind AND source_id = :source_id AND (:changed IS NOT NULL OR NOT ({SAME_AS_BEFORE}))"""
OTHERS = """event = :event AND NOT (kind = :kind AND source_id = :source_id)
    AND (etag != '' OR modified != '' OR digest != x'')"""
# Whoever polls knows digests by heart, so this is an edit.
NOTE_OTHERS = f"""INSERT INTO polling_edits (target) SELECT id FROM polling_targets WHERE {OTHERS}
    AND id NOT IN (SELECT target FROM polling_edits)"""
FORGET_OTHERS = f"UPDATE polling_targets SET etag = '', modified = '', digest = x'' WHERE {OTHERS}"


def keep(db: sqlite3.Connection, tables: Tables, told: Told) -> list[Change]:
    """Store what differs. Raises SourceError for what must wait, or cannot be."""
    document = told.document
    _check_tables(tables, document)
    _check_needs(db, document.needs)
    there = [_children(db, each) for each in document.whole]
    found = difference(document, _stored(db, tables, document.rows), there)
    going: list[Parent] = []
    if any(found):
        with _by_us(db):
            _write(db, found)
            going = _going(db, tables, found.delete)  # after that: a row may have moved away from a parent that goes
            check_going(document, going)
            _delete(db, going)
    changes = changes_of(told, found, going, _last(db) + 1)
    _number(db, changes)
    _remember(db, told, changed=bool(changes))
    if len(going) > len(found.delete):
        _forget_others(db, told)
    return changes


@contextmanager
def _by_us(db: sqlite3.Connection) -> Iterator[None]:
    """What is written to the rows meanwhile is no edit by hand. What is rolled back takes the word for it along."""
    db.execute("INSERT INTO polling_meta VALUES (?, 1)", (WRITING,))
    yield
    db.execute("DELETE FROM polling_meta WHERE key = ?", (WRITING,))


def _check_tables(tables: Tables, document: Document) -> None:
    parts = ((row.table for row in document.rows), (each.table for each in document.whole))
    for name in sorted({name for part in parts for name in part} - set(tables.known)):
        said = f"there is no table {name}, expected one of {', '.join(tables.known) or 'none'}"
        raise PollingStoreError(said, transient=False)


def _check_needs(db: sqlite3.Connection, needs: Sequence[Parent]) -> None:
    by_table = _keys(needs)
    there = {name: _there(db, name, "id", keys) for name, keys in by_table.items()}
    for each in needs:
        if each.key not in there[each.table]:
            raise waiting(each)


def _keys(rows: Iterable[Parent | Row]) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for row in rows:
        keys.setdefault(row.table, []).append(row.key)
    return keys


def _there(db: sqlite3.Connection, table: str, column: str, values: Collection[str]) -> set[str]:
    """The keys of the rows that have one of these in a column. All in one parameter: each by itself takes longer."""
    query = f"""SELECT there.id FROM json_each(?) AS wanted
        CROSS JOIN {quoted(table)} AS there ON there.{quoted(column)} = wanted.value"""
    return {key for (key,) in db.execute(query, (_listed(values),))}


def _children(db: sqlite3.Connection, each: Whole) -> list[str]:
    db.execute(index_on(each.table, each.column))  # there already, but for a column that nobody has asked by
    query = f"SELECT id FROM {quoted(each.table)} WHERE {quoted(each.column)} = ?"
    return [key for (key,) in db.execute(query, (each.parent,))]


def _stored(db: sqlite3.Connection, tables: Tables, rows: Sequence[Row]) -> dict[Parent, Mapping[str, Value]]:
    """Those of the rows that are there, as they are there."""
    stored: dict[Parent, Mapping[str, Value]] = {}
    for name, keys in _keys(rows).items():
        table = tables.known[name]
        query = f"""SELECT {_columns(table, "there.")} FROM json_each(?) AS wanted
            CROSS JOIN {quoted(name)} AS there ON there.id = wanted.value"""
        for key, values in _read(table, db.execute(query, (_listed(keys),))):
            stored[Parent(name, key)] = values
    return stored


def _columns(table: Table, prefix: str = "") -> str:
    return ", ".join(f"{prefix}{quoted(name)}" for name in ("id", *(column.name for column in table.columns)))


def _read(table: Table, found: Iterable[Sequence[Value]]) -> Iterator[tuple[str, dict[str, Value]]]:
    """Keys and values, from the columns in order."""
    names = ["id", *(column.name for column in table.columns)]
    yes_or_no = [column.name for column in table.columns if column.kind is ColumnKind.BOOLEAN]
    for row in found:
        values = dict(zip(names, row, strict=True))
        for name in yes_or_no:
            if values[name] is not None:
                values[name] = bool(values[name])
        yield str(values.pop("id")), values


def _going(db: sqlite3.Connection, tables: Tables, delete: Sequence[Parent]) -> list[Parent]:
    """All that goes, children before parents."""
    asking = cascade(tables.all, delete)
    answer: set[str] | None = None
    while True:
        try:
            asked: Asked = next(asking) if answer is None else asking.send(answer)
        except StopIteration as end:
            return list(end.value)
        answer = _there(db, asked.table, asked.column, asked.keys)


def _write(db: sqlite3.Connection, found: Difference) -> None:
    for row in found.insert:
        names = "".join(f", {quoted(name)}" for name in row.values)
        places = ", ?" * len(row.values)
        db.execute(f"INSERT INTO {quoted(row.table)} (id{names}) VALUES (?{places})", (row.key, *row.values.values()))
    for row, fields in found.update:
        # Only these: to write a reference is to look for its parent again.
        changed = ", ".join(f"{quoted(name)} = ?" for name in fields)
        values = (*(row.values[name] for name in fields), row.key)
        db.execute(f"UPDATE {quoted(row.table)} SET {changed} WHERE id = ?", values)


def _delete(db: sqlite3.Connection, going: Iterable[Parent]) -> None:
    for each in going:
        db.execute(f"DELETE FROM {quoted(each.table)} WHERE id = ?", (each.key,))


def _last(db: sqlite3.Connection) -> int:
    """The number of the last change there ever was."""
    ((number,),) = db.execute("SELECT value FROM polling_meta WHERE key = 'seq'")
    return int(number)


def _number(db: sqlite3.Connection, changes: Sequence[Change]) -> None:
    if changes:
        db.executemany("INSERT INTO polling_changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(packed, changes))
        db.execute("UPDATE polling_meta SET value = ? WHERE key = 'seq'", (changes[-1].seq,))


def _remember(db: sqlite3.Connection, told: Told, *, changed: bool) -> None:
    if is_text(told.kind) and is_text(told.source_id):
        known = {"etag": validator(told.etag), "modified": validator(told.modified), "digest": told.digest}
        name = {"kind": told.kind, "source_id": told.source_id}
        db.execute(REMEMBER, {**known, **name, "changed": told.at if changed else None})


def _forget_others(db: sqlite3.Connection, told: Told) -> None:
    """Let the other targets of the event be read again: some of what they said is gone."""
    name = {"event": told.event, "kind": told.kind, "source_id": told.source_id}
    db.execute(NOTE_OTHERS, name)
    db.execute(FORGET_OTHERS, name)


def rows(db: sqlite3.Connection, table: Table, event: str | None, after: str, most: int) -> list[Row]:
    """Rows behind a key."""
    of_event = event is not None and any(column.name == "event" for column in table.columns)
    if not is_text(after) or (of_event and not is_text(event or "")):
        return []
    where, wanted = ("event = ? AND ", (event,)) if of_event else ("", ())
    query = f"SELECT {_columns(table)} FROM {quoted(table.name)} WHERE {where}id > ? ORDER BY id LIMIT ?"
    found = _read(table, db.execute(query, (*wanted, after, _bounded(most, 0))))
    return [Row(table.name, key, values) for key, values in found]


def purge(db: sqlite3.Connection, tables: Tables, wall: float) -> dict[str, int]:
    """Remove all rows and targets; children first."""
    with _by_us(db):
        counts = {each.name: db.execute(f"DELETE FROM {quoted(each.name)}").rowcount for each in reversed(tables.all)}
    targets = db.execute("DELETE FROM polling_targets").rowcount
    _number(db, [Change(seq=_last(db) + 1, at=wall, op=Op.PURGE, table="", key="")])
    # A source may have a table of that name.
    return counts | {"targets": counts.get("targets", 0) + targets}


def changes(db: sqlite3.Connection, after: int, most: int) -> list[Change]:
    """The next ones."""
    found: list[Change] = []
    size = 0
    for row in db.execute(CHANGES, (_bounded(after), _bounded(most, 0))):
        found.append(unpacked(row))
        size += len(row[VALUES])
        if size > LARGEST_PAGE:
            break
    return found


def span(db: sqlite3.Connection) -> Span:
    """From where to where they go."""
    ((oldest, newest),) = db.execute(
        "SELECT (SELECT min(seq) FROM polling_changes), value FROM polling_meta WHERE key = 'seq'"
    )
    return Span(oldest or 0, newest)


def trim(db: sqlite3.Connection, keep: int) -> int:
    """Forget all but the last; there are no gaps between them."""
    return db.execute("DELETE FROM polling_changes WHERE seq <= ?", (_last(db) - _bounded(keep, 0),)).rowcount


def _bounded(number: int, least: int = SMALLEST) -> int:
    """A number that SQLite has. To it a negative limit is none."""
    return max(least, min(number, LARGEST))


def _listed(values: Collection[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
