"""How much room a folder takes: `--max-disk`."""

import asyncio
import os
from pathlib import Path

from sanderling.clock import Clock
from sanderling.forms import Bytes

LOOK = 5.0  # seconds between two looks, and ten times as long as the last one took
AGAIN = 0.95  # of what is allowed: what has to be undercut before requests go on


class RoomBound:
    """Whether a folder has grown as large as it may."""

    def __init__(self, folder: Path, most: int | None, clock: Clock) -> None:
        self._folder = folder
        self._most = most
        self._clock = clock
        self._again_at = 0.0
        self.is_full = False
        self.size = 0

    async def look(self) -> None:
        """See how large the folder is, unless somebody has just done so."""
        started = self._clock.now()
        if self._most is None or started < self._again_at:
            return
        self.size = await asyncio.to_thread(folder_size, self._folder)
        self.is_full = self.size >= self._most * (AGAIN if self.is_full else 1)
        now = self._clock.now()
        self._again_at = now + max(LOOK, 10 * (now - started))

    @property
    def said(self) -> str:
        """Why nothing is requested; an empty text if something is."""
        if not self.is_full or self._most is None:
            return ""
        show = Bytes.__metadata__[0].show  # type: ignore[attr-defined] # of an Annotated type
        return (
            f"the folder has {self.size / (1 << 20):,.1f} MB, and --max-disk is {show(self._most)}: "
            "nothing is requested until it has a twentieth less"
        )


def folder_size(folder: Path) -> int:
    """Bytes on disk of all that is in a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{place}/{name}").st_blocks * 512
            except OSError:  # it has just been removed
                continue
    return total
