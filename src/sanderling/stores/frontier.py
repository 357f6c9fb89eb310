"""The ledger of a crawl: which URLs are known, which of them wait, and what became of the others.

Terms. *Known*: offered once, never again. *Waiting*: not decided yet; whoever takes it holds it in memory only, so
after a crash it still waits. *Ended*: decided, in exactly one `End`. *Kept*: ended with a row in pages.jsonl.
*Remembered*: what an earlier crawl of the folder learned for conditional requests, replaced as this one goes on.

One connection, one caller at a time. Whatever the disk does comes out as a FolderError, and the ledger stays as it was.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from sanderling.outcome import Outcome
from sanderling.stores import frontier_file, frontier_remembered
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_file import Meta, key_of
from sanderling.stores.frontier_rows import (
    KEPT,
    REOPENABLE,
    UNFETCHED,
    Aside,
    Body,
    End,
    Ended,
    Failed,
    Found,
    Queued,
    Robots,
)

__all__ = ["KEPT", "UNFETCHED", "Body", "End", "Ended", "Failed", "Found", "Frontier", "Queued", "Robots"]

# Ids of hosts held in memory; a crawl of more hosts than that looks the others up. 8 MB at most.
HOSTS_HELD = 50_000


class Frontier:
    """The ledger in the file at `path`, which is made if it is not there."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            frontier_file.create(path, Meta())
        self._path = path
        self._db = frontier_file.connect(path)
        try:
            with plainly(path):
                self._load()
        except BaseException:
            self._db.close()
            raise

    def _load(self) -> None:
        self.meta = frontier_file.read_meta(self._db, self._path)
        self._hosts: dict[str, int] = {}
        self._new_robots: dict[str, Robots] = {}
        self._codes = {name: number for number, name in self._db.execute("SELECT id, name FROM code")}
        self._tally = Counter(frontier_file.tally(self._db))
        ((last,),) = self._db.execute("SELECT coalesce(max(id), 0) FROM url")
        if last != self.known:
            raise FolderError(f"{self._path} is damaged: its last id is {last}, expected {self.known}.")

    def __repr__(self) -> str:
        return f"<Frontier {self._path} known={self.known} waiting={self.counts()[End.WAITING]}>"

    @property
    def known(self) -> int:
        """How many URLs are known."""
        return self._tally.total()

    # What waits.

    def waiting(self) -> dict[str, int]:
        """The hosts with URLs that wait, and how many."""
        return self._by_host("WHERE end = 0")

    def aside(self) -> list[Aside]:
        """The hosts that were set aside, those with most URLs that wait first."""
        with plainly(self._path):
            return frontier_file.aside(self._db)

    def take(self, wants: Sequence[tuple[str, int, int]]) -> list[list[Queued]]:
        """For each (host, id, n): the first n URLs that wait there and have a higher id, in order of discovery."""
        remembered = self.meta.crawl > 1
        columns = "remembered.etag, remembered.modified" if remembered else "NULL, NULL"
        join = "LEFT JOIN remembered ON remembered.key = url.key" if remembered else ""
        # Columns and join are ours.
        sql = f"""SELECT url.id, url.url, ?, url.depth, {columns} FROM url {join}
            WHERE url.end = 0 AND url.host = ? AND url.id > ? ORDER BY url.id LIMIT ?"""  # noqa: S608
        with plainly(self._path):
            hosts = self._host_ids({host for host, _, _ in wants})
            return [
                [Queued._make(row) for row in self._db.execute(sql, (host, hosts[host], after, most))]
                if host in hosts
                else []
                for host, after, most in wants
            ]

    # What becomes of them.

    def commit(self, ended: Sequence[Ended], found: Sequence[Found], watermark: int) -> dict[str, int]:
        """Decide `ended` and add what of `found` is not known yet, both or neither; how many wait now, by host.

        ValueError if one of `ended` does not wait: it was decided before, or never known.
        """
        with self._transaction() as tally:
            self._decide(ended, tally)
            frontier_remembered.remember(self._db, ended)
            new = self._add(found)
            tally[End.WAITING, ""] += sum(new.values())
            self._db.execute("UPDATE meta SET value = ? WHERE name = 'watermark'", (watermark,))
        self.meta = msgspec.structs.replace(self.meta, watermark=watermark)
        return new

    def _decide(self, ended: Sequence[Ended], tally: Counter[tuple[End, str]]) -> None:
        rows = [(int(each.end), self._codes[each.outcome.code], each.id, each.url) for each in ended]
        done = self._db.executemany("UPDATE url SET end = ?, code = ? WHERE id = ? AND end = 0 AND url = ?", rows)
        if ended and done.rowcount != len(ended):
            raise ValueError(self._misfit(ended))
        why = [(each.id, each.outcome.status, _plain(each.outcome.detail)) for each in ended if each.end in UNFETCHED]
        self._db.executemany("INSERT INTO failure VALUES (?, ?, ?)", why)
        moves = [(key_of(each.url), each.moved_to) for each in ended if each.moved_to is not None]
        self._db.executemany("INSERT OR REPLACE INTO moved VALUES (?, ?)", moves)
        tally.update((each.end, str(each.outcome.code)) for each in ended)
        tally[End.WAITING, ""] -= len(ended)

    def _misfit(self, ended: Sequence[Ended]) -> str:
        """Say which of `ended` did not wait; the transaction in which they should have been decided still stands."""
        seen = set()
        for each in ended:
            row = self._db.execute("SELECT url FROM url WHERE id = ?", (each.id,)).fetchone()
            if row is None or row[0] != each.url:
                return f"no URL {each.url} with id {each.id} is known, so it cannot end"
            if each.id in seen:
                return f"{each.url} (id {each.id}) ends twice"
            seen.add(each.id)
        return f"of {len(ended)} URLs from {ended[0].url} to {ended[-1].url} some had ended before"

    def _add(self, found: Sequence[Found]) -> dict[str, int]:
        if not found:
            return {}
        hosts = self._host_ids({each.host for each in found}, make=True)
        rows = [(hosts[host], depth, key_of(url), url) for url, host, depth in found]
        self._db.executemany(
            "INSERT OR IGNORE INTO url (host, depth, end, code, key, url) VALUES (?, ?, 0, 0, ?, ?)", rows
        )
        # By id: left to itself, SQLite reads the whole index by host, since that needs no sorting.
        return self._by_host("NOT INDEXED WHERE url.id > ?", self.known)

    def give_up(self, host: str, outcome: Outcome) -> int:
        """Every URL of the host that waits ends FAILED; how many that were."""
        where = "end = 0 AND host = (SELECT id FROM host WHERE name = ?)"
        with self._transaction() as tally:
            self._db.execute(
                f"INSERT INTO failure SELECT id, ?, ? FROM url WHERE {where}",  # noqa: S608 - ours, above
                (outcome.status, _plain(outcome.detail), host),
            )
            number = self._change(f"SET end = 5, code = ? WHERE {where}", self._codes[outcome.code], host)
            tally[End.FAILED, str(outcome.code)] += number
            tally[End.WAITING, ""] -= number
        return number

    def set_aside(self, host: str, outcome: Outcome) -> None:
        """Note why the host does not answer: what waits for it goes on waiting."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO aside SELECT id, ?, ?, ? FROM host WHERE name = ?",
                (self._codes[outcome.code], outcome.status, _plain(outcome.detail), host),
            )

    def clear_aside(self) -> None:
        """A new run asks every host again."""
        with self._transaction():
            self._db.execute("DELETE FROM aside")

    def leave(self) -> int:
        """Every URL that waits for a host that answers ends LEFT, for a run that may ask for more; how many."""
        with self._transaction() as tally:
            number = self._change("SET end = 6 WHERE end = 0 AND host NOT IN (SELECT host FROM aside)")
            tally[End.LEFT, ""] += number
            tally[End.WAITING, ""] -= number
        return number

    def reopen(self, end: End) -> dict[str, int]:
        """What ended so waits again; how many, by host. ValueError for what was kept: its row is written."""
        if end not in REOPENABLE:
            raise ValueError(f"{end.name} cannot be reopened, expected {', '.join(each.name for each in REOPENABLE)}")
        with self._transaction() as tally:
            hosts = self._by_host("WHERE end = ?", int(end))
            self._db.execute("DELETE FROM failure WHERE id IN (SELECT id FROM url WHERE end = ?)", (int(end),))
            self._change("SET end = 0, code = 0 WHERE end = ?", int(end))
            for (was, code), number in self._tally.items():
                if was is end:
                    tally[was, code] -= number
            tally[End.WAITING, ""] += sum(hosts.values())
        return hosts

    def put_back(self, ids: Iterable[int], watermark: int) -> int:
        """Kept URLs whose rows were lost wait again, and are forgotten, so that they come whole; how many."""
        names = {number: name for name, number in self._codes.items()}
        number = 0
        with self._transaction() as tally:
            for each in ids:
                end, code, key = self._db.execute("SELECT end, code, key FROM url WHERE id = ?", (each,)).fetchone()
                self._db.execute("UPDATE url SET end = 0, code = 0 WHERE id = ?", (each,))
                self._db.execute("DELETE FROM remembered WHERE key = ?", (key,))
                self._db.execute("DELETE FROM moved WHERE key = ?", (key,))
                tally[End(end), names[code]] -= 1
                number += 1
            tally[End.WAITING, ""] += number
            self._db.execute("UPDATE meta SET value = ? WHERE name = 'watermark'", (watermark,))
        self.meta = msgspec.structs.replace(self.meta, watermark=watermark)
        return number

    # What is known.

    def counts(self) -> dict[End, int]:
        """How many URLs are in each end."""
        counts = dict.fromkeys(End, 0)
        for (end, _), number in self._tally.items():
            counts[end] += number
        return counts

    def by_code(self) -> dict[tuple[End, str], int]:
        """How many URLs ended so, for this reason."""
        return {key: number for key, number in self._tally.items() if key[1] and number}

    def failed(self) -> Iterator[Failed]:
        """The URLs that failed or were refused, by id. Read them before anything else is written."""
        with plainly(self._path):
            yield from frontier_file.failed(self._db)

    def ends(self) -> bytearray:
        """The end of each URL, by id; there is no id 0."""
        with plainly(self._path):
            return frontier_file.ends(self._db, self.known)

    def moved_to(self, url: str) -> str | None:
        """Where the URL was found to have moved; None if it was not."""
        with plainly(self._path):
            row = self._db.execute("SELECT target FROM moved WHERE key = ?", (key_of(url),)).fetchone()
        return None if row is None else str(row[0])

    def remembered_links(self, url: str) -> tuple[str, ...]:
        """Where the page led when it last came whole; nothing if that is not known."""
        with plainly(self._path):
            return frontier_remembered.links(self._db, url)

    def robots(self, origin: str) -> Robots | None:
        """What this crawl was told when it last asked the origin for its robots.txt."""
        if origin in self._new_robots:
            return self._new_robots[origin]
        with plainly(self._path):
            sql = "SELECT status, body, fetched_at FROM robots WHERE origin = ?"
            row = self._db.execute(sql, (origin,)).fetchone()
        return None if row is None else Robots._make(row)

    def keep_robots(self, origin: str, status: int, body: bytes, fetched_at: float) -> None:
        """Keep it, on disk with the next commit: what a crash loses here is only asked for again."""
        self._new_robots[origin] = Robots(status, body, fetched_at)

    def note(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of Meta, which checks them
        """Change what the ledger says of its crawl."""
        meta = msgspec.structs.replace(self.meta, **changes)
        with self._transaction():
            frontier_file.write_meta(self._db, meta)
        self.meta = meta

    def close(self) -> None:
        """Leave one plain file behind."""
        frontier_file.disconnect(self._db)

    # SQL.

    @contextmanager
    def _transaction(self) -> Iterator[Counter[tuple[End, str]]]:
        """All or nothing; what is put into the counter is added to the tally once it is on disk."""
        changes: Counter[tuple[End, str]] = Counter()
        with plainly(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield changes
                new = [(origin, *robots) for origin, robots in self._new_robots.items()]
                self._db.executemany("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)", new)
                self._db.execute("COMMIT")
            except BaseException:
                self._hosts.clear()  # it may hold ids that were never given
                if self._db.in_transaction:  # SQLite rolls back by itself when the disk is full
                    self._db.execute("ROLLBACK")
                raise
        for key, change in changes.items():
            self._tally[key] += change
        self._new_robots.clear()

    def _host_ids(self, names: set[str], *, make: bool = False) -> dict[str, int]:
        """The ids of those hosts that are known, or of all of them if they are to be made known."""
        if len(self._hosts) > HOSTS_HELD:
            self._hosts.clear()
        unseen = [(name,) for name in names if name not in self._hosts]
        if make:
            self._db.executemany("INSERT OR IGNORE INTO host (name) VALUES (?)", unseen)
        for name in unseen:
            self._hosts.update(self._db.execute("SELECT name, id FROM host WHERE name = ?", name))
        if make and not names <= self._hosts.keys():
            raise FolderError(f"{self._path} is damaged: its table of hosts and the index of it differ.")
        return self._hosts

    def _by_host(self, where: str, *values: int) -> dict[str, int]:
        """How many URLs there are, by host; `where` is ours."""
        sql = f"SELECT host, count(*) AS number FROM url {where} GROUP BY host"  # noqa: S608
        with plainly(self._path):
            return dict(self._db.execute(f"SELECT name, number FROM ({sql}) JOIN host ON id = host", values))  # noqa: S608

    def _change(self, what: str, *values: object) -> int:
        """Update URLs; how many they were. `what` is ours."""
        return self._db.execute(f"UPDATE url {what}", values).rowcount


def _plain(detail: str) -> str:
    """The detail with whatever is no text replaced."""
    return detail.encode(errors="replace").decode()
