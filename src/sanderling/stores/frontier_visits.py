"""The frontier of a crawl whose pages are visited again: when each is due, and what its visits have taught.

A page that is due waits again, as if it were new; what it brings is a further row, if it has changed. So a URL with
visits may have any number of rows, and whatever end its last visit had.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import plainly
from sanderling.stores.frontier_forget import ForgettingFrontier
from sanderling.stores.frontier_rows import PAGES, End, Ended, FoundUrl, QueuedUrl, RetryUrl

NEVER = 1e18  # when a page is due that is being visited


class UrlVisits(NamedTuple):
    """What is known of a page that is visited again and again. Times are seconds since 1970."""

    id: int
    due: float
    seen: float  # when it was last visited
    shape: float
    exposure: float
    visits: int
    changes: int
    rows: int
    content: bytes | None  # what its text is told from another's by


class DueVisit(NamedTuple):
    """A URL to visit again, and what end it had."""

    queued: QueuedUrl
    was: End


class VisitedFrontier(ForgettingFrontier):
    """A frontier with visits."""

    _taught: Sequence[UrlVisits] = ()  # what the commit that is under way notes

    def begin_visits(self, first: UrlVisits) -> None:
        """From now on pages are visited again; those that are kept by now as `first` says of them all."""
        with self._transaction():
            self._db.execute(
                """INSERT OR IGNORE INTO visit SELECT id, ?, ?, ?, ?, 1, 0, 1, NULL FROM url
                WHERE end BETWEEN 1 AND 3 AND id NOT IN (SELECT id FROM visit)""",
                (first.due, first.seen, first.shape, first.exposure),
            )
            # A run with a limit has left these.
            self._db.execute(
                """UPDATE visit SET due = ? WHERE due = ?
                AND EXISTS (SELECT 1 FROM url WHERE url.id = visit.id AND url.end <> 0)""",
                (first.due, NEVER),
            )
        if not self.meta.visited:
            self.note(visited=True)

    def visits(self, ids: Iterable[int]) -> dict[int, UrlVisits]:
        """What is known of those of them that were visited."""
        sql = "SELECT * FROM visit WHERE id = ?"
        with plainly(self._path):
            rows = (self._db.execute(sql, (each,)).fetchone() for each in ids)
            return {row[0]: UrlVisits._make(row) for row in rows if row is not None}

    def commit_visits(
        self,
        ended: Sequence[Ended],
        found: Sequence[FoundUrl],
        watermark: int,
        again: Sequence[RetryUrl],
        visits: Sequence[UrlVisits],
    ) -> dict[str, int]:
        """As `commit`, with what the visits that ended have taught."""
        self._taught = visits
        try:
            return self.commit(ended, found, watermark, again)
        finally:
            self._taught = ()

    def _decide(self, ended: Sequence[Ended], tally: Counter[tuple[End, str]]) -> None:
        super()._decide(ended, tally)
        sql = "INSERT OR REPLACE INTO visit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._db.executemany(sql, self._taught)

    def rates(self) -> list[tuple[float, int]]:
        """How often pages change, and how many do so: rounded to a sixth, so that there are few."""
        counted: Counter[int] = Counter()
        with plainly(self._path):
            for shape, exposure in self._db.execute("SELECT shape, exposure FROM visit"):
                counted[round(math.log2(shape / exposure) * 4)] += 1
        return [(2 ** (step / 4), number) for step, number in counted.items()]

    def take_due(self, wall: float, most: int) -> list[DueVisit]:
        """The pages that are due, those first that have been so for longest; they wait from now on."""
        sql = """SELECT url.id, url.url, host.name, url.depth, remembered.etag, remembered.modified, url.end,
            code.name, url.host
            FROM visit INDEXED BY visit_due CROSS JOIN url ON url.id = visit.id CROSS JOIN host ON host.id = url.host
            LEFT JOIN code ON code.id = url.code LEFT JOIN remembered ON remembered.key = url.key
            WHERE visit.due <= ? AND url.end <> 0 ORDER BY visit.due LIMIT ?"""
        with plainly(self._path):
            found = self._db.execute(sql, (wall, most)).fetchall()
        if not found:
            return []
        with self._transaction() as tally:
            ids = [(row[0],) for row in found]
            self._db.executemany("UPDATE url SET end = 0, code = 0 WHERE id = ?", ids)
            self._db.executemany("DELETE FROM failure WHERE id = ?", ids)
            self._db.executemany("DELETE FROM moved WHERE key = (SELECT key FROM url WHERE id = ?)", ids)
            self._db.executemany(f"UPDATE visit SET due = {NEVER} WHERE id = ?", ids)  # noqa: S608 - ours
            waiting, fetched = Counter[int](), Counter[int]()
            for row in found:
                tally[End(row[6]), row[7] or ""] -= 1
                waiting[row[8]] += 1
                fetched[row[8]] -= End(row[6]) in PAGES
            frontier_file.shift_hosts(self._db, waiting, self.wall(), fetched)
            tally[End.WAITING, ""] += len(found)
        return [DueVisit(QueuedUrl(*row[:6]), End(row[6])) for row in found]

    def next_due(self) -> float:
        """When a page is due next, in seconds since 1970; NEVER if none is."""
        with plainly(self._path):
            ((due,),) = self._db.execute("SELECT min(due) FROM visit")
        return NEVER if due is None else float(due)

    def versions(self) -> dict[int, int]:
        """How many rows each URL has, of those where that is not what its end says."""
        with plainly(self._path):
            return frontier_reading.versions(self._db)

    def lose_versions(self, lost: dict[int, int]) -> None:
        """So many rows of each are gone; what they said is not known any more."""
        with self._transaction():
            self._db.executemany(
                "UPDATE visit SET rows = rows - ?, content = NULL WHERE id = ?",
                [(number, each) for each, number in lost.items()],
            )
