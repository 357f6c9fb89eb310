"""A database of `events` in a folder, with as much in it as a test of commands needs."""

import asyncio
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sanderling.executor import in_threads
from sanderling.stores.analytics import AnalyticsBatch, ErrorRow
from sanderling.stores.analytics_open import migrate, open_analytics


def event(name: str, at: float, **fields: Any) -> AnalyticsBatch:  # noqa: ANN401 - of any field
    """An event that was processed then, in which one item was not fetched then."""
    error = ErrorRow(
        event_id=name,
        item_index=0,
        content_id="x",
        project_id="p",
        job_id="p-brand-0",
        platform="web",
        error_code="TIMEOUT",
        error_category="network",
        error_message="",
        error_details={},
        permalink="",
        created_at=at,
    )
    usual: dict[str, Any] = {"job_id": "p-brand-0", "project_id": "p", "platform": "web", "mode": "new"}
    times: dict[str, Any] = {"received_at": at, "processed_at": at, "message": f"message of {name}".encode()}
    rows: dict[str, Any] = {"posts": [], "comments": [], "errors": [error]}
    return AnalyticsBatch(event_id=name, **(usual | times | rows | fields))


@cache
def _empty() -> bytes:
    """A database with its tables, which take a while to make."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "events.db")
        asyncio.run(migrate(f"sqlite:{path}"))
        return path.read_bytes()


def keep(path: Path, batches: Sequence[AnalyticsBatch]) -> None:
    """Make the database, with these in it."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_empty())

    async def work() -> None:
        with ThreadPoolExecutor(1) as threads:
            store = await open_analytics(f"sqlite:{path}", in_threads(threads))
            try:
                for batch in batches:
                    await store.keep(batch)
            finally:
                await store.close()

    asyncio.run(work())


def sql(path: Path, *statements: str) -> list[tuple[Any, ...]]:
    """What somebody gets who writes SQL by hand: the answer to the last one."""
    with closing(sqlite3.connect(path)) as db, db:
        found: list[tuple[Any, ...]] = []
        for statement in statements:
            found = db.execute(statement).fetchall()
        return found
