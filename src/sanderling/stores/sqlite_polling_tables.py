"""The tables of `polling` in a SQLite file: our own, with the triggers that note edits, and those of a source."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.stores.documents import Column, ColumnKind, Schema, SourceTable
from sanderling.stores.polling import VERSION, PollingStoreError
from sanderling.stores.polling_documents import KINDS as COLUMN_KINDS
from sanderling.stores.polling_documents import Tables
from sanderling.stores.polling_rows import LONGEST_SECONDS
from sanderling.stores.sqlite_file import FileKind, transaction

# Whether a target is polled at all, as `Target.wanted` has it, whatever was written by hand: a text is larger than any
# number. The indexes are for those for which this is so, and for the others; queries must have it word for word.
WANTED = f"""(enabled IS NOT 0 AND gone IS NULL
    AND ((set_seconds > 0 AND set_seconds < {LONGEST_SECONDS}) OR (seconds > 0 AND seconds < {LONGEST_SECONDS})))"""
UNWANTED = f"({WANTED} IS NOT TRUE)"  # what is not set makes it neither true nor false
INTERVAL = f"CASE WHEN set_seconds > 0 AND set_seconds < {LONGEST_SECONDS} THEN set_seconds ELSE seconds END"

NOTE = """INSERT INTO polling_edits (target) SELECT {0}.id
    WHERE NOT EXISTS (SELECT 1 FROM polling_edits WHERE target = {0}.id)"""
NOTE_REPLACED = """INSERT INTO polling_edits (target) SELECT id FROM polling_targets AS there
    WHERE kind = new.kind AND source_id = new.source_id
    AND NOT EXISTS (SELECT 1 FROM polling_edits WHERE target = there.id)"""
# What discovery and admins write.
EDITED = (
    "kind",
    "source_id",
    "event",
    '"only"',
    "seconds",
    "priority",
    "gone",
    "enabled",
    "set_seconds",
    "set_priority",
    "promote",
)
DIFFERS = " OR ".join(f"old.{name} IS NOT new.{name}" for name in EDITED)

OWN = (
    "CREATE TABLE polling_meta (key TEXT PRIMARY KEY NOT NULL, value NOT NULL) WITHOUT ROWID",
    # The source; the number of the last change there ever was; the names of the source's tables.
    "INSERT INTO polling_meta VALUES ('source', ''), ('seq', 0), ('tables', '[]')",
    f"""CREATE TABLE polling_targets (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        source_id TEXT NOT NULL,
        event TEXT NOT NULL DEFAULT '',
        "only" TEXT,
        seconds REAL NOT NULL CHECK (typeof(seconds) = 'real' AND seconds >= 0 AND seconds < {LONGEST_SECONDS}),
        priority INTEGER NOT NULL DEFAULT 0 CHECK (typeof(priority) = 'integer'),
        gone REAL CHECK (typeof(gone) IN ('real', 'null')),
        enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
        set_seconds REAL CHECK (set_seconds > 0 AND set_seconds < {LONGEST_SECONDS}),
        set_priority INTEGER CHECK (typeof(set_priority) IN ('integer', 'null')),
        promote REAL CHECK (promote >= 0 AND promote < {LONGEST_SECONDS}),
        next_due REAL NOT NULL DEFAULT 0 CHECK (typeof(next_due) = 'real'),
        until REAL CHECK (typeof(until) IN ('real', 'null')),
        runs INTEGER NOT NULL DEFAULT 0,
        missed INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0,
        asked REAL,
        fetched REAL,
        changed REAL,
        status TEXT NOT NULL DEFAULT '',
        etag TEXT NOT NULL DEFAULT '',
        modified TEXT NOT NULL DEFAULT '',
        digest BLOB NOT NULL DEFAULT x'',
        polls REAL NOT NULL DEFAULT 0,
        hits REAL NOT NULL DEFAULT 0)""",
    "CREATE UNIQUE INDEX polling_targets_name ON polling_targets (kind, source_id)",
    # By their id those that are due at the same time are told apart, also where it is not written.
    f"CREATE INDEX polling_targets_due ON polling_targets (next_due) WHERE {WANTED}",
    # With what is counted: there may be very many that are paused.
    f"CREATE INDEX polling_targets_idle ON polling_targets (next_due, id, enabled, gone) WHERE {UNWANTED}",
    "CREATE INDEX polling_targets_event ON polling_targets (event, kind)",
    "CREATE INDEX polling_targets_until ON polling_targets (until) WHERE until IS NOT NULL",
    "CREATE INDEX polling_targets_failing ON polling_targets (gone) WHERE failures > 0",
    # One row per target, in the order in which they were first noted.
    "CREATE TABLE polling_edits (number INTEGER PRIMARY KEY, target INTEGER NOT NULL UNIQUE)",
    # INSERT OR REPLACE deletes the row that is in its way and calls no trigger for that.
    f"CREATE TRIGGER polling_targets_replaced BEFORE INSERT ON polling_targets BEGIN {NOTE_REPLACED}; END",
    f"CREATE TRIGGER polling_targets_inserted AFTER INSERT ON polling_targets BEGIN {NOTE.format('new')}; END",
    f"CREATE TRIGGER polling_targets_deleted AFTER DELETE ON polling_targets BEGIN {NOTE.format('old')}; END",
    f"""CREATE TRIGGER polling_targets_updated AFTER UPDATE OF {", ".join(EDITED)} ON polling_targets
        WHEN {DIFFERS} BEGIN {NOTE.format("new")}; END""",
    "CREATE TABLE polling_settings (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE polling_positions (name TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE polling_changes (
        seq INTEGER PRIMARY KEY, at REAL NOT NULL, op TEXT NOT NULL, table_name TEXT NOT NULL, key TEXT NOT NULL,
        row TEXT NOT NULL, fields TEXT NOT NULL, kind TEXT NOT NULL, source_id TEXT NOT NULL, event TEXT NOT NULL)""",
)
# Rows of the source that somebody has edited by hand: who may have brought them. While we write rows ourselves, WRITING
# is in polling_meta; since others cannot write meanwhile, nobody else ever sees it there.
TOUCHED = """CREATE TABLE IF NOT EXISTS polling_touched (
    kind TEXT NOT NULL, source_id TEXT NOT NULL, event TEXT NOT NULL, PRIMARY KEY (kind, source_id, event))
    WITHOUT ROWID"""
WRITING = "writing"
TOUCH = {"INSERT": ("new",), "UPDATE": ("old", "new"), "DELETE": ("old",)}
POLLING = FileKind("store of polling", 0x53504F4C, VERSION, OWN)  # "SPOL"

# Both yes and no are numbers to SQLite; the word is there so that who has no schema can tell.
TYPES = {kind: each.sqlite for kind, each in COLUMN_KINDS.items()}
KINDS = {name: kind for kind, name in TYPES.items()}


Statement = tuple[str, tuple[str, ...]]


class Declared(NamedTuple):
    """A column as the file has it."""

    type: str
    references: str | None


def quoted(name: str) -> str:
    """A name, so that no word of SQL is mistaken for one."""
    return f'"{name}"'


# Lets children be found by what is in a column, in the order of their keys. No table is called so, and no other index.
INDEX = 'CREATE INDEX IF NOT EXISTS "polling:{0}:{1}" ON "{0}" ("{1}", id)'


def prepare(db: sqlite3.Connection, path: Path, schema: Schema | None, source: str) -> Tables:
    """Make what is missing of the source's tables; the tables there are then. Raises PollingStoreError."""
    # Mostly nothing is missing, and then nobody need wait for a turn to write.
    if any(_missing(db, path, schema, source)):
        with transaction(db):
            for statement, values in list(_missing(db, path, schema, source)):
                db.execute(statement, values)
    every = [_table(db, name) for name in _names(db)]
    known = {table.name: table for table in every} | {table.name: table for table in (schema.tables if schema else ())}
    return Tables(known, _in_order(path, every))


def _missing(db: sqlite3.Connection, path: Path, schema: Schema | None, source: str) -> Iterator[Statement]:
    """The statements by which the file becomes one of this source with this schema."""
    ((found,),) = db.execute("SELECT value FROM polling_meta WHERE key = 'source'")
    if source and found and found != source:
        raise PollingStoreError(f"{path} is of the source {found!r}, expected {source!r}", transient=False)
    if source and not found:
        yield "UPDATE polling_meta SET value = ? WHERE key = 'source'", (source,)
    names = _names(db)
    there = dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'trigger')"))
    if "polling_touched" not in there:
        yield TOUCHED, ()
    for table in schema.tables if schema else ():
        if table.name in names:
            yield from _missing_columns(db, path, table)
        else:
            yield _made(table), ()
        yield from _missing_indexes(db, table)
        for name, statement in _triggers(table):
            if there.get(name) != statement:  # or the table has other columns by now
                yield f"DROP TRIGGER IF EXISTS {quoted(name)}", ()
                yield statement, ()
    if new := [table.name for table in (schema.tables if schema else ()) if table.name not in names]:
        yield "UPDATE polling_meta SET value = ? WHERE key = 'tables'", (_listed([*names, *new]),)


def _names(db: sqlite3.Connection) -> list[str]:
    ((names,),) = db.execute("SELECT value FROM polling_meta WHERE key = 'tables'")
    return msgspec.json.decode(names, type=list[str])


def _listed(names: Iterable[str]) -> str:
    return msgspec.json.encode(list(names)).decode()


def _made(table: SourceTable) -> str:
    columns = "".join(f", {_column(each)}" for each in table.columns)
    return f"CREATE TABLE {quoted(table.name)} (id TEXT PRIMARY KEY NOT NULL{columns})"


def _column(column: Column) -> str:
    name = quoted(column.name)
    refers = f" REFERENCES {quoted(column.references)} (id) ON DELETE CASCADE" if column.references else ""
    check = f" CHECK ({name} IN (0, 1))" if column.kind is ColumnKind.BOOLEAN else ""
    return f"{name} {TYPES[column.kind]}{refers}{check}"


def _triggers(table: SourceTable) -> Iterator[tuple[str, str]]:
    """What notes edits by hand: names, and statements."""
    for does, rows in TOUCH.items():
        name = f"polling:{table.name}:{does.lower()}"
        notes = "".join(f"INSERT OR IGNORE INTO polling_touched VALUES ({_whose(table, row)}); " for row in rows)  # noqa: S608 - ours
        by_hand = f"NOT EXISTS (SELECT 1 FROM polling_meta WHERE key = '{WRITING}')"  # noqa: S608 - ours
        after = f"AFTER {does} ON {quoted(table.name)} WHEN {by_hand}"
        yield name, f"CREATE TRIGGER {quoted(name)} {after} BEGIN {notes} END"


def _whose(table: SourceTable, row: str) -> str:
    """Who may have brought a row: in a table with a column `target`, the target of that kind and id; and its event."""
    names = {column.name for column in table.columns}
    parts = (f"coalesce({row}.\"{name}\", '')" if name in names else "''" for name in ("target", "event"))
    return ", ".join((f"'{table.name}'", *parts))


def _missing_columns(db: sqlite3.Connection, path: Path, table: SourceTable) -> Iterator[Statement]:
    there = _declared(db, table.name)
    for column in table.columns:
        found, expected = there.get(column.name), Declared(TYPES[column.kind], column.references)
        if found is None:
            yield f"ALTER TABLE {quoted(table.name)} ADD COLUMN {_column(column)}", ()
        elif found != expected:
            said = f"{path}: {table.name}.{column.name} is {_words(found)}, expected {_words(expected)}"
            raise PollingStoreError(said, transient=False)


def _words(column: Declared) -> str:
    return f"{column.type} that refers to {column.references}" if column.references else column.type


def _missing_indexes(db: sqlite3.Connection, table: SourceTable) -> Iterator[Statement]:
    """By its references and by its event."""
    there = {statement for (statement,) in db.execute("SELECT sql FROM sqlite_schema WHERE type = 'index'")}
    for column in table.columns:
        wanted = INDEX.format(table.name, column.name)
        # SQLite keeps the statement without these words.
        if (column.references or column.name == "event") and wanted.replace("IF NOT EXISTS ", "") not in there:
            yield wanted, ()


def _declared(db: sqlite3.Connection, table: str) -> dict[str, Declared]:
    """The columns that are in the file, without the key."""
    refer = dict(db.execute('SELECT "from", "table" FROM pragma_foreign_key_list(?)', (table,)))
    columns = db.execute("SELECT name, type FROM pragma_table_info(?) WHERE name != 'id'", (table,))
    return {name: Declared(kind, refer.get(name)) for name, kind in columns}


def _table(db: sqlite3.Connection, name: str) -> SourceTable:
    """A table as it is in the file."""
    return SourceTable(name, tuple(_columns(_declared(db, name))))


def _columns(declared: Mapping[str, Declared]) -> Iterator[Column]:
    for name, column in declared.items():
        # A column that no source can have was added by hand, and is not ours.
        with suppress(ValueError, KeyError):
            yield Column(name, KINDS[column.type], column.references)


def _in_order(path: Path, tables: Sequence[SourceTable]) -> tuple[SourceTable, ...]:
    """Parents before children."""
    known = {table.name: table for table in tables}
    parents = {table.name: {each.references for each in table.columns if each.references} for table in tables}
    try:
        return tuple(known[name] for name in TopologicalSorter(parents).static_order())
    except CycleError as error:
        said = f"{path}: tables refer to each other: {', '.join(error.args[1])}"
        raise PollingStoreError(said, transient=False) from None
