"""The rows of a crawl, pages.jsonl, and the documents that are kept as files beside them."""

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from sanderling.stores.durable import sync_data, sync_folder, write_new, write_pieces
from sanderling.stores.frontier_rows import KEPT, Body, Ended

PAGES, FAILED = "pages.jsonl", "failed.jsonl"
SEEN = 0x80  # set in the end of a URL whose row was seen; no end is as large


class RowId(msgspec.Struct):
    """What tells whose row a line is."""

    id: int
    url: str


class Output:
    """Appends to what `folder` holds. What stands behind `watermark` was never vouched for, and is cut off.

    The rows must reach the watermark: whoever opens a folder sees to that.
    """

    def __init__(self, folder: Path, watermark: int) -> None:
        self._folder = folder
        self.length = 0
        self._rows = os.open(folder / PAGES, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self.cut(watermark)
            os.fsync(self._rows)
            sync_folder(folder)
        except BaseException:
            os.close(self._rows)
            raise

    def write(self, ended: Sequence[Ended]) -> int:
        """Keep bodies and rows; when this returns they are on disk, and the rows end at the byte it returns."""
        self._write_bodies({each.body.path: each.body for each in ended if each.body is not None})
        rows = (each.row for each in ended if each.row is not None)
        try:
            written = write_pieces(self._rows, chain.from_iterable((row, b"\n") for row in rows))
            if written:
                sync_data(self._rows)
        except BaseException:
            self.cut(self.length)  # half a row must not stand before the next
            raise
        self.length += written
        return self.length

    def cut(self, length: int) -> None:
        """Drop what stands behind `length`."""
        os.ftruncate(self._rows, length)
        os.lseek(self._rows, length, os.SEEK_SET)
        self.length = length

    def _write_bodies(self, bodies: dict[str, Body]) -> None:
        """A body that is there with its size is there whole: it got its name when all of it was on disk."""
        folders: set[Path] = set()
        for name, body in bodies.items():
            path = self._folder / name
            if not (path.exists() and path.stat().st_size == len(body.data)):
                if not path.parent.exists():
                    path.parent.mkdir(parents=True)
                    folders |= {self._folder, path.parent.parent}
                write_new(path, [body.data])
                folders.add(path.parent)
        for folder in folders:
            sync_folder(folder)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._rows)


def whole_rows(path: Path, ends: bytearray) -> int:
    """The length of the rows up to the first line that is none; the ends of the URLs they are of are marked as SEEN."""
    length = 0
    for line in _lines(path):
        try:
            row = msgspec.json.decode(line, type=RowId)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return length
        if not (line.endswith(b"\n") and 0 < row.id < len(ends) and ends[row.id] in KEPT):
            return length
        ends[row.id] |= SEEN
        length += len(line)
    return length


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as file:
            yield from file
