"""Whether the disk of a folder has room for more: a crawl pauses before the disk is full, not when a write fails.

Two limits: the folder may grow to `most` bytes, and the file system keeps a reserve of free space in any case. The free
space is one system call. The size of the folder is a walk through all its files: the more there are, the longer the
next walk waits, and what the disk has lost since the last one counts as the folder's.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sanderling.clock import Clock
from sanderling.words import size

EVERY = 1.0  # seconds between looks
# Bytes that stay free, for others and for what is in flight; the share is for disks of less than 20 GB.
RESERVE, SHARE = 10**9, 0.05
# A crawl that paused goes on with a tenth more free space than the reserve, or a folder a twentieth below its limit:
# otherwise it would begin and pause every second.
MORE_FREE, LESS_USED = 1.1, 0.95
# Files whose walk costs one look of rest, so that walks take a few thousandths of a core, and the most looks of rest.
FILES_A_LOOK, LONGEST_REST = 2_000, 60


@dataclass(slots=True)
class DiskRoom:
    """`run` looks every second; `trouble` says why there is no room, in the same words until there is."""

    folder: Path
    most: int | None = None  # bytes that the folder may have; None for no limit
    trouble: str = ""
    _used: int = 0  # bytes of the folder at the last walk
    _free: int = 0  # bytes of the file system at the last walk
    _rest: int = 0  # looks before the next walk

    async def run(self, clock: Clock) -> None:
        """Look again and again, until cancelled. In a thread: a disk may be far away, and a folder large."""
        while True:
            await asyncio.to_thread(self.look)
            await clock.sleep(EVERY)

    def look(self) -> None:
        """Look now. A folder that cannot be looked at has room: whoever writes there finds out."""
        try:
            stat = os.statvfs(self.folder)
        except OSError:
            return
        self.trouble = self._disk_full(stat) or self._folder_full(stat.f_bavail * stat.f_frsize)

    def _disk_full(self, stat: os.statvfs_result) -> str:
        free, total = stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize
        reserve = min(RESERVE, int(total * SHARE))
        if free >= reserve * (MORE_FREE if self.trouble else 1):
            return ""
        return f"the disk of {self.folder} has less than {size(reserve)} free: make room there"

    def _folder_full(self, free: int) -> str:
        if self.most is None:
            return ""
        if self._rest:
            self._rest -= 1
        else:
            self._used, files = _measure(self.folder)
            self._free, self._rest = free, min(LONGEST_REST, files // FILES_A_LOOK)
        used = self._used + max(0, self._free - free)  # at most: others write to the disk as well
        if used < self.most * (LESS_USED if self.trouble else 1):
            return ""
        return f"{self.folder} has the {size(self.most)} that --max-disk allows: make room there, or allow more"


def _measure(folder: Path) -> tuple[int, int]:
    """Bytes on disk of all files of a folder, and how many files there are."""
    sizes = [each.st_blocks * 512 for each in _files(folder)]
    return sum(sizes), len(sizes)


def _files(folder: Path) -> Iterator[os.stat_result]:
    for path, _, names, descriptor in os.fwalk(folder, onerror=None):
        del path
        for name in names:
            try:
                yield os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue  # removed since it was listed
