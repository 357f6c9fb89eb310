"""Instances in a SQLite file, what the API said among them."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.instance_stats import Key, StatsRow, keys_of, runs_of, settled, unseated
from sanderling.stores.instances import (
    VERSION,
    Counts,
    Fault,
    InstanceRow,
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
from sanderling.stores.sqlite_file import Kind, LogBound, open_file, transaction

Desk = Callable[..., Awaitable[Any]]  # has work done elsewhere: a function, then its arguments

TABLES = (
    """CREATE TABLE instance (
        instance_id INTEGER PRIMARY KEY, api TEXT NOT NULL, activity_hash INTEGER, completed INTEGER, fresh INTEGER,
        flawless INTEGER, player_count INTEGER, date_started REAL, date_completed REAL, duration_seconds INTEGER,
        membership_type INTEGER, score INTEGER, skull_hashes TEXT NOT NULL, crawled REAL NOT NULL)""",
    """CREATE TABLE player (
        membership_id INTEGER PRIMARY KEY, last_seen REAL NOT NULL, membership_type INTEGER NOT NULL,
        icon_path TEXT NOT NULL, display_name TEXT NOT NULL, global_display_name TEXT NOT NULL,
        global_display_name_code TEXT NOT NULL)""",
    """CREATE TABLE instance_player (
        instance_id INTEGER NOT NULL, membership_id INTEGER NOT NULL, finished INTEGER NOT NULL,
        time_played_seconds INTEGER NOT NULL, PRIMARY KEY (instance_id, membership_id)) WITHOUT ROWID""",
    """CREATE TABLE instance_character (
        instance_id INTEGER NOT NULL, membership_id INTEGER NOT NULL, character_id INTEGER NOT NULL,
        class_hash INTEGER NOT NULL, emblem_hash INTEGER NOT NULL, completed INTEGER NOT NULL, score INTEGER NOT NULL,
        kills INTEGER NOT NULL, deaths INTEGER NOT NULL, assists INTEGER NOT NULL, precision_kills INTEGER NOT NULL,
        super_kills INTEGER NOT NULL, grenade_kills INTEGER NOT NULL, melee_kills INTEGER NOT NULL,
        start_seconds INTEGER NOT NULL, time_played_seconds INTEGER NOT NULL,
        PRIMARY KEY (instance_id, membership_id, character_id)) WITHOUT ROWID""",
    """CREATE TABLE instance_character_weapon (
        instance_id INTEGER NOT NULL, membership_id INTEGER NOT NULL, character_id INTEGER NOT NULL,
        weapon_hash INTEGER NOT NULL, kills INTEGER NOT NULL, precision_kills INTEGER NOT NULL,
        PRIMARY KEY (instance_id, membership_id, character_id, weapon_hash)) WITHOUT ROWID""",
    """CREATE TABLE player_stats (
        membership_id INTEGER NOT NULL, activity_hash INTEGER NOT NULL, clears INTEGER NOT NULL,
        fresh_clears INTEGER NOT NULL, sherpas INTEGER NOT NULL, seconds_played INTEGER NOT NULL,
        fastest_seconds INTEGER, fastest_instance INTEGER, first_clear REAL, first_instance INTEGER,
        PRIMARY KEY (membership_id, activity_hash)) WITHOUT ROWID""",
    # Packed with Zstandard.
    "CREATE TABLE raw_instance (instance_id INTEGER PRIMARY KEY, data BLOB NOT NULL, crawled REAL NOT NULL)",
)
INSTANCES = Kind("store of instances", 0x53414E49, VERSION, TABLES)  # "SANI"

CACHE_BYTES, LOG_BYTES = 32 << 20, 32 << 20

INSTANCE = "INSERT INTO instance VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
INSTANCE_PLAYER = "INSERT INTO instance_player VALUES (?, ?, ?, ?)"
CHARACTER = "INSERT INTO instance_character VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
WEAPON = "INSERT INTO instance_character_weapon VALUES (?, ?, ?, ?, ?, ?)"
RAW = "INSERT INTO raw_instance VALUES (?, ?, ?)"
PLAYER = """INSERT INTO player VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET last_seen = excluded.last_seen, membership_type = excluded.membership_type,
        icon_path = excluded.icon_path, display_name = excluded.display_name,
        global_display_name = excluded.global_display_name,
        global_display_name_code = excluded.global_display_name_code
    WHERE (excluded.last_seen, excluded.membership_type, excluded.icon_path, excluded.display_name,
            excluded.global_display_name, excluded.global_display_name_code)
        > (last_seen, membership_type, icon_path, display_name, global_display_name, global_display_name_code)"""
STATS = "INSERT OR REPLACE INTO player_stats VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
STATS_OF = """SELECT player_stats.* FROM json_each(?) CROSS JOIN player_stats
    ON membership_id = json_extract(value, '$[0]') AND activity_hash = json_extract(value, '$[1]')"""
FINISHERS = "SELECT membership_id FROM instance_player WHERE instance_id = ? AND finished"
COUNTS = """SELECT (SELECT count(*) FROM instance), (SELECT count(*) FROM player),
    (SELECT count(*) FROM instance_player), (SELECT count(*) FROM instance_character),
    (SELECT count(*) FROM instance_character_weapon), (SELECT count(*) FROM raw_instance)"""


class SqliteInstances:
    """Made where there is none. Its work is done by `desk`, or in a thread of its own."""

    def __init__(self, path: Path, desk: Desk | None = None) -> None:
        self._path = path
        self._turn = threading.Lock()
        with self._plainly():
            self._db = open_file(path, INSTANCES)
            # A commit is on disk when it returns. The default of WAL would lose the last ones with the power, when
            # nobody has the letters of them any more.
            self._db.execute("PRAGMA synchronous = FULL")
            # Players are all over the file: what is changed often should be read, and copied from the log, seldom.
            self._db.execute(f"PRAGMA cache_size = -{CACHE_BYTES >> 10}")
            self._log = LogBound(self._db, path, LOG_BYTES)
        self._thread = ThreadPoolExecutor(1, "instances")
        self._desk = desk or self._in_thread

    async def _in_thread(self, work: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - of `work`
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn whatever SQLite raises into an InstancesError."""
        try:
            with plainly(self._path):
                yield
        except FolderError as error:
            cause = error.__cause__
            if isinstance(cause, sqlite3.IntegrityError | sqlite3.DataError):
                raise InstancesError(f"{self._path} refuses it: {cause}", Fault.REFUSED) from error
            raise InstancesError(str(error), Fault.DOWN) from error
        except (OverflowError, UnicodeEncodeError) as error:  # of a number or text that SQLite cannot hold
            raise InstancesError(f"{self._path} refuses it: {error}", Fault.REFUSED) from error

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        with self._turn, self._plainly():
            self._log.look()
            yield self._db

    async def keep(self, batch: Sequence[Rows]) -> Kept:
        """Store all of it or nothing, durably; what was stored before is left as it is."""
        kept: Kept = await self._desk(self._keep, batch)
        return kept

    def _keep(self, batch: Sequence[Rows]) -> Kept:
        once = first_of_each(batch)
        # Before the transaction, so that nobody need wait for it.
        raw = packed(once)
        with self._alone() as db, transaction(db):
            new = [rows for rows in once if self._is_new(rows.instance)]
            db.executemany(PLAYER, newest_of_each(new))
            db.executemany(INSTANCE_PLAYER, (row for rows in new for row in rows.taken_part))
            db.executemany(CHARACTER, (row for rows in new for row in rows.characters))
            db.executemany(WEAPON, (row for rows in new for row in rows.weapons))
            db.executemany(RAW, (raw[rows.raw.instance_id] for rows in new if rows.raw))
            self._settle(new)
        return Kept(len(new), len(batch) - len(new))

    def _is_new(self, row: InstanceRow) -> bool:
        """Insert it, unless it is there."""
        *before, skulls, crawled = row
        if self._db.execute(INSTANCE, (*before, _listed(skulls), crawled)).rowcount:
            return True
        ((api,),) = self._db.execute("SELECT api FROM instance WHERE instance_id = ?", (row.instance_id,))
        if api != row.api:
            raise another_api(row.instance_id, row.api, api, self._path)
        return False

    def _settle(self, new: Sequence[Rows]) -> None:
        runs = runs_of(new)
        known = self._stats(keys_of(runs))
        finishers = {
            number: [(member, activity) for (member,) in self._db.execute(FINISHERS, (number,))]
            for number, activity in unseated(runs, known).items()
        }
        known |= self._stats([key for keys in finishers.values() for key in keys if key not in known])
        self._db.executemany(STATS, settled(runs, known, finishers))

    def _stats(self, keys: Sequence[Key]) -> dict[Key, StatsRow]:
        """What is known of these. All in one parameter: to ask for each takes twice as long."""
        rows = self._db.execute(STATS_OF, (_listed(keys),)) if keys else ()
        return {(row[0], row[1]): StatsRow._make(row) for row in rows}

    async def latest(self) -> int | None:
        """The highest id that is stored."""
        (number,) = await self._desk(self._one, "SELECT max(instance_id) FROM instance")
        return number if number is None else int(number)

    async def counts(self) -> Counts:
        """How much there is."""
        return Counts(*await self._desk(self._one, COUNTS))

    async def raw(self, instance_id: int) -> bytes | None:
        """What the API said about it; None if that is not here."""
        row = await self._desk(self._one, "SELECT * FROM raw_instance WHERE instance_id = ?", instance_id)
        return unpacked(RawRow(*row), self._path) if row else None

    def _one(self, query: str, *parameters: object) -> Any:  # noqa: ANN401 - a row, or None
        with self._alone() as db:
            return db.execute(query, parameters).fetchone()

    async def close(self) -> None:
        """Let go of the file."""
        await self._desk(self._db.close)
        self._thread.shutdown()

    def __repr__(self) -> str:
        return f"<SqliteInstances {self._path}>"


def _listed(values: object) -> str:
    return msgspec.json.encode(values).decode()
