"""A folder of segments: repos go into `segment_0001.rca.part`, which loses `.part` when it is full or the run ends."""

import os
import re
import zlib
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sanderling.files import AppendFile, FolderError, disk_errors, sync, sync_folder, write_file
from sanderling.formats.rca import HEADER, Block, RcaError, RcaHeader, RcaReader, encode_index, index_entry

PART = ".part"
_NAME = re.compile(r"segment_([0-9]{4,9})\.rca(?:\.part)?")
_RESTORE = "restore it from a copy; or move it away, and the repos in it are lost"


class SegmentEnd(NamedTuple):
    """How far the segments are on disk."""

    number: int  # of the last segment; 0: there is none
    length: int  # of its `.part`; 0 once it is finished
    crc: int  # CRC-32 of that


def segments_in(folder: Path) -> list[Path]:
    """The segments of a folder by number, and a `.part` if there is one. Files with other names are left alone."""
    with disk_errors(folder):
        return sorted((path for path in folder.iterdir() if segment_number(path)), key=segment_number)


def segment_number(path: Path) -> int:
    """The number of a segment; 0 for what is none."""
    found = _NAME.fullmatch(path.name)
    number = int(found[1]) if found else 0
    return number if path.name.startswith(f"segment_{number:04}.") else 0  # 00001 is not how it is written


class Segments:
    """Writes the segments of a folder, which nobody else may write to. All methods raise FolderError.

    The order is: append some repos, `sync`, note in the ledger what it returned, append more. A segment is finished,
    and another begun, only by the first `append` after a `sync`, when the ledger knows all that is in it.
    """

    def __init__(self, folder: Path, *, size: int, now: Callable[[], int], durable: SegmentEnd | None = None) -> None:
        """`size` is at how many bytes a segment is full; `now` gives the time in microseconds since 1970.

        `durable` is what the ledger knows: a `.part` is cut there. Without it, it is cut behind its last whole block,
        and `found` has the DIDs of its repos.
        """
        self.folder = folder
        self.found: list[str] = []
        self.finished = 0  # by this process
        self._size = size
        self._now = now
        self._file: AppendFile | None = None
        self._created_at = 0
        self._entries: list[bytes] = []
        self._is_synced = True
        paths = segments_in(folder)
        self.number = max([durable.number if durable else 0, *map(segment_number, paths)])
        for path in paths:
            if path.suffix == PART:
                if segment_number(path) < self.number or path.with_suffix("") in paths:
                    raise FolderError(f"{path} is not the last segment of its folder", "move it away")
                self._take_up(path, durable)

    def append(self, did: str, block: bytes) -> int:
        """Write a repo as `encode_block` made it; the number of its segment. It is durable after the next `sync`."""
        wanted = did.encode()
        if not block.startswith(len(block).to_bytes(4, "little") + len(wanted).to_bytes(2, "little") + wanted):
            raise ValueError(f"no block of {did}: {block[:80]!r}")
        if self._file is not None and self._is_synced and self._file.length >= self._size:
            self._finish(self._file)
        file = self._file = self._file or self._begin()
        entry = index_entry(block, file.length)
        file.append(block)
        self._entries.append(entry)
        self._is_synced = False
        return self.number

    def sync(self) -> SegmentEnd:
        """Return when all that was appended is on disk."""
        self._is_synced = True
        if self._file is None:
            return SegmentEnd(self.number, 0, 0)
        self._file.sync()
        return SegmentEnd(self.number, self._file.length, self._file.crc)

    def close(self) -> None:
        """Finish the segment that is being written."""
        if self._file is not None:
            self._finish(self._file)

    def abandon(self) -> None:
        """Leave the `.part` as it is, for the next process."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _begin(self) -> AppendFile:
        file = AppendFile(self.folder / f"segment_{self.number + 1:04}.rca{PART}")
        self._created_at, self._entries = self._now(), []
        file.append(RcaHeader(self._created_at).encode())
        self.number += 1
        return file

    def _finish(self, file: AppendFile) -> None:
        """Write index, footer, and the header that speaks of them."""
        header = RcaHeader(self._created_at, len(self._entries), file.length)
        with disk_errors(file.path):
            # Whoever is stopped before the last step leaves a file that was not finished, with a torn end.
            file.append(encode_index(self._entries, file.length))
            file.sync()
            handle = os.open(file.path, os.O_WRONLY | os.O_CLOEXEC)  # the other one only appends
            try:
                os.pwrite(handle, header.encode(), 0)
                sync(handle)
            finally:
                os.close(handle)
            _name(file.path)
        self.abandon()
        self.finished += 1

    def _take_up(self, path: Path, durable: SegmentEnd | None) -> None:
        """Go on with a `.part`; or name it, if that is all that is missing."""
        length = None if durable is None else durable.length if durable.number == self.number else 0
        with disk_errors(path):
            if length == 0 or (length is None and path.stat().st_size < HEADER.size):
                path.unlink()  # stopped before anything in it counted
                self.number -= 1
                return
            try:
                end, crc, is_finished = self._read(path, length)
            except RcaError as error:
                raise FolderError(str(error), _RESTORE) from None
            if is_finished:
                _name(path)
            elif durable is None or (end, crc) == durable[1:]:
                self._file = AppendFile(path, end, crc)
            else:
                found = f"{path} is damaged: {end} bytes with CRC {crc:08x}"
                raise FolderError(f"{found}, and the ledger counts {durable.length} with {durable.crc:08x}", _RESTORE)
            if durable is not None:
                self.found.clear()

    def _read(self, path: Path, length: int | None) -> tuple[int, int, bool]:
        """Find the repos of a `.part` up to `length`: where they end, the CRC up to there, whether it is finished."""
        with RcaReader(path) as reader:
            self._created_at = reader.header.created_at
            end, crc = HEADER.size, zlib.crc32(reader.header.encode())
            for block in reader:
                if end == length and not reader.finished:
                    break
                self._entries.append(index_entry(block.data, end))
                self.found.append(block.did)
                end, crc = end + len(block.data), zlib.crc32(block.data, crc)
            return end, crc, reader.finished


def _name(path: Path) -> None:
    """Take `.part` from the name of a finished segment."""
    path.rename(path.with_suffix(""))
    sync_folder(path.parent)


def remove_repos(path: Path, gone: Callable[[Block], bool]) -> int:
    """Rewrite a finished segment without the repos that are `gone`; how many they were. Raises FolderError.

    A process that is killed in the middle leaves the segment as it was. Damage is refused: it could not be kept.
    """
    try:
        with disk_errors(path), RcaReader(path) as reader:
            if not reader.finished:
                raise FolderError(f"{path} is not finished", "run the crawl to its end, then try again")
            removed: set[int] = set()
            entries: list[bytes] = []
            end = HEADER.size
            for block in reader:
                if gone(block):
                    removed.add(block.offset)
                else:
                    entries.append(index_entry(block.data, end))
                    end += len(block.data)
            if removed:
                header = RcaHeader(reader.header.created_at, len(entries), end)
                blocks = (block.data for block in reader if block.offset not in removed)
                write_file(path, chain([header.encode()], blocks, [encode_index(entries, end)]))
            return len(removed)
    except RcaError as error:
        raise FolderError(str(error), _RESTORE) from None
