"""Instances in PostgreSQL: its tables are made, or known again."""

from functools import partial
from typing import Any

from sanderling.stores.instances import EXPECTED, VERSION, InstancesError, InstancesFault, RawRow, RecordRow, unpacked
from sanderling.stores.instances_store import PLAIN, SETTLING, InstanceStore, raised
from sanderling.stores.instances_tables import RECORD, TABLES
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


PAGE = 500  # records of one statement
# From format 1: records of APIs without players were among the instances.
TO_MOVE = f"""SELECT instance.instance_id, api, extract(epoch FROM date_completed)::float8,
        extract(epoch FROM instance.crawled)::float8, data
    FROM instance LEFT JOIN raw_instance ON raw_instance.instance_id = instance.instance_id
    WHERE {PLAIN} AND instance.instance_id > $1 ORDER BY instance.instance_id LIMIT {PAGE}"""  # noqa: S608 - ours
MOVED = (
    "DELETE FROM raw_instance USING record WHERE instance_id = id",
    "DELETE FROM instance USING record WHERE instance_id = id",
    f"UPDATE instance_store SET version = {VERSION}",  # noqa: S608 - ours
)


async def open_postgres(url: str) -> InstanceStore:
    """The store at a URL like postgresql://user@host:5432/database?schema=name, whose tables are there or were made.

    Raises InstancesError.
    """
    at = read_url(url, EXPECTED, raised)
    pool = pool_of(at, CONNECTIONS, SETTINGS)
    await open_pools(at, {"read": pool}, partial(_prepare, schema=at.schema, place=at.place), raised)
    # Whoever was in the way, the batch comes again by itself.
    return InstanceStore(PostgresDatabase(at, {"read": pool, "write": pool}, raised, tries=1))


async def _prepare(db: Any, schema: str, place: str) -> None:  # noqa: ANN401 - asyncpg has no types
    """Make the tables if there are none, or bring them to this format. Nothing is changed where others are."""
    async with begun(db):
        if await _version(db, schema, place) == VERSION:
            return
        await db.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", SETTLING, schema)
        version = await _version(db, schema, place)
        if version is not None:
            if version < VERSION:  # and nobody was quicker
                await _upgrade(db, place)
            return
        if taken := await relations(db, schema) & {table.name for table in TABLES}:
            message = f"{place} has a table {min(taken)} that is not ours; choose another with ?schema="
            raise InstancesError(message, InstancesFault.DOWN)
        await make_schema(db, schema)
        for statement in CREATE:
            await db.execute(statement)
        await db.execute("INSERT INTO instance_store VALUES ($1)", VERSION)


async def _upgrade(db: Any, place: str) -> None:  # noqa: ANN401 - no types
    await db.execute("LOCK TABLE instance IN SHARE ROW EXCLUSIVE MODE")  # until all that was read is moved
    await db.execute(RECORD.postgres)
    last, insert = -1, RECORD.insert()
    while found := await db.fetch(TO_MOVE, last):
        rows = [RecordRow(row[0], row[1], row[2], row[3], _text(row[0], row[4], place)) for row in found]
        await db.execute(insert.postgres, *insert.parameters(rows))
        last = found[-1][0]
    for statement in MOVED:
        await db.execute(statement)


def _text(number: int, data: bytes | None, place: str) -> str | None:
    return None if data is None else unpacked(RawRow(number, data, 0), place).decode()


async def _version(db: Any, schema: str, place: str) -> int | None:  # noqa: ANN401 - no types
    if "instance_store" not in await relations(db, schema):
        return None
    version = await db.fetchval("SELECT max(version) FROM instance_store")
    if version is None or version > VERSION:
        message = f"{place} is of format {version}, this version reads {VERSION}; use a newer version"
        raise InstancesError(message, InstancesFault.DOWN)
    return int(version)
