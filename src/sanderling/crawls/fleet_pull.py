"""Makes a plain folder of one part of a fleet's crawl: its ledger, its rows and its files, as far as they are now."""

import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

from sanderling.crawls.archive import FOLDER as WARCS
from sanderling.crawls.archive import decode_row
from sanderling.crawls.fleet_log import ObjectPlace, captures_of
from sanderling.stores.durable import FolderError, plainly, sync_data, write_pieces
from sanderling.stores.fleet import FleetStore, Segment
from sanderling.stores.frontier_file import connect_to_read, read_meta
from sanderling.stores.ledger_log import head_of

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, decompress
else:
    from backports.zstd import ZstdError, decompress

LARGEST = 2**30  # bytes of a segment


class PulledPart(NamedTuple):
    """One part of a crawl that is brought into a folder, where its ledger is already."""

    folder: Path
    number: int
    server: FleetStore
    place: ObjectPlace

    async def segments(self, ledger: str) -> list[Segment]:
        """The segments that the ledger speaks of, in order."""
        with plainly(path := self.folder / ledger), closing(sqlite3.connect(path)) as db:
            head = head_of(db).number
        return [each for each in await self.server.segments(self.number, 0) if each.number <= head]

    async def fetch(self, segment: Segment) -> bytes:
        """The object of a segment. Raises ObjectError."""
        return await self.place.get(segment.key, LARGEST)


async def bring_rows(part: PulledPart, ledger: str, name: str) -> int:
    """Have the rows that the ledger speaks of in one file; how many bytes are new. Raises FolderError, ObjectError."""
    path = part.folder / name
    with plainly(part.folder), closing(connect_to_read(part.folder / ledger)) as db:
        watermark = read_meta(db, part.folder / ledger).watermark
    there, at = path.stat().st_size if path.exists() else 0, 0
    with plainly(path), ExitStack() as stack:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        stack.callback(os.close, handle)
        for each in await part.segments(ledger):
            if at + each.size > there:
                rows = unpack_rows(await part.fetch(each), each)
                await bring_captures(part, each, rows)
                os.lseek(handle, at, os.SEEK_SET)
                write_pieces(handle, [rows])
            at += each.size
        os.ftruncate(handle, at)
        sync_data(handle)
    if at != watermark:
        raise FolderError(f"{path} has {at} bytes, expected {watermark}: segments are missing; pull again")
    return max(0, at - there)


def unpack_rows(packed: bytes, segment: Segment) -> bytes:
    """The rows of a segment. Raises FolderError."""
    try:
        rows = decompress(packed)
    except ZstdError as error:
        raise FolderError(f"the segment {segment.key} is damaged: {error}") from None
    if len(rows) != segment.size:
        raise FolderError(f"the segment {segment.key} has {len(rows)} bytes, expected {segment.size}")
    return rows


async def bring_captures(part: PulledPart, segment: Segment, rows: bytes) -> None:
    """Have the captures of which the rows of a segment speak in their WARC, and on disk. Raises FolderError.

    They end where that of the last row does, so to write them once more changes nothing.
    """
    lines = reversed(rows.splitlines()) if b'"warc_file":' in rows else ()
    last = next((row for row in map(decode_row, lines) if row.warc_file is not None), None)
    if last is None or last.warc_file is None:
        return
    body = await part.place.get(captures_of(segment.key), LARGEST)
    start = last.warc_offset + last.warc_length - len(body)
    if start < 0 or Path(last.warc_file).name != last.warc_file:
        raise FolderError(f"the segment {segment.key} speaks of byte {start} of {last.warc_file!r}: it is damaged")
    path = part.folder / WARCS / last.warc_file
    with plainly(path), ExitStack() as stack:
        path.parent.mkdir(exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        stack.callback(os.close, handle)
        os.lseek(handle, start, os.SEEK_SET)
        write_pieces(handle, [body])
        sync_data(handle)


async def bring_files(part: PulledPart) -> int:
    """Have the files of a part beside its rows; how many are new."""
    number, prefix = 0, f"files/{part.number:04}/"
    async for name in _names(part.place, prefix):
        path = part.folder / name.removeprefix(prefix)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(await part.place.get(name, LARGEST))
        number += 1
    return number


async def _names(place: ObjectPlace, prefix: str) -> AsyncIterator[str]:
    async for name in place.names(prefix.rstrip("/")):
        if ".." not in name.split("/"):  # it becomes a path
            yield name
