"""A fleet in PostgreSQL: its tables, and its statements.

Each statement names the crawl and at most one part, or reads; none locks more rows than those of one part. That is what
lets parts lie on several servers, and servers that speak PostgreSQL's protocol take its place.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from sanderling.clock import SystemClock
from sanderling.stores.fleet import (
    FORMAT,
    LATELY,
    QUOTA_OVER,
    Beat,
    BookedTime,
    CrawlView,
    FleetCrawl,
    InboxMessage,
    LoggedCommit,
    PartCommit,
    PartFigures,
    PartState,
    Segment,
    Worker,
    WorkerIdentity,
    WorkerPace,
)
from sanderling.stores.inbox_floors import InboxFloors
from sanderling.stores.leases import Lease, LeaseLostError, LeasesError
from sanderling.stores.postgres_fleet_tables import OF_CRAWL, PACKED, TABLES
from sanderling.stores.postgres_leases import HELD, MAKE, PostgresLeases

BOOK = """INSERT INTO fleet_quota AS ours (crawl, quota, free)
    VALUES ($1, $2, extract(epoch FROM clock_timestamp()) + $3)
    ON CONFLICT (crawl, quota) DO UPDATE
    SET free = greatest(ours.free, ours.quiet, extract(epoch FROM clock_timestamp())::float8) + $3
    RETURNING free - $3, quiet"""
HUSH = """INSERT INTO fleet_quota AS ours (crawl, quota, quiet) VALUES ($1, $2, $3)
    ON CONFLICT (crawl, quota) DO UPDATE SET quiet = greatest(ours.quiet, excluded.quiet)"""
# What is over says no more than what is not there. Some rows at a time, by the key: an index on times would have to be
# written with every stretch that is booked.
SWEEP = """WITH looked AS (
        SELECT quota FROM fleet_quota WHERE crawl = $1 AND quota > $2 ORDER BY quota LIMIT $3),
    old AS (SELECT quota FROM fleet_quota AS ours
        WHERE crawl = $1 AND quota IN (SELECT quota FROM looked)
        AND greatest(free, quiet) < extract(epoch FROM clock_timestamp()) - $4 FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM fleet_quota WHERE crawl = $1 AND quota IN (SELECT quota FROM old))
    SELECT coalesce(max(quota), '') FROM looked"""
SWEPT = 50  # quotas that are looked at with each beat, and two for each stretch that was booked
AGREED = "SELECT value FROM fleet_agreed WHERE crawl = $1 AND name = $2"
AGREE = "INSERT INTO fleet_agreed VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"

_FENCED = """WITH fence AS (
        UPDATE lease SET head = head + 1
        WHERE scope = $1 AND part = $2 AND holder = $3 AND epoch = $4 AND head = $5 RETURNING part),
    logged AS (INSERT INTO fleet_log SELECT $1, part, $5 + 1, $6, $7 FROM fence),
    kept AS (INSERT INTO fleet_segment SELECT $1, part, $5 + 1, $8, $9 FROM fence WHERE $8 <> ''),
    had AS (DELETE FROM fleet_inbox
        WHERE crawl = $1 AND part = $2 AND id = ANY($10::bigint[]) AND EXISTS (SELECT 1 FROM fence))"""
COMMIT = f"{_FENCED} SELECT count(*) FROM fence"  # noqa: S608 - ours
COMMIT_COOKIES = f"""{_FENCED},
    jar AS (INSERT INTO fleet_cookie SELECT $1, part, key, body
        FROM fence, unnest($11::bytea[], $12::bytea[]) AS said (key, body) WHERE body <> ''
        ON CONFLICT (crawl, part, key) DO UPDATE SET body = excluded.body),
    gone AS (DELETE FROM fleet_cookie USING unnest($11::bytea[], $12::bytea[]) AS said (key, body)
        WHERE crawl = $1 AND part = $2 AND fleet_cookie.key = said.key AND said.body = ''
        AND EXISTS (SELECT 1 FROM fence))
    SELECT count(*) FROM fence"""  # noqa: S608 - ours
COOKIES = "SELECT body FROM fleet_cookie WHERE crawl = $1 AND part = $2 ORDER BY key"
COMMITTED = "SELECT count(*) FROM fleet_log WHERE crawl = $1 AND part = $2 AND number = $3 AND token = $4"
SEND = """INSERT INTO fleet_inbox (crawl, part, body)
    SELECT $1, part, body FROM unnest($2::int[], $3::bytea[]) AS sent (part, body)"""
# Of each part by itself: else all that waits is sorted each time.
RECEIVE = """SELECT part, id, body FROM unnest($2::int[], $5::bigint[]) AS own (number, floor) CROSS JOIN LATERAL (
        SELECT part, id, body FROM fleet_inbox WHERE crawl = $1 AND part = own.number AND id > own.floor
        AND id <> ALL($3::bigint[]) ORDER BY id LIMIT $4) AS few
    ORDER BY id LIMIT $4"""
STATE = """SELECT head, snapshot, key, limiter, news, token FROM fleet_part
    JOIN lease ON scope = crawl AND lease.part = fleet_part.part WHERE crawl = $1 AND fleet_part.part = $2"""
LOG = """SELECT number, token, body FROM fleet_log WHERE crawl = $1 AND part = $2 AND number > $3
    ORDER BY number LIMIT $4"""
KEEP_SNAPSHOT = f"""WITH kept AS (UPDATE fleet_part SET snapshot = $5, token = $6, key = $7
        WHERE crawl = $1 AND part = $2 AND snapshot < $5 AND EXISTS ({HELD}) RETURNING part),
    gone AS (DELETE FROM fleet_log WHERE crawl = $1 AND part = $2 AND number <= $5 AND EXISTS (SELECT 1 FROM kept))
    SELECT count(*) FROM kept"""  # noqa: S608 - ours
KEEP_LIMITER = f"""UPDATE fleet_part SET limiter = coalesce($5, limiter),
    news = CASE WHEN $5::bytea IS NULL THEN news || $6 ELSE $6 END
    WHERE crawl = $1 AND part = $2 AND EXISTS ({HELD})"""  # noqa: S608 - ours
# A part is idle at a head: any commit that comes, also one that is under way meanwhile, makes it busy.
# It is said again now and then, and is mostly known: then nothing is written.
IDLE = f"""WITH held AS ({HELD} AND head = $5
        AND NOT ($6 AND EXISTS (SELECT 1 FROM fleet_inbox WHERE crawl = $1 AND fleet_inbox.part = $2))),
    said AS (UPDATE fleet_part SET idle = $7, fetched = $8, waiting = $9, asked = $10, failed = $11
        WHERE crawl = $1 AND part = $2 AND EXISTS (SELECT 1 FROM held)
        AND (idle, fetched, waiting, asked, failed) <> ($7, $8, $9, $10, $11))
    SELECT count(*) FROM held"""  # noqa: S608 - ours
BUSY = "UPDATE fleet_part SET idle = -1 WHERE crawl = $1"
VIEW = """SELECT count(*) FILTER (WHERE idle <> head),
    (SELECT count(*) FROM (SELECT 1 FROM fleet_inbox WHERE crawl = $1 LIMIT 1) AS one),
    coalesce(sum(head), 0)::bigint, coalesce(sum(waiting), 0)::bigint, coalesce(sum(fetched), 0)::bigint,
    coalesce(sum(asked), 0)::bigint, coalesce(sum(failed), 0)::bigint
    FROM fleet_part JOIN lease ON scope = $1 AND lease.part = fleet_part.part WHERE crawl = $1"""
SEGMENTS = "SELECT number, key, size FROM fleet_segment WHERE crawl = $1 AND part = $2 AND number > $3 ORDER BY number"
UNNAMED = f"""SELECT found.key FROM unnest($5::bigint[], $6::text[]) AS found (number, key) WHERE EXISTS ({HELD})
    AND NOT EXISTS (SELECT 1 FROM fleet_segment AS ours
        WHERE crawl = $1 AND part = $2 AND ours.number = found.number AND ours.key = found.key)
    AND NOT EXISTS (SELECT 1 FROM fleet_part AS ours WHERE crawl = $1 AND part = $2 AND ours.key = found.key)"""  # noqa: S608 - ours
BEAT = """INSERT INTO fleet_worker (crawl, name, machine, release, parts, seen, report, weight, late)
    SELECT scope, $2, $3, $4, $5, clock_timestamp(), $6, $7, $8 FROM fleet_crawl WHERE scope = $1
    ON CONFLICT (crawl, name) DO UPDATE SET parts = excluded.parts, seen = excluded.seen, report = excluded.report,
    weight = excluded.weight, late = excluded.late RETURNING draining"""
FIGURES = """UPDATE fleet_part AS ours
    SET fetched = said.fetched, waiting = said.waiting, asked = said.asked, failed = said.failed
    FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
        AS said (part, fetched, waiting, asked, failed)
    WHERE crawl = $1 AND ours.part = said.part AND (ours.fetched, ours.waiting, ours.asked, ours.failed)
        <> (said.fetched, said.waiting, said.asked, said.failed)"""
# The last: whether one of them has gone for good.
BEATEN = """WITH worker AS (
        SELECT name, parts, weight, late, seen,
            NOT draining AND abs(extract(epoch FROM clock_timestamp() - seen)) < $2 AS counts
        FROM fleet_worker WHERE crawl = $1),
    working AS (SELECT name, parts, weight, late, sum(weight) OVER () AS weights FROM worker WHERE counts)
    SELECT live, lacking, (SELECT done FROM fleet_crawl WHERE scope = $1),
    coalesce(fetched, 0)::bigint, extract(epoch FROM clock_timestamp())::float8, coalesce(asked, 0)::bigint,
    weights, late,
    (SELECT coalesce((said::json->>'retries')::int, 0) FROM fleet_crawl WHERE scope = $1),
    (SELECT coalesce(min(seen) < clock_timestamp() - $3 * interval '1 s', false) FROM worker)
    FROM (SELECT count(*) AS live, coalesce(bool_or(parts < $4::bigint * weight / weights), false) AS lacking,
            coalesce(max(weights), 100) AS weights, coalesce(avg(late) FILTER (WHERE name <> $5), 0)::float8 AS late
        FROM working) AS workers,
    (SELECT sum(fetched) AS fetched, sum(asked) AS asked FROM fleet_part WHERE crawl = $1) AS parts"""
WORKERS = """SELECT name, machine, release, parts, extract(epoch FROM clock_timestamp() - seen)::float8, draining,
    report, weight, late FROM fleet_worker
    WHERE crawl = $1 AND seen > clock_timestamp() - $2 * interval '1 s' ORDER BY machine, name"""
DRAIN = "UPDATE fleet_worker SET draining = true WHERE crawl = $1 AND ($2::text IS NULL OR name = $2)"
GONE_WORKERS = "DELETE FROM fleet_worker WHERE crawl = $1 AND seen < clock_timestamp() - $2 * interval '1 s'"


class PostgresFleet(PostgresLeases):
    """One server's part of a crawl, as one worker sees it. See `FleetStore`.

    A crawl goes by its name and id in the tables: who still works on one that was forgotten does not touch the next.
    """

    TABLES = TABLES
    ALTER = PACKED

    def __init__(self, url: str, name: str, worker: WorkerIdentity) -> None:
        super().__init__(url, "", worker.name)
        self.name = name
        self._worker = worker
        self._parts = 0  # of the crawl, on all servers
        self._floors = InboxFloors(SystemClock.boot)
        self._booked = 0  # stretches, since the last beat
        self._swept = ""  # the last quota that was looked at
        self._quotas_left = False  # whether there may be any

    # The crawl.

    async def begin(self, crawl: FleetCrawl, parts: Sequence[int]) -> FleetCrawl:
        async with self._db() as db, db.transaction():
            said, scope = msgspec.json.encode(crawl).decode(), scope_of(crawl)
            sql = "INSERT INTO fleet_crawl (name, scope, said) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
            if (await db.execute(sql, crawl.name, scope, said)).endswith(" 1"):
                await db.execute(MAKE, scope, list(parts), crawl.seconds)
                sql = "INSERT INTO fleet_part (crawl, part) SELECT $1, unnest($2::int[])"
                await db.execute(sql, scope, list(parts))
        found = await self.find(crawl.name)
        if found is None:
            raise LeasesError(f"{self.place}: the crawl {crawl.name} was forgotten just now; begin again")
        return found

    async def find(self, name: str) -> FleetCrawl | None:
        async with self._db() as db:
            row = await db.fetchrow("SELECT said, done FROM fleet_crawl WHERE name = $1", name)
        if row is None:
            return None
        try:
            crawl = msgspec.json.decode(row[0], type=FleetCrawl)
        except msgspec.MsgspecError as error:
            raise LeasesError(f"{self.place}: the crawl {name} is damaged: {error}") from None
        if crawl.format != FORMAT:
            raise LeasesError(
                f"{self.place}: the crawl {name} is of format {crawl.format}, this release has {FORMAT}."
                " Use the release that began it, or forget it and begin anew."
            )
        self.name, self.scope = crawl.name, scope_of(crawl)
        self._seconds, self._parts = crawl.seconds, crawl.parts
        return msgspec.structs.replace(crawl, done=row[1])

    async def end(self, *, done: bool) -> None:
        async with self._db() as db, db.transaction():
            await db.execute("UPDATE fleet_crawl SET done = $2 WHERE scope = $1", self.scope, done)
            if not done:
                await db.execute(BUSY, self.scope)

    async def retry(self, number: int) -> None:
        async with self._db() as db, db.transaction():
            said = await db.fetchval("SELECT said FROM fleet_crawl WHERE scope = $1 FOR UPDATE", self.scope)
            if said is None or (crawl := msgspec.json.decode(said, type=FleetCrawl)).retries >= number:
                return
            said = msgspec.json.encode(msgspec.structs.replace(crawl, retries=number)).decode()
            await db.execute("UPDATE fleet_crawl SET said = $2, done = false WHERE scope = $1", self.scope, said)
            await db.execute(BUSY, self.scope)

    async def forget(self) -> None:
        async with self._db() as db, db.transaction():
            for table in OF_CRAWL:
                await db.execute(f"DELETE FROM {table} WHERE crawl = $1", self.scope)  # noqa: S608 - ours
            await db.execute("DELETE FROM lease WHERE scope = $1", self.scope)
            await db.execute("DELETE FROM fleet_crawl WHERE scope = $1", self.scope)

    # Who works on it.

    async def beat(
        self,
        leases: Sequence[Lease],
        figures: Sequence[PartFigures],
        report: str,
        parts: int,
        pace: WorkerPace = WorkerPace(),  # noqa: B008 - which never changes
    ) -> Beat:
        kept, worker = await self.renew(leases), self._worker
        async with self._ours() as db:
            given = self.scope, self.holder, worker.machine, worker.release, parts, report, *pace
            draining = await db.fetchval(BEAT, *given)
            mine = [each for each in figures if each.part in kept]
            if mine:
                await db.execute(FIGURES, self.scope, *map(list, zip(*mine, strict=True)))
            gone = self._seconds * LATELY * 4
            about = self.scope, self._seconds, gone, self._parts, self.holder
            workers, lacking, done, *sums, any_gone = await db.fetchrow(BEATEN, *about)
            if any_gone:
                await db.execute(GONE_WORKERS, self.scope, gone)
            await self._sweep_quotas(db)
        if draining is None or done is None:
            raise LeasesError(f"{self.place}: the crawl {self.name} was forgotten; nothing more is asked for it")
        return Beat(kept, max(1, workers), lacking, draining, done, *sums)

    async def _sweep_quotas(self, db: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        """Have quotas go whose times are over, round and round: who has booked any, until none is left."""
        if self._quotas_left:
            most, self._booked = SWEPT + 2 * self._booked, 0
            last = await db.fetchval(SWEEP, self.scope, self._swept, most, QUOTA_OVER)
            self._quotas_left = bool(last or self._swept)
            self._swept = last

    # What parts write.

    async def commit(self, commit: PartCommit) -> None:
        lease = commit.lease
        given = (commit.token, commit.body, commit.segment, commit.size, list(commit.read))
        async with self._db() as db:
            held = self.scope, lease.part, self.holder, lease.epoch, lease.head
            jar = map(list, zip(*commit.cookies, strict=True))
            if not await db.fetchval(COMMIT_COOKIES if commit.cookies else COMMIT, *held, *given, *jar):
                raise LeaseLostError(f"part {lease.part} of {self.name} is not ours any more (epoch {lease.epoch})")

    async def is_committed(self, commit: PartCommit) -> bool:
        lease = commit.lease
        async with self._db() as db:
            return bool(await db.fetchval(COMMITTED, self.scope, lease.part, lease.head + 1, commit.token))

    async def send(self, to: Sequence[tuple[int, bytes]]) -> None:
        async with self._db() as db:
            await db.execute(SEND, self.scope, [part for part, _ in to], [body for _, body in to])

    async def receive(self, parts: Sequence[int], taken: Sequence[int], most: int) -> list[InboxMessage]:
        below = self._floors.below(parts)
        async with self._db() as db:
            rows = await db.fetch(RECEIVE, self.scope, list(parts), list(taken), most, below)
        found = [InboxMessage(*row) for row in rows]
        if len(found) < most:  # else there may be more
            self._floors.note(list(zip(parts, below, strict=True)), [each[:2] for each in found], taken)
        return found

    async def state(self, part: int) -> PartState:
        async with self._db() as db:
            row = await db.fetchrow(STATE, self.scope, part)
        if row is None:
            raise LeasesError(f"{self.place}: the crawl {self.name} has no part {part} any more")
        return PartState(*row)

    async def log(self, part: int, after: int, most: int) -> list[LoggedCommit]:
        async with self._db() as db:
            return [LoggedCommit(*row) for row in await db.fetch(LOG, self.scope, part, after, most)]

    async def cookies(self, part: int) -> list[bytes]:
        async with self._db() as db:
            return [body for (body,) in await db.fetch(COOKIES, self.scope, part)]

    async def keep_snapshot(self, lease: Lease, number: int, token: str, key: str) -> None:
        async with self._db() as db:
            held = self.scope, lease.part, self.holder, lease.epoch
            if not await db.fetchval(KEEP_SNAPSHOT, *held, number, token, key):
                raise LeaseLostError(f"part {lease.part} of {self.name} is not ours any more (epoch {lease.epoch})")

    async def keep_limiter(self, lease: Lease, saved: bytes | None, news: bytes) -> None:
        async with self._db() as db:
            await db.execute(KEEP_LIMITER, self.scope, lease.part, self.holder, lease.epoch, saved, news)

    async def say_idle(self, lease: Lease, figures: PartFigures, *, idle: bool) -> bool:
        async with self._db() as db:
            held = self.scope, lease.part, self.holder, lease.epoch, lease.head
            said = lease.head if idle else -1
            return bool(await db.fetchval(IDLE, *held, idle, said, *figures[1:]))

    async def view(self) -> CrawlView:
        async with self._db() as db:
            return CrawlView(*await db.fetchrow(VIEW, self.scope))

    async def segments(self, part: int, after: int) -> list[Segment]:
        async with self._db() as db:
            return [Segment(*row) for row in await db.fetch(SEGMENTS, self.scope, part, after)]

    async def unnamed(self, lease: Lease, objects: Sequence[tuple[int, str]]) -> list[str]:
        numbers, keys = [number for number, _ in objects], [key for _, key in objects]
        async with self._db() as db:
            return [key for (key,) in await db.fetch(UNNAMED, *self.token(lease), numbers, keys)]

    # Workers.

    async def agreed(self, name: str) -> str:
        async with self._db() as db:
            return str(await db.fetchval(AGREED, self.scope, name) or "")

    async def agree(self, name: str, value: str) -> str:
        async with self._db() as db:
            await db.execute(AGREE, self.scope, name, value)  # in a statement of its own: the next sees who was first
            return str(await db.fetchval(AGREED, self.scope, name) or value)

    async def book(self, quota: str, seconds: float) -> BookedTime:
        self._quotas_left, self._booked = True, self._booked + 1
        async with self._db() as db:
            return BookedTime(*await db.fetchrow(BOOK, self.scope, quota, seconds))

    async def hush(self, quota: str, until: float) -> None:
        self._quotas_left, self._booked = True, self._booked + 1
        async with self._db() as db:
            await db.execute(HUSH, self.scope, quota, until)

    async def leave(self) -> None:
        async with self._db() as db:
            await db.execute("DELETE FROM fleet_worker WHERE crawl = $1 AND name = $2", self.scope, self.holder)

    async def workers(self) -> list[Worker]:
        async with self._db() as db:
            return [Worker(*row) for row in await db.fetch(WORKERS, self.scope, self._seconds * LATELY)]

    async def drain(self, worker: str | None) -> int:
        async with self._db() as db:
            return int((await db.execute(DRAIN, self.scope, worker)).rpartition(" ")[2])


def scope_of(crawl: FleetCrawl) -> str:
    """What a crawl is called in the tables."""
    return f"{crawl.name}-{crawl.id}"
