"""A schema of a PostgreSQL server as a `Database`: pools of connections; what others were in the way of is tried again.

Each statement sees what others have committed by then, whatever the server's default. A connection that breaks during a
commit leaves open whether that was made: the error means that the server is away, as for any other break.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.stores.database import (
    POSTGRES,
    UNWRITABLE,
    Claim,
    DatabaseTrouble,
    First,
    Insert,
    Raised,
    RefusalError,
    Row,
    Work,
)
from sanderling.stores.postgres_server import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    CROSSED,
    DATA,
    SETTINGS,
    PostgresAddress,
    acquired,
)
from sanderling.stores.postgres_server import plainly as plainly_of_server

T = TypeVar("T")

AT_ONCE = 50  # rows that are fetched at a time where they may be large
LONGEST_MESSAGE = 500  # characters: some quote what they were given
CLAIM = "SELECT pg_try_advisory_xact_lock($1, hashtext(current_schema()))"
ALONE = "SELECT pg_advisory_xact_lock($1, hashtext(current_schema()))"
MARK = re.compile(r"\?(\d*)")


@lru_cache(1024)  # statements: some are made for a filter, of which people think of ever new ones
def numbered(statement: str) -> str:
    """The statement with "$1" for "?"."""
    places = count(1)
    return MARK.sub(lambda mark: f"${mark[1] or next(places)}", statement)


@contextmanager
def plainly(place: str, raised: Raised) -> Iterator[None]:
    """Turn whatever asyncpg raises into the error of the store."""
    with plainly_of_server(place, lambda message, trouble: raised(message[:LONGEST_MESSAGE], trouble)):
        try:
            yield
        except UNWRITABLE as error:
            raise raised(f"{place} refuses it: {error}"[:LONGEST_MESSAGE], DatabaseTrouble.REFUSED) from error


class PostgresTransaction:
    """Statements over one connection."""

    dialect = POSTGRES
    unfit: tuple[type[Exception], ...] = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)

    def __init__(self, db: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        self.db = db

    async def fetch(self, statement: str, *values: object) -> list[Row]:
        rows: list[Row] = await self.db.fetch(numbered(statement), *values)
        return rows

    async def stream(self, statement: str, *values: object) -> AsyncGenerator[Row, None]:
        """The same, some at a time; within a transaction."""
        async for row in self.db.cursor(numbered(statement), *values, prefetch=AT_ONCE):
            yield row

    async def execute(self, statement: str, *values: object) -> int:
        """How many rows a statement has changed, by what the server says of it: "DELETE 5"."""
        number = (await self.db.execute(numbered(statement), *values)).rpartition(" ")[2]
        return int(number) if number.isdigit() else 0

    async def execute_many(self, statement: str, rows: Iterable[Any]) -> None:
        await self.db.executemany(numbered(statement), rows)

    async def insert(self, into: Insert, rows: Iterable[Any], *same: object) -> list[Row]:
        given = into.parameters(rows)
        if not given:
            return []
        if into.returns:
            return await self.fetch(into.postgres, *given, *same)
        await self.db.execute(into.postgres, *given, *same)
        return []

    async def lock(self, number: int) -> None:
        await self.db.execute(ALONE, number)

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        try:
            async with self.db.transaction():
                yield
        except UNWRITABLE as error:
            raise RefusalError(str(error) or type(error).__name__) from error
        except asyncpg.PostgresError as error:
            if not (error.sqlstate or "").startswith(DATA):
                raise
            raise RefusalError(str(error)) from error


class PostgresDatabase:
    """See `open_postgres`."""

    dialect = POSTGRES

    def __init__(self, at: PostgresAddress, pools: Mapping[str, Any], raised: Raised, tries: int) -> None:
        self.place = at.place
        self.schema = at.schema
        self._pools = pools
        self._raised = raised
        self._tries = tries

    @property
    def connections(self) -> int:
        """How many connections to it are open: as many as were needed at once lately."""
        return sum(int(pool.get_size()) for pool in {*self._pools.values()})

    async def read(self, work: Work[T], *, together: bool = False) -> T:
        with plainly(self.place, self._raised):
            async with acquired(self._pools["read"]) as db:
                if not together:
                    return await work(PostgresTransaction(db))
                async with db.transaction(isolation="repeatable_read", readonly=True):
                    return await work(PostgresTransaction(db))

    async def write(self, work: Work[T], *, durable: bool = True, first: First = None) -> T:  # noqa: ARG002 - a commit always is
        """Do it in one transaction. Tried again if others were in the way."""
        if first:
            await asyncio.to_thread(first)

        async def written() -> T:
            async with acquired(self._pools["write"]) as db, begun(db):
                return await work(PostgresTransaction(db))

        with plainly(self.place, self._raised):
            return await tried(written, self._tries)

    @asynccontextmanager
    async def claim(self, what: Claim) -> AsyncIterator[bool]:
        """Whether we have it. The server frees it when our process dies or sleeps for a minute."""
        with plainly(self.place, self._raised):
            async with acquired(self._pools["claim"]) as db, begun(db):
                yield bool(await db.fetchval(CLAIM, what.number))

    async def close(self) -> None:
        """Let go of the connections; those that do not part in time are cut."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                for pool in self._pools.values():
                    await pool.close()
        except (OSError, asyncpg.InterfaceError, asyncpg.PostgresError):
            for pool in self._pools.values():
                pool.terminate()


def begun(db: Any) -> Any:  # noqa: ANN401 - no types
    """A transaction in which each statement sees what others have committed by then."""
    return db.transaction(isolation="read_committed")


async def tried(once: Callable[[], Awaitable[T]], tries: int) -> T:
    """What it gives, also if others were in the way the first times."""
    for _ in range(tries - 1):
        try:
            return await once()
        except asyncpg.PostgresError as error:
            if error.sqlstate not in CROSSED:
                raise
    return await once()


async def _reset(db: Any) -> None:  # noqa: ANN401 - no types
    """Nothing that we do outlives its transaction: to reset a connection would be one more question for each."""
    if db.is_in_transaction():
        await db.reset()


def pool_of(at: PostgresAddress, most: int, settings: dict[str, str], seconds: float = ANSWER_SECONDS) -> Any:  # noqa: ANN401 - no types
    """Up to so many connections, which are made when they are needed; a statement has so many seconds."""
    return asyncpg.create_pool(
        at.dsn,
        min_size=0,
        max_size=most,
        timeout=CONNECT_SECONDS,
        command_timeout=seconds,
        server_settings=SETTINGS | settings | {"search_path": at.schema},
        reset=_reset,
    )


async def open_pools(
    at: PostgresAddress, pools: Mapping[str, Any], prepare: Callable[[Any], Awaitable[T]], raised: Raised
) -> T:
    """What `prepare` gives over a connection for those who read."""
    with plainly(at.place, raised):
        try:
            for pool in pools.values():
                await pool
            async with acquired(pools["read"]) as db:
                return await prepare(db)
        except BaseException:
            for pool in pools.values():
                pool.terminate()
            raise
