"""The rows of a crawl, pages.jsonl, and the documents that are kept as files beside them."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from sanderling.crawls.archive import ArchiveMark, PageArchive
from sanderling.crawls.kept import write_bodies
from sanderling.stores.frontier_rows import KEPT, End, Ended
from sanderling.stores.rows_file import RowsFile

PAGES = "pages.jsonl"


class RowId(msgspec.Struct):
    """What tells whose row a line is."""

    id: int
    url: str


class PageRows(RowsFile):
    """The rows of a crawl, with the bodies beside them, and the archive of what was fetched if there is one."""

    def __init__(self, folder: Path, watermark: int) -> None:
        self._folder = folder
        self.archive: PageArchive | None = None
        self._before = -1, ArchiveMark()  # how long the rows and the archive were before the last batch
        super().__init__(folder / PAGES, watermark)

    def write(self, ended: Sequence[Ended]) -> int:
        """Keep bodies and rows; when this returns they are on disk, and the rows end at the byte it returns."""
        bodies = (body for each in ended for body in (each.body, each.raw) if body is not None)
        write_bodies(self._folder, bodies)
        if self.archive is None:
            return self.append(each.row for each in ended if each.row is not None)
        self._before = self.length, self.archive.mark
        return self.append(self.archive.append(ended))

    def cut(self, length: int) -> None:
        """Drop what stands behind `length`, and the captures of that."""
        super().cut(length)
        if self.archive is not None and length == self._before[0]:
            self.archive.cut(self._before[1])

    def close(self) -> None:
        """Let go of the files."""
        super().close()
        if self.archive is not None:
            self.archive.close()


def whole_rows(path: Path, ends: bytearray, versions: dict[int, int] | None = None) -> int:
    """The length of the rows up to the first line that is none; the ends of the URLs they are of are cleared.

    Of URLs that were visited again, and have so many `versions`, each row is taken off their number.
    """
    length, left = 0, {} if versions is None else versions
    if not path.exists():
        return length
    with path.open("rb") as file:
        for line in file:
            try:
                row = msgspec.json.decode(line, type=RowId)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                return length
            again = left.get(row.id, 0)
            if not (line.endswith(b"\n") and 0 < row.id < len(ends) and (again or ends[row.id] in KEPT)):
                return length
            if again:
                left[row.id] = again - 1
            else:
                ends[row.id] = End.WAITING
            length += len(line)
    return length
