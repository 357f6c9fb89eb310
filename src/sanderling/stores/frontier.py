"""The frontier of a crawl on disk: which URLs are known, which of them wait, and what became of the others.

Terms. *Known*: offered once, never again. *Waiting*: not decided yet; whoever takes it holds it in memory only, so
after a crash it still waits. *Again*: it waits since it failed, with its own reason and a time when it is due. *Aside*:
its host did not answer; what waits for it is not to blame. *Ended*: decided, in exactly one `End`. *Kept*: ended with a
row in pages.jsonl. *Remembered*: what an earlier crawl of the folder learned for conditional requests.

Ids ascend in the order of discovery. They may have gaps: nothing here assumes that one file holds them all.

One connection, one caller at a time. Whatever the disk does comes out as a FolderError, and the file stays as it was.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from sanderling.ids import partition_of
from sanderling.outcome import Outcome
from sanderling.stores import frontier_file, frontier_reading, frontier_tables
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_file import FrontierMeta, key_of
from sanderling.stores.frontier_rows import (
    PAGES,
    REOPENABLE,
    UNFETCHED,
    Aside,
    End,
    Ended,
    Failed,
    FoundUrl,
    HostBacklog,
    HostNote,
    QueuedUrl,
    RetryUrl,
    RobotsReply,
    WaitingRow,
    as_text,
)

# Ids of hosts held in memory; a crawl of more hosts than that looks the others up. 8 MB at most.
HOSTS_HELD = 50_000


class Frontier:
    """The frontier in the file at `path`, which is made if it is not there."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            frontier_file.create(path, FrontierMeta())
        self._path = path
        self.wall: Callable[[], float] = float  # says the time, in seconds since 1970; without one, hosts go by id
        self._db = frontier_file.connect(path)
        try:
            with plainly(path):
                self._load()
        except BaseException:
            self._db.close()
            raise

    def _load(self) -> None:
        self.meta = frontier_file.read_meta(self._db, self._path)
        self.kept = self.meta.kept  # how much of kept.jsonl the next commit vouches for
        self._hosts: dict[str, int] = {}
        self._new_robots: dict[str, RobotsReply] = {}
        self.keep_own: Callable[[Iterable[Any]], Sequence[Any]] = list  # of what is found; other parts get the rest
        self.inbox = self.meta.inbox  # how far what they found for us is read, for the next commit
        self._codes = {name: number for number, name in self._db.execute("SELECT id, name FROM code")}
        self.hosts_known = frontier_reading.count_hosts(self._db)
        self._clean = frontier_file.is_clean(self._db)  # whether it says that whoever wrote in it closed it
        self._tally = Counter(frontier_reading.tally(self._db))
        if not (self._clean and self._path.stat().st_size > frontier_file.SMALL):
            frontier_file.check_whole(self._db, self._path)
            self._tally = Counter(frontier_reading.count_ends(self._db))
        if (last := frontier_tables.last_id(self._db)) > self.meta.last_id:
            raise FolderError(f"{self._path} is damaged: its last id is {last}, expected {self.meta.last_id} at most.")
        if self.known != self.meta.known:
            raise FolderError(f"{self._path} is damaged: it has {self.known} URLs, expected {self.meta.known}.")

    def __repr__(self) -> str:
        return f"<Frontier {self._path} known={self.known} waiting={self.counts()[End.WAITING]}>"

    @property
    def known(self) -> int:
        """How many URLs are known."""
        return self._tally.total()

    # What waits.

    def waiting(self) -> dict[str, int]:
        """The hosts with URLs that wait, and how many."""
        with plainly(self._path):
            return dict(self._db.execute("SELECT name, waiting FROM host WHERE waiting > 0"))

    def fetched(self) -> dict[str, int]:
        """The hosts of which pages are fetched, and how many."""
        with plainly(self._path):
            return dict(self._db.execute("SELECT name, fetched FROM host WHERE fetched > 0"))

    def waiting_hosts(self, after: tuple[float, int], most: int, wall: float) -> list[HostBacklog]:
        """The first so many hosts that have URLs that wait, by due time and id, behind such a pair, and due by then."""
        with plainly(self._path):
            return frontier_reading.waiting_hosts(self._db, after, most, wall)

    def aside(self) -> list[Aside]:
        """The hosts that were set aside, those with most URLs that wait first."""
        with plainly(self._path):
            return frontier_reading.aside(self._db)

    def take(self, wants: Sequence[tuple[str, int, int]]) -> list[list[QueuedUrl]]:
        """For each (host, id, n): the first n URLs that wait there and have a higher id, in order of discovery.

        Those that are due later are among them, and say so.
        """
        remembered = self.meta.crawl > 1 or self.meta.visited
        columns = "remembered.etag, remembered.modified" if remembered else "NULL, NULL"
        join = "LEFT JOIN remembered ON remembered.key = url.key" if remembered else ""
        # Columns and join are ours.
        sql = f"""SELECT url.id, url.url, ?, url.depth, {columns}, coalesce(again.failures, 0), coalesce(again.due, 0.0)
            FROM url LEFT JOIN again ON again.id = url.id {join}
            WHERE url.end = 0 AND url.host = ? AND url.id > ? ORDER BY url.id LIMIT ?"""  # noqa: S608
        with plainly(self._path):
            hosts = self._host_ids(dict.fromkeys(host for host, _, _ in wants))
            return [
                [QueuedUrl._make(row) for row in self._db.execute(sql, (host, hosts[host], after, most))]
                if host in hosts
                else []
                for host, after, most in wants
            ]

    def waiting_rows(self) -> Iterator[WaitingRow]:
        """What waits, and whose fault that is, host by host. Read them before anything else is written."""
        with plainly(self._path):
            yield from frontier_reading.waiting_rows(self._db)

    # What becomes of them.

    def commit(
        self, ended: Sequence[Ended], found: Sequence[FoundUrl], watermark: int, again: Sequence[RetryUrl] = ()
    ) -> dict[str, int]:
        """Decide `ended`, note what is to be asked `again`, and add what of `found` is not known yet, all or nothing.

        How many new ones wait now, by host. ValueError if one of `ended` or `again` does not wait: it was decided
        before, or never known.
        """
        with self._transaction() as tally:
            self._decide(ended, tally)
            self._put_off(again)
            frontier_file.remember(self._db, ended)
            new = self._add(found)
            waiting = {self._hosts[name]: number for name, number in new.items()}
            frontier_file.shift_hosts(self._db, waiting, self.wall())
            tally[End.WAITING, ""] += sum(new.values())
            meta = self._counted(watermark=watermark, known=self.known + sum(new.values()))
        self.meta = meta
        return new

    def _counted(self, **changes: Any) -> FrontierMeta:  # noqa: ANN401 - the fields of Meta
        """What `meta` becomes, once it is committed; a highest id stays what it was if its row is elsewhere."""
        changes["last_id"] = max(self.meta.last_id, frontier_tables.last_id(self._db))
        changes |= {"kept": self.kept, "inbox": self.inbox}
        rows = [(value, name) for name, value in changes.items() if value != getattr(self.meta, name)]
        self._db.executemany("UPDATE meta SET value = ? WHERE name = ?", rows)
        return msgspec.structs.replace(self.meta, **changes)

    def _decide(self, ended: Sequence[Ended], tally: Counter[tuple[End, str]]) -> None:
        execute, waiting, fetched = self._db.execute, Counter[int](), Counter[int]()
        sql = "UPDATE url SET end = ?, code = ? WHERE id = ? AND end = 0 AND url = ? RETURNING host"
        for each in ended:
            done = execute(sql, (int(each.end), self._codes[each.outcome.code], each.id, each.url)).fetchall()
            if not done:
                raise ValueError(frontier_reading.misfit(self._db, ended))
            waiting[done[0][0]] -= 1
            fetched[done[0][0]] += each.end in PAGES
        frontier_file.shift_hosts(self._db, waiting, self.wall(), fetched)
        self._db.executemany("DELETE FROM again WHERE id = ?", [(each.id,) for each in ended])
        why = [
            (each.id, each.outcome.status, as_text(each.outcome.detail), each.sent)
            for each in ended
            if each.end in UNFETCHED
        ]
        self._db.executemany("INSERT INTO failure (id, status, detail, requests) VALUES (?, ?, ?, ?)", why)
        moves = [(key_of(each.url), each.moved_to) for each in ended if each.moved_to is not None]
        self._db.executemany("INSERT OR REPLACE INTO moved VALUES (?, ?)", moves)
        tally.update((each.end, str(each.outcome.code)) for each in ended)
        tally[End.WAITING, ""] -= len(ended)

    def _put_off(self, again: Sequence[RetryUrl]) -> None:
        reasons = ((self._codes[why.code], why.status, as_text(why.detail)) for why in (each.outcome for each in again))
        rows = [(each.failures, each.due, *why, each.id, each.url) for each, why in zip(again, reasons, strict=True)]
        done = self._db.executemany(
            """INSERT OR REPLACE INTO again (id, failures, due, code, status, detail, host)
            SELECT id, ?, ?, ?, ?, ?, host FROM url WHERE id = ? AND end = 0 AND url = ?""",
            rows,
        )
        if again and done.rowcount != len(again):
            raise ValueError(frontier_reading.misfit(self._db, again))

    def _add(self, found: Sequence[FoundUrl]) -> dict[str, int]:
        if not (found := self.keep_own(found)):
            return {}
        hosts = self._host_ids(dict.fromkeys(each.host for each in found), make=True)
        rows = [(hosts[host], depth, key_of(url), url) for url, host, depth, _, _ in found]
        frontier_file.insert_urls(self._db, iter(rows), self.meta.last_id)
        # By id: left to itself, SQLite reads the whole index by host, since that needs no sorting.
        return self._by_host("NOT INDEXED WHERE url.id > ?", self.meta.last_id)

    def set_aside(self, host: str, outcome: Outcome, due: float = 0.0) -> None:
        """Note why the host does not answer, and when to ask next: what waits for it goes on waiting, without blame."""
        self.note_hosts([HostNote(host, outcome, due)])

    def clear_aside(self, host: str | None = None) -> None:
        """The host answers, or without a name: every host is to be asked again."""
        with self._transaction():
            frontier_file.clear_aside(self._db, host)

    def note_hosts(self, notes: Iterable[HostNote]) -> None:
        """Set hosts aside, or welcome them back."""
        with self._transaction():
            for host, outcome, due in notes:
                if outcome is None:
                    frontier_file.clear_aside(self._db, host)
                else:
                    why = self._codes[outcome.code], outcome.status, as_text(outcome.detail)
                    frontier_file.set_aside(self._db, host, why, due)

    def leave(self) -> int:
        """Every URL that waits for a host that answers ends LEFT, for a run that may ask for more; how many."""
        with self._transaction() as tally:
            answering = "end = 0 AND host NOT IN (SELECT host FROM aside)"
            number = self._db.execute(f"UPDATE url SET end = 6 WHERE {answering}").rowcount  # noqa: S608 - ours
            which = "id NOT IN (SELECT host FROM aside) AND waiting > 0"
            self._db.execute(f"UPDATE host SET waiting = 0, due = NULL WHERE {which}")  # noqa: S608 - ours
            self._db.execute("DELETE FROM again WHERE host NOT IN (SELECT host FROM aside)")
            tally[End.LEFT, ""] += number
            tally[End.WAITING, ""] -= number
        return number

    def reopen(self, end: End, code: str | None = None) -> dict[str, int]:
        """What ended so, for this reason if one is given, waits again; by host. ValueError for what was kept."""
        given = int(end), None if code is None else self._codes[code]
        if end not in REOPENABLE:
            raise ValueError(f"{end.name} cannot be reopened, expected {', '.join(each.name for each in REOPENABLE)}")
        with self._transaction() as tally:
            hosts = self._by_host("WHERE end = ? AND code = coalesce(?, code)", *given)
            which = "SELECT id FROM url WHERE end = ? AND code = coalesce(?, code)"
            self._db.execute(f"DELETE FROM failure WHERE id IN ({which})", given)  # noqa: S608 - ours
            frontier_file.rank_again(self._db, given)
            self._db.execute("UPDATE url SET end = 0, code = 0 WHERE end = ? AND code = coalesce(?, code)", given)
            ids = self._host_ids(hosts)
            waiting = {ids[name]: number for name, number in hosts.items()}
            frontier_file.shift_hosts(self._db, waiting, self.wall())
            for (was, why), number in self._tally.items():
                if was is end and code in (None, why):
                    tally[was, why] -= number
            tally[End.WAITING, ""] += sum(hosts.values())
        return hosts

    def put_back(self, ids: Iterable[int], watermark: int) -> int:
        """Kept URLs whose rows were lost wait again, and are forgotten, so that they come whole; how many."""
        names = {number: name for name, number in self._codes.items()}
        waiting, fetched = Counter[int](), Counter[int]()
        with self._transaction() as tally:
            for each in ids:
                sql = "SELECT host, end, code, key FROM url WHERE id = ?"
                host, end, code, key = self._db.execute(sql, (each,)).fetchone()
                self._db.execute("UPDATE url SET end = 0, code = 0 WHERE id = ?", (each,))
                self._db.execute("DELETE FROM remembered WHERE key = ?", (key,))
                self._db.execute("DELETE FROM moved WHERE key = ?", (key,))
                tally[End(end), names[code]] -= 1
                waiting[host] += 1
                fetched[host] -= end in PAGES
            frontier_file.shift_hosts(self._db, waiting, self.wall(), fetched)
            number = waiting.total()
            tally[End.WAITING, ""] += number
            meta = self._counted(watermark=watermark)
        self.meta = meta
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
            yield from frontier_reading.failed(self._db)

    def ends(self) -> bytearray:
        """The end of each URL, by id up to the highest; there is no id 0, and one that is not here seems to wait."""
        with plainly(self._path):
            return frontier_reading.ends(self._db)

    def end_of(self, url: str, host: str) -> End | None:
        """The end of one URL; None if it is not known."""
        sql = "SELECT end FROM url WHERE host = (SELECT id FROM host WHERE name = ?) AND key = ?"
        with plainly(self._path):
            row = self._db.execute(sql, (host, key_of(url))).fetchone()
        return None if row is None else End(row[0])

    def moved_to(self, url: str) -> str | None:
        """Where the URL was found to have moved; None if it was not."""
        with plainly(self._path):
            row = self._db.execute("SELECT target FROM moved WHERE key = ?", (key_of(url),)).fetchone()
        return None if row is None else str(row[0])

    def remembered_links(self, url: str) -> tuple[str, ...]:
        """Where the page led when it last came whole; nothing if that is not known."""
        with plainly(self._path):
            return frontier_file.remembered_links(self._db, url)

    def robots(self, origin: str) -> RobotsReply | None:
        """What this crawl was told when it last asked the origin for its robots.txt."""
        if origin in self._new_robots:
            return self._new_robots[origin]
        with plainly(self._path):
            sql = "SELECT status, body, fetched_at FROM robots WHERE origin = ?"
            row = self._db.execute(sql, (origin,)).fetchone()
        return None if row is None else RobotsReply._make(row)

    def keep_robots(self, origin: str, status: int, body: bytes, fetched_at: float) -> None:
        """Keep it, on disk with the next commit: what a crash loses here is only asked for again."""
        self._new_robots[origin] = RobotsReply(status, body, fetched_at)

    def note(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of Meta, which checks them
        """Change what the frontier says of its crawl."""
        with self._transaction():
            meta = msgspec.structs.replace(self.meta, **changes)
            frontier_file.write_meta(self._db, meta)
        self.meta = meta

    def close(self) -> None:
        """Leave one plain file behind."""
        if not self._clean:
            with suppress(sqlite3.Error):  # a full disk: it is read whole when it is next opened
                frontier_file.mark(self._db, clean=True)
        frontier_file.disconnect(self._db)

    # SQL.

    @contextmanager
    def _transaction(self) -> Iterator[Counter[tuple[End, str]]]:
        """All or nothing; what is put into the counter is added to the tally once it is on disk."""
        changes: Counter[tuple[End, str]] = Counter()
        self._new_hosts = 0
        with plainly(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if self._clean:
                    frontier_file.mark(self._db, clean=False)
                yield changes
                rows = [(int(end), self._codes[code], number) for (end, code), number in changes.items() if number]
                frontier_file.add_to_tally(self._db, rows)
                new = [(origin, *robots) for origin, robots in self._new_robots.items()]
                self._db.executemany("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)", new)
                self._db.execute("COMMIT")
            except BaseException:
                self._hosts.clear()  # it may hold ids that were never given
                if self._db.in_transaction:  # SQLite rolls back by itself when the disk is full
                    self._db.execute("ROLLBACK")
                raise
        self._clean = False
        self.hosts_known += self._new_hosts
        for key, change in changes.items():
            self._tally[key] += change
        self._new_robots.clear()

    def _host_ids(self, names: Mapping[str, object], *, make: bool = False) -> dict[str, int]:
        """The ids of those hosts that are known, or of all of them if they are to be made known, in their order."""
        if len(self._hosts) > HOSTS_HELD:
            self._hosts.clear()
        unseen = [(name,) for name in names if name not in self._hosts]
        if make:
            new = [(name, partition_of(name)) for (name,) in unseen]
            made = self._db.executemany("INSERT OR IGNORE INTO host (name, partition) VALUES (?, ?)", new)
            self._new_hosts += max(0, made.rowcount)
        for name in unseen:
            self._hosts.update(self._db.execute("SELECT name, id FROM host WHERE name = ?", name))
        if make and not names.keys() <= self._hosts.keys():
            raise FolderError(f"{self._path} is damaged: its table of hosts and the index of it differ.")
        return self._hosts

    def _by_host(self, where: str, *values: int | None) -> dict[str, int]:
        """How many URLs there are, by host; `where` is ours."""
        sql = f"SELECT host, count(*) AS number FROM url {where} GROUP BY host"  # noqa: S608
        with plainly(self._path):
            return dict(self._db.execute(f"SELECT name, number FROM ({sql}) JOIN host ON id = host", values))  # noqa: S608
