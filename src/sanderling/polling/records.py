"""The records of a folder of polling: all rows as they are when the reading begins, then every change since.

A row has `op` "row"; a change has "insert", "update", "delete" or "purge", and a number, `seq`, that only grows.
"""
# ruff: noqa: S608 - names are of our own tables, and quoted

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.record_source import (
    MOST_HISTORY,
    Record,
    RecordLookup,
    RecordsError,
    SourceDescription,
    nearest,
    read_position,
    write_position,
)
from sanderling.stores.sqlite_file import open_to_read
from sanderling.stores.sqlite_polling_tables import POLLING, quoted

DATABASE = "polling.db"
PAGE = 500  # rows of one look at the file, which is let go of in between
COMPARED = 20_000  # keys that are looked at for the nearest
BOOLEAN = "BOOLEAN"
# The columns of a source that was described: its record is JSON.
DESCRIBED = {"event", "target", "active", "record"}
CHANGE = "seq, at, op, table_name, key, row, kind, source_id, event"


class PollingPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Behind a row of a table, while rows are read; then behind a change."""

    seq: int
    table: str | None = None
    key: str = ""


class PolledRecord(msgspec.Struct):
    """A row, or a change of one."""

    seq: int  # of a row: that of the last change before the reading began
    op: str
    table: str
    id: str
    at: float | None  # when a change was seen, in Unix seconds
    event: str
    target: str
    row: object


class TargetRecord(msgspec.Struct):
    """What is polled: how often it was asked, and how that went last."""

    kind: str
    source_id: str
    event: str
    runs: int
    failures: int
    asked: float | None
    fetched: float | None
    changed: float | None
    status: str
    enabled: int
    gone: float | None


_encode = msgspec.json.Encoder().encode
TARGET = ", ".join(TargetRecord.__struct_fields__)


class PollingRecords:
    """The rows and changes of a folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / DATABASE
        with self._open() as db:
            ((source,),) = db.execute("SELECT value FROM polling_meta WHERE key = 'source'")
            self.about = SourceDescription("polling", f"polling {source}", PolledRecord.__struct_fields__)

    def read(self, after: str | None = None) -> Iterator[Record]:
        """The rows and changes behind a position."""
        with self._open() as db:
            begin = PollingPosition(_last(db), "")
            at = begin if after is None else read_position(after, PollingPosition, self._path)
            if at.table is not None:
                yield from self._rows(db, at)
                yield Record(b"", write_position(PollingPosition(at.seq)))  # no rows any more, changes from now on
            yield from self._changes(db, at.seq)

    def _rows(self, db: sqlite3.Connection, at: PollingPosition) -> Iterator[Record]:
        for table in sorted(_tables(db)):
            if table < (at.table or ""):
                continue
            key = at.key if table == at.table else ""
            while found := _page(db, table, key):
                for key, row in found:
                    target = str(row.get("target", ""))
                    record = PolledRecord(at.seq, "row", table, key, None, str(row.get("event", "")), target, row)
                    yield Record(_encode(record), write_position(PollingPosition(at.seq, table, key)))

    def _changes(self, db: sqlite3.Connection, seq: int) -> Iterator[Record]:
        ((oldest,),) = db.execute("SELECT min(seq) FROM polling_changes")
        last = _last(db)
        if seq > last:
            raise RecordsError(f"{self._path} has {last} changes, and {seq} were read before: it is another file")
        if seq < (last if oldest is None else oldest - 1):
            raise RecordsError(
                f"{self._path} no longer has the changes from {seq + 1} to {last if oldest is None else oldest - 1}:"
                " it keeps the last ones only. Export to another target, from the beginning."
            )
        while found := db.execute(
            f"SELECT {CHANGE} FROM polling_changes WHERE seq > ? ORDER BY seq LIMIT {PAGE}", (seq,)
        ).fetchall():
            for row in found:
                seq = row[0]
                yield Record(_encode(_change(row)), write_position(PollingPosition(seq)))

    def show(self, key: str) -> RecordLookup:
        """A row by its id, or a target by its source id, with its changes; or why it is not there."""
        with self._open() as db:
            changes = [
                _encode(_change(row))
                for row in db.execute(
                    f"""SELECT {CHANGE} FROM polling_changes WHERE key = ? OR source_id = ?
                    ORDER BY seq DESC LIMIT {MOST_HISTORY}""",
                    (key, key),
                )
            ][::-1]
            for table in _tables(db):
                for name, row in _rows_where(db, table, "id = ?", key):
                    return RecordLookup(_encode({"table": table, "id": name, "row": row}), changes)
            target = db.execute(f"SELECT {TARGET} FROM polling_targets WHERE source_id = ? LIMIT 1", (key,)).fetchone()
            if target is not None:
                return RecordLookup(_encode(TargetRecord(*target)), changes)
            if changes:
                return RecordLookup(None, changes, "it is gone: its last change is a delete", self._near(db, key))
            return RecordLookup(why="no row and no target has that id", nearest=self._near(db, key))

    def _near(self, db: sqlite3.Connection, key: str) -> list[str]:
        def keys() -> Iterator[str]:
            for table in _tables(db):
                for (name,) in db.execute(f"SELECT id FROM {quoted(table)} ORDER BY id LIMIT {COMPARED}"):
                    yield name

        return nearest(key, keys())

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with plainly(self._path), closing(open_to_read(self._path, POLLING)) as db:
                yield db
        except FolderError as error:
            raise RecordsError(str(error)) from None

    def close(self) -> None:
        """Nothing is held open."""


def _last(db: sqlite3.Connection) -> int:
    ((seq,),) = db.execute("SELECT value FROM polling_meta WHERE key = 'seq'")
    return int(seq)


def _tables(db: sqlite3.Connection) -> list[str]:
    ((names,),) = db.execute("SELECT value FROM polling_meta WHERE key = 'tables'")
    return msgspec.json.decode(names, type=list[str])


def _page(db: sqlite3.Connection, table: str, after: str) -> list[tuple[str, dict[str, object]]]:
    return list(_rows_where(db, table, f"id > ? ORDER BY id LIMIT {PAGE}", after))


def _rows_where(
    db: sqlite3.Connection, table: str, which: str, *values: object
) -> Iterator[tuple[str, dict[str, object]]]:
    kinds = dict(db.execute("SELECT name, type FROM pragma_table_info(?) WHERE name != 'id'", (table,)))
    names = "".join(f", {quoted(name)}" for name in kinds)
    described = kinds.keys() >= DESCRIBED
    for key, *found in db.execute(f"SELECT id{names} FROM {quoted(table)} WHERE {which}", values):
        row = dict(zip(kinds, found, strict=True))
        for name, kind in kinds.items():
            if kind == BOOLEAN and row[name] is not None:
                row[name] = bool(row[name])
        yield key, _opened(row) if described else row


def _opened(row: dict[str, object]) -> dict[str, object]:
    """The row with its record as JSON, where that is one."""
    record = row.get("record")
    if isinstance(record, str):
        row["record"] = msgspec.Raw(record.encode())
    return row


def _change(found: tuple[int, float, str, str, str, str, str, str, str]) -> PolledRecord:
    seq, at, op, table, key, row, _, source_id, event = found
    values: Mapping[str, object] = msgspec.json.decode(row, type=dict[str, object])
    opened = _opened(dict(values)) if values.keys() >= DESCRIBED else values
    return PolledRecord(seq, op, table, key, at, event, source_id, opened)
