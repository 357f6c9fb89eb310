"""Leases in a table of PostgreSQL, by the clock of its server.

While a holder has its connection, it also holds an advisory lock of its own, which the server frees when the process
dies. A lock that is free is no proof of that, for a connection may break: it only shortens how long others wait.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.clock import SystemClock
from sanderling.stores.database import DatabaseTrouble
from sanderling.stores.leases import GONE, Lease, LeasesAwayError, LeasesError, PartHolder, SteadyClock
from sanderling.stores.postgres_database import pool_of
from sanderling.stores.postgres_server import acquired, make_schema, plainly, read_url, relations

EXPECTED = "expected postgresql://user@host:5432/database?schema=name"
CONNECTIONS = 2  # and the one with the lock
SETTINGS = {"lock_timeout": "10s", "statement_timeout": "30s"}
ANSWER_SECONDS = 10.0  # after which a server that was cut off is asked over another connection
SETTLING = 0x464C45  # the lock of whoever makes the tables

TABLE = """CREATE TABLE lease (
    scope text NOT NULL, part integer NOT NULL, holder text NOT NULL DEFAULT '', lock bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0, head bigint NOT NULL DEFAULT 0, seconds float8 NOT NULL,
    until timestamptz NOT NULL DEFAULT '-infinity', PRIMARY KEY (scope, part)) WITH (fillfactor = 50)"""
MAKE = "INSERT INTO lease (scope, part, seconds) SELECT $1, unnest($2::int[]), $3 ON CONFLICT DO NOTHING"

# Whether whoever holds a lease has a connection: while it has, it holds an advisory lock of its own.
CONNECTED = """EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32 | objid::bigint) = lease.lock)"""
# If the clock was steady ($6). One that ends later than any could was renewed before the clock was set back.
FREE = f"""holder = '' OR ($6 AND (until < clock_timestamp()
    OR until > clock_timestamp() + seconds * 1.25 * interval '1 s'
    OR (until < clock_timestamp() + seconds * {1 - GONE} * interval '1 s' AND NOT {CONNECTED})))"""
NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
# What is free is chosen in a statement of its own: within the other it may be chosen anew for each row.
ACQUIRE = f"""WITH free AS (
        SELECT part AS number FROM lease WHERE scope = $1 AND ({FREE})
        ORDER BY part = ANY($5::int[]) DESC, random() LIMIT $4 FOR UPDATE SKIP LOCKED)
    UPDATE lease SET holder = $2, lock = $3, epoch = epoch + 1, until = clock_timestamp() + seconds * interval '1 s'
    FROM free WHERE scope = $1 AND part = free.number RETURNING part, epoch, head"""  # noqa: S608 - ours
RENEW = """UPDATE lease SET until = clock_timestamp() + seconds * interval '1 s'
    FROM unnest($3::int[], $4::bigint[], $5::bigint[]) AS ours (part, epoch, head)
    WHERE scope = $1 AND holder = $2 AND lease.part = ours.part AND lease.epoch = ours.epoch AND lease.head >= ours.head
    RETURNING lease.part"""
RELEASE = """UPDATE lease SET holder = '' FROM unnest($3::int[], $4::bigint[]) AS ours (part, epoch)
    WHERE scope = $1 AND holder = $2 AND lease.part = ours.part AND lease.epoch = ours.epoch"""
HOLDERS = """SELECT part, holder, epoch,
    CASE WHEN holder = '' THEN 0 ELSE extract(epoch FROM until - clock_timestamp())::float8 END
    FROM lease WHERE scope = $1 ORDER BY part"""
HELD = "SELECT 1 FROM lease WHERE scope = $1 AND part = $2 AND holder = $3 AND epoch = $4"


class PostgresLeases:
    """The leases of one scope, as one holder sees them. See `Leases`."""

    TABLES: Mapping[str, str] = {}  # beside that of leases
    ALTER: Sequence[str] = ()  # once they are made

    def __init__(self, url: str, scope: str, holder: str) -> None:
        self.scope = scope
        self.holder = holder
        self._at = read_url(url, EXPECTED, _raised)
        self._lock = secrets.randbits(63)
        self._pool: Any = None
        self._session: Any = None  # the connection that holds our lock: when we die, the server frees it
        self._seconds = 0.0
        self.clock = SteadyClock(SystemClock.boot)

    @property
    def place(self) -> str:
        """Where it is, without secrets."""
        return self._at.place

    async def open(self) -> None:
        """Connect, and make the tables if there are none."""
        with self._plainly():
            self._pool = await pool_of(self._at, CONNECTIONS, SETTINGS, ANSWER_SECONDS)
            async with acquired(self._pool) as db, db.transaction():
                await self._settle(db)

    async def _settle(self, db: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        tables, schema = {"lease": TABLE, **self.TABLES}, self._at.schema
        if tables.keys() <= await relations(db, schema):
            return
        await db.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", SETTLING, schema)
        there = await relations(db, schema)
        await make_schema(db, schema)
        for name, create in tables.items():
            if name not in there:
                await db.execute(create)
        for statement in self.ALTER:
            await db.execute(statement)

    async def make(self, parts: int, seconds: float) -> None:
        """Have so many parts in the scope, with leases of so many seconds; those that are there stay as they are."""
        self._seconds = seconds
        async with self._db() as db:
            await db.execute(MAKE, self.scope, list(range(parts)), seconds)

    async def acquire(self, most: int, preferred: Sequence[int] = ()) -> list[Lease]:
        async with self._ours() as db:
            await self._look(db)
            steady = self.clock.is_steady(self._seconds)
            given = self.scope, self.holder, self._lock, most, list(preferred), steady
            return [Lease(*row) for row in await db.fetch(ACQUIRE, *given)] if most > 0 else []

    async def _look(self, db: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        asked = SystemClock.boot()
        self.clock.look(asked, await db.fetchval(NOW))

    async def renew(self, leases: Sequence[Lease]) -> Sequence[int]:
        async with self._ours() as db:
            await self._look(db)
            return [part for (part,) in await db.fetch(RENEW, *self._these(leases), [each.head for each in leases])]

    async def release(self, leases: Sequence[Lease]) -> None:
        async with self._db() as db:
            await db.execute(RELEASE, *self._these(leases))

    async def holders(self) -> list[PartHolder]:
        async with self._db() as db:
            return [PartHolder(*row) for row in await db.fetch(HOLDERS, self.scope)]

    def token(self, lease: Lease) -> tuple[str, int, str, int]:
        """What `HELD` is asked with, by whoever writes under a lease."""
        return self.scope, lease.part, self.holder, lease.epoch

    def _these(self, leases: Sequence[Lease]) -> tuple[str, str, list[int], list[int]]:
        parts, epochs = [each.part for each in leases], [each.epoch for each in leases]
        return self.scope, self.holder, parts, epochs

    async def close(self) -> None:
        """Let go of the connections; those that do not part in time are cut."""
        if self._session is not None:
            self._session.terminate()
        if self._pool is not None:
            try:
                async with asyncio.timeout(2.0):
                    await self._pool.close()
            except (OSError, asyncpg.InterfaceError, asyncpg.PostgresError):
                self._pool.terminate()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        with plainly(self.place, _raised):
            yield

    @asynccontextmanager
    async def _db(self) -> AsyncIterator[Any]:
        with self._plainly():
            async with acquired(self._pool) as db:
                yield db

    @asynccontextmanager
    async def _ours(self) -> AsyncIterator[Any]:
        """The connection that holds our lock."""
        with self._plainly():
            if self._session is None or self._session.is_closed():
                settings = SETTINGS | {"search_path": self._at.schema, "application_name": "sanderling"}
                limit = max(2.0, self._seconds / 4)
                session = await asyncpg.connect(
                    self._at.dsn, timeout=limit, command_timeout=limit, server_settings=settings
                )
                # Shared with ourselves: a server may believe in our last connection long after it broke.
                await session.execute("SELECT pg_advisory_lock_shared($1)", self._lock)
                self._session = session
            try:
                yield self._session
            except (OSError, asyncpg.InterfaceError, asyncpg.PostgresError, asyncio.CancelledError):
                # A connection that did not answer in time may never again.
                with suppress(OSError, asyncpg.InterfaceError):
                    self._session.terminate()
                self._session = None
                raise


def _raised(message: str, trouble: DatabaseTrouble) -> Exception:
    if trouble in (DatabaseTrouble.AMISS, DatabaseTrouble.REFUSED):
        return LeasesError(message)
    return LeasesAwayError(message)
