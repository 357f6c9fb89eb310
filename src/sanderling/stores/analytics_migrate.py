"""The revisions of a database of `events`: which there are, which it is at, and how it gets to another.

The steps themselves are in `migrations`, and `analytics_alembic` runs them; that is loaded only when there is something
to run, since it takes half a second.
"""

import asyncio
import importlib
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.extras import load
from sanderling.stores.analytics import EXPECTED, AnalyticsError

REVISIONS = ("0001", "0002", "0003", "0004", "0005")
HEAD = REVISIONS[-1]
VERSION_TABLE = "analytics_version"  # Alembic's; by another name, since others use it in the same database
OURS = ("post_analytics", "post_comments", "crawl_errors", "processed_events", "outbox")


class Revision(NamedTuple):
    """A step, and whether the database has taken it."""

    name: str
    what: str
    applied: bool


def known(found: str | None, place: object) -> str | None:
    """The revision that was found. Raises AnalyticsError if it is of a later version than ours."""
    if found is not None and found not in REVISIONS:
        message = f"{place} is at revision {found[:40]!r}, this version knows up to {HEAD}; use a newer version"
        raise AnalyticsError(message, transient=False)
    return found


def check(found: str | None, place: object) -> None:
    """Raise AnalyticsError unless a database that is at this revision can be used."""
    if known(found, place) != HEAD:
        message = f"{place} is at revision {found or 'none'}, expected {HEAD}; run `sanderling events migrate head`"
        raise AnalyticsError(message, transient=False)


def steps() -> Any:  # noqa: ANN401 - a module
    """The module that runs the steps."""
    return importlib.import_module("sanderling.stores.analytics_alembic")


async def migrate(url: str, target: str = "head") -> None:
    """Bring the database at `url` to a revision: "head", "base", or one by name. Raises AnalyticsError."""
    if target not in ("head", "base", *REVISIONS):
        expected = ", ".join(("head", "base", *REVISIONS))
        raise AnalyticsError(f"{target[:40]!r} is no revision; expected one of {expected}", transient=False)
    backend, place = _backend(url)
    await (
        asyncio.to_thread(backend.migrate, place, target) if isinstance(place, Path) else backend.migrate(url, target)
    )


async def status(url: str) -> list[Revision]:
    """All revisions in order, and which of them the database at `url` has. Raises AnalyticsError."""
    backend, place = _backend(url)
    found = await (asyncio.to_thread(backend.revision, place) if isinstance(place, Path) else backend.revision(url))
    last = REVISIONS.index(found) if found else -1
    return [Revision(name, what, REVISIONS.index(name) <= last) for name, what in steps().described()]


def _backend(url: str) -> tuple[Any, Path | str]:
    """The tables of the kind of database that a URL means, and the path if it is a file."""
    kind, _, path = url.partition(":")
    if kind == "sqlite" and path:
        return importlib.import_module("sanderling.stores.analytics_sqlite_tables"), Path(path)
    if kind in ("postgresql", "postgres"):
        return load("sanderling.stores.analytics_postgres_tables", "PostgreSQL"), url
    raise AnalyticsError(f"{kind[:20]!r} is no kind of database; {EXPECTED}", transient=False)
