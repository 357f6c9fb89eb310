"""A connection of a pool: who is cancelled leaves nothing that would wait for a server that hangs."""

import asyncio

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from looping import in_loop

from sanderling.stores.postgres_server import acquired


@in_loop
async def test_who_is_cancelled_ends_the_connection(postgres: str) -> None:
    async with asyncpg.create_pool(postgres, min_size=0, max_size=1) as pool:
        begun, held = asyncio.Event(), list[object]()

        async def ask() -> None:
            async with acquired(pool) as db:
                held.append(await db.fetchval("SELECT pg_backend_pid()"))
                begun.set()
                await db.execute("SELECT pg_sleep(60)")

        async with asyncio.TaskGroup() as group:
            task = group.create_task(ask())
            await begun.wait()
            task.cancel()

        async with acquired(pool) as db:
            assert await db.fetchval("SELECT pg_backend_pid()") not in held
    with pytest.raises(asyncio.CancelledError):
        await task
