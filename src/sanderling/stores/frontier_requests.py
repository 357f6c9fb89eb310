"""The frontier of a job: as that of a crawl, with requests instead of URLs.

A request has a key by which it is known, apart from its URL; a priority; the name of the function that reads its reply;
and what else is sent, as bytes that only the job understands.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sanderling.outcome import Code, Outcome
from sanderling.stores import frontier_file, frontier_reading, frontier_tables
from sanderling.stores.durable import plainly
from sanderling.stores.frontier_forget import ForgettingFrontier
from sanderling.stores.frontier_rows import UNFETCHED, End, Ended, Failed, RetryUrl, as_text

# Which bytes of the records came of a request: those of no request were written by a release that did not note it.
WROTE = """CREATE TABLE IF NOT EXISTS wrote (
    id INTEGER PRIMARY KEY, start INTEGER NOT NULL, length INTEGER NOT NULL)"""
LAST = -1001  # the priority of what is asked for after everything else; those of a job are -1000 to 1000


class FoundRequest(NamedTuple):
    """A request that the job may send."""

    url: str
    host: str
    depth: int
    key: bytes  # 16 bytes by which it is known
    reader: str
    priority: int = 0
    data: bytes | None = None


class QueuedRequest(NamedTuple):
    """A request to send, and how often it has failed."""

    id: int
    url: str
    host: str
    depth: int
    priority: int
    reader: str
    data: bytes | None
    failures: int = 0  # requests in a row
    due: float = 0.0  # seconds since 1970; 0 for what never failed

    @property
    def key(self) -> int:
        """What tells it from all others of its host."""
        return self.id


class SpoiledRecords(NamedTuple):
    """Records of a request that were not kept, as a request of its own that has failed: asked again, it brings them."""

    request: FoundRequest
    outcome: Outcome


class EndedRequest(Ended, frozen=True, kw_only=True):
    """What became of one request: its records, without line breaks, and the further work that was found."""

    priority: int = 0
    records: tuple[bytes, ...] = ()
    found: tuple[FoundRequest, ...] = ()
    spoiled: SpoiledRecords | None = None
    alias: FoundRequest | None = None  # the address that a redirect led to, which is then known as well

    def __post_init__(self) -> None:
        if self.end is not End.FETCHED and (self.records or self.found):
            raise ValueError(f"{self.url} ended {self.end.name} with records or further work, expected neither")

    @property
    def sent(self) -> int:
        """Requests that were sent for it. What led out of scope was sent, and not followed."""
        return self.requests if self.end is End.LEFT_OUT else super().sent


class WrittenBytes(NamedTuple):
    """The bytes of the records that came of one request."""

    id: int
    start: int
    length: int
    url: str


class JobProgress(NamedTuple):
    """How far a job has come."""

    watermark: int  # the length of the records that are on disk
    records: int
    checksum: int  # CRC-32 of the records
    requests: int  # that were sent


Waiting = dict[tuple[str, int], int]  # how many requests wait, by host and priority


class RequestFrontier(ForgettingFrontier):
    """The frontier of a job in the file at `path`, which is made if it is not there. `readers` are those of the job."""

    def __init__(self, path: Path, readers: Iterable[str]) -> None:
        super().__init__(path)
        self._db.execute(WROTE)
        self._db.executemany("INSERT OR IGNORE INTO reader (name) VALUES (?)", [(name,) for name in readers])
        self._readers = {name: number for number, name in self._db.execute("SELECT id, name FROM reader")}

    def waiting_by_priority(self) -> Waiting:
        """How many requests wait."""
        sql = "SELECT host, priority, count(*) AS number FROM ranked GROUP BY host, priority"
        with plainly(self._path):
            rows = self._db.execute(f"SELECT name, priority, number FROM ({sql}) JOIN host ON id = host")  # noqa: S608
            ranked = {(name, priority): number for name, priority, number in rows}
        found = {(name, 0): number for name, number in self.waiting().items()}
        for (name, _), number in ranked.items():
            found[name, 0] -= number
        return {key: number for key, number in (found | ranked).items() if number}

    def take_requests(self, wants: Sequence[tuple[str, int, int, int]]) -> list[list[QueuedRequest]]:
        """For each (host, priority, id, n): the first n requests that wait there and have a higher id, by id."""
        with plainly(self._path):
            hosts = self._host_ids(dict.fromkeys(want[0] for want in wants))
            return [
                list(map(QueuedRequest._make, self._waiting_requests(host, hosts[host], *want)))
                if host in hosts
                else []
                for host, *want in wants
            ]

    def _waiting_requests(self, name: str, host: int, priority: int, after: int, most: int) -> Iterable[tuple[object]]:
        source, rank = "url", "request.priority = 0 AND ?"
        if priority:
            source, rank = "ranked CROSS JOIN url ON url.id = ranked.id", "ranked.priority = ?"
        of = "ranked" if priority else "url"
        # The words are ours.
        sql = f"""SELECT url.id, url.url, ?, url.depth, request.priority, reader.name, request.data,
            coalesce(again.failures, 0), coalesce(again.due, 0.0)
            FROM {source} CROSS JOIN request ON request.id = url.id CROSS JOIN reader ON reader.id = request.reader
            LEFT JOIN again ON again.id = url.id
            WHERE url.end = 0 AND {of}.host = ? AND {rank} AND {of}.id > ? ORDER BY {of}.id LIMIT ?"""  # noqa: S608
        return self._db.execute(sql, (name, host, priority or 1, after, most))

    def waiting_request(self, number: int) -> QueuedRequest | None:
        """The request with this id; None if it does not wait."""
        sql = """SELECT url.id, url.url, host.name, url.depth, request.priority, reader.name, request.data
            FROM url JOIN request ON request.id = url.id JOIN reader ON reader.id = request.reader
            JOIN host ON host.id = url.host WHERE url.id = ? AND url.end = 0"""
        with plainly(self._path):
            row = self._db.execute(sql, (number,)).fetchone()
        return None if row is None else QueuedRequest(*row)

    def put_last(self, queued: QueuedRequest) -> None:
        """Ask for it after everything else of its host, from the next start on."""
        with self._transaction():
            self._db.execute("UPDATE request SET priority = ? WHERE id = ?", (LAST, queued.id))
            self._unrank([(queued.priority, queued.id)])
            self._db.execute(
                "INSERT OR IGNORE INTO ranked SELECT host, ?, id FROM url WHERE id = ? AND end = 0", (LAST, queued.id)
            )

    def commit_requests(
        self,
        ended: Sequence[EndedRequest],
        found: Iterable[FoundRequest],
        progress: JobProgress,
        again: Sequence[RetryUrl] = (),
        claimed: Sequence[FoundRequest] = (),
    ) -> Waiting:
        """Decide `ended`, note what is asked for `again`, and add what was found and is not known, all or nothing.

        Addresses that are `claimed` are not known, and are from now on. How many new ones wait now. ValueError if one
        of `ended` or `again` does not wait.
        """
        with self._transaction() as tally:
            self._decide(ended, tally)
            self._unrank([(each.priority, each.id) for each in ended if each.priority])
            self._put_off(again)
            self._note_written(ended)
            aliases = [(each.alias, each.outcome) for each in ended if each.alias is not None]
            self._add_ended(End.MOVED, [*aliases, *((each, Outcome(Code.OK)) for each in claimed)], tally)
            new = self._add_requests([*found, *(work for each in ended for work in each.found)], tally)
            self._add_ended(End.FAILED, [each.spoiled for each in ended if each.spoiled is not None], tally)
            added = sum(tally.values())
            meta = self._counted(**progress._asdict(), known=self.known + added)
        self.meta = meta
        return new

    def _note_written(self, ended: Sequence[EndedRequest]) -> None:
        """Records stand in the order of the requests that they came of, behind those that were there."""
        rows, at = [], self.meta.watermark
        for each in ended:
            length = sum(map(len, each.records)) + len(each.records)
            if length:
                rows.append((each.id, at, length))
            at += length
        self._db.executemany("INSERT OR REPLACE INTO wrote VALUES (?, ?, ?)", rows)

    def written(self) -> Iterator[WrittenBytes]:
        """Which bytes of the records came of which URL, in their order. Read them before anything else is written."""
        sql = "SELECT wrote.id, start, length, url FROM wrote JOIN url ON url.id = wrote.id ORDER BY start"
        with plainly(self._path):
            yield from map(WrittenBytes._make, self._db.execute(sql))

    def move_up(self, progress: JobProgress) -> None:
        """The records stand one behind the other, in the order that they had; `progress` is how far they reach."""
        with self._transaction():
            self._move_up()
            meta = self._counted(**progress._asdict())
        self.meta = meta

    def _move_up(self) -> None:
        self._db.execute("DELETE FROM wrote WHERE id NOT IN (SELECT id FROM url)")
        rows, at = [], 0
        for number, start, length in self._db.execute("SELECT id, start, length FROM wrote ORDER BY start"):
            if start != at:
                rows.append((at, number))
            at += length
        self._db.executemany("UPDATE wrote SET start = ? WHERE id = ?", rows)

    def _unrank(self, rows: Sequence[tuple[int, int]]) -> None:
        sql = "DELETE FROM ranked WHERE host = (SELECT host FROM url WHERE id = ?) AND priority = ? AND id = ?"
        self._db.executemany(sql, [(number, priority, number) for priority, number in rows])

    def _add_requests(self, found: Sequence[FoundRequest], tally: Counter[tuple[End, str]]) -> Waiting:
        """Each that is not known gets the next id."""
        if not (found := self.keep_own(found)):
            return {}
        hosts = self._host_ids(dict.fromkeys(each.host for each in found), make=True)
        insert, following = self._db.execute, max(frontier_tables.last_id(self._db), self.meta.last_id) + 1
        sql = "INSERT OR IGNORE INTO url (id, host, depth, end, code, key, url) VALUES (?, ?, ?, 0, 0, ?, ?)"
        requests, ranked, new = [], [], Waiting()
        for url, host, depth, key, reader, priority, data in found:
            if not insert(sql, (following, hosts[host], depth, key, url)).rowcount:
                continue
            requests.append((following, self._readers[reader], priority, data))
            new[host, priority] = new.get((host, priority), 0) + 1
            if priority:
                ranked.append((hosts[host], priority, following))
            following += 1
        waiting = Counter[int]()
        for (host, _), number in new.items():
            waiting[hosts[host]] += number
        frontier_file.shift_hosts(self._db, waiting, self.wall())
        self._db.executemany("INSERT INTO request VALUES (?, ?, ?, ?)", requests)
        self._db.executemany("INSERT INTO ranked VALUES (?, ?, ?)", ranked)
        tally[End.WAITING, ""] += sum(new.values())
        return new

    def end_by_key(self, request: FoundRequest) -> End | None:
        """What became of a request that is known by this key; None if none is."""
        sql = "SELECT end FROM url JOIN host ON host.id = url.host WHERE host.name = ? AND url.key = ?"
        with plainly(self._path):
            row = self._db.execute(sql, (request.host, request.key)).fetchone()
        return None if row is None else End(row[0])

    def data_by_key(self, request: FoundRequest) -> bytes | None:
        """What is stored of a request that is known by this key."""
        sql = """SELECT request.data FROM url JOIN host ON host.id = url.host JOIN request ON request.id = url.id
            WHERE host.name = ? AND url.key = ?"""
        with plainly(self._path):
            row = self._db.execute(sql, (request.host, request.key)).fetchone()
        return None if row is None else row[0]

    def _add_ended(
        self, end: End, added: Sequence[tuple[FoundRequest, Outcome]], tally: Counter[tuple[End, str]]
    ) -> None:
        """Each gets the next id, and has its end."""
        if not added:
            return
        hosts = self._host_ids(dict.fromkeys(request.host for request, _ in added), make=True)
        following = max(frontier_tables.last_id(self._db), self.meta.last_id) + 1
        for number, ((url, host, depth, key, reader, priority, data), why) in enumerate(added, following):
            self._db.execute(
                "INSERT INTO url (id, host, depth, end, code, key, url) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, hosts[host], depth, int(end), self._codes[why.code], key, url),
            )
            self._db.execute("INSERT INTO request VALUES (?, ?, ?, ?)", (number, self._readers[reader], priority, data))
            tally[end, str(why.code)] += 1
            if end in UNFETCHED:
                sql = "INSERT INTO failure (id, status, detail, requests) VALUES (?, ?, ?, 0)"
                self._db.execute(sql, (number, why.status, as_text(why.detail)))

    def failed_requests(self) -> Iterator[tuple[Failed, str]]:
        """The requests that failed or were left out, by id, each with its reader. Read them before writing."""
        with plainly(self._path):
            yield from frontier_reading.failed_requests(self._db)
