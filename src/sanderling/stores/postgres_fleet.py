"""A fleet in PostgreSQL: its tables, and its statements.

Each statement names the crawl and at most one part, or reads; none locks more rows than those of one part. That is what
lets parts lie on several servers, and servers that speak PostgreSQL's protocol take its place.
"""

from collections.abc import Sequence

import msgspec

from sanderling.stores.fleet import (
    FORMAT,
    LATELY,
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
)
from sanderling.stores.leases import Lease, LeaseLostError, LeasesError
from sanderling.stores.postgres_leases import HELD, MAKE, PostgresLeases

TABLES = {
    "fleet_crawl": """CREATE TABLE fleet_crawl (
        name text PRIMARY KEY, scope text NOT NULL UNIQUE, said text NOT NULL, done boolean NOT NULL DEFAULT false)""",
    "fleet_part": """CREATE TABLE fleet_part (
        crawl text NOT NULL, part integer NOT NULL, idle bigint NOT NULL DEFAULT -1,
        fetched bigint NOT NULL DEFAULT 0, waiting bigint NOT NULL DEFAULT 0, asked bigint NOT NULL DEFAULT 0,
        snapshot bigint NOT NULL DEFAULT 0, token text NOT NULL DEFAULT '', key text NOT NULL DEFAULT '',
        limiter bytea NOT NULL DEFAULT '', news bytea NOT NULL DEFAULT '',
        PRIMARY KEY (crawl, part)) WITH (fillfactor = 50)""",
    "fleet_log": """CREATE TABLE fleet_log (
        crawl text NOT NULL, part integer NOT NULL, number bigint NOT NULL, token text NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (crawl, part, number))""",
    "fleet_segment": """CREATE TABLE fleet_segment (
        crawl text NOT NULL, part integer NOT NULL, number bigint NOT NULL, key text NOT NULL, size bigint NOT NULL,
        PRIMARY KEY (crawl, part, number))""",
    "fleet_inbox": """CREATE TABLE fleet_inbox (
        crawl text NOT NULL, part integer NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, body bytea NOT NULL,
        PRIMARY KEY (crawl, part, id))""",
    "fleet_quota": """CREATE TABLE fleet_quota (
        crawl text NOT NULL, quota text NOT NULL, free float8 NOT NULL DEFAULT 0, quiet float8 NOT NULL DEFAULT 0,
        PRIMARY KEY (crawl, quota)) WITH (fillfactor = 50)""",
    "fleet_agreed": """CREATE TABLE fleet_agreed (
        crawl text NOT NULL, name text NOT NULL, value text NOT NULL, PRIMARY KEY (crawl, name))""",
    "fleet_worker": """CREATE TABLE fleet_worker (
        crawl text NOT NULL, name text NOT NULL, machine text NOT NULL, release text NOT NULL,
        parts integer NOT NULL DEFAULT 0, seen timestamptz NOT NULL, draining boolean NOT NULL DEFAULT false,
        report text NOT NULL DEFAULT '', PRIMARY KEY (crawl, name)) WITH (fillfactor = 50)""",
}
# They are packed already.
PACKED = (
    "ALTER TABLE fleet_log ALTER COLUMN body SET STORAGE EXTERNAL",
    "ALTER TABLE fleet_inbox ALTER COLUMN body SET STORAGE EXTERNAL",
)
BOOK = """INSERT INTO fleet_quota AS ours (crawl, quota, free)
    VALUES ($1, $2, extract(epoch FROM clock_timestamp()) + $3)
    ON CONFLICT (crawl, quota) DO UPDATE
    SET free = greatest(ours.free, ours.quiet, extract(epoch FROM clock_timestamp())::float8) + $3
    RETURNING free - $3, quiet"""
HUSH = """INSERT INTO fleet_quota AS ours (crawl, quota, quiet) VALUES ($1, $2, $3)
    ON CONFLICT (crawl, quota) DO UPDATE SET quiet = greatest(ours.quiet, excluded.quiet)"""
AGREED = "SELECT value FROM fleet_agreed WHERE crawl = $1 AND name = $2"
AGREE = "INSERT INTO fleet_agreed VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
OF_CRAWL = ("fleet_part", "fleet_log", "fleet_segment", "fleet_inbox", "fleet_worker", "fleet_quota", "fleet_agreed")

COMMIT = """WITH fence AS (
        UPDATE lease SET head = head + 1
        WHERE scope = $1 AND part = $2 AND holder = $3 AND epoch = $4 AND head = $5 RETURNING part),
    logged AS (INSERT INTO fleet_log SELECT $1, part, $5 + 1, $6, $7 FROM fence),
    kept AS (INSERT INTO fleet_segment SELECT $1, part, $5 + 1, $8, $9 FROM fence WHERE $8 <> ''),
    had AS (DELETE FROM fleet_inbox
        WHERE crawl = $1 AND part = $2 AND id = ANY($10::bigint[]) AND EXISTS (SELECT 1 FROM fence))
    SELECT count(*) FROM fence"""
COMMITTED = "SELECT count(*) FROM fleet_log WHERE crawl = $1 AND part = $2 AND number = $3 AND token = $4"
SEND = """INSERT INTO fleet_inbox (crawl, part, body)
    SELECT $1, part, body FROM unnest($2::int[], $3::bytea[]) AS sent (part, body)"""
# Of each part by itself: else all that waits is sorted each time.
RECEIVE = """SELECT part, id, body FROM unnest($2::int[]) AS own (number) CROSS JOIN LATERAL (
        SELECT part, id, body FROM fleet_inbox
        WHERE crawl = $1 AND part = own.number AND id <> ALL($3::bigint[]) ORDER BY id LIMIT $4) AS few
    ORDER BY id LIMIT $4"""
STATE = """SELECT head, snapshot, key, limiter, news, token FROM fleet_part
    JOIN lease ON scope = crawl AND lease.part = fleet_part.part WHERE crawl = $1 AND fleet_part.part = $2"""
LOG = """SELECT number, token, body FROM fleet_log WHERE crawl = $1 AND part = $2 AND number > $3
    ORDER BY number LIMIT $4"""
KEEP_SNAPSHOT = f"""WITH earlier AS (SELECT key FROM fleet_part WHERE crawl = $1 AND part = $2),
    kept AS (UPDATE fleet_part SET snapshot = $5, token = $6, key = $7
        WHERE crawl = $1 AND part = $2 AND snapshot < $5 AND EXISTS ({HELD}) RETURNING part),
    gone AS (DELETE FROM fleet_log WHERE crawl = $1 AND part = $2 AND number <= $5 AND EXISTS (SELECT 1 FROM kept))
    SELECT earlier.key FROM earlier, kept"""  # noqa: S608 - ours
KEEP_LIMITER = f"""UPDATE fleet_part SET limiter = coalesce($5, limiter),
    news = CASE WHEN $5::bytea IS NULL THEN news || $6 ELSE $6 END
    WHERE crawl = $1 AND part = $2 AND EXISTS ({HELD})"""  # noqa: S608 - ours
# A part is idle at a head: any commit that comes, also one that is under way meanwhile, makes it busy.
IDLE = f"""UPDATE fleet_part SET idle = CASE WHEN $6 THEN $5 ELSE -1 END, fetched = $7, waiting = $8, asked = $9
    WHERE crawl = $1 AND part = $2 AND EXISTS ({HELD} AND head = $5)
    AND NOT ($6 AND EXISTS (SELECT 1 FROM fleet_inbox WHERE crawl = $1 AND part = $2))"""  # noqa: S608 - ours
VIEW = """SELECT (SELECT count(*) FROM fleet_part JOIN lease ON scope = crawl AND lease.part = fleet_part.part
        WHERE crawl = $1 AND idle <> head),
    (SELECT count(*) FROM (SELECT 1 FROM fleet_inbox WHERE crawl = $1 LIMIT 1) AS one),
    (SELECT coalesce(sum(head), 0)::bigint FROM lease WHERE scope = $1),
    (SELECT coalesce(sum(waiting), 0)::bigint FROM fleet_part WHERE crawl = $1),
    (SELECT coalesce(sum(fetched), 0)::bigint FROM fleet_part WHERE crawl = $1),
    (SELECT coalesce(sum(asked), 0)::bigint FROM fleet_part WHERE crawl = $1)"""
SEGMENTS = "SELECT number, key, size FROM fleet_segment WHERE crawl = $1 AND part = $2 AND number > $3 ORDER BY number"
BEAT = """INSERT INTO fleet_worker (crawl, name, machine, release, parts, seen, report)
    SELECT scope, $2, $3, $4, $5, clock_timestamp(), $6 FROM fleet_crawl WHERE scope = $1
    ON CONFLICT (crawl, name) DO UPDATE SET parts = excluded.parts, seen = excluded.seen, report = excluded.report
    RETURNING draining"""
FIGURES = """UPDATE fleet_part SET fetched = said.fetched, waiting = said.waiting, asked = said.asked
    FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[]) AS said (part, fetched, waiting, asked)
    WHERE crawl = $1 AND fleet_part.part = said.part
    AND (fleet_part.fetched, fleet_part.waiting, fleet_part.asked) <> (said.fetched, said.waiting, said.asked)"""
BEATEN = """SELECT count(*), coalesce(min(parts), 0), (SELECT done FROM fleet_crawl WHERE scope = $1),
    (SELECT coalesce(sum(fetched), 0)::bigint FROM fleet_part WHERE crawl = $1),
    extract(epoch FROM clock_timestamp())::float8,
    (SELECT coalesce(sum(asked), 0)::bigint FROM fleet_part WHERE crawl = $1)
    FROM fleet_worker WHERE crawl = $1 AND NOT draining
    AND abs(extract(epoch FROM clock_timestamp() - seen)) < $2"""
WORKERS = """SELECT name, machine, release, parts, extract(epoch FROM clock_timestamp() - seen)::float8, draining,
    report FROM fleet_worker
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
        self.name, self.scope, self._seconds = crawl.name, scope_of(crawl), crawl.seconds
        return msgspec.structs.replace(crawl, done=row[1])

    async def end(self, *, done: bool) -> None:
        async with self._db() as db, db.transaction():
            await db.execute("UPDATE fleet_crawl SET done = $2 WHERE scope = $1", self.scope, done)
            if not done:
                await db.execute("UPDATE fleet_part SET idle = -1 WHERE crawl = $1", self.scope)

    async def forget(self) -> None:
        async with self._db() as db, db.transaction():
            for table in OF_CRAWL:
                await db.execute(f"DELETE FROM {table} WHERE crawl = $1", self.scope)  # noqa: S608 - ours
            await db.execute("DELETE FROM lease WHERE scope = $1", self.scope)
            await db.execute("DELETE FROM fleet_crawl WHERE scope = $1", self.scope)

    # Who works on it.

    async def beat(self, leases: Sequence[Lease], figures: Sequence[PartFigures], report: str, parts: int) -> Beat:
        kept, worker = await self.renew(leases), self._worker
        async with self._ours() as db:
            given = self.scope, self.holder, worker.machine, worker.release, parts, report
            draining = await db.fetchval(BEAT, *given)
            mine = [each for each in figures if each.part in kept]
            if mine:
                await db.execute(FIGURES, self.scope, *map(list, zip(*mine, strict=True)))
            workers, fewest, done, *sums = await db.fetchrow(BEATEN, self.scope, self._seconds)
            await db.execute(GONE_WORKERS, self.scope, self._seconds * LATELY * 4)
        if draining is None or done is None:
            raise LeasesError(f"{self.place}: the crawl {self.name} was forgotten; nothing more is asked for it")
        return Beat(kept, max(1, workers), fewest, draining, done, *sums)

    # What parts write.

    async def commit(self, commit: PartCommit) -> None:
        lease = commit.lease
        given = (commit.token, commit.body, commit.segment, commit.size, list(commit.read))
        async with self._db() as db:
            held = self.scope, lease.part, self.holder, lease.epoch, lease.head
            if not await db.fetchval(COMMIT, *held, *given):
                raise LeaseLostError(f"part {lease.part} of {self.name} is not ours any more (epoch {lease.epoch})")

    async def is_committed(self, commit: PartCommit) -> bool:
        lease = commit.lease
        async with self._db() as db:
            return bool(await db.fetchval(COMMITTED, self.scope, lease.part, lease.head + 1, commit.token))

    async def send(self, to: Sequence[tuple[int, bytes]]) -> None:
        async with self._db() as db:
            await db.execute(SEND, self.scope, [part for part, _ in to], [body for _, body in to])

    async def receive(self, parts: Sequence[int], taken: Sequence[int], most: int) -> list[InboxMessage]:
        async with self._db() as db:
            return [InboxMessage(*row) for row in await db.fetch(RECEIVE, self.scope, list(parts), list(taken), most)]

    async def state(self, part: int) -> PartState:
        async with self._db() as db:
            row = await db.fetchrow(STATE, self.scope, part)
        if row is None:
            raise LeasesError(f"{self.place}: the crawl {self.name} has no part {part} any more")
        return PartState(*row)

    async def log(self, part: int, after: int, most: int) -> list[LoggedCommit]:
        async with self._db() as db:
            return [LoggedCommit(*row) for row in await db.fetch(LOG, self.scope, part, after, most)]

    async def keep_snapshot(self, lease: Lease, number: int, token: str, key: str) -> str:
        async with self._db() as db:
            held = self.scope, lease.part, self.holder, lease.epoch
            earlier = await db.fetchval(KEEP_SNAPSHOT, *held, number, token, key)
        if earlier is None:
            raise LeaseLostError(f"part {lease.part} of {self.name} is not ours any more (epoch {lease.epoch})")
        return str(earlier)

    async def keep_limiter(self, lease: Lease, saved: bytes | None, news: bytes) -> None:
        async with self._db() as db:
            await db.execute(KEEP_LIMITER, self.scope, lease.part, self.holder, lease.epoch, saved, news)

    async def say_idle(self, lease: Lease, figures: PartFigures, *, idle: bool) -> bool:
        async with self._db() as db:
            held = self.scope, lease.part, self.holder, lease.epoch, lease.head
            return str(await db.execute(IDLE, *held, idle, *figures[1:])).endswith(" 1")

    async def view(self) -> CrawlView:
        async with self._db() as db:
            return CrawlView(*await db.fetchrow(VIEW, self.scope))

    async def segments(self, part: int, after: int) -> list[Segment]:
        async with self._db() as db:
            return [Segment(*row) for row in await db.fetch(SEGMENTS, self.scope, part, after)]

    # Workers.

    async def agreed(self, name: str) -> str:
        async with self._db() as db:
            return str(await db.fetchval(AGREED, self.scope, name) or "")

    async def agree(self, name: str, value: str) -> str:
        async with self._db() as db:
            await db.execute(AGREE, self.scope, name, value)  # in a statement of its own: the next sees who was first
            return str(await db.fetchval(AGREED, self.scope, name) or value)

    async def book(self, quota: str, seconds: float) -> BookedTime:
        async with self._db() as db:
            return BookedTime(*await db.fetchrow(BOOK, self.scope, quota, seconds))

    async def hush(self, quota: str, until: float) -> None:
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
