"""`events` in PostgreSQL, in the schema that `?schema=` of the URL names, or in `public`.

`analytics_postgres_writing` has what is written, `analytics_postgres_tables` how the tables come about. A connection
that breaks during a commit leaves open whether that was made: the error is transient then, as for any other break, and
the same batch can be kept again and finds itself.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.stores import analytics_postgres_writing as writing
from sanderling.stores.analytics import Batch, EventFilter, Kept, OutboxMessage
from sanderling.stores.analytics_open import READERS, WRITERS
from sanderling.stores.analytics_postgres_tables import address_of, plainly, prepare
from sanderling.stores.analytics_questions import Dialect, Question, Row, bounded, meant_events, next_to_replay
from sanderling.stores.analytics_reading import AnalyticsReading, Budget
from sanderling.stores.analytics_rows import UNWRITABLE, RefusedError, RehearsedError, rehearsal
from sanderling.stores.postgres_server import ANSWER_SECONDS, CONNECT_SECONDS, CROSSED, Address, acquired
from sanderling.stores.postgres_server import SETTINGS as USUAL

T = TypeVar("T")
Work = Callable[[Any], Awaitable[T]]  # what is done with a connection within a transaction

TRIES = 5
AT_ONCE = 50  # rows that are fetched at a time where they may be large
SETTINGS = USUAL | {"lock_timeout": "30s", "jit": "off"}
# What is written finds rows by key. Left to itself the server decides to read all of a table while that is small, and
# sticks to it when it has grown: a batch of 50 posts took 45 ms of the server's time instead of 11.
BY_INDEX = {"enable_seqscan": "off"}
CLAIM = "SELECT pg_try_advisory_xact_lock(1396788803, hashtext(current_schema()))"


def _numbered(statement: str) -> str:
    places = count(1)
    return re.sub(r"\?", lambda _: f"${next(places)}", statement)


DIALECT = Dialect(
    seconds="extract(epoch FROM {0})::float8",
    moment="to_timestamp({0})",
    day="floor(extract(epoch FROM {0}) / 86400)::bigint",
    keywords="jsonb_array_elements(keywords) AS item (value)",
    keyword="""(CASE jsonb_typeof(item.value) WHEN 'string' THEN item.value #>> '{}'
        ELSE item.value ->> 'keyword' END) COLLATE "C\"""",
    aspect="""coalesce(item.value ->> 'aspect', '') COLLATE "C\"""",
    numbered=_numbered,
)


class PostgresAnalytics(AnalyticsReading):
    """See `open_postgres_analytics`."""

    dialect = DIALECT

    def __init__(self, writers: Any, readers: Any, claims: Any, at: Address) -> None:  # noqa: ANN401 - asyncpg has no types
        self._writers = writers
        self._readers = readers
        self._claims = claims  # of one connection: whoever holds the claim still needs others
        self._at = at

    async def keep(self, batch: Batch) -> Kept:
        """Write all of it in one transaction, durably; nothing if the event was processed and is not replayed."""
        try:
            return await self._change(partial(writing.keep, batch=batch))
        except RefusedError:
            return await self._change(partial(writing.keep_carefully, batch=batch))

    async def rehearse(self, batch: Batch) -> None:
        """Write it under ids of its own and take it back: whether batches can be kept now."""

        async def work(db: Any) -> None:  # noqa: ANN401 - no types
            await writing.keep(db, rehearsal(batch))
            raise RehearsedError

        with suppress(RehearsedError, RefusedError):
            await self._change(work)

    async def replay(self, chosen: EventFilter, *, exchange: str, routing_key: str, most: int = 1_000) -> int:
        """Mark events and put their messages into the outbox, in one transaction; how many. Others may do so, too."""
        asked = next_to_replay(meant_events(chosen, self.dialect), most)
        found = asked._replace(sql=self.dialect.numbered(asked.sql))
        return await self._change(partial(writing.replay, found=found, exchange=exchange, routing_key=routing_key))

    async def forget_errors(self, before: float, most: int = 10_000) -> int:
        """Remove errors that are older, up to so many at a time; how many that were."""
        return await self._change(partial(writing.forget_errors, before=before, most=bounded(most)))

    async def forget_events(self, before: float, most: int = 10_000) -> int:
        """Remove records of events that were processed before, up to so many at a time; how many that were."""
        return await self._change(partial(writing.forget_events, before=before, most=bounded(most)))

    @asynccontextmanager
    async def claim(self) -> AsyncIterator[bool]:
        """Whether we may send from the outbox now. The server frees it when our process dies or sleeps for a minute."""
        with plainly(self._at.place):
            async with acquired(self._claims) as db, db.transaction(isolation="read_committed"):
                yield bool(await db.fetchval(CLAIM))

    async def add(self, messages: Sequence[OutboxMessage]) -> None:
        """Put them in, in one transaction."""
        if messages:
            await self._change(partial(writing.add, messages=messages))

    async def sent(self, numbers: Sequence[int]) -> None:
        """Forget these."""
        if numbers:
            await self._change(partial(writing.sent, numbers=numbers))

    @property
    def connections(self) -> int:
        """How many connections to it are open: as many as were needed at once lately."""
        return sum(int(pool.get_size()) for pool in self._pools)

    @property
    def _pools(self) -> tuple[Any, ...]:
        return self._readers, self._writers, self._claims

    async def close(self) -> None:
        """Let go of the connections; those that do not part in time are cut."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                for pool in self._pools:
                    await pool.close()
        except (OSError, asyncpg.InterfaceError, asyncpg.PostgresError):
            for pool in self._pools:
                pool.terminate()

    def __repr__(self) -> str:
        return f"<PostgresAnalytics {self._at.place}>"

    async def _ask(self, *asked: Question) -> list[list[Row]]:
        with plainly(self._at.place):
            async with acquired(self._readers) as db:
                if len(asked) == 1 and not asked[0].wide:
                    return [await self._rows(db, asked[0])]
                async with db.transaction(isolation="repeatable_read", readonly=True):
                    return [await self._rows(db, each) for each in asked]

    async def _rows(self, db: Any, asked: Question) -> list[Row]:  # noqa: ANN401 - no types
        statement = self.dialect.numbered(asked.sql)
        if asked.wide:
            budget = Budget(self._at.place)
            return [budget.spent(row) async for row in db.cursor(statement, *asked.values, prefetch=AT_ONCE)]
        rows: list[Row] = await db.fetch(statement, *asked.values)
        return rows

    async def _change(self, work: Work[T]) -> T:
        """Have it done in a transaction. Tried again if others were in the way."""
        with plainly(self._at.place), _refusals(self._at.place):
            return await self._tried(work)

    async def _tried(self, work: Work[T]) -> T:
        for _ in range(TRIES - 1):
            try:
                return await self._changed(work)
            except asyncpg.PostgresError as error:
                if error.sqlstate not in CROSSED:
                    raise
        return await self._changed(work)

    async def _changed(self, work: Work[T]) -> T:
        # Each statement must see what others have committed by then, whatever the server's default.
        async with acquired(self._writers) as db, db.transaction(isolation="read_committed"):
            return await work(db)


@contextmanager
def _refusals(place: str) -> Iterator[None]:
    try:
        yield
    except UNWRITABLE as error:
        raise RefusedError(f"{place} refuses it: {error}") from error


async def _reset(db: Any) -> None:  # noqa: ANN401 - no types
    """Nothing that we do outlives its transaction: to reset a connection would be one more question for each."""
    if db.is_in_transaction():
        await db.reset()


async def open_postgres_analytics(url: str, *, writers: int = WRITERS, readers: int = READERS) -> PostgresAnalytics:
    """The store at a URL like postgresql://user@host:5432/database?schema=name, whose tables are there or were made.

    Raises AnalyticsError.
    """
    at = address_of(url)
    with plainly(at.place):
        writing_pool, reading_pool, claims = _pool(at, writers, BY_INDEX), _pool(at, readers, {}), _pool(at, 1, {})
        await writing_pool
        await reading_pool
        await claims
        try:
            async with acquired(reading_pool) as db:
                await prepare(db, at)
        except BaseException:
            writing_pool.terminate()
            reading_pool.terminate()
            claims.terminate()
            raise
    return PostgresAnalytics(writing_pool, reading_pool, claims, at)


def _pool(at: Address, most: int, settings: dict[str, str]) -> Any:  # noqa: ANN401 - no types
    return asyncpg.create_pool(
        at.dsn,
        min_size=0,
        max_size=most,
        timeout=CONNECT_SECONDS,
        command_timeout=ANSWER_SECONDS,
        server_settings=SETTINGS | settings | {"search_path": at.schema},
        reset=_reset,
    )
