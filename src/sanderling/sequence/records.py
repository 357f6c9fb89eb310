"""The records of a folder of ids, in the order in which they were stored: those of `record`, then those of the game.

A store of an earlier release has neither table. The next crawl or `sequence store` in the folder adds them.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from sanderling.sequence.state import KIND
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.instances import InstancesError, RawRow, unpacked
from sanderling.stores.instances_store import INSTANCES
from sanderling.stores.record_source import (
    Record,
    RecordLookup,
    RecordsError,
    SourceDescription,
    read_position,
    write_position,
)
from sanderling.stores.sqlite_file import open_to_read, version_of

ROWS, STATE = "rows.db", "sequence.db"
PAGE = 500  # records of one look at the file, which is let go of in between
ELSEWHERE = "of some records only the row is here: what the API said is in the store that --raw named"

RECORDS = f"SELECT number, id, api, time, crawled, record FROM record WHERE number > ? ORDER BY number LIMIT {PAGE}"  # noqa: S608 - ours
# Bound by `number`, which leads; the others are found by their keys.
OF_GAME = """SELECT arrival.number, instance.instance_id, api, date_completed, instance.crawled, data
    FROM arrival CROSS JOIN instance ON instance.instance_id = arrival.instance_id
    LEFT JOIN raw_instance ON raw_instance.instance_id = arrival.instance_id"""
INSTANCES_AFTER = f"{OF_GAME} WHERE arrival.number > ? ORDER BY arrival.number LIMIT {PAGE}"
ONE_RECORD = "SELECT 0, id, api, time, crawled, record FROM record WHERE id = ?"
ONE_INSTANCE = """SELECT 0, instance.instance_id, api, date_completed, instance.crawled, data FROM instance
    LEFT JOIN raw_instance ON raw_instance.instance_id = instance.instance_id WHERE instance.instance_id = ?"""
NEAR = """SELECT id FROM (SELECT {0} AS id FROM {1} WHERE {0} < ?1 ORDER BY {0} DESC LIMIT 2)
    UNION ALL SELECT id FROM (SELECT {0} AS id FROM {1} WHERE {0} > ?1 ORDER BY {0} LIMIT 3)"""
NEAREST = (NEAR.format("id", "record"), NEAR.format("instance_id", "instance"))
Found = tuple[int, int, str, float | None, float, str | bytes | None]


class SequencePosition(msgspec.Struct, frozen=True):
    """Behind a record, and behind an instance of the game."""

    record: int = 0
    instance: int = 0


class IdRecord(msgspec.Struct):
    """A record. Times are Unix seconds."""

    id: int
    api: str
    time: float | None  # when it came to be, as far as the API says
    crawled: float
    record: msgspec.Raw | None


_encode = msgspec.json.Encoder().encode


class SequenceRecords:
    """The records of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / ROWS
        self.about = SourceDescription("sequence", "sequence", IdRecord.__struct_fields__)
        if not self._path.exists():
            raise RecordsError(
                f"{folder} has no {ROWS}: nothing was stored yet, or the records are in the store that --rows named"
                " (PostgreSQL has them in the tables record and raw_instance)."
                f" To store what the queue holds: sanderling sequence store --until-empty --out {folder}"
            )
        with self._open() as db:
            if version_of(db) < INSTANCES.version:
                raise RecordsError(
                    f"{self._path} is of an earlier release. Bring it to this one with:"
                    f" sanderling sequence store --until-empty --out {folder}"
                )

    def read(self, after: str | None = None) -> Iterator[Record]:
        """The records behind a position."""
        at = SequencePosition() if after is None else read_position(after, SequencePosition, self._path)
        with self._open() as db:
            record, instance = at.record, at.instance
            while found := db.execute(RECORDS, (record,)).fetchall():
                for row in found:
                    record = row[0]
                    yield Record(self._made(row), write_position(SequencePosition(record, instance)))
            while found := db.execute(INSTANCES_AFTER, (instance,)).fetchall():
                for row in found:
                    instance = row[0]
                    yield Record(self._made(row), write_position(SequencePosition(record, instance)))

    def _made(self, row: Found) -> bytes:
        _, number, api, time, crawled, data = row
        if data is None and ELSEWHERE not in self.about.notes:
            self.about.notes.append(ELSEWHERE)
        return _encode(IdRecord(number, api, time, crawled, None if data is None else self._raw(number, data)))

    def _raw(self, number: int, data: str | bytes) -> msgspec.Raw:
        if isinstance(data, str):
            said = data.encode()
        else:
            try:
                said = unpacked(RawRow(number, data, 0), self._path)
            except InstancesError as error:
                raise RecordsError(str(error)) from None
        return msgspec.Raw(said if b"\n" not in said else msgspec.json.format(said, indent=-1))

    def show(self, key: str) -> RecordLookup:
        """The record of an id; or why there is none."""
        if not key.isascii() or not key.isdecimal() or int(key) >= 2**63:
            return RecordLookup(why="it is no id: expected a whole number")
        number = int(key)
        with self._open() as db:
            row = db.execute(ONE_RECORD, (number,)).fetchone() or db.execute(ONE_INSTANCE, (number,)).fetchone()
            if row is not None:
                return RecordLookup(self._made(row))
            near = [str(each) for query in NEAREST for (each,) in db.execute(query, (number,))]
        return RecordLookup(why=self._why(number), nearest=near)

    def _why(self, number: int) -> str:
        path = self._folder / STATE
        if not path.exists():
            return f"there is no {path} to say why"
        with self._plainly(path), closing(open_to_read(path, KIND)) as db:
            row = db.execute(
                "SELECT reason, tries, high FROM missed WHERE low <= ? ORDER BY low DESC LIMIT 1", (number,)
            ).fetchone()
            if row is not None and row[2] >= number:
                return f"missed: {row[0]}, asked for {row[1]} times; see: sanderling sequence missed list"
            ahead = db.execute("SELECT 1 FROM crawl WHERE next <= ?", (number,)).fetchone()
        if ahead is not None:
            return "the crawl has not come to it yet"
        return "it was left out or not found, or it waits in the queue: sanderling sequence store --until-empty"

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._plainly(self._path), closing(open_to_read(self._path, INSTANCES)) as db:
            yield db

    @contextmanager
    def _plainly(self, path: Path) -> Iterator[None]:
        try:
            with plainly(path):
                yield
        except FolderError as error:
            raise RecordsError(str(error)) from None

    def close(self) -> None:
        """Nothing is held open."""
