"""`polling` in PostgreSQL, in the schema that `?schema=` of the URL names, or in `public`: its connections.

There are a few for reading and for admins, and one for whoever polls. `postgres_polling_tables` has the tables,
`postgres_polling_targets` what this database does in its own way.

Tricky bits:

- The one that polls has a lease (`polling_lease`), and every transaction of its checks that it still has. While one is
  open nobody takes the lease: so nobody writes who has lost it. One that was stopped in the middle of a transaction is
  ended by the server.
- A connection that breaks during a commit leaves open whether that was made. The error is transient then, as for any
  other break; whoever follows the changes reads them from the store after any error.
- An admin who has the rights needs none of this: `UPDATE polling_targets SET enabled = false` is heard of.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.clock import SystemClock
from sanderling.stores.database import DatabaseTrouble, First, Work
from sanderling.stores.documents import Schema
from sanderling.stores.leases import LeasesAwayError, LeasesError, name_holder
from sanderling.stores.polling import EXPECTED, PollingStoreError
from sanderling.stores.polling_documents import Tables
from sanderling.stores.polling_lease import SECONDS, PollingLease
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
from sanderling.stores.postgres_leases import HELD, PostgresLeases
from sanderling.stores.postgres_polling_tables import prepare
from sanderling.stores.postgres_polling_targets import PostgresPollingDialect
from sanderling.stores.postgres_server import ANSWER_SECONDS, CONNECT_SECONDS, SETTINGS, PostgresAddress, read_url

T = TypeVar("T")

CONNECTIONS = 4
TRIES = 3
# Whoever polls must not stand still because an admin has gone for lunch in the middle of a transaction.
LOCK_TIMEOUT = {"lock_timeout": "2s"}
# What is asked is a few of many rows, by an index that is there for it. Left to itself the server reads all of a table
# that has just been filled, and sorts it; or all of it for 5,000 keys. With 200,000 targets that took 520 ms instead of
# 3, and 490 instead of 150.
BY_INDEX = {"enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off"}
# One that was stopped in the middle of a transaction keeps others from taking over until then.
WRITES = {"idle_in_transaction_session_timeout": f"{SECONDS:.0f}s"}
# Taking a lease locks its row FOR UPDATE, which this is in the way of; beginning it anew does not.
FENCE = f"{HELD} FOR KEY SHARE"


class PollingConnections(PostgresDatabase):
    """See `open_link`."""

    def __init__(self, address: PostgresAddress, pool: Any, leases: PostgresLeases) -> None:  # noqa: ANN401 - no types
        super().__init__(address, {"read": pool, "write": pool}, raised, TRIES)
        self._address = address
        self._pool = pool
        self._db: Any = None  # the one for whoever polls
        self._turn = asyncio.Lock()
        self._leases = leases
        self._lease = PollingLease(leases, address.place, SystemClock(), SystemClock.boot)
        self._claiming = False  # whether the leases were opened
        self._ending = False  # a transaction: nobody knows whether one that breaks now was made

    def __repr__(self) -> str:
        return f"<Link to {self.place}{'' if self._lease.lease is None else ', claimed'}>"

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
                await self._check_lease(db)
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
        """The connection for whoever polls."""
        if self._pool.is_closing():
            raise PollingStoreError(f"{self.place} was closed here", transient=False)
        if self._db is None or self._db.is_closed():
            self._drop()
            self._db = await self._connect()
        return self._db

    async def _connect(self) -> Any:  # noqa: ANN401 - no types
        return await asyncpg.connect(
            self._address.dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS,
            server_settings=_settings(self._address) | WRITES,
        )

    async def take_over(self, work: Work[None]) -> None:
        """Be the one who polls, and begin with `work`. Raises PolledElsewhereError if another one is."""
        async with self._turn:
            if not self._claiming:
                await self._open_leases()
            await self._lease.acquire()
        await self.write(work)

    async def _open_leases(self) -> None:
        if self._pool.is_closing():
            raise PollingStoreError(f"{self.place} was closed here", transient=False)
        try:
            await self._leases.open()
            await self._leases.make(1, SECONDS)
        except (LeasesError, LeasesAwayError) as error:
            raise PollingStoreError(str(error), transient=isinstance(error, LeasesAwayError)) from error
        self._claiming = True

    async def hold(self, renewed: Callable[[], object]) -> None:
        await self._lease.hold(renewed)

    def may_send(self) -> bool:
        return self._lease.may_send()

    async def _check_lease(self, db: Any) -> None:  # noqa: ANN401 - no types
        lease = self._lease.lease
        if lease is not None and not await db.fetchval(FENCE, *self._leases.token(lease)):
            raise self._lease.lost()

    async def close(self) -> None:
        """Give the lease back and let go of the connections; those that do not part in time are cut."""
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
                await db.close()
        finally:
            with suppress(PollingStoreError):  # then it ends by itself
                await self._lease.release()
            await self._leases.close()


def _settings(address: PostgresAddress) -> dict[str, str]:
    return SETTINGS | LOCK_TIMEOUT | BY_INDEX | {"search_path": address.schema}


async def open_link(
    address: PostgresAddress, leases: PostgresLeases, prepare: Callable[[Any], Awaitable[T]]
) -> tuple[PollingConnections, T]:
    """The connections to that address, where `prepare` was done in a transaction; and what that gave.

    Raises PollingStoreError.
    """
    pool = pool_of(address, CONNECTIONS, LOCK_TIMEOUT | BY_INDEX)

    async def prepared(db: Any) -> T:  # noqa: ANN401 - no types
        async with begun(db):
            return await prepare(db)

    return PollingConnections(address, pool, leases), await open_pools(address, {"read": pool}, prepared, raised)


async def open_postgres_polling(url: str, schema: Schema | None, source: str) -> PollingStore:
    """The store at a URL like postgresql://user@host:5432/database?schema=name, whose tables are there or were made.

    Without a schema it uses what is there. Raises PollingStoreError.
    """
    address = read_url(url, EXPECTED, raised)
    leases = PostgresLeases(url, f"polling:{address.schema}", name_holder())
    link, known = await open_link(address, leases, partial(prepare, at=address, schema=schema, source=source))
    tables = Tables({table.name: table for table in known.tables}, known.tables, f"{address.schema}.")
    return PollingStore(link, tables, PostgresPollingDialect())
