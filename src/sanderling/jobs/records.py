"""The records of a job's folder, as they stand in records.jsonl."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from sanderling.crawls.records import explain_end, nearest_urls, open_ledger, rows_behind
from sanderling.ids import HostError, host_of
from sanderling.jobs.files import FRONTIER, RECORDS
from sanderling.jobs.request import key_of, own_key
from sanderling.stores import frontier_reading
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_reading import KnownUrl
from sanderling.stores.frontier_rows import KEPT
from sanderling.stores.record_source import MOST_HISTORY, Record, RecordLookup, SourceDescription, read_position

MOST_HOSTS = 1000  # that are looked at for a key


class JobPosition(msgspec.Struct, frozen=True):
    """A byte of records.jsonl."""

    byte: int


class JobRecords:
    """The records of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._ledger() as (_, meta):
            self.about = SourceDescription("jobs", f"job {meta.plan} {meta.started}")

    def read(self, after: str | None = None) -> Iterator[Record]:
        """The records behind a position, in the order in which they were kept."""
        start = 0 if after is None else read_position(after, JobPosition, self._folder).byte
        with self._ledger() as (_, meta):
            end = meta.watermark
        for line, at in rows_behind(self._folder / RECORDS, start, end):
            # A record may be a list, too.
            json = line if line.startswith(b"{") else b'{"value":%b}' % line
            yield Record(json, f'{{"byte":{at}}}')

    def show(self, key: str) -> RecordLookup:
        """The records of which a field is the key; or what became of the request of that key or URL."""
        with self._ledger() as (db, _):
            known = self._request(db, key)
            rows = [record.json for record in self.read() if _may_have(record.json, key) and _has(record.json, key)]
            if rows:
                return RecordLookup(rows[-1], rows[:-1][-MOST_HISTORY:])
            near = nearest_urls(db, key)
        if known is None:
            return RecordLookup(why="no record has it in a field, and no request has that key or URL", nearest=near)
        if known.end in KEPT:
            return RecordLookup(
                why="the request was answered, and no record has its key or URL in a field", nearest=near
            )
        return RecordLookup(why=explain_end(known), nearest=near)

    def _request(self, db: sqlite3.Connection, key: str) -> KnownUrl | None:
        try:
            return frontier_reading.known_url(db, host_of(key), key_of("GET", key, None))
        except HostError:
            hosts = frontier_reading.host_names(db, MOST_HOSTS)
        found = (frontier_reading.known_url(db, host, own_key(key)) for host in hosts)
        return next((each for each in found if each is not None), None)

    def _ledger(self) -> AbstractContextManager[tuple[sqlite3.Connection, FrontierMeta]]:
        return open_ledger(self._folder / FRONTIER)

    def close(self) -> None:
        """Nothing is held open."""


def _may_have(json: bytes, key: str) -> bool:
    """Whether the text of the key is in there at all: nearly no record need be decoded then."""
    return key.encode() in json or msgspec.json.encode(key)[1:-1] in json


def _has(json: bytes, key: str) -> bool:
    record = msgspec.json.decode(json)
    return any(value == key or (type(value) is int and str(value) == key) for value in record.values())
