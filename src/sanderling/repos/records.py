"""The records of a folder of repos: all records of all its segments, in the order of the segments.

A repo that was crawled again is there again, as a whole, with another `rev`: the later one counts.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.formats.rca import Block, RcaError
from sanderling.repos.archives import Archive, ArchiveProblem
from sanderling.repos.plc import is_did
from sanderling.repos.rows import split
from sanderling.repos.segments import PART, number_of, segments_in
from sanderling.stores.durable import FolderError
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
from sanderling.stores.sqlite_progress import PROGRESS

DATABASE = "progress.db"
COMPARED = 20_000  # DIDs that are looked at for the nearest
MOST_NOTES = 100


class RepoPosition(msgspec.Struct, frozen=True):
    """Behind so many records of the block at a byte of a segment."""

    segment: int
    byte: int
    records: int


class RepoRecord(msgspec.Struct):
    """A record, and where it is from."""

    uri: str
    did: str
    host: str
    rev: str
    crawled_at: int  # microseconds since 1970
    collection: str
    rkey: str
    record: msgspec.Raw


class RepoSummary(msgspec.Struct):
    """A repo as it was crawled once."""

    did: str
    host: str
    rev: str
    crawled_at: int
    segment: str
    bytes: int
    collections: dict[str, int]


class WantedRecord(NamedTuple):
    """What a key names: a repo, or a record of it."""

    did: str
    collection: str = ""
    rkey: str = ""


class _CrawledAt(msgspec.Struct):
    crawled_at: int


_encode = msgspec.json.Encoder().encode


class RepoRecords:
    """The records of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        segments = self._segments()
        first = str(number_of(segments[0])) if segments else ""
        self.about = SourceDescription("repos", f"repos {first}", RepoRecord.__struct_fields__)

    def read(self, after: str | None = None) -> Iterator[Record]:
        """The records behind a position."""
        begin = RepoPosition(0, 0, 0)
        at = begin if after is None else read_position(after, RepoPosition, self._folder)
        segments = self._segments()
        if after is not None and all(number_of(path) < at.segment for path in segments):
            raise RecordsError(
                f"{self._folder} has no segment {at.segment}, which was read before: it is another folder"
            )
        for path in segments:
            number = number_of(path)
            if number >= at.segment:
                yield from self._records(path, at if number == at.segment else RepoPosition(number, 0, 0))

    def _records(self, path: Path, at: RepoPosition) -> Iterator[Record]:
        with self._archive(path) as archive:
            for block in archive.blocks(at.byte):
                done = at.records if block.offset == at.byte else 0
                for number, record in islice(enumerate(self._of_block(path, block), 1), done, None):
                    yield Record(record, write_position(RepoPosition(at.segment, block.offset, number)))

    def _of_block(self, path: Path, block: Block) -> Iterator[bytes]:
        """The records of a block, up to the first that is damaged."""
        try:
            for entry, offset, content in block.contents(lambda _: True):
                for rkey, json in zip(*split(content, entry.count, offset), strict=True):
                    yield _record(block, entry.name, rkey.decode(), json)
        except (RcaError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._note(ArchiveProblem(path, block.offset, f"repo {block.did}: {error}"))

    def show(self, key: str) -> RecordLookup:
        """A repo by its DID, or a record by its at:// URI; or why it is not there."""
        wanted = _wanted(key)
        if wanted is None:
            why = "it is neither a DID (did:…) nor a URI (at://did/collection/rkey); for a handle: sanderling repos get"
            return RecordLookup(why=why, nearest=self._some_dids(""))
        found = [shown for path in self._segments() for shown in self._find(path, wanted)]
        if found:
            crawled_at = msgspec.json.decode(found[-1], type=_CrawledAt).crawled_at
            return RecordLookup(found[-1], found[:-1][-MOST_HISTORY:], at=crawled_at)
        return RecordLookup(why=self._why(wanted), nearest=self._some_dids(wanted.did))

    def _find(self, path: Path, wanted: WantedRecord) -> Iterator[bytes]:
        with self._archive(path) as archive:
            offsets = [head.offset for head in archive.heads(check=False) if head.did == wanted.did]
            for offset in offsets:
                block = next(archive.blocks(offset))
                if not wanted.collection:
                    counts = {entry.name: entry.count for entry in block.toc}
                    about = (block.did, block.pds, block.rev, block.crawled_at, path.name, len(block.data))
                    yield _encode(RepoSummary(*about, counts))
                    continue
                records = block.records(wanted.collection)
                yield from (_record(block, wanted.collection, *each) for each in records if each[0] == wanted.rkey)

    def _why(self, wanted: WantedRecord) -> str:
        path = self._folder / DATABASE
        if not path.exists():
            return f"no segment has it, and {path} is not there to say why (the progress may be in Redis)"
        try:
            with closing(open_to_read(path, PROGRESS)) as db:
                row = db.execute("SELECT category, complete FROM did WHERE did = ?", (wanted.did,)).fetchone()
        except (FolderError, sqlite3.Error) as error:
            return f"no segment has it, and why cannot be said: {error}"
        if row is None:
            return "the crawl has not come to it yet, or its directory does not list it"
        category, complete = row
        if not category:
            return "its repo is archived, and has no such record" if wanted.collection else "its segment is missing"
        return f"{category}, for good" if complete else f"failed for now, and is asked for again: {category}"

    def _some_dids(self, did: str) -> list[str]:
        def dids() -> Iterator[str]:
            for path in self._segments():
                with self._archive(path) as archive:
                    yield from (head.did for head in archive.heads(check=False))

        return nearest(did, islice(dids(), COMPARED))

    def _segments(self) -> list[Path]:
        try:
            return sorted(segments_in(self._folder), key=number_of)
        except OSError as error:
            raise RecordsError(f"cannot read {self._folder}: {error.strerror}") from None

    def _archive(self, path: Path) -> Archive:
        # A crawl that ends a segment takes the .part off its name.
        path = path if path.exists() else path.with_name(path.name.removesuffix(PART))
        try:
            return Archive(path, self._note)
        except RcaError as error:
            raise RecordsError(f"{path} is no segment: {error}. Look at it with: sanderling verify {path}") from None
        except OSError as error:
            raise RecordsError(f"cannot read {path}: {error.strerror}") from None

    def _note(self, problem: ArchiveProblem) -> None:
        if len(self.about.notes) < MOST_NOTES:
            self.about.notes.append(f"left out: {problem}")

    def close(self) -> None:
        """Nothing is held open."""


def _record(block: Block, collection: str, rkey: str, json: bytes) -> bytes:
    # On one line, whoever has written the archive.
    raw = msgspec.Raw(json if b"\n" not in json else msgspec.json.format(json, indent=-1))
    uri = f"at://{block.did}/{collection}/{rkey}"
    return _encode(RepoRecord(uri, block.did, block.pds, block.rev, block.crawled_at, collection, rkey, raw))


def _wanted(key: str) -> WantedRecord | None:
    did, _, path = key.removeprefix("at://").partition("/")
    collection, _, rkey = path.partition("/")
    if not is_did(did) or (path and not (collection and rkey)):
        return None
    return WantedRecord(did, collection, rkey)
