"""Instances in PostgreSQL; `postgres_server.py` has how it is named and what its errors mean.

Tricky bits:

- Any number of processes may store at once. All of them lock in one order, tables as in `_keep` and rows by key; and
  statistics, which are read before they are written, are settled by one transaction at a time. So nobody waits in a
  ring, and nobody counts on what another is about to change.
- A whole column travels as one array: a batch is some ten statements, however many rows it has.
- A connection that breaks during a commit leaves open whether that was made. Then the batch is stored again, and finds
  itself.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.stores import postgres_tables as tables
from sanderling.stores.instance_stats import Key, StatsRow, keys_of, runs_of, settled, unseated
from sanderling.stores.instances import (
    EXPECTED,
    VERSION,
    Counts,
    Fault,
    InstancesError,
    Kept,
    RawRow,
    Rows,
    another_api,
    first_of_each,
    newest_of_each,
    packed,
    unpacked,
)
from sanderling.stores.postgres_server import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    Trouble,
    acquired,
    plainly,
    read_url,
    relations,
)
from sanderling.stores.postgres_server import SETTINGS as USUAL

CONNECTIONS = 4
SETTINGS = USUAL | {"lock_timeout": "30s"}
FAULTS = {
    Trouble.REFUSED: Fault.REFUSED,
    Trouble.BUSY: Fault.BUSY,
    Trouble.AWAY: Fault.DOWN,
    Trouble.FAILED: Fault.DOWN,
    Trouble.AMISS: Fault.DOWN,
}

# "SANI", and beside it the schema: two of those do not wait for each other.
ALONE = "SELECT pg_advisory_xact_lock(1396788809, hashtext(current_schema()))"
STATS_OF = """SELECT membership_id, activity_hash, clears, fresh_clears, sherpas, seconds_played, fastest_seconds,
        fastest_instance, extract(epoch FROM first_clear)::float8, first_instance
    FROM player_stats JOIN unnest($1::bigint[], $2::bigint[]) AS given (member, activity)
        ON membership_id = member AND activity_hash = activity"""
FINISHERS = "SELECT instance_id, membership_id FROM instance_player WHERE instance_id = ANY($1::bigint[]) AND finished"
COUNTS = """SELECT (SELECT count(*) FROM instance), (SELECT count(*) FROM player),
    (SELECT count(*) FROM instance_player), (SELECT count(*) FROM instance_character),
    (SELECT count(*) FROM instance_character_weapon), (SELECT count(*) FROM raw_instance)"""


class PostgresInstances:
    """See `open_postgres`."""

    def __init__(self, pool: Any, place: str) -> None:  # noqa: ANN401 - asyncpg has no types
        self._pool = pool
        self._place = place

    async def keep(self, batch: Sequence[Rows]) -> Kept:
        """Store all of it or nothing, durably; what was stored before is left as it is."""
        once = first_of_each(batch)
        if not once:
            return Kept(0, 0)
        raw = await asyncio.to_thread(packed, once)
        # Each statement must see what others have committed by then, whatever the server's default.
        with _plainly(self._place):
            async with acquired(self._pool) as db, db.transaction(isolation="read_committed"):
                new = await self._keep(db, once, raw)
        return Kept(new, len(batch) - new)

    async def _keep(self, db: Any, once: Sequence[Rows], raw: dict[int, RawRow]) -> int:  # noqa: ANN401 - no types
        rows = [each.instance._replace(skull_hashes=tables.array(each.instance.skull_hashes)) for each in once]  # type: ignore[arg-type]  # as it travels
        found = await db.fetch(
            f"{tables.INSTANCE.insert} ON CONFLICT DO NOTHING RETURNING instance_id", *_columns(rows)
        )
        ids = {number for (number,) in found}
        await self._check_copies(db, [each for each in once if each.instance.instance_id not in ids])
        new = [each for each in once if each.instance.instance_id in ids]
        for statement, table_rows in (
            (tables.PLAYER.replace(newer=True), newest_of_each(new)),
            (tables.INSTANCE_PLAYER.insert, chain.from_iterable(each.taken_part for each in new)),
            (tables.CHARACTER.insert, chain.from_iterable(each.characters for each in new)),
            (tables.WEAPON.insert, chain.from_iterable(each.weapons for each in new)),
            (tables.RAW.insert, [row for number, row in raw.items() if number in ids]),
        ):
            await _fill(db, statement, table_rows)
        await _settle(db, new)
        return len(new)

    async def _check_copies(self, db: Any, copies: Sequence[Rows]) -> None:  # noqa: ANN401 - no types
        """Raise InstancesError if one of them is none, but of another API."""
        if copies:
            apis = {each.instance.instance_id: each.instance.api for each in copies}
            for number, api in await db.fetch(
                "SELECT instance_id, api FROM instance WHERE instance_id = ANY($1)", [*apis]
            ):
                if api != apis[number]:
                    raise another_api(number, apis[number], api, self._place)

    async def latest(self) -> int | None:
        """The highest id that is stored."""
        with _plainly(self._place):
            number: int | None = await self._pool.fetchval("SELECT max(instance_id) FROM instance")
        return number

    async def counts(self) -> Counts:
        """How much there is."""
        with _plainly(self._place):
            return Counts(*await self._pool.fetchrow(COUNTS))

    async def raw(self, instance_id: int) -> bytes | None:
        """What the API said about it; None if that is not here."""
        with _plainly(self._place):
            data = await self._pool.fetchval("SELECT data FROM raw_instance WHERE instance_id = $1", instance_id)
        return None if data is None else unpacked(RawRow(instance_id, data, 0), self._place)

    async def close(self) -> None:
        """Let go of the connections; those that do not part in time are cut."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._pool.close()
        except (OSError, asyncpg.InterfaceError):
            self._pool.terminate()

    def __repr__(self) -> str:
        return f"<PostgresInstances {self._place}>"


async def _settle(db: Any, new: Sequence[Rows]) -> None:  # noqa: ANN401 - no types
    await db.execute(ALONE)
    runs = runs_of(new)
    known = await _stats(db, keys_of(runs))
    activities = unseated(runs, known)
    finishers: dict[int, list[Key]] = {number: [] for number in activities}
    if activities:
        for number, member in await db.fetch(FINISHERS, [*activities]):
            finishers[number].append((member, activities[number]))
        known |= await _stats(db, [key for keys in finishers.values() for key in keys if key not in known])
    await _fill(db, tables.STATS.replace(), settled(runs, known, finishers))


async def _stats(db: Any, keys: Sequence[Key]) -> dict[Key, StatsRow]:  # noqa: ANN401 - no types
    rows = await db.fetch(STATS_OF, *zip(*keys, strict=True)) if keys else []
    return {(row[0], row[1]): StatsRow(*row) for row in rows}


async def _fill(db: Any, statement: str, rows: Iterable[tuple[object, ...]]) -> None:  # noqa: ANN401 - no types
    if columns := _columns(rows):
        await db.execute(statement, *columns)


def _columns(rows: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return list(zip(*rows, strict=True))


async def open_postgres(url: str) -> PostgresInstances:
    """The store at a URL like postgresql://user@host:5432/database?schema=name, whose tables are there or were made.

    Raises InstancesError.
    """
    at = read_url(url, EXPECTED, _raised)
    with _plainly(at.place):
        pool = asyncpg.create_pool(
            at.dsn,
            min_size=0,
            max_size=CONNECTIONS,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS,
            server_settings=SETTINGS | {"search_path": at.schema},
        )
        await pool
        try:
            async with acquired(pool) as db, db.transaction(isolation="read_committed"):
                await _prepare(db, at.schema, at.place)
        except BaseException:
            pool.terminate()
            raise
    return PostgresInstances(pool, at.place)


async def _prepare(db: Any, schema: str, place: str) -> None:  # noqa: ANN401 - no types
    """Make the tables if there are none. Nothing is changed where they are, or where others are."""
    if await _is_ours(db, schema, place):
        return
    await db.execute("SELECT pg_advisory_xact_lock(1396788809, hashtext($1))", schema)
    if await _is_ours(db, schema, place):
        return  # another was quicker
    if taken := await relations(db, schema) & {table.name for table in tables.TABLES}:
        message = f"{place} has a table {min(taken)} that is not ours; choose another with ?schema="
        raise InstancesError(message, Fault.DOWN)
    if not await db.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", schema):
        await db.execute(f"CREATE SCHEMA {schema}")
    for statement in tables.CREATE:
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


def _plainly(place: str) -> AbstractContextManager[None]:
    """Turn whatever asyncpg raises into an InstancesError."""
    return plainly(place, _raised)


def _raised(message: str, trouble: Trouble) -> InstancesError:
    return InstancesError(message, FAULTS[trouble])
