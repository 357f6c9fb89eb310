"""`polling` in PostgreSQL, in the schema that `?schema=` of the URL names, or in `public`: its connections.

There are a few for reading and for admins, and one for whoever polls. `postgres_polling_tables` has the tables,
`postgres_polling_targets` what this database does in its own way.

Tricky bits:

- The one that polls holds a lock of the server for as long as its connection lives, and all that it writes goes through
  that connection, one transaction after another. So nobody writes who has lost the lock without knowing.
- If that connection breaks, the next write takes the lock again. If the server has not noticed, our own old connection
  still holds it, and is ended. If another process polled meanwhile, we are not the one any more.
- A connection that breaks during a commit leaves open whether that was made. The error is transient then, as for any
  other break; whoever follows the changes reads them from the store after any error.
- An admin who has the rights needs none of this: `UPDATE polling_targets SET enabled = false` is heard of.
- It needs a session: a pooler that hands out a connection per transaction would hand out the lock, too.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.stores.database import DatabaseTrouble, First, Work
from sanderling.stores.documents import Schema
from sanderling.stores.polling import EXPECTED, PollingStoreError
from sanderling.stores.polling_documents import Tables
from sanderling.stores.polling_store import PollingStore, raised
from sanderling.stores.postgres_database import (
    LONGEST_MESSAGE,
    PostgresDatabase,
    PostgresTransaction,
    begun,
    open_pools,
    plainly,
    pool_of,
    tried,
)
from sanderling.stores.postgres_polling_tables import prepare
from sanderling.stores.postgres_polling_targets import PostgresPollingDialect
from sanderling.stores.postgres_server import ANSWER_SECONDS, CONNECT_SECONDS, SETTINGS, PostgresAddress, read_url

T = TypeVar("T")

CONNECTIONS = 4
TRIES = 3
# Whoever polls must not stand still because an admin has gone for lunch in the middle of a transaction. And a process
# that was killed has let go of its lock within that time, even if the server is slow to notice.
LOCK_TIMEOUT = {"lock_timeout": "2s"}
# What is asked is a few of many rows, by an index that is there for it. Left to itself the server reads all of a table
# that has just been filled, and sorts it; or all of it for 5,000 keys. With 200,000 targets that took 520 ms instead of
# 3, and 490 instead of 150.
BY_INDEX = {"enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off"}
# A host that vanished keeps its lock until the server notices: half a minute instead of two hours.
KEEP_ALIVE = {"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "4"}

# "SANP", and beside it the schema, which has that number in this database alone.
KEY = "(SELECT (1396788816::bigint << 32) | oid::bigint FROM pg_namespace WHERE nspname = $1)"
TAKE = f"SELECT pg_advisory_lock({KEY})"
LET_GO = f"SELECT pg_advisory_unlock({KEY})"
HOLDER = f"""SELECT pid, extract(epoch FROM backend_start)::float8, host(client_addr)
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = {KEY}
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""  # noqa: S608 - ours
OURSELVES = "SELECT pid, extract(epoch FROM backend_start)::float8 FROM pg_stat_activity WHERE pid = pg_backend_pid()"


class PollingConnections(PostgresDatabase):
    """See `open_link`."""

    def __init__(self, address: PostgresAddress, pool: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        super().__init__(address, {"read": pool, "write": pool}, raised, TRIES)
        self._address = address
        self._pool = pool
        self._db: Any = None  # the one for whoever polls
        self._turn = asyncio.Lock()
        self._claims: int | None = None  # how many claims there had been with ours; None without one
        self._self: tuple[int, float] | None = None  # the server's process behind our claim, and since when
        self._ending = False  # a transaction: nobody knows whether one that breaks now was made

    def __repr__(self) -> str:
        return f"<Link to {self.place}{'' if self._claims is None else ', claimed'}>"

    async def peek(self, work: Work[T]) -> T:
        return await self.read(work)

    async def edit(self, work: Work[T], *, durable: bool = True) -> T:
        """What people write, in a transaction, beside whoever polls. Tried again if another one was in the way."""
        return await super().write(work, durable=durable)

    async def write(self, work: Work[T], *, durable: bool = True, first: First = None) -> T:
        """What whoever polls does, in a transaction, one after another. Tried again if another one was in the way.

        Without `durable` a crash of the server may undo the last second of it.
        """
        if first:
            first()
        async with self._turn:
            with plainly(self.place, self._raised_at_commit):
                return await tried(lambda: self._written(work, durable=durable), TRIES)

    async def _written(self, work: Work[T], *, durable: bool) -> T:
        self._ending = False
        db = await self._ready()
        try:
            async with begun(db):
                if not durable:
                    await db.execute("SET LOCAL synchronous_commit = off")
                done = await work(PostgresTransaction(db))
                self._ending = True
        finally:
            if db.is_closed() or db.is_in_transaction():
                self._drop()
        return done

    def _raised_at_commit(self, message: str, trouble: DatabaseTrouble) -> PollingStoreError:
        unsure = self._ending and trouble in (DatabaseTrouble.AWAY, DatabaseTrouble.FAILED)
        end = "; whether it was written shows when it is read again" if unsure else ""
        return raised(message[: LONGEST_MESSAGE - len(end)] + end, trouble)

    def _drop(self) -> None:
        if self._db is not None:
            self._db.terminate()
            self._db = None

    async def _ready(self) -> Any:  # noqa: ANN401 - no types
        """The connection for whoever polls, with the lock if that is us."""
        if self._pool.is_closing():
            raise PollingStoreError(f"{self.place} was closed here", transient=False)
        if self._db is None or self._db.is_closed():
            self._drop()
            db = await self._connect()
            try:
                if self._claims is not None:
                    await self._take(db)
                    await self._check_claims(db)
            except BaseException:
                db.terminate()
                raise
            self._db = db
        return self._db

    async def _connect(self) -> Any:  # noqa: ANN401 - no types
        return await asyncpg.connect(
            self._address.dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS,
            server_settings=_settings(self._address) | KEEP_ALIVE,
        )

    async def take_over(self, work: Work[None]) -> None:
        """Be the one who polls, and begin with `work`. Raises PollingStoreError (not transient) if another one is."""
        async with self._turn:
            with plainly(self.place, raised):
                db = await self._ready()
                if self._claims is None:
                    await self._take(db)
                    # Whoever lost its connection learns by the number that another one polled.
                    self._claims = await db.fetchval("UPDATE polling_meta SET claims = claims + 1 RETURNING claims")
        await self.write(work)

    async def _take(self, db: Any) -> None:  # noqa: ANN401 - no types
        if not await self._got(db):
            for process, since, host in await db.fetch(HOLDER, self.schema):  # nobody, if it has just let go
                if (process, since) != self._self:
                    where = f", from {host}" if host else ""
                    raise PollingStoreError(f"another process polls {self.place}{where}", transient=False)
                await db.execute("SELECT pg_terminate_backend($1)", process)
            await db.execute(TAKE, self.schema)
        self._self = tuple(await db.fetchrow(OURSELVES))

    async def _got(self, db: Any) -> bool:  # noqa: ANN401 - no types
        try:
            await db.execute(TAKE, self.schema)
        except asyncpg.LockNotAvailableError:
            return False
        return True

    async def _check_claims(self, db: Any) -> None:  # noqa: ANN401 - no types
        if await db.fetchval("SELECT claims FROM polling_meta") != self._claims:
            message = f"another process polled {self.place} while the connection was broken; start again"
            raise PollingStoreError(message, transient=False)

    async def close(self) -> None:
        """Let go of the lock and the connections; those that do not part in time are cut."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS), self._turn:
                await self._part()
                await self._pool.close()
        except (OSError, asyncpg.InterfaceError, asyncpg.PostgresError):
            self._drop()
            self._pool.terminate()

    async def _part(self) -> None:
        db, self._db = self._db, None
        try:
            if db is not None and not db.is_closed():
                if self._claims is not None:
                    # The server may take its time to notice that a connection was closed.
                    await db.execute(LET_GO, self.schema)
                await db.close()
        finally:
            self._claims = None


def _settings(address: PostgresAddress) -> dict[str, str]:
    return SETTINGS | LOCK_TIMEOUT | BY_INDEX | {"search_path": address.schema}


async def open_link(address: PostgresAddress, prepare: Callable[[Any], Awaitable[T]]) -> tuple[PollingConnections, T]:
    """The connections to that address, where `prepare` was done in a transaction; and what that gave.

    Raises PollingStoreError.
    """
    pool = pool_of(address, CONNECTIONS, LOCK_TIMEOUT | BY_INDEX)

    async def prepared(db: Any) -> T:  # noqa: ANN401 - no types
        async with begun(db):
            return await prepare(db)

    return PollingConnections(address, pool), await open_pools(address, {"read": pool}, prepared, raised)


async def open_postgres_polling(url: str, schema: Schema | None, source: str) -> PollingStore:
    """The store at a URL like postgresql://user@host:5432/database?schema=name, whose tables are there or were made.

    Without a schema it uses what is there. Raises PollingStoreError.
    """
    address = read_url(url, EXPECTED, raised)
    link, known = await open_link(address, partial(prepare, at=address, schema=schema, source=source))
    tables = Tables({table.name: table for table in known.tables}, known.tables, f"{address.schema}.")
    return PollingStore(link, tables, PostgresPollingDialect())
