"""What earlier archives have: the revision of each repo, so that one which has not changed is not fetched again.

Only the heads of blocks are read. What they say is kept in a file that is gone when it is closed, since there may be
fifty million of them.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from sanderling.formats.rca import RcaError
from sanderling.repos.archives import Archive, ArchiveProblem, Report
from sanderling.repos.parts import all_segments
from sanderling.stores.durable import FolderError, plainly

BATCH = 10_000  # heads of one transaction
CACHE = 64_000  # KiB of memory for pages
Row = tuple[str, str, int]

# Of two archives, or two blocks of one, that which was crawled later counts.
KEEP = """INSERT INTO repo VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET rev = excluded.rev, at = excluded.at WHERE excluded.at >= at"""


class EarlierRevs:
    """The revisions of some archives. `rev` may be called from any thread."""

    def __init__(self, path: Path | None = None) -> None:
        """In a file that is gone when it is closed; or at a path, where other processes may look it up as well."""
        self.repos = 0  # blocks that were read
        self._turn = threading.Lock()
        self._db = sqlite3.connect(path or "", isolation_level=None, check_same_thread=False)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS repo (did TEXT PRIMARY KEY, rev TEXT NOT NULL, at INTEGER) WITHOUT ROWID"
        )
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute(f"PRAGMA cache_size = -{CACHE}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def read(self, folder: Path, report: Report, watch: Callable[[int], None] = lambda _: None) -> None:
        """Take up all segments of a folder; `watch` gets how many repos were read so far.

        What is damaged goes to `report`: those repos are not known then, and will be archived again. Raises
        FolderError if there are no segments.
        """
        with plainly(folder):
            paths = all_segments(folder)
            if not paths:
                raise FolderError(f"{folder} holds no segments (segment_0001.rca …)")
            rows = _rows(paths, report)
            while batch := sorted(islice(rows, BATCH)):  # neighbours are on one page
                self._keep(batch)
                watch(self.repos)

    def _keep(self, rows: Sequence[Row]) -> None:
        with self._turn:
            self._db.execute("BEGIN")
            self._db.executemany(KEEP, rows)
            self._db.execute("COMMIT")
        self.repos += len(rows)

    def rev(self, did: str) -> str:
        """The revision of the repo; "" if it is not there, or has none, as those of an old form."""
        with self._turn:
            row = self._db.execute("SELECT rev FROM repo WHERE did = ?", (did,)).fetchone()
        return str(row[0]) if row else ""

    def __repr__(self) -> str:
        return f"<EarlierRevs of {self.repos} repos>"


def _rows(paths: Sequence[Path], report: Report) -> Iterator[Row]:
    for path in paths:
        try:
            archive = Archive(path, report)
        except RcaError as error:
            report(ArchiveProblem.of(path, error))
            continue
        with archive:
            yield from ((head.did, head.rev, head.crawled_at) for head in archive.heads(check=False))
