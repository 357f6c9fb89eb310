"""Instances in PostgreSQL: its tables are made, or known again."""

from functools import partial
from typing import Any

from sanderling.stores.instances import EXPECTED, VERSION, Fault, InstancesError
from sanderling.stores.instances_store import SETTLING, SqlInstances, raised
from sanderling.stores.instances_tables import TABLES
from sanderling.stores.postgres_database import PostgresDatabase, begun, open_pools, pool_of
from sanderling.stores.postgres_server import make_schema, read_url, relations

CONNECTIONS = 4
SETTINGS = {"lock_timeout": "30s"}
CREATE = (
    *(table.postgres for table in TABLES),
    # It is packed already.
    "ALTER TABLE raw_instance ALTER COLUMN data SET STORAGE EXTERNAL",
    "CREATE TABLE instance_store (version integer NOT NULL)",
)


async def open_postgres(url: str) -> SqlInstances:
    """The store at a URL like postgresql://user@host:5432/database?schema=name, whose tables are there or were made.

    Raises InstancesError.
    """
    at = read_url(url, EXPECTED, raised)
    pool = pool_of(at, CONNECTIONS, SETTINGS)
    await open_pools(at, {"read": pool}, partial(_prepare, schema=at.schema, place=at.place), raised)
    # Whoever was in the way, the batch comes again by itself.
    return SqlInstances(PostgresDatabase(at, {"read": pool, "write": pool}, raised, tries=1))


async def _prepare(db: Any, schema: str, place: str) -> None:  # noqa: ANN401 - asyncpg has no types
    """Make the tables if there are none. Nothing is changed where they are, or where others are."""
    async with begun(db):
        if await _is_ours(db, schema, place):
            return
        await db.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", SETTLING, schema)
        if await _is_ours(db, schema, place):
            return  # another was quicker
        if taken := await relations(db, schema) & {table.name for table in TABLES}:
            message = f"{place} has a table {min(taken)} that is not ours; choose another with ?schema="
            raise InstancesError(message, Fault.DOWN)
        await make_schema(db, schema)
        for statement in CREATE:
            await db.execute(statement)
        await db.execute("INSERT INTO instance_store VALUES ($1)", VERSION)


async def _is_ours(db: Any, schema: str, place: str) -> bool:  # noqa: ANN401 - no types
    if "instance_store" not in await relations(db, schema):
        return False
    version = await db.fetchval("SELECT max(version) FROM instance_store")
    if version is None or version > VERSION:
        message = f"{place} is of format {version}, this version reads {VERSION}; use a newer version"
        raise InstancesError(message, Fault.DOWN)
    return True
