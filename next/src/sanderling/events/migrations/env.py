"""Alembic's environment: for `sanderling events migrate`, and for operators' own `alembic upgrade head`.

Its version table is its own, so that it stands beside the revisions of whatever else is in the database.
"""

import asyncio
from typing import Any

from alembic import context
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from sanderling.events.tables import VERSION_TABLE

URL = context.config.get_main_option("sqlalchemy.url") or ""


def migrate(connection: Any) -> None:  # noqa: ANN401 - SQLAlchemy's
    """Carry the revisions out, in one transaction."""
    context.configure(connection=connection, version_table=VERSION_TABLE)
    with context.begin_transaction():
        context.run_migrations()


async def migrate_by_asyncpg() -> None:
    """With the driver that Sanderling has."""
    engine = create_async_engine(URL)
    async with engine.connect() as connection:
        await connection.run_sync(migrate)
        await connection.commit()
    await engine.dispose()


if context.is_offline_mode():
    raise SystemExit("what is there decides what is done, so there is no SQL to print; name a database")
if "+asyncpg" in URL:
    asyncio.run(migrate_by_asyncpg())
else:
    with create_engine(URL).begin() as opened:
        migrate(opened)
