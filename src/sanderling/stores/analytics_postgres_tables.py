"""The tables of `events` in PostgreSQL: made, known again, and brought from one revision to another."""

from functools import partial
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.stores.analytics import EXPECTED, AnalyticsError
from sanderling.stores.analytics_revisions import OURS, VERSION_TABLE, check, known, steps
from sanderling.stores.analytics_rows import raised
from sanderling.stores.postgres_database import PostgresDatabase, begun, open_pools, plainly, pool_of
from sanderling.stores.postgres_server import (
    CONNECT_SECONDS,
    SETTINGS,
    PostgresAddress,
    make_schema,
    read_url,
    relations,
)

# What is written finds rows by key. Left to itself the server decides to read all of a table while that is small, and
# sticks to it when it has grown: a batch of 50 posts took 45 ms of the server's time instead of 11.
BY_INDEX = {"enable_seqscan": "off"}
TRIES = 5  # of those who were in each other's way
WAITING = {"lock_timeout": "30s", "jit": "off"}
# "SANA", and beside it the schema: two of those do not wait for each other.
ALONE = "SELECT pg_advisory_xact_lock(1396788801, hashtext($1))"


def address_of(url: str) -> PostgresAddress:
    """Where a URL leads to. Raises AnalyticsError."""
    return read_url(url, EXPECTED, raised)


async def open_database(url: str, writers: int, readers: int) -> PostgresDatabase:
    """The schema at a URL, whose tables are there or were made. Raises AnalyticsError."""
    at = address_of(url)
    pools = {
        "write": pool_of(at, writers, WAITING | BY_INDEX),
        "read": pool_of(at, readers, WAITING),
        "claim": pool_of(at, 1, WAITING),  # of one connection: whoever holds the claim still needs others
    }
    await open_pools(at, pools, partial(_prepare, at=at), raised)
    return PostgresDatabase(at, pools, raised, TRIES)


async def _prepare(db: Any, at: PostgresAddress) -> None:  # noqa: ANN401 - asyncpg has no types
    """Make sure that the last revision is there; where there is nothing of ours, it is made. Raises AnalyticsError."""
    found = await _revision(db, at)
    if found is None:
        await _migrate(at, "head")
        found = await _revision(db, at)
    check(found, at.place)


async def revision(url: str) -> str | None:
    """Which one the database at `url` is at; None if it has no tables of ours. Raises AnalyticsError."""
    at = address_of(url)
    with plainly(at.place, raised):
        db = await _connect(at)
        try:
            return known(await _revision(db, at), at.place)
        finally:
            await db.close(timeout=CONNECT_SECONDS)


async def _revision(db: Any, at: PostgresAddress) -> str | None:  # noqa: ANN401 - no types
    there = await relations(db, at.schema)
    found: str | None = None
    if VERSION_TABLE in there:
        found = await db.fetchval(f"SELECT version_num FROM {at.schema}.{VERSION_TABLE}")  # noqa: S608 - both checked
    if found is None and (taken := there.intersection(OURS)):
        message = f"{at.place} has a table {min(taken)} that is not ours; choose another with ?schema="
        raise AnalyticsError(message, transient=False)
    return found


async def migrate(url: str, target: str) -> None:
    """Bring the database at `url` to a revision, all of it or nothing. Raises AnalyticsError."""
    await _migrate(address_of(url), target)


async def _migrate(at: PostgresAddress, target: str) -> None:
    with plainly(at.place, raised):
        db = await _connect(at)
        try:
            await _take_steps(db, at, target)
        finally:
            await db.close(timeout=CONNECT_SECONDS)


async def _take_steps(db: Any, at: PostgresAddress, target: str) -> None:  # noqa: ANN401 - no types
    async with begun(db):
        await db.execute(ALONE, at.schema)  # others wait, and then find it done
        found = await _revision(db, at)
        await make_schema(db, at.schema)
        for statement in filter(None, (each.postgres for each in steps(found, target, at.place))):
            await db.execute(statement)


async def _connect(at: PostgresAddress) -> Any:  # noqa: ANN401 - no types
    # Without a limit of time: a large table takes what it takes.
    settings = SETTINGS | {"search_path": at.schema}
    return await asyncpg.connect(at.dsn, timeout=CONNECT_SECONDS, server_settings=settings)
