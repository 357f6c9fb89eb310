"""The WARC of one part of a fleet's crawl: captures wait for the commit whose rows speak of them, as one object of it.

The objects of a file follow each other in the order of their commits. A file is named by the number of the commit that
begins it, and whoever has the part next begins another: so no two have one name, and nobody needs to know how long the
last one was.
"""

from collections.abc import Callable

from sanderling.crawls.archive import SEGMENT, ArchiveMark, PageArchive


class SharedArchive(PageArchive):
    """The captures of a part while one worker has it. `number` says which commit comes next."""

    def __init__(self, number: Callable[[], int]) -> None:  # no folder, so nothing is open
        self._number = number
        self._prefix = "pages-0001"  # a fleet's crawl is the first of its folder
        self._indexes = []
        self._segment = SEGMENT
        self._seen = {}
        self._handle = None
        self._waiting = []
        self.mark = ArchiveMark()

    def take(self) -> bytes:
        """All captures that wait."""
        waiting, self._waiting = b"".join(self._waiting), []
        return waiting

    def _has_room(self, more: int) -> bool:
        """The object of a commit is not shared by two files."""
        return bool(self._waiting) or super()._has_room(more)

    def _next_serial(self) -> int:
        return self._number()

    def _create(self, name: str) -> None:
        """It is made of its objects by whoever brings them together."""

    def _flush(self) -> None:
        """They wait."""

    def _cut(self, mark: ArchiveMark) -> None:
        self._waiting = []
        self.mark = mark
