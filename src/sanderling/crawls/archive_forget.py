"""Remove captures from the WARC segments of a crawl, and have its rows say where the others stand now.

Segments out of which something goes are written anew under another name. The rows decide: until they are replaced they
speak of the old segments, and from then on of the new ones. Whatever no row speaks of is removed after that, by
whoever does so first. A page that was kept as "the same as that one" gets the payload of its own, if that one goes.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from sanderling.crawls.archive import (
    FOLDER,
    SUFFIX,
    ArchivedRow,
    EarlierCapture,
    PageArchive,
    WarcPlace,
    decode_row,
    index_path,
    segments,
    with_fields,
    write_index,
)
from sanderling.formats import warc
from sanderling.stores.durable import FolderError, sync_folder
from sanderling.stores.rows_file import read_rows

PIECE = 1 << 20  # bytes copied at a time
COPIED = {  # of a record that becomes another, beside its name and date
    "warc-target-uri": "WARC-Target-URI",
    "warc-ip-address": "WARC-IP-Address",
    "warc-concurrent-to": "WARC-Concurrent-To",
    "content-type": "Content-Type",
}


class _Place(NamedTuple):
    name: str
    offset: int


class CaptureRemoval:
    """What has to be done with the captures of one crawl; nothing is written before `rows` are taken."""

    def __init__(self, folder: Path, rows: Path, length: int, is_meant: Callable[[str], object]) -> None:
        self._folder = folder / FOLDER
        self._rows, self._length, self._is_meant = rows, length, is_meant
        self._gone: dict[str, _Place] = {}  # payloads whose captures go, by digest
        self._stays: dict[str, EarlierCapture] = {}  # the same, where they have another capture by now
        self._stale: set[str] = set()  # segments to be written anew
        for line, _ in read_rows(rows, 0, length):
            self._look(decode_row(line))

    def _look(self, row: ArchivedRow) -> None:
        if row.warc_file is None:
            return
        meant = self._is_meant(row.url)
        if meant and row.warc_type == "response":
            self._gone[row.warc_digest] = _Place(row.warc_file, row.warc_offset)
        if meant or (row.warc_type == "revisit" and row.warc_digest in self._gone):
            self._stale.add(row.warc_file)

    def rows(self) -> Iterator[bytes]:
        """The rows that stay, each with its line break; when they have ended, the new segments are on disk."""
        with ExitStack() as opened, _plain_words():
            copy: _SegmentCopy | None = None
            for line, _ in read_rows(self._rows, 0, self._length):
                row = decode_row(line)
                if row.warc_file in self._stale and (copy is None or copy.name != row.warc_file):
                    opened.close()
                    copy = opened.enter_context(_SegmentCopy(self._folder, str(row.warc_file)))
                within = copy if copy is not None and copy.name == row.warc_file else None
                if not self._is_meant(row.url):
                    yield (line if within is None else self._moved(line, row, within)) + b"\n"
                if within is not None:
                    within.request = row.warc_offset + row.warc_length
        if self._stale:
            sync_folder(self._folder)

    def _moved(self, line: bytes, row: ArchivedRow, copy: "_SegmentCopy") -> bytes:
        """Copy request and capture of a row; the row with where the latter stands now."""
        copy.copy_request(row)
        offset = copy.new.tell()
        if row.warc_digest in self._gone:
            kind = self._copy_referring(warc.read_record(copy.path, row.warc_offset), row, copy)
        else:
            copy.copy(row.warc_offset, row.warc_length)
            kind = row.warc_type
        place = WarcPlace(copy.new_name, offset, copy.new.tell() - offset, kind, row.warc_digest)
        return with_fields(_without_place(line), place)

    def _copy_referring(self, record: warc.WarcRecord, row: ArchivedRow, copy: "_SegmentCopy") -> str:
        """Copy what has the payload of a capture that goes, or refers to it; the type that it has now."""
        digest, this = row.warc_digest, EarlierCapture(row.url, row.fetched_at, row.warc_digest)
        if record.kind == "response":
            self._stays.setdefault(digest, this)
        if not self._is_meant(record.headers.get("warc-refers-to-target-uri", "")):
            copy.copy(row.warc_offset, row.warc_length)
            return record.kind
        about = [(name, record.headers[key]) for key, name in COPIED.items() if key in record.headers]
        kind, block, home = "revisit", record.block, self._stays.get(digest)
        if home is None:
            self._stays[digest] = this
            gone = self._gone[digest]
            payload = warc.read_message(warc.read_record(self._folder / gone.name, gone.offset).block).body
            kind, block = "response", block + payload
        else:
            about += [
                ("WARC-Profile", record.headers.get("warc-profile", warc.SAME)),
                ("WARC-Refers-To-Target-URI", home.url),
                ("WARC-Refers-To-Date", home.date),
            ]
        about.append(("WARC-Payload-Digest", digest))
        copy.new.write(warc.make_record(kind, row.fetched_at, block, about, record.headers.get("warc-record-id")))
        return kind


@contextmanager
def _plain_words() -> Iterator[None]:
    try:
        yield
    except warc.WarcError as error:
        raise FolderError(str(error), "Restore it from a copy, and run this again.") from None


class _SegmentCopy:
    """A segment, and the one that is written instead of it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.new_name = name, _renamed(name)
        self.path = folder / name
        info = warc.read_record(self.path, 0)
        self.request = info.end  # where the request of the next row stands
        self._old = self.path.open("rb")
        self.new = (folder / self.new_name).open("wb")
        about = (("WARC-Filename", self.new_name), ("Content-Type", info.headers.get("content-type", "")))
        self.new.write(warc.make_record(info.kind, info.headers.get("warc-date", ""), info.block, about))

    def copy_request(self, row: ArchivedRow) -> None:
        """Copy the request of a row, which stands before its capture."""
        request = warc.read_record(self.path, self.request)
        if request.kind != "request" or request.end != row.warc_offset:
            raise FolderError(
                f"{self.path} has no request for {row.url} at byte {self.request}", "Restore it from a copy."
            )
        self.copy(self.request, request.end - self.request)

    def copy(self, start: int, length: int) -> None:
        """Copy some bytes as they are."""
        self._old.seek(start)
        while length > 0:
            piece = self._old.read(min(PIECE, length))
            if not piece:
                raise FolderError(f"{self.path} ends in the middle of a capture", "Restore it from a copy.")
            self.new.write(piece)
            length -= len(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._old, self.new:
            self.new.flush()
            os.fsync(self.new.fileno())


def cut_archive(folder: Path, crawl: int, rows: Path, length: int) -> None:
    """Cut off what the rows do not vouch for. Raises FolderError if they speak of what is not there."""
    PageArchive(folder, crawl, rows, length).close()


def sweep(folder: Path, crawl: int, rows: Path, length: int) -> int:
    """Remove the segments that no row speaks of, and write the index anew if there is one; how many were removed."""
    spoken = {decode_row(line).warc_file for line, _ in read_rows(rows, 0, length)}
    stale = [path for path in segments(folder, f"pages-{crawl:04}") if path.name not in spoken]
    for path in stale:
        path.unlink()
    if index_path(folder, crawl).exists():
        write_index(folder, crawl, rows, length)
    return len(stale)


def _renamed(name: str) -> str:
    """pages-0001-20261118063000-00001 as pages-0001-20261118063000.1-00001, and that as …000.2-00001."""
    before, _, serial = name.removesuffix(SUFFIX).rpartition("-")
    stamp, _, generation = before.partition(".")
    return f"{stamp}.{int(generation or 0) + 1}-{serial}{SUFFIX}"


def _without_place(line: bytes) -> bytes:
    """A row without what it says of its capture, which is behind all else."""
    return line[: line.rindex(b',"warc_file":')] + b"}"
