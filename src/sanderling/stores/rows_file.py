"""A file of rows, one to a line, that a ledger vouches for up to a watermark."""

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from sanderling.stores.durable import sync_data, sync_folder, write_pieces


class RowsFile:
    """Appends to the file at `path`. What stands behind `watermark` was never vouched for, and is cut off.

    The rows must reach the watermark: whoever opens the file sees to that (`reaches`).
    """

    def __init__(self, path: Path, watermark: int) -> None:
        self.length = 0
        self._rows = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self.cut(watermark)
            os.fsync(self._rows)
            sync_folder(path.parent)
        except BaseException:
            os.close(self._rows)
            raise

    def append(self, rows: Iterable[bytes]) -> int:
        """Write rows without line breaks; when this returns they are on disk, and end at the byte it returns."""
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

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._rows)


def reaches(path: Path, watermark: int) -> bool:
    """Whether the rows reach the watermark, and one ends there."""
    if watermark == 0:
        return True
    if not path.exists() or path.stat().st_size < watermark:
        return False
    with path.open("rb") as file:
        file.seek(watermark - 1)
        return file.read(1) == b"\n"


def read_rows(path: Path, start: int, end: int) -> Iterator[tuple[bytes, int]]:
    """The rows between two bytes, without their line breaks, each with the byte that it ends at."""
    if start >= end:
        return
    with path.open("rb") as file:
        file.seek(start)
        at = start
        for line in file:
            at += len(line)
            if at > end:
                return
            yield line[:-1], at
