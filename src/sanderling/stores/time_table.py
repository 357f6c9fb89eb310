"""Two times by name, in memory that the processes of one crawl share: what their limiters know of a quota.

A table of fixed size, made anew at each start: a name is found by its hash. One process at a time changes it; the
system lets go of the lock of one that is killed. Times that are over for a while make room for others. Where there is
no room, two names share a row, and the later of their times counts for both.
"""

import fcntl
import hashlib
import mmap
import os
import struct
from collections.abc import Callable
from math import inf
from pathlib import Path

ROWS = 65_536  # two megabytes, of which a crawl touches what it uses
TRIED = 32  # rows that are looked at for one name
IDLE = 60.0  # seconds after which nobody misses a time that is over
ROW = struct.Struct("=16sdd")
NOBODY, NEVER = bytes(16), (-inf, -inf)

Times = tuple[float, float]


class TimeTable:
    """The table at `path`, with so many rows. One process makes it; the others open it."""

    def __init__(self, path: Path, rows: int = ROWS, *, make: bool = False) -> None:
        self._rows = rows
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if make:
                os.ftruncate(self._handle, 0)
            os.ftruncate(self._handle, ROW.size * rows)
            self._memory = mmap.mmap(self._handle, ROW.size * rows)
        except BaseException:
            os.close(self._handle)
            raise

    def change(self, name: str, now: float, change: Callable[[Times], Times]) -> None:
        """Change the times of a name, alone."""
        digest = _digest(name)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        try:
            row, whose, times = self._find(digest, now)
            ROW.pack_into(self._memory, ROW.size * row, whose, *change(times))
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def read(self, name: str, now: float) -> Times:
        """The times of a name, as they are or were a moment ago."""
        return self._find(_digest(name), now)[2]

    def _find(self, digest: bytes, now: float) -> tuple[int, bytes, Times]:
        """The row of a name, or that it would get; whose it is then, and the times."""
        home, free = int.from_bytes(digest[:8], "big") % self._rows, None
        for tried in range(TRIED):
            row = (home + tried) % self._rows
            whose, first, second = ROW.unpack_from(self._memory, ROW.size * row)
            if whose == digest:
                return row, digest, (first, second)
            if free is None and (whose == NOBODY or max(first, second) < now - IDLE):
                free = row
        if free is not None:
            return free, digest, NEVER
        whose, first, second = ROW.unpack_from(self._memory, ROW.size * home)
        return home, whose, (first, second)

    def close(self) -> None:
        """Let go of it."""
        self._memory.close()
        os.close(self._handle)


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()
