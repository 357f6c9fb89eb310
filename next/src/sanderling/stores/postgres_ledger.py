# ruff: noqa: D102 - Ledger says what each method does.
"""The ledger in PostgreSQL: a schema a crawl, any number of processes, each with the hosts of its partitions."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

import asyncpg
from asyncpg import Connection
from msgspec.structs import replace

from sanderling.clock import Clock, boot_seconds
from sanderling.files import FolderError
from sanderling.ids import PARTITIONS, partition_of, url_key
from sanderling.stores import postgres_tables as sql
from sanderling.stores.ledger import FORMAT, Fenced, Plan, check_crawl, check_plan, encode_plan
from sanderling.stores.postgres_link import CONNECT_SECONDS, LOST, PostgresLink, check_name, columns, quoted
from sanderling.stores.rows import (
    COMMITS,
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

T = TypeVar("T")
LEASE_SECONDS = 30.0
_SKEW_SECONDS = 60.0  # that the clocks of two machines may differ
_CHUNK = 5_000  # rows that `verify` reads at once


class PostgresLedger:
    """A ledger in a schema of a database."""

    def __init__(
        self, url: str, name: str, plan: Plan, clock: Clock, kinds: Sequence[str], *,
        read_only: bool, lease: float = LEASE_SECONDS,
    ) -> None:  # fmt: skip
        check_name(name)
        self.run = 1
        self.finished = False
        self.process = 0
        self.state = b""
        self._name = name
        self._plan = plan
        self._clock = clock
        self._kinds = [KIND_NUMBER[kind] for kind in kinds]
        self._read_only = read_only
        self._lease = lease
        self._link = PostgresLink(url, name, clock, lease)
        self._pulse = PostgresLink(url, name, clock, lease)  # keeps our row while the other waits for a long statement
        self._listening: Connection | None = None
        self._turn = asyncio.Lock()  # one thing at a time, as in SQLite
        self._beating: asyncio.Task[None] | None = None
        self._beat_at = 0.0  # of `boot_seconds`: when our row was last kept
        self._fenced = False
        self._processes = 1  # that have a row
        self._news = asyncio.Event()
        self._losses = 0  # of the connection, that `woken` has heard of
        self._commits = 0
        self._ids = iter(range(0))
        self._salt = b""
        self._remembers = False  # whether there may be rows in `memory` for what is taken
        self._leased: set[int] = set()
        self._held: dict[str, set[int]] = {}  # hosts, with what was taken of them
        self._released: set[str] = set()  # hosts whose `due` may be too early
        self._position = -1.0, 0  # behind the last host that was handed out

    async def __aenter__(self) -> Self:
        try:
            await self._link.open()
            await self._link.call(partial(self._link.check, self._read_only))
            await self._link.call(self._open)
            if not self._read_only:
                await self._link.call(self._register)
                await self._beat()
                self._beating = asyncio.create_task(self._keep_beating())
        except BaseException:
            await self._pulse.close()
            await self._link.close()
            raise
        self._losses = self._link.losses
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
        await self._pulse.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._lease):
                await self._turn.acquire()  # what was begun comes to its end
        await self._link.close("DELETE FROM process WHERE id = $1", self.process)

    @property
    def away(self) -> str:
        return self._link.away

    def hurry(self) -> None:
        self._link.patience = CONNECT_SECONDS

    async def _alone(self, work: Coroutine[Any, Any, T]) -> T:
        """Do one thing at a time, to its end even if the caller is cancelled: half of a commit is none."""

        async def turn() -> T | Exception:
            async with self._turn:
                try:
                    return await work
                except Exception as error:  # noqa: BLE001 - raised below, if anybody still waits for it
                    return error

        answer = await asyncio.shield(asyncio.ensure_future(turn()))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _open(self, db: Connection) -> None:
        owner = await db.fetchval(sql.WHOSE, self._name, sql.MARK)
        if owner is None and self._read_only:
            raise FolderError(f"there is no {self._link.place}", "check the spelling")
        if owner is None:
            await self._create(db)
        elif owner != "ours":
            raise FolderError(f"{self._link.place} is something else's", "choose another name")
        row = await db.fetchrow("SELECT * FROM crawl")
        check_crawl(self._link.place, tuple(row or ()))
        _, plan, self.run, self.finished, self._salt, self.state, _ = row
        if not self._read_only:
            check_plan(self._link.place, plan, self._plan)
        self._remembers = self.run > 1 or VISIT in self._kinds

    async def _create(self, db: Connection) -> None:
        schema = quoted(self._name)
        async with db.transaction():
            # Two processes may start at once, and one may be lost in the midst of this.
            await db.execute(f"SET LOCAL lock_timeout = '{2 * self._lease:.0f}s'")
            await db.execute("SELECT pg_advisory_xact_lock(hashtext($1))", f"{sql.MARK} {self._name}")
            if await db.fetchval(sql.WHOSE, self._name, sql.MARK) is None:
                await db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                for table in sql.TABLES:
                    await db.execute(table)
                await db.execute(f"COMMENT ON SCHEMA {schema} IS '{sql.MARK}'")
                row = (FORMAT, encode_plan(self._plan), 1, False, secrets.token_bytes(16), b"")
                await db.execute("INSERT INTO crawl VALUES ($1, $2, $3, $4, $5, $6, $7)", *with_crc(*row))

    # A process, and its lease.

    async def _register(self, db: Connection) -> None:
        self._beat_at = boot_seconds()
        self.process = await db.fetchval(sql.REGISTER, self.run, self._lease)
        await self._name_sessions(db)

    async def _name_sessions(self, db: Connection) -> None:
        self._pulse.label = f"{self._channel} {self.process} pulse"
        await self._link.name_session(f"{self._channel} {self.process}", db)

    async def _keep_beating(self) -> None:
        while not self._fenced:
            await self._clock.sleep(self._lease / 6)
            await self._beat()

    async def _beat(self) -> None:
        """Say that we live, unless the server cannot be reached now."""
        try:
            async with asyncio.timeout(self._lease / 4):
                await self._say_alive(await self._pulse.ready())
        except (*LOST, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._pulse.drop()
            if boot_seconds() - self._beat_at > self._lease:
                self._link.drop()  # it may wait for an answer that will never come

    async def _say_alive(self, db: Connection) -> None:
        """Keep our row, end those who have not kept theirs for too long, and hear of what others find."""
        before = boot_seconds()
        alive = await db.fetchval(sql.BEAT, self.process, self._lease)
        if alive is None:
            self._fenced = True
        else:
            self._beat_at, self._processes = before, alive
        await db.execute(sql.REAP)
        await db.execute(sql.END_SESSIONS, self._channel, self._lease)
        if db is not self._listening:
            await db.add_listener(self._channel, self._hear)
            self._listening = db
            self._news.set()
        if self._fenced or self._losses != self._link.losses:
            self._news.set()

    @property
    def _channel(self) -> str:
        return f"sanderling {blake2b(self._name.encode(), digest_size=16).hexdigest()}"

    def _hear(self, *_: object) -> None:
        self._news.set()

    def may_send(self) -> bool:
        return not self._fenced and boot_seconds() - self._beat_at < self._lease / 2

    async def woken(self) -> list[str]:
        while True:
            await self._news.wait()
            self._news.clear()
            if self._fenced:
                raise Fenced(self._link.place)
            rows = await self._alone(self._link.call(lambda db: db.fetch(sql.WOKEN, self.process)))
            if self._losses != self._link.losses:  # an answer with hosts may have been lost
                self._losses = self._link.losses
                return list(self._held)
            if found := self._held.keys() & {host for (host,) in rows}:
                return list(found)

    async def _write(self, work: Callable[[Connection], Awaitable[T]], *, alone: bool = False) -> T:
        """Do `work` in a transaction, exactly once, however often the connection is lost; `alone`: no other commits."""
        number = self._commits + 1
        tried = False
        result: list[T] = []

        async def once(db: Connection) -> T:
            nonlocal tried
            if tried and await self._is_committed(db, number):
                return result[-1]
            tried = True
            async with db.transaction():
                if not await db.fetch(sql.FENCE_ALONE if alone else sql.FENCE, self.process):
                    self._fenced = True
                    raise Fenced(self._link.place)
                result.append(await work(db))
                await db.execute(sql.COUNT, self.process, [COMMITS[0]], [COMMITS[1]], [1])
            return result[-1]

        answer = await self._link.call(once)
        self._commits = number
        return answer

    async def _is_committed(self, db: Connection, number: int) -> bool:
        async with db.transaction():
            if await db.fetchval(sql.COMMITTED, self.process) is None:
                self._fenced = True
                raise Fenced(self._link.place)
            query = "SELECT n FROM tally WHERE (process, state, code) = ($1, $2, $3)"
            return bool(await db.fetchval(query, self.process, *COMMITS) == number)

    async def _claim(self, partitions: set[int]) -> set[int]:
        """Which of these partitions, which seemed to be free, are ours now."""
        room = -(-PARTITIONS // self._processes) - len(self._leased)
        wanted = sorted(partitions)[: max(0, room)]
        if not wanted:
            return set()

        async def work(db: Connection) -> set[int]:
            async with db.transaction():
                await db.execute(sql.LOCK_LEASES)
                return {partition for (partition,) in await db.fetch(sql.CLAIM, self.process, wanted)}

        claimed = await self._link.call(work)
        self._leased |= claimed
        return claimed

    # A run.

    async def new_run(self) -> None:
        self.run = await self._alone(self._link.call(self._new_run))
        self.finished, self._remembers = False, True
        self._held.clear()
        self._released.clear()

    async def _new_run(self, db: Connection) -> int:
        async with db.transaction():
            run = int(await db.fetchval("SELECT run FROM crawl FOR UPDATE"))
            if run == self.run:
                # Who is still there has nothing in hand, and would go on with the run that is over.
                await db.execute("DELETE FROM process WHERE id <> $1", self.process)
                await db.execute("TRUNCATE seen, frontier, ended, tally, wakeups")
                now = self._clock.wall()
                await db.execute("UPDATE host SET stored = 0, parked = CASE WHEN parked > $1 THEN parked END", now)
                await db.execute("UPDATE host SET due = parked")
                await self._change(db, "run = run + 1, finished = false")
                run += 1
            # Another process may have begun it before us, and ended ours.
            await db.execute("DELETE FROM process WHERE id = $1", self.process)
            self.process = await db.fetchval(sql.REGISTER, run, self._lease)
        await self._name_sessions(db)
        self._commits = 0
        self._leased.clear()
        return run

    async def finish(self) -> bool:

        async def work(db: Connection) -> bool:
            finished = bool(await db.fetchval(sql.NOTHING_WAITS, VISIT, SET_ASIDE))
            if finished:
                await self._change(db, "finished = true")
            return finished

        self.finished = await self._alone(self._write(work, alone=True))
        return self.finished

    async def _change(self, db: Connection, changes: str, *values: object) -> None:
        """Change the row of `crawl`, and its checksum with it."""
        for row in await db.fetch(f"UPDATE crawl SET {changes} RETURNING *", *values):
            await db.execute("UPDATE crawl SET crc = $1", with_crc(*tuple(row)[:-1])[-1])

    async def row_files(self) -> list[RowFile]:
        rows = await self._alone(self._ask("SELECT * FROM row_files ORDER BY process, file"))
        return [RowFile(*row) for row in rows]

    # What is next.

    async def hosts(self, limit: int) -> list[HostWork]:
        return await self._alone(self._hosts(limit))

    async def others_work(self) -> bool:
        return bool(await self._alone(self._ask(sql.OTHERS_WORK, self.process, VISIT, SET_ASIDE)))

    async def _hosts(self, limit: int) -> list[HostWork]:
        if self._fenced:
            raise Fenced(self._link.place)
        await self._let_go()
        now = self._clock.wall()
        chosen: dict[str, Row] = {}
        may_wrap = self._position[0] >= 0
        while len(chosen) < limit:
            may_claim = len(self._leased) * self._processes < PARTITIONS
            rows = await self._ask(sql.HOSTS, *self._position, now, limit, self.process, may_claim)
            for row in rows:
                if len(chosen) < limit:
                    self._position = row[0], row[1]
                    if row[2] not in self._held:
                        chosen[row[2]] = tuple(row)
            if len(rows) < limit:
                self._position = -1.0, 0
                if not may_wrap:
                    break
                may_wrap = False
        await self._claim({row[5] for row in chosen.values()} - self._leased)
        ours = [row for row in chosen.values() if row[5] in self._leased]
        notes = await self._documents([row[1] for row in ours], DOCUMENTS[:3])
        found = []
        for due, number, name, parked, stored, _ in ours:
            self._held[name] = set()
            documents = notes.get(number, {})
            found.append(host_work(name, due - now, parked=parked is not None, stored=stored, documents=documents))
        return found

    async def _let_go(self) -> None:
        """Say again when the hosts are due that were released since; let others have partitions without a host."""
        released = self._released - self._held.keys()
        idle = self._leased - {partition_of(host) for host in self._held} if self._processes > 1 else set[int]()

        async def work(db: Connection) -> None:
            async with db.transaction():
                numbers = sorted(host_number(host) for host in released)
                # Who found something for them meanwhile has stored it by then, or says afterwards that they are due.
                await db.execute(sql.LOCK_HOSTS, numbers)
                turns = dict(await db.fetch(sql.NEXT_TURNS, numbers, self._kinds, -SET_ASIDE, SET_ASIDE))
                dues = [due_of(turns[number]) if number in turns else None for number in numbers]
                await db.execute(sql.SET_DUE, numbers, dues)
                if idle:
                    await db.execute(sql.GIVE_BACK, self.process, sorted(idle))

        if released or idle:
            await self._link.call(work)
            self._released -= released
            self._leased -= idle

    async def _documents(self, numbers: Sequence[int], names: Sequence[str]) -> dict[int, dict[str, bytes]]:
        found: dict[int, dict[str, bytes]] = {}
        query = "SELECT host, what, body FROM document WHERE host = ANY($1::bigint[])"
        for host, what, body in await self._ask(query, numbers) if numbers else ():
            if DOCUMENTS[what] in names:
                found.setdefault(host, {})[DOCUMENTS[what]] = body
        return found

    async def documents(self, host: str) -> tuple[bytes, bytes]:
        number = host_number(host)
        found = (await self._alone(self._documents([number], DOCUMENTS[3:]))).get(number, {})
        return found.get("robots", b""), found.get("cookies", b"")

    async def take(self, host: str, limit: int) -> Taken:
        return await self._alone(self._take(host, limit))

    async def _take(self, host: str, limit: int) -> Taken:
        if host not in self._held and partition_of(host) not in self._leased:
            return Taken((), None)  # it was released, and is another's by now
        number, now = host_number(host), self._clock.wall()
        turn = turn_of(0, now)
        taken = self._held.setdefault(host, set())
        rows = await self._ask(sql.TAKE, number, self._kinds, turn, limit + 1 + len(taken))
        later = await self._ask(sql.NEXT_TURNS, [number], self._kinds, turn, SET_ASIDE)
        items: list[QueuedUrl] = []
        wait = due_of(later[0][1]) - now if later else None
        for kind in self._kinds:
            free = [row for row in rows if row[1] == kind and row[3] not in taken]
            items += [queued(row, host) for row in free[:limit]]
            if len(free) > limit:
                wait = 0.0
        taken.update(item.id for item in items)
        return Taken(await self._remember(items) if self._remembers else items, wait)

    async def _remember(self, items: list[QueuedUrl]) -> list[QueuedUrl]:
        query = f"SELECT {MEMORY} FROM memory WHERE key = ANY($1::uuid[])"
        rows = await self._ask(query, [item.key for item in items])
        found = {row[0]: PageMemory(*row[:-1]) for row in rows}
        return [replace(item, memory=found.get(item.key)) for item in items]

    async def _ask(self, query: str, *values: Any) -> list[Any]:  # noqa: ANN401 - of a statement
        return await self._link.call(lambda db: db.fetch(query, *values))

    def release(self, host: str) -> None:
        if self._held.pop(host, None) is not None:
            self._released.add(host)

    # What came of it.

    async def commit(self, batch: Batch) -> list[str]:
        return await self._alone(self._commit(batch))

    async def _commit(self, batch: Batch) -> list[str]:
        changes = Changes(batch)
        urls = await self._unknown(batch.found)
        rows: list[Row] = []
        owners: Sequence[Any] = ()

        async def work(db: Connection) -> None:
            nonlocal rows, owners
            new, rows = await self._learn(db, urls)
            await self._store(db, batch, changes, new, rows)
            awake = sorted(host_number(host) for host in hosts_to_wake(new, batch))
            owners = await db.fetch(sql.OWNERS, awake) if awake else ()
            await self._wake(db, [(row[1], row[0]) for row in owners if row[2] not in (self.process, None)])

        await self._write(work)
        self.finished = self.finished and not (changes.again or rows)
        self.state = self.state if batch.state is None else batch.state
        for item in batch.items():
            if item.host in self._held:
                self._held[item.host].discard(item.id)
        free = {partition for _, partition, owner in owners if owner is None}
        if free:
            free -= await self._claim(free)
            late = [(partition, name) for name, partition, owner in owners if owner is None and partition in free]
            await self._link.call(lambda db: self._wake(db, late))
        ours = [name for name, partition, _ in owners if partition in self._leased]
        for host in ours:
            self._held.setdefault(host, set())
        return ours

    async def _unknown(self, found: Sequence[FoundUrl]) -> dict[bytes, FoundUrl]:
        """What was found and is not known yet, by key; looked up before anything is locked."""
        urls = first_of_each(found)
        if urls:
            for (key,) in await self._ask(sql.KNOWN_OF, sorted(urls)):
                del urls[key]
        return urls

    async def _learn(self, db: Connection, urls: dict[bytes, FoundUrl]) -> tuple[list[FoundUrl], list[Row]]:
        """Note what is known from now on: what of it nobody knew before, and its rows."""
        if not urls:
            return [], []
        forgotten = set[bytes]()
        if await db.fetchval("SELECT EXISTS (SELECT 1 FROM forgotten)"):
            hashes = forgotten_hashes(urls, self._salt)
            forgotten = {key for (hash_,) in await db.fetch(sql.FORGOTTEN_OF, list(hashes)) for key in hashes[hash_]}
        learned = {key for (key,) in await db.fetch(sql.LEARN, sorted(urls.keys() - forgotten))}
        new = [each for key, each in urls.items() if key in learned]
        numbers = await self._numbers(db, len(new))
        return new, [found_row(each, number) for each, number in zip(new, numbers, strict=True)]

    async def _numbers(self, db: Connection, count: int) -> list[int]:
        """Numbers for URLs, which no other process has."""
        found = list(islice(self._ids, count))
        while len(found) < count:
            start = await db.fetchval("SELECT nextval('frontier_ids')")
            self._ids = iter(range(start, start + sql.BLOCK))
            found += islice(self._ids, count - len(found))
        return found

    async def _store(
        self, db: Connection, batch: Batch, changes: Changes, new: Sequence[FoundUrl], rows: list[Row]
    ) -> None:
        if changes.gone:
            removed = await db.execute(sql.REMOVE, *columns(changes.gone, 4))
            if removed != f"DELETE {len(changes.gone)}":
                raise FolderError(f"{self._link.place} lacks URLs that were taken from it", "run sanderling verify")
        if changes.again or rows:
            await self._put(db, sorted(changes.again + rows))
            await self._change(db, "finished = false WHERE finished")
        if changes.ended:
            await db.execute(sql.END, *columns(changes.ended, 14))
        await self._store_hosts(db, batch, changes, new)
        if batch.memory:
            memory = {each.key: memory_row(each) for each in batch.memory}
            await db.execute(sql.REMEMBER, *columns(sorted(memory.values()), 7))
        if batch.files:
            files = {
                (each.process, each.file): (each.process, each.file, each.length, each.rows, each.crc)
                for each in batch.files
            }
            await db.execute(sql.FILE, *columns(list(files.values()), 5))
        tally = changes.tally.copy()  # a transaction may be done twice
        tally.update({KNOWN: len(rows), WAITING: len(rows)})
        await self._count(db, tally)
        if batch.state is not None:
            await self._change(db, "state = $1", batch.state)

    async def _put(self, db: Connection, rows: Sequence[Row]) -> None:
        await db.copy_records_to_table("frontier", records=rows, columns=FRONTIER.split(", "))

    async def _store_hosts(self, db: Connection, batch: Batch, changes: Changes, new: Sequence[FoundUrl]) -> None:
        dues = due_by_host(new)
        names = {host_number(host): host for host in [*dues, *changes.stored, *(note.host for note in batch.hosts)]}
        rows = [(n, partition_of(host), host, dues.get(host), changes.stored[host]) for n, host in names.items()]
        if rows:
            await db.execute(sql.MEET_HOSTS, *columns(sorted(rows), 5))
        parked = {
            host_number(note.host): (host_number(note.host), note.parked or None, note.parked)
            for note in batch.hosts
            if note.parked is not None
        }
        if parked:
            await db.execute(sql.PARK, *columns(list(parked.values()), 3))
        documents = {row[:2]: row for note in batch.hosts for row in document_rows(note)}
        if documents:
            await db.execute(sql.DOCUMENT, *columns(sorted(documents.values()), 4))

    async def _count(self, db: Connection, tally: Counter[tuple[str, str]]) -> None:
        rows = [(*name, n) for name, n in sorted(tally.items()) if n]
        if rows:
            await db.execute(sql.COUNT, self.process, *columns(rows, 3))

    async def _wake(self, db: Connection, hosts: Sequence[tuple[int, str]]) -> None:
        """Say to the processes of these partitions that the hosts have something new."""
        if hosts:
            await db.execute(sql.WAKE, *columns(hosts, 2))
            await db.execute("SELECT pg_notify($1, '')", self._channel)

    # For commands.

    async def counts(self) -> Counts:
        tally = await self._alone(self._link.call(self._tally))
        ends = {name: n for name, n in tally.items() if name not in KEPT and n}
        return Counts(tally.get(KNOWN, 0), tally.get(WAITING, 0), ends)

    async def _tally(self, db: Connection) -> dict[tuple[str, str], int]:
        rows = await db.fetch("SELECT state, code, sum(n)::bigint FROM tally GROUP BY state, code")
        return {(state, code): n for state, code, n in rows}

    async def waiting_by_host(self, limit: int) -> list[HostCount]:
        return await self._alone(self._waiting_by_host(limit))

    async def _waiting_by_host(self, limit: int) -> list[HostCount]:
        query = """SELECT name, n, due, waiting.host FROM (SELECT host, count(*) n FROM frontier WHERE kind <> $1
            GROUP BY host ORDER BY n DESC LIMIT $2) waiting JOIN host USING (host) ORDER BY n DESC, name"""
        rows = await self._ask(query, VISIT, limit)
        notes = await self._documents([row[3] for row in rows], ["note"])
        return [HostCount(name, n, due, notes.get(number, {}).get("note", b"")) for name, n, due, number in rows]

    async def tasks(self, state: str, *, host: str | None = None, code: str | None = None) -> AsyncIterator[UrlState]:
        last: Row | None = None
        while True:
            query, values = page_query(state, host, code, last, "$")
            rows = await self._alone(self._ask(query, *values))
            for row in rows:
                yield waiting_state(row) if state == "waiting" else ended_state(row)
            if len(rows) < PAGE:
                return
            last = page_end(state, rows)

    async def show(self, host: str, key: bytes) -> UrlState | None:
        return await self._alone(self._link.call(partial(self._show, host, key)))

    async def _show(self, host: str, key: bytes, db: Connection) -> UrlState | None:
        ended = await db.fetchrow(f"SELECT {ENDED} FROM ended WHERE key = $1", key)
        if ended is not None:
            return ended_state(ended)
        stored = None
        if await db.fetchval("SELECT 1 FROM seen WHERE key = $1", key):
            stored = UrlState("stored", host, key=key)
        elif await db.fetchval("SELECT 1 FROM forgotten WHERE hash = $1", forgotten_hash(key, self._salt)):
            return UrlState("forgotten", host, key=key)
        async with db.transaction():
            waiting = await self._find(db, host, {key})
        return waiting_state(waiting[key]) if waiting else stored

    async def _find(self, db: Connection, host: str, keys: set[bytes]) -> dict[bytes, Row]:
        """The rows of these keys in the queue of a host, all of which is read."""
        found: dict[bytes, Row] = {}
        query = f"SELECT {FRONTIER} FROM frontier WHERE host = $1"
        async for row in db.cursor(query, host_number(host), prefetch=PAGE):
            key = row[5] or url_key(row[4])
            if key in keys:
                found[key] = tuple(row)
        return found

    async def retry(self, end: str, *, host: str | None = None, code: str | None = None) -> int:
        total = await self._alone(self._write(partial(self._retry, end, host, code), alone=True))
        self.finished = self.finished and not total
        return total

    async def _retry(self, end: str, host: str | None, code: str | None, db: Connection) -> int:
        # What is due may be in the hands of another process, whose clock may be another.
        soon = self._clock.wall() + (_SKEW_SECONDS if self._processes > 1 else 0.0)
        total, hosts = 0, set[int]()
        last: Row | None = None
        while True:
            query, values = page_query(end, host, code, last, "$")
            rows: Sequence[Any] = await db.fetch(query, *values)
            if not rows:
                break
            last = page_end(end, rows)
            if end == "waiting":
                rows = [row for row in rows if due_of(row[2]) > soon]
                await db.execute(sql.REMOVE, *columns([row[:4] for row in rows], 4))
                again = [requeued_row(row) for row in rows]
            else:
                await db.execute("DELETE FROM ended WHERE key = ANY($1::uuid[])", [row[0] for row in rows])
                again = [
                    retried_row(row, number)
                    for row, number in zip(rows, await self._numbers(db, len(rows)), strict=True)
                ]
                tally = Counter({WAITING: len(rows)})
                tally.subtract((row[5], row[6]) for row in rows)
                await self._count(db, tally)
            await self._put(db, again)
            total += len(rows)
            hosts.update(row[0] for row in again)
        if end == "waiting" and host is None:
            hosts.update(number for (number,) in await db.fetch("SELECT host FROM host WHERE parked IS NOT NULL"))
        numbers = sorted(hosts)
        await db.execute("UPDATE host SET due = 0, parked = NULL WHERE host = ANY($1::bigint[])", numbers)
        others = await db.fetch(sql.OWNERS, numbers)
        await self._wake(db, [(row[1], row[0]) for row in others if row[2] not in (self.process, None)])
        if total:
            await self._change(db, "finished = false")
        return total

    async def visit_now(self, changed: Mapping[str, float]) -> list[str]:
        """Make the next visits due of pages that have changed since they were seen, at hosts that are held: those."""
        return await self._alone(self._write(partial(self._visit_now, changed)))

    async def _visit_now(self, changed: Mapping[str, float], db: Connection) -> list[str]:
        urls = {url_key(url): url for url in changed}
        seen = await db.fetch("SELECT key, seen FROM memory WHERE key = ANY($1::uuid[])", list(urls))
        late = late_visits(changed, urls, seen, self._held)
        now = self._clock.wall()
        for host, keys in late.items():
            found = (await self._find(db, host, keys)).values()
            rows = [row for row in found if row[1] == VISIT and due_of(row[2]) > now]
            await db.execute(sql.REMOVE, *columns([row[:4] for row in rows], 4))
            await self._put(db, [requeued_row(row) for row in rows])
        return sorted(late)

    async def forget(self, urls: Iterable[tuple[str, bytes]]) -> Forgotten:
        return await self._alone(self._write(partial(self._forget, list(urls)), alone=True))

    async def _forget(self, urls: Sequence[tuple[str, bytes]], db: Connection) -> Forgotten:
        by_host: dict[str, set[bytes]] = {}
        for host, key in urls:
            known = () if key else await db.fetch("SELECT key FROM seen WHERE key BETWEEN $1 AND $2", *host_keys(host))
            by_host.setdefault(host, set()).update([key] if key else [each for (each,) in known])
        wholes = {host for host, key in urls if not key}
        removed, busy = 0, list[bytes]()
        # Nobody begins to work for a host while we look at what is in hand.
        await db.execute(sql.LOCK_LEASES)
        for host, keys in by_host.items():
            waiting = await self._find(db, host, keys)
            taken = self._held.get(host, set())
            owners = await db.fetch(sql.OWNERS, [host_number(host)])
            elsewhere = any(row[2] not in (self.process, None) for row in owners)
            busy += [key for key, row in waiting.items() if elsewhere or row[3] in taken]
            for key in keys.difference(busy):
                removed += await self._remove(db, key, waiting.get(key))
            busy_host = elsewhere or bool(taken)
            await self._forget_documents(db, host, keys, whole=host in wholes, busy=busy_host)
        return Forgotten(removed, busy)

    async def _forget_documents(self, db: Connection, host: str, keys: set[bytes], *, whole: bool, busy: bool) -> None:
        """Remove what is noted of a host, all or what names a URL."""
        number, good = host_number(host), DOCUMENTS.index("good")
        if not whole:
            body = await db.fetchval("SELECT body FROM document WHERE host = $1 AND what = $2", number, good)
            if body and url_key(body.decode()) in keys:
                await db.execute("DELETE FROM document WHERE host = $1 AND what = $2", number, good)
            return
        hash_ = forgotten_hash(host_keys(host)[0][:HOST_BYTES], self._salt)
        await db.execute("INSERT INTO forgotten VALUES ($1) ON CONFLICT DO NOTHING", hash_)
        await db.execute("DELETE FROM memory WHERE key BETWEEN $1 AND $2", *host_keys(host))
        await db.execute("DELETE FROM document WHERE host = $1", number)
        if not busy:
            await db.execute("DELETE FROM host WHERE host = $1", number)

    async def _remove(self, db: Connection, key: bytes, waiting: Row | None) -> bool:
        tally = Counter[tuple[str, str]]()
        if waiting is not None:
            await db.execute(sql.REMOVE, *columns([waiting[:4]], 4))
            tally[WAITING] -= waiting[1] != VISIT
        for end, code in await db.fetch("DELETE FROM ended WHERE key = $1 RETURNING state, code", key):
            tally[end, code] -= 1
        await db.execute("DELETE FROM memory WHERE key = $1", key)
        was_known = bool(await db.execute("DELETE FROM seen WHERE key = $1", key) == "DELETE 1")
        tally[FORGOTTEN] += was_known
        hash_ = forgotten_hash(key, self._salt)
        await db.execute("INSERT INTO forgotten VALUES ($1) ON CONFLICT DO NOTHING", hash_)
        await self._count(db, tally)
        return was_known

    async def verify(self, keys: Iterable[bytes]) -> list[Fault]:
        return await self._alone(self._link.call(partial(self._verify, keys)))

    async def _verify(self, keys: Iterable[bytes], db: Connection) -> list[Fault]:
        found: list[Fault] = []
        async with db.transaction(isolation="repeatable_read"):
            await db.execute("SET LOCAL enable_seqscan = on; SET LOCAL plan_cache_mode = auto")
            audit = Audit(await self._tally(db))
            for table in TEMPORARY:
                await db.execute(f"CREATE TEMP TABLE {table} (key uuid PRIMARY KEY) ON COMMIT DROP")
            for table, chunk in audit.row_keys(keys):
                await self._add(db, audit, table, chunk)
            async for part in _parts(db, f"SELECT {FRONTIER} FROM frontier"):
                for table, chunk in audit.frontier(part):
                    await self._add(db, audit, table, chunk)
            for what, rest in (COMPARISONS if audit.has_visits else COMPARISONS | COMPARISONS_WITHOUT_VISITS).items():
                number = await db.fetchval(f"SELECT count(*) {rest}")
                if number:
                    key = await db.fetchval(f"SELECT a.key {rest} LIMIT 1")
                    found.append(Fault(what, number, key.hex()))
            async for part in _parts(db, f"SELECT {ENDED} FROM ended"):
                audit.ended(part)
            async for part in _parts(db, "SELECT hash FROM forgotten"):
                audit.forgotten(part)
            async for part in _parts(db, f"SELECT {MEMORY} FROM memory"):
                audit.checksums("memory", part)
            async for part in _parts(db, "SELECT * FROM document"):
                audit.checksums("document", part)
            async for part in _parts(db, HOSTS):
                audit.hosts(part)
            known = await db.fetchval("SELECT count(*) FROM seen")
            stored = await db.fetchval("SELECT coalesce(sum(stored), 0)::bigint FROM host")
        return [*found, *audit.faults(known, stored)]

    async def _add(self, db: Connection, audit: Audit, table: str, chunk: Sequence[tuple[bytes]]) -> None:
        query = f"INSERT INTO {table} SELECT unnest($1::uuid[]) ON CONFLICT DO NOTHING"
        answer = await db.execute(query, [key for (key,) in chunk])
        audit.added(table, int(answer.rpartition(" ")[2]))


async def _parts(db: Connection, query: str) -> AsyncIterator[list[Row]]:
    cursor = await db.cursor(query)
    while rows := await cursor.fetch(_CHUNK):
        yield [tuple(row) for row in rows]
