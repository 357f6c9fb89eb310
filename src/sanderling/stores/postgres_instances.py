"""Instances in PostgreSQL, in the schema that `?schema=` of the URL names, or in `public`.

The password may also come from PGPASSWORD or a password file, as for other programs; it is never shown.

Tricky bits:

- Any number of processes may store at once. All of them lock in one order, tables as in `_keep` and rows by key; and
  statistics, which are read before they are written, are settled by one transaction at a time. So nobody waits in a
  ring, and nobody counts on what another is about to change.
- A whole column travels as one array: a batch is some ten statements, however many rows it has.
- A connection that breaks during a commit leaves open whether that was made. Then the batch is stored again, and finds
  itself.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

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

CONNECTIONS = 4
# A batch takes some 50 ms; a server that is busy with something else may take seconds.
CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0
SETTINGS = {
    "application_name": "sanderling",
    # One of us that was stopped in the middle must not hold up the others for ever.
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",
}
# SQLSTATE of data that is malformed, breaks a constraint, or is too large; and of those who got in each other's way.
DATA = ("22", "23", "54")
CROSSED = ("40001", "40P01", "55P03", "57014")
SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")

# "SANI", and beside it the schema: two of those do not wait for each other.
ALONE = "SELECT pg_advisory_xact_lock(1396788809, hashtext(current_schema()))"
RELATIONS = "SELECT relname FROM pg_class JOIN pg_namespace AS its ON relnamespace = its.oid WHERE nspname = $1"
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
            async with self._pool.acquire() as db, db.transaction(isolation="read_committed"):
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

    async def latest(self, below: int = 10**11) -> int | None:
        """The highest id that is stored, among those `below`."""
        with _plainly(self._place):
            number: int | None = await self._pool.fetchval(
                "SELECT max(instance_id) FROM instance WHERE instance_id < $1", below
            )
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
    dsn, schema, place = _read(url)
    with _plainly(place):
        pool = asyncpg.create_pool(
            dsn,
            min_size=0,
            max_size=CONNECTIONS,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS,
            server_settings=SETTINGS | {"search_path": schema},
        )
        await pool
        try:
            async with pool.acquire() as db, db.transaction(isolation="read_committed"):
                await _prepare(db, schema, place)
        except BaseException:
            pool.terminate()
            raise
    return PostgresInstances(pool, place)


def _read(url: str) -> tuple[str, str, str]:
    """The URL without our option, the schema, and where that is without user and password."""
    # The URL may hold a password, in the wrong place too: no message quotes it, or what is said of it.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InstancesError(f"the URL of the PostgreSQL is none; {EXPECTED}", Fault.DOWN) from None
    if parts.scheme not in ("postgresql", "postgres") or "@" in parts.path or parts.fragment:
        raise InstancesError(f"the URL of the PostgreSQL is none; {EXPECTED}, special characters as %2F", Fault.DOWN)
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", "public")
    if not SCHEMA.fullmatch(schema):
        raise InstancesError(f"{schema[:70]!r} is no schema; expected a name of a-z, 0-9 and _", Fault.DOWN)
    dsn = parts._replace(query=urlencode([option for option in options if option[0] != "schema"])).geturl()
    name = parts.hostname or ""
    host = f"[{name}]" if ":" in name else name
    return dsn, schema, f"postgresql://{host}{f':{port}' if port else ''}{parts.path}, schema {schema}"


async def _prepare(db: Any, schema: str, place: str) -> None:  # noqa: ANN401 - no types
    """Make the tables if there are none. Nothing is changed where they are, or where others are."""
    if await _is_ours(db, schema, place):
        return
    await db.execute("SELECT pg_advisory_xact_lock(1396788809, hashtext($1))", schema)
    if await _is_ours(db, schema, place):
        return  # another was quicker
    found = await db.fetch(RELATIONS, schema)
    if taken := {name for (name,) in found} & {table.name for table in tables.TABLES}:
        message = f"{place} has a table {min(taken)} that is not ours; choose another with ?schema="
        raise InstancesError(message, Fault.DOWN)
    if not await db.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", schema):
        await db.execute(f"CREATE SCHEMA {schema}")
    for statement in tables.CREATE:
        await db.execute(statement)
    await db.execute("INSERT INTO instance_store VALUES ($1)", VERSION)


async def _is_ours(db: Any, schema: str, place: str) -> bool:  # noqa: ANN401 - no types
    # Not `to_regclass`: what it did not find once, it does not look for again within a transaction.
    if "instance_store" not in {name for (name,) in await db.fetch(RELATIONS, schema)}:
        return False
    version = await db.fetchval("SELECT max(version) FROM instance_store")
    if version is None or version > VERSION:
        message = f"{place} is of format {version}, this version reads {VERSION}; use a newer version"
        raise InstancesError(message, Fault.DOWN)
    return True


@contextmanager
def _plainly(place: str) -> Iterator[None]:
    """Turn whatever asyncpg raises into an InstancesError."""
    try:
        yield
    except asyncpg.PostgresError as error:
        state = error.sqlstate or ""
        if state.startswith(DATA):
            raise InstancesError(f"{place} refuses it: {error}", Fault.REFUSED) from error
        if state in CROSSED:
            raise InstancesError(f"{place} is busy: {error}", Fault.BUSY) from error
        raise InstancesError(f"{place} cannot be used now: {error}", Fault.DOWN) from error
    except (OSError, asyncpg.InterfaceError) as error:  # the first also when there was no answer in time
        # A transaction whose connection broke says that it cannot be ended; why it broke was said before.
        first = error.__context__ if isinstance(error.__context__, asyncpg.PostgresError) else error
        why = str(first) or "no answer in time"
        raise InstancesError(f"{place} cannot be reached: {why}", Fault.DOWN) from error
