"""Instances in a SQL database, what the API said among them.

Tricky bits:

- Any number of processes may store at once. All of them lock in one order, tables as in `_keep` and rows by key; and
  statistics, which are read before they are written, are settled by one transaction at a time. So nobody waits in a
  ring, and nobody counts on what another is about to change.
- A connection that breaks during a commit leaves open whether that was made. Then the batch is stored again, and finds
  itself.
"""

import sqlite3
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from sanderling.stores import instances_tables as tables
from sanderling.stores.database import Database, DatabaseTrouble, Dialect, Row, Transaction
from sanderling.stores.instance_stats import Key, StatsRow, keys_of, runs_of, settled, unseated
from sanderling.stores.instances import (
    VERSION,
    InsertResult,
    InstanceCounts,
    InstanceRows,
    InstancesError,
    InstancesFault,
    RawRow,
    RecordRow,
    another_api,
    first_of_each,
    newest_of_each,
    packed,
    unpacked,
)
from sanderling.stores.sqlite_database import SqliteDatabase, plainly
from sanderling.stores.sqlite_file import FileKind, open_file, transaction, version_of

INSTANCES = FileKind(
    "store of instances",
    0x53414E49,  # "SANI"
    VERSION,
    (*(table.sqlite for table in tables.TABLES if table is not tables.RECORD), *tables.ARRIVALS),
)
# Players are all over the file: what is changed often should be read, and copied from the log, seldom.
MEMORY_BYTES = 32 << 20
SETTLING = 1396788809  # "SANI": whoever has it settles statistics

NEW = tables.INSTANCE.insert("ON CONFLICT DO NOTHING RETURNING instance_id")
PLAYERS = tables.PLAYER.replace(newer=True)
TAKEN_PART, CHARACTERS, WEAPONS, RAW = (
    table.insert() for table in (tables.INSTANCE_PLAYER, tables.CHARACTER, tables.WEAPON, tables.RAW)
)
STATS = tables.STATS.replace()
NEW_RECORDS = tables.RECORD.insert("ON CONFLICT DO NOTHING RETURNING id")
COUNTS = """SELECT (SELECT count(*) FROM instance), (SELECT count(*) FROM player),
    (SELECT count(*) FROM instance_player), (SELECT count(*) FROM instance_character),
    (SELECT count(*) FROM instance_character_weapon), (SELECT count(*) FROM raw_instance),
    (SELECT count(*) FROM record)"""
# From format 1: records of APIs without players, which were among the instances.
PLAIN = """player_count IS NULL AND activity_hash IS NULL
    AND NOT EXISTS (SELECT 1 FROM instance_player WHERE instance_player.instance_id = instance.instance_id)"""
UPGRADE = (
    *tables.ARRIVALS,
    f"""INSERT INTO record (id, api, time, crawled, record)
        SELECT instance.instance_id, api, date_completed, instance.crawled, unpacked(instance.instance_id, data)
        FROM instance LEFT JOIN raw_instance ON raw_instance.instance_id = instance.instance_id
        WHERE {PLAIN} ORDER BY instance.crawled, instance.instance_id""",  # noqa: S608 - ours
    "DELETE FROM raw_instance WHERE instance_id IN (SELECT id FROM record)",
    "DELETE FROM instance WHERE instance_id IN (SELECT id FROM record)",
    "INSERT INTO arrival (instance_id) SELECT instance_id FROM instance ORDER BY crawled, instance_id",
    f"PRAGMA user_version = {VERSION}",
)


def stats_of(dialect: Dialect) -> str:
    """What is known of pairs of a member and an activity."""
    columns = [dialect.seconds.format(name) if name == "first_clear" else name for name in tables.STATS.columns]
    return f"""SELECT {", ".join(columns)} FROM {dialect.pairs} CROSS JOIN player_stats
        WHERE membership_id = one AND activity_hash = other"""  # noqa: S608 - ours


class InstanceStore:
    """The store of a database that has its tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, batch: Sequence[InstanceRows]) -> InsertResult:
        """Store all of it or nothing, durably; what was stored before is left as it is."""
        once = first_of_each(batch)
        if not once:
            return InsertResult(0, 0)
        raw: dict[int, RawRow] = {}
        plain = [RecordRow.of(rows) for rows in once if rows.plain]
        once = [rows for rows in once if not rows.plain]

        async def work(db: Transaction) -> int:
            new = await self._keep_records(db, plain) if plain else 0
            return new + (await self._keep(db, once, raw) if once else 0)

        new = await self._database.write(work, first=lambda: raw.update(packed(once)))
        return InsertResult(new, len(batch) - new)

    async def _keep_records(self, db: Transaction, rows: Sequence[RecordRow]) -> int:
        new = {number for (number,) in await db.insert(NEW_RECORDS, rows)}
        apis = {row.id: row.api for row in rows if row.id not in new}
        query = f"SELECT id, api FROM record WHERE {db.dialect.among.format('id')}"  # noqa: S608 - ours
        for number, api in await db.fetch(query, [*apis]) if apis else []:
            if api != apis[number]:
                raise another_api(number, apis[number], api, self._database.place)
        return len(new)

    async def _keep(self, db: Transaction, once: Sequence[InstanceRows], raw: dict[int, RawRow]) -> int:
        ids = {number for (number,) in await db.insert(NEW, [each.instance for each in once])}
        await self._check_copies(db, [each for each in once if each.instance.instance_id not in ids])
        new = [each for each in once if each.instance.instance_id in ids]
        await db.insert(PLAYERS, newest_of_each(new))
        await db.insert(TAKEN_PART, chain.from_iterable(each.taken_part for each in new))
        await db.insert(CHARACTERS, chain.from_iterable(each.characters for each in new))
        await db.insert(WEAPONS, chain.from_iterable(each.weapons for each in new))
        await db.insert(RAW, [row for number, row in raw.items() if number in ids])
        await _settle(db, new)
        return len(new)

    async def _check_copies(self, db: Transaction, copies: Sequence[InstanceRows]) -> None:
        """Raise InstancesError if one of them is none, but of another API."""
        apis = {each.instance.instance_id: each.instance.api for each in copies}
        for number, api in await _where(db, "SELECT instance_id, api FROM instance WHERE {}", [*apis]):
            if api != apis[number]:
                raise another_api(number, apis[number], api, self._database.place)

    async def latest(self) -> int | None:
        """The highest id that is stored."""
        found = await self._one("SELECT (SELECT max(instance_id) FROM instance), (SELECT max(id) FROM record)")
        return max((int(number) for number in found[0] if number is not None), default=None)

    async def counts(self) -> InstanceCounts:
        """How much there is."""
        return InstanceCounts(*(await self._one(COUNTS))[0])

    async def raw(self, instance_id: int) -> bytes | None:
        """What the API said about it; None if that is not here."""
        found = await self._one("SELECT data FROM raw_instance WHERE instance_id = ?", instance_id)
        if found:
            return unpacked(RawRow(instance_id, found[0][0], 0), self._database.place)
        record = await self._one("SELECT record FROM record WHERE id = ?", instance_id)
        return record[0][0].encode() if record and record[0][0] is not None else None

    async def _one(self, query: str, *values: object) -> list[Row]:
        return await self._database.read(lambda db: db.fetch(query, *values))

    async def close(self) -> None:
        """Let go of it."""
        await self._database.close()

    def __repr__(self) -> str:
        return f"<InstanceStore {self._database.place}>"


async def _where(db: Transaction, query: str, ids: list[int]) -> list[Row]:
    return await db.fetch(query.format(db.dialect.among.format("instance_id")), ids) if ids else []


async def _settle(db: Transaction, new: Sequence[InstanceRows]) -> None:
    await db.lock(SETTLING)
    runs = runs_of(new)
    known = await _stats(db, keys_of(runs))
    activities = unseated(runs, known)
    finishers: dict[int, list[Key]] = {number: [] for number in activities}
    finished = "SELECT instance_id, membership_id FROM instance_player WHERE {} AND finished"
    for number, member in await _where(db, finished, [*activities]):
        finishers[number].append((member, activities[number]))
    known |= await _stats(db, [key for keys in finishers.values() for key in keys if key not in known])
    await db.insert(STATS, settled(runs, known, finishers))


async def _stats(db: Transaction, keys: Sequence[Key]) -> dict[Key, StatsRow]:
    rows = await db.fetch(stats_of(db.dialect), *db.dialect.given_pairs(keys)) if keys else []
    return {(row[0], row[1]): StatsRow(*row) for row in rows}


FAULTS = {DatabaseTrouble.REFUSED: InstancesFault.REFUSED, DatabaseTrouble.BUSY: InstancesFault.BUSY}


def raised(message: str, trouble: DatabaseTrouble) -> InstancesError:
    """The error of the port."""
    return InstancesError(message, FAULTS.get(trouble, InstancesFault.DOWN))


def open_sqlite_instances(path: Path) -> InstanceStore:
    """The store in that file, made where there is none. Raises InstancesError."""
    with plainly(path, raised):
        db = open_file(path, INSTANCES)
        try:
            _upgrade(db, path)
        except BaseException:
            db.close()
            raise
    return InstanceStore(SqliteDatabase(path, db, None, raised, memory=MEMORY_BYTES))


def _upgrade(db: sqlite3.Connection, path: Path) -> None:
    """Bring a file of format 1 to this one, all of it or nothing."""
    if version_of(db) >= VERSION:
        return

    def text(number: int, data: bytes | None) -> str | None:
        return None if data is None else unpacked(RawRow(number, data, 0), path).decode()

    db.create_function("unpacked", 2, text, deterministic=True)
    with transaction(db):
        if version_of(db) < VERSION:  # nobody was quicker
            for statement in UPGRADE:
                db.execute(statement)
