"""A frontier out of which URLs can be removed, as if they had never been known."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from sanderling.ids import host_of
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import plainly
from sanderling.stores.frontier_reopen import ReopeningFrontier
from sanderling.stores.frontier_rows import PAGES, End

OF_ID = ("url", "failure", "again", "visit", "request")
OF_KEY = ("moved", "remembered")


class ForgettingFrontier(ReopeningFrontier):
    """A frontier that can forget. What is removed is overwritten in the file as well."""

    def forget(self, is_meant: Callable[[str, str], object], hosts: Callable[[str], object], **counted: int) -> int:
        """Remove the URLs that are meant, of hosts that may have some, with all that is known of them; how many.

        `counted` is what the ledger says of the rows that are left.
        """
        names = {number: name for name, number in self._codes.items()}
        with plainly(self._path):
            self._db.execute("PRAGMA secure_delete = ON")
        gone = 0
        with self._transaction() as tally:
            for number, name in self._db.execute("SELECT id, name FROM host").fetchall():
                if hosts(name):
                    gone += self._forget_of(number, name, is_meant, tally, names)
            self._forget_links(is_meant)
            self._move_up()
            meta = self._counted(known=self.known - gone, **counted)
        self.meta = meta
        self._hosts.clear()
        with plainly(self._path):
            self.hosts_known = frontier_reading.count_hosts(self._db)
            # Pages that were split or freed earlier, when nothing was overwritten, still hold what stood there.
            self._db.execute("VACUUM")
        return gone

    def urls(self) -> Iterator[str]:
        """All that are known. Read them before anything else is written."""
        with plainly(self._path):
            yield from frontier_reading.urls(self._db)

    def known_ids(self, ids: Iterable[int]) -> Iterator[int]:
        """Of these, the ids that are known."""
        with plainly(self._path):
            for each in ids:
                yield from (number for (number,) in self._db.execute("SELECT id FROM url WHERE id = ?", (each,)))

    def _move_up(self) -> None:
        """Note where the rows stand that are left, within the transaction that removes the others."""

    def _forget_of(
        self,
        host: int,
        name: str,
        is_meant: Callable[[str, str], object],
        tally: Counter[tuple[End, str]],
        codes: dict[int, str],
    ) -> int:
        rows = self._db.execute("SELECT id, url, end, code, key FROM url WHERE host = ?", (host,)).fetchall()
        meant = [row for row in rows if is_meant(row[1], name)]
        for _, _, end, code, _ in meant:
            tally[End(end), codes[code]] -= 1
        waiting = Counter({host: -sum(row[2] == End.WAITING for row in meant)})
        fetched = Counter({host: -sum(End(row[2]) in PAGES for row in meant)})
        frontier_file.shift_hosts(self._db, waiting, self.wall(), fetched)
        ranked = (
            "DELETE FROM ranked WHERE host = ? AND priority = (SELECT priority FROM request WHERE id = ?) AND id = ?"
        )
        self._db.executemany(ranked, [(host, row[0], row[0]) for row in meant])
        for table in OF_ID:
            self._db.executemany(f"DELETE FROM {table} WHERE id = ?", [(row[0],) for row in meant])  # noqa: S608
        for table in OF_KEY:
            self._db.executemany(f"DELETE FROM {table} WHERE key = ?", [(row[4],) for row in meant])  # noqa: S608
        if len(meant) == len(rows) and is_meant(f"https://{name}/", name):
            self._db.execute("DELETE FROM aside WHERE host = ?", (host,))
            self._db.execute("DELETE FROM host WHERE id = ?", (host,))
            origins = [(f"{scheme}://{name}",) for scheme in ("http", "https")]
            self._db.executemany("DELETE FROM robots WHERE origin = ?", origins)
        return len(meant)

    def _forget_links(self, is_meant: Callable[[str, str], object]) -> None:
        """Where pages led that are known to the next crawl, and where URLs have moved, without what is meant."""
        moved = [
            (key,)
            for key, target in self._db.execute("SELECT key, target FROM moved")
            if is_meant(target, host_of(target))
        ]
        self._db.executemany("DELETE FROM moved WHERE key = ?", moved)
        changed: list[tuple[bytes, int]] = []
        for number, packed in self._db.execute("SELECT rowid, links FROM remembered"):
            links = frontier_file.unpack_links(packed)
            kept = [link for link in links if not is_meant(link, host_of(link))]
            if len(kept) < len(links):
                changed.append((frontier_file.pack_links(kept), number))
        self._db.executemany("UPDATE remembered SET links = ? WHERE rowid = ?", changed)
