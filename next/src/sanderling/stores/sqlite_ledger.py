# ruff: noqa: D102 - Ledger says what each method does.
"""The ledger in SQLite: one process, one file, one thread, in which everything below with a leading `_` runs."""

import asyncio
import secrets
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from sanderling.clock import Clock
from sanderling.files import FolderError
from sanderling.ids import partition_of, url_key
from sanderling.stores.ledger import FORMAT, Plan, check_crawl, check_plan, encode_plan
from sanderling.stores.rows import (
    DOCUMENTS,
    ENDED,
    FORGOTTEN,
    FRONTIER,
    HOST_BYTES,
    KEPT,
    KNOWN,
    MEMORY,
    PAGE,
    WAITING,
    Changes,
    Row,
    document_rows,
    due_by_host,
    ended_state,
    forgotten_hash,
    forgotten_hashes,
    found_row,
    host_keys,
    host_work,
    hosts_to_wake,
    late_visits,
    memory_row,
    page_end,
    page_query,
    queued,
    requeued_row,
    retried_row,
    waiting_state,
    with_crc,
)
from sanderling.stores.sqlite_file import SqliteFile
from sanderling.stores.verify import COMPARISONS, COMPARISONS_WITHOUT_VISITS, HOSTS, TEMPORARY, Audit
from sanderling.stores.work import (
    KIND_NUMBER,
    SET_ASIDE,
    VISIT,
    Batch,
    Counts,
    Fault,
    Forgotten,
    FoundUrl,
    HostCount,
    HostNote,
    HostWork,
    PageMemory,
    QueuedUrl,
    RowFile,
    Taken,
    UrlState,
    due_of,
    first_of_each,
    host_number,
    turn_of,
)

_APPLICATION = 0x53616C33  # "Sal3"
_TABLES = (
    """CREATE TABLE crawl (format INT, plan BLOB, run INT, finished INT, last_id INT, salt BLOB, state BLOB,
        crc INT)""",
    "CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID",
    # The whole order of each host's queue is in the primary key: an index beside it would cost as much again.
    """CREATE TABLE frontier (host INT, kind INT, turn INT, id INT, url TEXT, key BLOB, depth INT, priority INT,
        failures INT, function TEXT, data BLOB, code TEXT, crc INT,
        PRIMARY KEY (host, kind, turn, id)) WITHOUT ROWID""",
    """CREATE TABLE ended (key BLOB PRIMARY KEY, host INT, name TEXT, url TEXT, depth INT, state TEXT, code TEXT,
        status INT, detail TEXT, requests INT, function TEXT, priority INT, data BLOB, crc INT) WITHOUT ROWID""",
    """CREATE TABLE memory (key BLOB PRIMARY KEY, etag TEXT, modified TEXT, digest BLOB, seen REAL, every REAL,
        crc INT) WITHOUT ROWID""",
    # `due`: when its first URL is due, or earlier; NULL while none waits. `parked`: left alone until then.
    """CREATE TABLE host (host INTEGER PRIMARY KEY, partition INT, name TEXT, due REAL, parked REAL,
        stored INT NOT NULL DEFAULT 0)""",
    "CREATE INDEX host_due ON host (due) WHERE due IS NOT NULL",
    "CREATE TABLE document (host INT, what INT, body BLOB, crc INT, PRIMARY KEY (host, what)) WITHOUT ROWID",
    "CREATE TABLE tally (state TEXT, code TEXT, n INT, PRIMARY KEY (state, code)) WITHOUT ROWID",
    "CREATE TABLE row_files (process INT, file TEXT, length INT, rows INT, crc INT, PRIMARY KEY (process, file))",
    "CREATE TABLE forgotten (hash BLOB PRIMARY KEY) WITHOUT ROWID",
)
_TAKE = f"SELECT {FRONTIER} FROM frontier WHERE host = ? AND kind = ? AND turn <= ? ORDER BY turn, id LIMIT ?"
_NEXT_TURN = "SELECT min(turn) FROM frontier WHERE host = ? AND kind = ? AND turn > ? AND turn < ?"
_PUT = f"INSERT INTO frontier ({FRONTIER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM frontier WHERE host = ? AND kind = ? AND turn = ? AND id = ?"
_END = f"INSERT INTO ended ({ENDED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_REMEMBER = f"INSERT OR REPLACE INTO memory ({MEMORY}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_COUNT = "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n"
_FILE = "INSERT OR REPLACE INTO row_files VALUES (?, ?, ?, ?, ?)"
_MEET_HOST = """INSERT INTO host (host, partition, name, due) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET due = excluded.due WHERE parked IS NULL AND (due IS NULL OR due > excluded.due)"""
_HOSTS = """SELECT due, host, name, parked, stored FROM host
    WHERE due < 9e999 AND (due, host) > (?, ?) AND (parked IS NULL OR due <= ?) ORDER BY due, host LIMIT ?"""
_ANYTHING_WAITS = """SELECT EXISTS (SELECT 1 FROM frontier WHERE kind <> ? AND turn < ?
    AND host NOT IN (SELECT host FROM host WHERE parked IS NOT NULL))"""
_GOOD = DOCUMENTS.index("good")
_CHUNK = 256  # keys that are looked up with one statement


class SqliteLedger:
    """A ledger in one file."""

    def __init__(self, path: Path, plan: Plan, clock: Clock, kinds: Sequence[str], *, read_only: bool) -> None:
        self.run = 1
        self.finished = False
        self.process = 0
        self.state = b""
        self.away = ""
        self._path = path
        self._plan = plan
        self._clock = clock
        self._kinds = [KIND_NUMBER[kind] for kind in kinds]
        self._read_only = read_only
        self._file = SqliteFile(path, _APPLICATION, read_only=read_only)
        self._db: sqlite3.Connection
        self._salt = b""
        self._last_id = 0
        self._remembers = False  # whether there may be rows in `memory` for what is taken
        self._forgets = False
        self._held: dict[str, set[int]] = {}  # hosts, with what was taken of them
        self._released: set[str] = set()  # hosts whose `due` may be too early
        self._position = -1.0, 0  # behind the last host that was handed out

    def hurry(self) -> None:
        """There is nothing to wait for."""

    async def __aenter__(self) -> Self:
        await self._file.open()
        try:
            self._db = self._file.db
            await self._file.call(self._open)
        except BaseException:
            await self._file.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._file.close()

    def _open(self) -> None:
        if not self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            with self._file.transaction() as db:
                db.execute(f"PRAGMA application_id = {_APPLICATION}")
                for table in _TABLES:
                    db.execute(table)
                row = with_crc(FORMAT, encode_plan(self._plan), 1, 0, 0, secrets.token_bytes(16), b"")
                db.execute("INSERT INTO crawl VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        row = self._db.execute("SELECT * FROM crawl").fetchone()
        check_crawl(str(self._path), row)
        _, plan, self.run, finished, self._last_id, self._salt, self.state, _ = row
        if not self._read_only:
            check_plan(str(self._path), plan, self._plan)
        self.finished = bool(finished)
        self._remembers = self.run > 1 or VISIT in self._kinds
        self._forgets = self._db.execute("SELECT count(*) FROM forgotten").fetchone() != (0,)

    # A run.

    async def new_run(self) -> None:
        await self._file.call(self._new_run)
        self.run += 1
        self.finished, self._remembers = False, True

    def _new_run(self) -> None:
        with self._file.transaction() as db:
            for table in ("seen", "frontier", "ended", "tally"):
                db.execute(f"DELETE FROM {table}")
            now = self._clock.wall()
            db.execute("UPDATE host SET stored = 0, parked = iif(parked > ?, parked, NULL)", (now,))
            db.execute("UPDATE host SET due = parked")
            self._change(db, "run = run + 1, finished = 0")
        self._held.clear()

    async def finish(self) -> bool:
        self.finished = await self._file.call(self._finish)
        return self.finished

    def _finish(self) -> bool:
        with self._file.transaction() as db:
            self._refresh_released(db)
            finished = not db.execute(_ANYTHING_WAITS, (VISIT, SET_ASIDE)).fetchone()[0]
            if finished:
                self._change(db, "finished = 1")
            return finished

    def _change(self, db: sqlite3.Connection, changes: str, *values: object) -> None:
        """Change the row of `crawl`, and its checksum with it."""
        db.execute(f"UPDATE crawl SET {changes}", values)
        row = db.execute("SELECT * FROM crawl").fetchone()
        db.execute("UPDATE crawl SET crc = ?", with_crc(*row[:-1])[-1:])

    async def row_files(self) -> list[RowFile]:
        return await self._file.call(lambda: [RowFile(*row) for row in self._db.execute("SELECT * FROM row_files")])

    # What is next.

    async def hosts(self, limit: int) -> list[HostWork]:
        return await self._file.call(lambda: self._hosts(limit))

    async def others_work(self) -> bool:
        return False

    def _hosts(self, limit: int) -> list[HostWork]:
        if self._released:
            with self._file.transaction() as db:
                self._refresh_released(db)
        now = self._clock.wall()
        found: list[HostWork] = []
        may_wrap = self._position[0] >= 0
        while len(found) < limit:
            rows = self._db.execute(_HOSTS, (*self._position, now, limit)).fetchall()
            for due, number, name, parked, stored in rows:
                if len(found) == limit:
                    return found
                self._position = due, number
                if name not in self._held:
                    self._held[name] = set()
                    notes = self._documents(number, DOCUMENTS[:3])
                    found.append(host_work(name, due - now, parked=parked is not None, stored=stored, documents=notes))
            if len(rows) < limit:
                self._position = -1.0, 0
                if not may_wrap:
                    break
                may_wrap = False
        return found

    def _documents(self, number: int, names: Sequence[str]) -> dict[str, bytes]:
        found = dict.fromkeys(names, b"")
        for what, body in self._db.execute("SELECT what, body FROM document WHERE host = ?", (number,)):
            if DOCUMENTS[what] in found:
                found[DOCUMENTS[what]] = body
        return found

    async def documents(self, host: str) -> tuple[bytes, bytes]:
        found = await self._file.call(lambda: self._documents(host_number(host), DOCUMENTS[3:]))
        return found["robots"], found["cookies"]

    async def take(self, host: str, limit: int) -> Taken:
        return await self._file.call(lambda: self._take(host, limit))

    def _take(self, host: str, limit: int) -> Taken:
        number, now = host_number(host), self._clock.wall()
        turn = turn_of(0, now)
        taken = self._held.setdefault(host, set())
        items: list[QueuedUrl] = []
        wait = None
        for kind in self._kinds:
            rows = self._db.execute(_TAKE, (number, kind, turn, limit + 1 + len(taken)))
            free = [row for row in rows if row[3] not in taken]
            items += [queued(row, host) for row in free[:limit]]
            if len(free) > limit:
                wait = 0.0
            elif wait != 0.0:
                ((later,),) = self._db.execute(_NEXT_TURN, (number, kind, turn, SET_ASIDE))
                if later is not None:
                    wait = min(due_of(later) - now, inf if wait is None else wait)
        taken.update(item.id for item in items)
        return Taken(self._remember(items) if self._remembers else items, wait)

    def _remember(self, items: list[QueuedUrl]) -> list[QueuedUrl]:
        found: dict[bytes, PageMemory] = {}
        for row in self._select_by_key(f"SELECT {MEMORY} FROM memory", "key", [item.key for item in items]):
            found[row[0]] = PageMemory(*row[:-1])
        return [replace(item, memory=found.get(item.key)) for item in items]

    def release(self, host: str) -> None:
        self._file.post(lambda: self._release(host))

    def _release(self, host: str) -> None:
        if self._held.pop(host, None) is not None:
            self._released.add(host)

    def _refresh_released(self, db: sqlite3.Connection) -> None:
        """Say again when the hosts are due that were released since."""
        for host in self._released - self._held.keys():
            number = host_number(host)
            turns = [db.execute(_NEXT_TURN, (number, k, -SET_ASIDE, SET_ASIDE)).fetchone()[0] for k in self._kinds]
            due = min((due_of(turn) for turn in turns if turn is not None), default=None)
            sql = "UPDATE host SET due = ? WHERE host = ? AND due IS NOT ? AND parked IS NULL"
            db.execute(sql, (due, number, due))
        self._released.clear()

    def may_send(self) -> bool:
        return True

    async def woken(self) -> list[str]:
        await asyncio.Event().wait()
        return []

    # What came of it.

    async def commit(self, batch: Batch) -> list[str]:
        return await self._file.call(lambda: self._commit(batch))

    def _commit(self, batch: Batch) -> list[str]:
        changes = Changes(batch)
        new = self._unknown(batch.found)
        rows = [found_row(each, number) for number, each in enumerate(new.values(), self._last_id + 1)]
        changes.tally[KNOWN] += len(rows)
        changes.tally[WAITING] += len(rows)
        with self._file.transaction() as db:
            if changes.gone and db.executemany(_REMOVE, changes.gone).rowcount != len(changes.gone):
                raise FolderError(f"{self._path} lacks URLs that were taken from it", "run sanderling verify")
            db.executemany("INSERT INTO seen VALUES (?)", [(key,) for key in sorted(new)])
            db.executemany(_PUT, sorted(changes.again + rows))
            db.executemany(_END, changes.ended)
            self._meet_hosts(db, new.values())
            stored = [(number, host_number(host)) for host, number in changes.stored.items()]
            db.executemany("UPDATE host SET stored = stored + ? WHERE host = ?", stored)
            for note in batch.hosts:
                self._note_host(db, note)
            db.executemany(_REMEMBER, [memory_row(each) for each in batch.memory])
            db.executemany(_FILE, [(each.process, each.file, each.length, each.rows, each.crc) for each in batch.files])
            self._count(db, changes.tally)
            if rows or batch.state is not None or self.finished:
                sql = "last_id = ?, state = coalesce(?, state), finished = finished AND NOT ?"
                self._change(db, sql, self._last_id + len(rows), batch.state, bool(changes.again or rows))
            if self._released:
                self._refresh_released(db)
        self._last_id += len(rows)
        self.finished = self.finished and not (changes.again or rows)
        self.state = self.state if batch.state is None else batch.state
        for item in batch.items():
            if item.host in self._held:
                self._held[item.host].discard(item.id)
        return self._hold_new(new.values(), batch)

    def _unknown(self, found: Sequence[FoundUrl]) -> dict[bytes, FoundUrl]:
        """What was found and is not known yet, by key; looked up before the file is locked."""
        urls = first_of_each(found)
        known = [key for (key,) in self._select_by_key("SELECT key FROM seen", "key", sorted(urls))]
        for key in known:
            del urls[key]
        if self._forgets and urls:
            hashes = forgotten_hashes(urls, self._salt)
            for (hash_,) in self._select_by_key("SELECT hash FROM forgotten", "hash", list(hashes)):
                for key in hashes[hash_]:
                    urls.pop(key, None)
        return urls

    def _select_by_key(self, sql: str, column: str, keys: Sequence[bytes]) -> Iterator[Row]:
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            # Always as many, so that the statement is prepared once.
            length = _CHUNK if len(chunk) > _CHUNK // 8 else _CHUNK // 8
            places = ", ".join("?" * length)
            padded = [*chunk, *([chunk[-1]] * (length - len(chunk)))]
            yield from self._db.execute(f"{sql} WHERE {column} IN ({places})", padded)

    def _meet_hosts(self, db: sqlite3.Connection, new: Iterable[FoundUrl]) -> None:
        rows = [(host_number(host), partition_of(host), host, due) for host, due in due_by_host(new).items()]
        db.executemany(_MEET_HOST, rows)

    def _note_host(self, db: sqlite3.Connection, note: HostNote) -> None:
        number = host_number(note.host)
        db.execute(
            "INSERT OR IGNORE INTO host (host, partition, name) VALUES (?, ?, ?)",
            (number, partition_of(note.host), note.host),
        )
        if note.parked is not None:
            until = note.parked or None
            db.execute("UPDATE host SET parked = ?, due = ? WHERE host = ?", (until, note.parked, number))
        db.executemany("INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?)", document_rows(note))

    def _count(self, db: sqlite3.Connection, tally: Counter[tuple[str, str]]) -> None:
        db.executemany(_COUNT, [(*name, n) for name, n in sorted(tally.items()) if n])

    def _hold_new(self, new: Iterable[FoundUrl], batch: Batch) -> list[str]:
        """The hosts with something new to do, unless they are parked."""
        sql = "SELECT 1 FROM host WHERE host = ? AND parked IS NULL"
        awake = [host for host in hosts_to_wake(new, batch) if self._db.execute(sql, (host_number(host),)).fetchone()]
        for host in awake:
            self._held.setdefault(host, set())
        return awake

    # For commands.

    async def counts(self) -> Counts:
        return await self._file.call(self._counts)

    def _counts(self) -> Counts:
        tally = self._tally()
        ends = {name: n for name, n in tally.items() if name not in KEPT and n}
        return Counts(tally.get(KNOWN, 0), tally.get(WAITING, 0), ends)

    def _tally(self) -> dict[tuple[str, str], int]:
        return {(end, code): n for end, code, n in self._db.execute("SELECT * FROM tally")}

    async def waiting_by_host(self, limit: int) -> list[HostCount]:
        return await self._file.call(lambda: self._waiting_by_host(limit))

    def _waiting_by_host(self, limit: int) -> list[HostCount]:
        sql = """SELECT name, n, due, waiting.host FROM (SELECT host, count(*) n FROM frontier WHERE kind <> ?
            GROUP BY host ORDER BY n DESC LIMIT ?) waiting JOIN host USING (host) ORDER BY n DESC, name"""
        rows = self._db.execute(sql, (VISIT, limit)).fetchall()
        return [HostCount(name, n, due, self._documents(number, ["note"])["note"]) for name, n, due, number in rows]

    async def tasks(self, state: str, *, host: str | None = None, code: str | None = None) -> AsyncIterator[UrlState]:
        last: Row | None = None
        while True:
            rows = await self._file.call(partial(self._page, state, host, code, last))
            for row in rows:
                yield waiting_state(row) if state == "waiting" else ended_state(row)
            if len(rows) < PAGE:
                return
            last = page_end(state, rows)

    def _page(self, state: str, host: str | None, code: str | None, last: Row | None) -> list[Row]:
        return self._db.execute(*page_query(state, host, code, last, "?")).fetchall()

    async def show(self, host: str, key: bytes) -> UrlState | None:
        return await self._file.call(lambda: self._show(host, key))

    def _show(self, host: str, key: bytes) -> UrlState | None:
        for row in self._db.execute(f"SELECT {ENDED} FROM ended WHERE key = ?", (key,)):
            return ended_state(row)
        stored = None
        if self._db.execute("SELECT 1 FROM seen WHERE key = ?", (key,)).fetchone():
            stored = UrlState("stored", host, key=key)
        elif self._db.execute("SELECT 1 FROM forgotten WHERE hash = ?", (forgotten_hash(key, self._salt),)).fetchone():
            return UrlState("forgotten", host, key=key)
        waiting = next(self._find(host, {key}), None)
        return waiting_state(waiting) if waiting is not None else stored

    def _find(self, host: str, keys: set[bytes]) -> Iterator[Row]:
        """The rows of these keys in the queue of a host, all of which is read."""
        for row in self._db.execute(f"SELECT {FRONTIER} FROM frontier WHERE host = ?", (host_number(host),)):
            if (row[5] or url_key(row[4])) in keys:
                yield row

    async def retry(self, end: str, *, host: str | None = None, code: str | None = None) -> int:
        return await self._file.call(lambda: self._retry(end, host, code))

    def _retry(self, end: str, host: str | None, code: str | None) -> int:
        total, now = 0, self._clock.wall()
        last: Row | None = None
        with self._file.transaction() as db:
            hosts: set[int] = set()
            while rows := self._page(end, host, code, last):
                last = page_end(end, rows)
                if end == "waiting":
                    rows = [row for row in rows if due_of(row[2]) > now]
                    db.executemany(_REMOVE, [row[:4] for row in rows])
                    again = [requeued_row(row) for row in rows]
                else:
                    db.executemany("DELETE FROM ended WHERE key = ?", [row[:1] for row in rows])
                    again = [retried_row(row, number) for number, row in enumerate(rows, self._last_id + total + 1)]
                    tally = Counter({WAITING: len(rows)})
                    tally.subtract((row[5], row[6]) for row in rows)
                    self._count(db, tally)
                db.executemany(_PUT, again)
                total += len(rows)
                hosts.update(row[0] for row in again)
            if end == "waiting" and host is None:
                hosts.update(number for (number,) in db.execute("SELECT host FROM host WHERE parked IS NOT NULL"))
            db.executemany("UPDATE host SET due = 0, parked = NULL WHERE host = ?", [(each,) for each in hosts])
            if total:
                self._change(db, "finished = 0, last_id = last_id + ?", total)
        self._last_id += total
        self.finished = self.finished and not total
        return total

    async def visit_now(self, changed: Mapping[str, float]) -> list[str]:
        """Make the next visits due of pages that have changed since they were seen, at hosts that are held: those."""
        return await self._file.call(lambda: self._visit_now(changed))

    def _visit_now(self, changed: Mapping[str, float]) -> list[str]:
        urls = {url_key(url): url for url in changed}
        seen = self._select_by_key("SELECT key, seen FROM memory", "key", list(urls))
        late = late_visits(changed, urls, seen, self._held)
        now = self._clock.wall()
        with self._file.transaction() as db:
            for host, keys in late.items():
                rows = [row for row in self._find(host, keys) if row[1] == VISIT and due_of(row[2]) > now]
                db.executemany(_REMOVE, [row[:4] for row in rows])
                db.executemany(_PUT, [requeued_row(row) for row in rows])
        return sorted(late)

    async def forget(self, urls: Iterable[tuple[str, bytes]]) -> Forgotten:
        listed = list(urls)
        return await self._file.call(lambda: self._forget(listed))

    def _forget(self, urls: Sequence[tuple[str, bytes]]) -> Forgotten:
        by_host: dict[str, set[bytes]] = {}
        for host, key in urls:
            known = (
                self._db.execute("SELECT key FROM seen WHERE key BETWEEN ? AND ?", host_keys(host)) if not key else ()
            )
            by_host.setdefault(host, set()).update([key] if key else [each for (each,) in known])
        wholes = {host for host, key in urls if not key}
        removed, busy = 0, list[bytes]()
        self._db.execute("PRAGMA secure_delete = ON")
        try:
            with self._file.transaction() as db:
                for host, keys in by_host.items():
                    waiting = {row[5] or url_key(row[4]): row for row in self._find(host, keys)}
                    taken = self._held.get(host, set())
                    busy += [key for key, row in waiting.items() if row[3] in taken]
                    for key in keys.difference(busy):
                        removed += self._remove(db, key, waiting.get(key))
                    self._forget_documents(db, host, keys, whole=host in wholes, busy=bool(taken))
        finally:
            self._db.execute("PRAGMA secure_delete = OFF")
        self._db.execute("VACUUM")  # and what was deleted before
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that the text is nowhere in the files
        self._forgets = True
        return Forgotten(removed, busy)

    def _forget_documents(
        self, db: sqlite3.Connection, host: str, keys: set[bytes], *, whole: bool, busy: bool
    ) -> None:
        """Remove what is noted of a host, all or what names a URL."""
        number = host_number(host)
        if not whole:
            sql = "SELECT body FROM document WHERE host = ? AND what = ?"
            for (good,) in db.execute(sql, (number, _GOOD)).fetchall():
                if url_key(good.decode()) in keys:
                    db.execute("DELETE FROM document WHERE host = ? AND what = ?", (number, _GOOD))
            return
        db.execute(
            "INSERT OR IGNORE INTO forgotten VALUES (?)", (forgotten_hash(host_keys(host)[0][:HOST_BYTES], self._salt),)
        )
        db.execute("DELETE FROM memory WHERE key BETWEEN ? AND ?", host_keys(host))
        db.execute("DELETE FROM document WHERE host = ?", (number,))
        if not busy:
            db.execute("DELETE FROM host WHERE host = ?", (number,))

    def _remove(self, db: sqlite3.Connection, key: bytes, waiting: Row | None) -> bool:
        tally = Counter[tuple[str, str]]()
        if waiting is not None:
            db.execute(_REMOVE, waiting[:4])
            tally[WAITING] -= waiting[1] != VISIT
        for end, code in db.execute("DELETE FROM ended WHERE key = ? RETURNING state, code", (key,)):
            tally[end, code] -= 1
        db.execute("DELETE FROM memory WHERE key = ?", (key,))
        was_known = db.execute("DELETE FROM seen WHERE key = ?", (key,)).rowcount == 1
        tally[FORGOTTEN] += was_known
        db.execute("INSERT OR IGNORE INTO forgotten VALUES (?)", (forgotten_hash(key, self._salt),))
        self._count(db, tally)
        return was_known

    async def verify(self, keys: Iterable[bytes]) -> list[Fault]:
        return await self._file.call(lambda: self._verify(keys))

    def _verify(self, keys: Iterable[bytes]) -> list[Fault]:
        try:
            return list(self._faults(keys))
        except sqlite3.DatabaseError as error:
            return [Fault("the file is damaged", 1, str(error))]

    def _faults(self, keys: Iterable[bytes]) -> Iterator[Fault]:
        db = self._db
        for (message,) in db.execute("PRAGMA integrity_check(5)"):
            if message != "ok":
                yield Fault("the file is damaged", 1, message)
        audit = Audit(self._tally())
        for table in TEMPORARY:
            db.execute(f"CREATE TEMP TABLE {table} (key BLOB PRIMARY KEY) WITHOUT ROWID")
        try:
            parts = chain(audit.row_keys(keys), audit.frontier(db.execute(f"SELECT {FRONTIER} FROM frontier")))
            for table, chunk in parts:
                audit.added(table, db.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?)", chunk).rowcount)
            for what, rest in (COMPARISONS if audit.has_visits else COMPARISONS | COMPARISONS_WITHOUT_VISITS).items():
                ((number,),) = db.execute(f"SELECT count(*) {rest}")
                if number:
                    ((key,),) = db.execute(f"SELECT a.key {rest} LIMIT 1")
                    yield Fault(what, number, key.hex())
        finally:
            for table in TEMPORARY:
                db.execute(f"DROP TABLE temp.{table}")
        audit.ended(db.execute(f"SELECT {ENDED} FROM ended"))
        audit.forgotten(db.execute("SELECT hash FROM forgotten"))
        audit.checksums("memory", db.execute(f"SELECT {MEMORY} FROM memory"))
        audit.checksums("document", db.execute("SELECT * FROM document"))
        audit.hosts(db.execute(HOSTS))
        ((known,),) = db.execute("SELECT count(*) FROM seen")
        ((stored,),) = db.execute("SELECT coalesce(sum(stored), 0) FROM host")
        yield from audit.faults(known, stored)
