"""Which database of `events` a URL means."""

import importlib
from pathlib import Path

from sanderling.executor import Executor
from sanderling.extras import load
from sanderling.stores.analytics import EXPECTED, AnalyticsError, AnalyticsStore
from sanderling.stores.analytics_store import SqlAnalytics

WRITERS, READERS = 6, 4  # five batches at once and whoever sends messages; and people who look


async def open_analytics(
    url: str, executor: Executor, *, writers: int = WRITERS, readers: int = READERS
) -> AnalyticsStore:
    """The database at `url`, which was reached; its tables are made where there is nothing of ours.

    Up to so many connections to PostgreSQL are open at a time, for those who write and for those who look. A SQLite
    file has one of each, whatever is said here.

    Raises AnalyticsError, also if its tables are of another revision; MissingExtraError; and ValueError if there would
    be no connection.
    """
    if min(writers, readers) < 1:
        raise ValueError(f"{writers} connections to write and {readers} to look, expected 1 or more of each")
    # By name and only now: a command that needs neither should load neither, and asyncpg is an extra.
    kind, _, path = url.partition(":")
    if kind == "sqlite" and path:
        sqlite = importlib.import_module("sanderling.stores.analytics_sqlite_tables")
        database = await sqlite.open_database(Path(path), executor)
    elif kind in ("postgresql", "postgres"):
        postgres = load("sanderling.stores.analytics_postgres_tables", "PostgreSQL")
        database = await postgres.open_database(url, writers, readers)
    else:
        raise AnalyticsError(f"{kind[:20]!r} is no kind of database; {EXPECTED}", transient=False)
    return SqlAnalytics(database)
