"""Which database of `events` a URL means: it is opened, or brought to another revision."""

import importlib
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.executor import Executor
from sanderling.extras import load
from sanderling.stores.analytics import EXPECTED, AnalyticsError
from sanderling.stores.analytics_revisions import HEIGHTS, MIGRATIONS
from sanderling.stores.analytics_store import AnalyticsStore

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
    backend, place = _backend(url)
    if isinstance(place, Path):
        return AnalyticsStore(await backend.open_database(place, executor))
    return AnalyticsStore(await backend.open_database(url, writers, readers))


class Revision(NamedTuple):
    """A step, and whether the database has taken it."""

    name: str
    what: str
    applied: bool


async def migrate(url: str, target: str = "head") -> None:
    """Bring the database at `url` to a revision: "head", "base", or one by name. Raises AnalyticsError."""
    if target not in HEIGHTS:
        message = f"{target[:40]!r} is no revision; expected one of {', '.join(HEIGHTS)}"
        raise AnalyticsError(message, transient=False)
    backend, place = _backend(url)
    await backend.migrate(place, target)


async def status(url: str) -> list[Revision]:
    """All revisions in order, and which of them the database at `url` has. Raises AnalyticsError."""
    backend, place = _backend(url)
    return revisions(await backend.revision(place))


def revisions(at: str | None) -> list[Revision]:
    """All revisions in order, and which of them a database has that is at one of them, or at none."""
    height = HEIGHTS[at or "base"]
    return [Revision(each.name, each.what, place < height) for place, each in enumerate(MIGRATIONS)]


def _backend(url: str) -> tuple[Any, Path | str]:
    """The tables of the kind of database that a URL means, and the path if it is a file."""
    # By name and only now: a command that needs neither should load neither, and asyncpg is an extra.
    kind, _, path = url.partition(":")
    if kind == "sqlite" and path:
        return importlib.import_module("sanderling.stores.analytics_sqlite_tables"), Path(path)
    if kind in ("postgresql", "postgres"):
        return load("sanderling.stores.analytics_postgres_tables", "PostgreSQL"), url
    raise AnalyticsError(f"{kind[:20]!r} is no kind of database; {EXPECTED}", transient=False)
