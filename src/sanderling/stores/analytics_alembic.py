"""Runs the steps in `migrations` over a connection that somebody else has opened, within their transaction.

While a step runs, Alembic knows its database by a name that the whole process shares. So there is one at a time.
"""

import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from sanderling.extras import load
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.analytics_migrate import HEAD, REVISIONS, VERSION_TABLE, known

_alone = threading.Lock()


def run(connection: Connection, place: str, target: str) -> None:
    """Take the steps to a revision, upwards or downwards."""
    # Not by waiting: whoever is at it may need our own event loop to get on.
    if not _alone.acquire(blocking=False):
        raise AnalyticsError(f"{place} cannot be migrated now: another database is, in the same process; try again")
    try:
        _run(connection, place, target)
    finally:
        _alone.release()


def _run(connection: Connection, place: str, target: str) -> None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    here = _height(known(context.get_current_revision(), place) or "base")
    there = _height(target)
    config = _config()
    config.attributes |= {"connection": connection, "version_table": VERSION_TABLE}
    if there > here:
        command.upgrade(config, target)
    elif there < here:
        command.downgrade(config, target)


def described() -> list[tuple[str, str]]:
    """All revisions and what each is, in order."""
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return [(script.revision, script.doc) for script in reversed([*scripts])]


def _height(target: str) -> int:
    return 0 if target == "base" else REVISIONS.index(HEAD if target == "head" else target) + 1


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "sanderling.stores:migrations")
    return config


@contextmanager
def over_file(db: sqlite3.Connection) -> Iterator[Connection]:
    """A transaction over that connection, which is closed in the end."""
    engine = create_engine("sqlite://", creator=lambda: db, poolclass=NullPool)
    try:
        with _unwrapped(), engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@asynccontextmanager
async def over_server(db: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - asyncpg has no types
    """A transaction over that connection, which is closed in the end."""

    async def connect() -> Any:  # noqa: ANN401 - no types
        return db

    load("greenlet", "PostgreSQL")  # without which the next line would fail
    from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        with _unwrapped():
            async with engine.begin() as connection:
                yield connection
    finally:
        await engine.dispose()


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise what the driver raised, and not what SQLAlchemy makes of it."""
    try:
        yield
    except DBAPIError as error:
        # Around asyncpg there is one more layer.
        driver = error.orig if isinstance(error.orig, sqlite3.Error) else error.orig and error.orig.__cause__
        raise driver or error from error
