"""What SQLite does in its own way with the targets of `polling`: what is due, lists, edits, what is written back.

Rows are read as far as they go: SQLite holds whatever somebody writes by hand, and what an admin cannot have meant is
as if it were not set.

A list is in the order of due times. There may be a million targets, so there are two roads to a page of it: through the
index of due times, passing over what is not meant, or through another index to all that are meant, if these are few.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

import sqlite3
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import msgspec
from msgspec.structs import replace

from sanderling.stores.database import Row, SqlCondition, Transaction, encoded
from sanderling.stores.polling import (
    LONGEST_PAUSE,
    Edits,
    KnownTarget,
    PollingTarget,
    Query,
    StoredTargetCounts,
    TargetRun,
    WantedTarget,
)
from sanderling.stores.polling_documents import DocumentStatements, insert_changes
from sanderling.stores.polling_lease import PollingDatabase
from sanderling.stores.polling_rows import LARGEST, LONGEST_SECONDS, MOST_EDITS, is_text, legible
from sanderling.stores.polling_store import COLUMNS, Statements, as_found
from sanderling.stores.sqlite_database import connection_of
from sanderling.stores.sqlite_polling_tables import INDEX, INTERVAL, UNWANTED, WANTED, WRITING, quoted

Raw = Sequence[Any]

NAMES = PollingTarget.__struct_fields__
KNOWN = ("id", *WantedTarget._fields, "gone")
_ONLY = msgspec.json.Decoder(tuple[str, ...])

# What each column may hold, and what it is read as if it holds something else.
_TEXT, _WHOLE, _NUMBER, _MAYBE, _BYTES = (str,), (int,), (float,), (float, type(None)), (bytes,)
_HOLDS: dict[str, tuple[tuple[type, ...], object]] = {
    **dict.fromkeys(("kind", "source_id", "event", "status", "etag", "modified"), (_TEXT, "")),
    **dict.fromkeys(("id", "priority", "runs", "missed", "failures"), (_WHOLE, 0)),
    **dict.fromkeys(("seconds", "next_due", "polls", "hits"), (_NUMBER, 0.0)),
    **dict.fromkeys(("set_seconds", "promote", "until", "asked", "fetched", "changed"), (_MAYBE, None)),
    "only": ((str, type(None)), None),
    "gone": (_MAYBE, 0.0),  # whatever it holds, it is not None
    "enabled": (_WHOLE, 1),
    "set_priority": ((int, type(None)), None),
    "digest": (_BYTES, b""),
}


class RowReader:
    """Reads rows of these columns as far as they go."""

    def __init__(self, names: Sequence[str]) -> None:
        self._holds = [_HOLDS[name] for name in names]
        self._good: set[tuple[type, ...]] = set()  # types that rows had, and that are as they should be

    def __call__(self, row: Raw) -> Raw:
        """The row, with something legible in every place."""
        types = tuple(map(type, row))
        if types in self._good:
            return row
        read = tuple(self._legible(value, *holds) for value, holds in zip(row, self._holds, strict=True))
        if tuple(map(type, read)) == types:
            self._good.add(types)
        return read

    def _legible(self, value: object, types: tuple[type, ...], otherwise: object) -> object:
        if isinstance(value, bytes) and str in types:
            return value.decode(errors="replace")
        return value if isinstance(value, types) else otherwise


_read_target, _read_known = RowReader(NAMES), RowReader(KNOWN)


def target(row: Raw) -> PollingTarget:
    """A target, from its columns."""
    r = _read_target(row)
    # Each by its place: this is what takes the time when thousands are due.
    return PollingTarget(
        id=r[0],
        kind=r[1],
        source_id=r[2],
        event=r[3],
        only=None if r[4] is None else _only(r[4]),
        seconds=r[5] if 0 <= r[5] < LONGEST_SECONDS else 0.0,
        priority=r[6],
        gone=r[7],
        enabled=r[8] != 0,
        set_seconds=r[9] if r[9] is None or 0 < r[9] < LONGEST_SECONDS else None,
        set_priority=r[10],
        promote=r[11] if r[11] is None or 0 <= r[11] < LONGEST_SECONDS else None,
        next_due=r[12],
        until=r[13],
        runs=r[14],
        missed=r[15],
        failures=r[16],
        asked=r[17],
        fetched=r[18],
        changed=r[19],
        status=r[20],
        etag=r[21],
        modified=r[22],
        digest=r[23],
        polls=r[24],
        hits=r[25],
    )


def _only(text: str) -> tuple[str, ...] | None:
    try:
        return _ONLY.decode(text)
    except msgspec.MsgspecError:
        return None


# So many are put in order in some 10 ms. Of more, a page is found soon enough on the other road.
FEW = 20_000
LONG_AGO = (-inf, 0)
A_NUMBER = "<= 9e999"  # to SQLite a text is more than any number
# SQLite finds these in an index of a million without looking at each.
ALL_KINDS = """(WITH RECURSIVE every (kind) AS (
    SELECT min(kind) FROM polling_targets
    UNION ALL SELECT (SELECT min(kind) FROM polling_targets WHERE kind > every.kind) FROM every WHERE kind IS NOT NULL)
    SELECT kind FROM every WHERE kind IS NOT NULL)"""

_NEWEST = "SELECT value FROM polling_meta WHERE key = 'seq'"
_OTHERS = """event = ?3 AND NOT (kind = ?1 AND source_id = ?2)
    AND (etag != '' OR modified != '' OR digest != x'')"""
DOCUMENTS = DocumentStatements(
    at_once=False,
    newest=_NEWEST,
    by_us=(f"INSERT INTO polling_meta VALUES ('{WRITING}', 1)", f"DELETE FROM polling_meta WHERE key = '{WRITING}'"),
    make_index=INDEX,
    changes=insert_changes("table_name", "row"),
    number="UPDATE polling_meta SET value = ? WHERE key = 'seq'",
    page="SELECT * FROM polling_changes WHERE seq > ? ORDER BY seq LIMIT ?",
    remember="""UPDATE polling_targets SET etag = ?3, modified = ?4, digest = ?5, changed = coalesce(?6, changed)
        WHERE kind = ?1 AND source_id = ?2
        AND (?6 IS NOT NULL OR NOT (etag IS ?3 AND modified IS ?4 AND digest IS ?5))""",
    read_again=(
        # Whoever polls knows digests by heart, so this is an edit.
        f"""INSERT INTO polling_edits (target) SELECT id FROM polling_targets WHERE {_OTHERS}
            AND id NOT IN (SELECT target FROM polling_edits)""",
        f"UPDATE polling_targets SET etag = '', modified = '', digest = x'' WHERE {_OTHERS}",
    ),
    span="SELECT (SELECT min(seq) FROM polling_changes), value FROM polling_meta WHERE key = 'seq'",
    trim=f"DELETE FROM polling_changes WHERE seq <= ({_NEWEST}) - ?",
)
SAID = Statements(
    enabled="enabled IS NOT 0",
    paused="enabled IS 0",
    any_kind=f"kind IN {ALL_KINDS}",
    promote=f"UPDATE polling_targets SET promote = ? WHERE {WANTED} AND {{}}",
    settings="SELECT key, value FROM polling_settings WHERE typeof(key) = 'text' AND typeof(value) = 'text'",
    differs="{0} IS NOT {1}",
    no_bytes="x''",
    clamp=f"""UPDATE polling_targets SET next_due = ?1
        WHERE (next_due > ?1 + {LONGEST_PAUSE} AND next_due > ?1 + {INTERVAL}) OR next_due = 0""",
    shift=("UPDATE polling_targets SET next_due = next_due + ?1, until = until + ?1",),
    lock="",
    documents=DOCUMENTS,
)

DUE, IDLE = f"polling_targets_due WHERE {WANTED}", f"polling_targets_idle WHERE {UNWANTED}"  # indexes, and for whom
AT_THE_SAME_TIME = (
    f"SELECT {COLUMNS} FROM polling_targets INDEXED BY {{}} AND next_due = ? AND id > ? ORDER BY id LIMIT ?"
)
LATER = f"""SELECT {COLUMNS} FROM polling_targets INDEXED BY {{}} AND next_due > ? AND next_due <= ?
    ORDER BY next_due, id LIMIT ?"""


_SET = ", ".join(f"{name} = ?{place}" for place, name in enumerate(TargetRun._fields, 1) if name != "id")
WRITE = f"UPDATE polling_targets SET {_SET} WHERE id = ?1"
_AS_FOUND = as_found(SAID, ":{0}", ":wall").replace(':"only"', ":only")
UPDATE = f"UPDATE polling_targets AS its SET {_AS_FOUND} WHERE id = :id"
COUNT = f"""SELECT
    (SELECT count(*) FROM polling_targets WHERE {WANTED}),
    (SELECT count(*) FROM polling_targets WHERE {UNWANTED} AND gone IS NULL),
    (SELECT count(*) FROM polling_targets WHERE {UNWANTED} AND gone IS NULL AND enabled IS 0),
    (SELECT count(*) FROM polling_targets WHERE {WANTED} AND next_due <= ?1),
    (SELECT count(*) FROM polling_targets WHERE {WANTED} AND until > ?1 AND until {A_NUMBER}),
    (SELECT count(*) FROM polling_targets WHERE failures > 0 AND gone IS NULL),
    (SELECT count(*) FROM polling_targets WHERE {UNWANTED} AND gone IS NOT NULL)"""
EDITS = f"""SELECT edit.number, edit.target, {", ".join(f"there.{quoted(name)}" for name in NAMES)}
    FROM polling_edits AS edit LEFT JOIN polling_targets AS there ON there.id = edit.target
    ORDER BY edit.number LIMIT {MOST_EDITS}"""


# Those that may have brought a row that was edited by hand.
READ_AGAIN = """UPDATE polling_targets SET promote = coalesce(promote, 0), etag = '', modified = '', digest = x''
    WHERE id IN (
        SELECT id FROM polling_targets WHERE (kind, source_id) IN (SELECT kind, source_id FROM polling_touched)
        UNION ALL SELECT id FROM polling_targets
        WHERE event IN (SELECT event FROM polling_touched WHERE source_id = '')
        UNION ALL SELECT id FROM polling_targets
        WHERE EXISTS (SELECT 1 FROM polling_touched WHERE source_id = '' AND event = ''))"""
PROMOTED = "UPDATE polling_targets SET promote = NULL, next_due = ?, until = ? WHERE id = ?"
ANY_EDITS = "SELECT 1 FROM polling_edits UNION ALL SELECT 1 FROM polling_touched LIMIT 1"
FIRST_PAIR = "SELECT event, kind FROM polling_targets ORDER BY event, kind LIMIT 1"
# In two parts: SQLite would begin a search behind a pair at the first of a million that have it.
NEXT_PAIR = """SELECT event, kind FROM polling_targets WHERE event = ?1 AND kind > ?2
    UNION ALL SELECT event, kind FROM polling_targets WHERE event > ?1 ORDER BY event, kind LIMIT 1"""
ANY_FETCHED = """SELECT EXISTS (SELECT 1 FROM polling_targets INDEXED BY polling_targets_event
    WHERE event = ? AND kind = ? AND fetched IS NOT NULL)"""


class SqlitePollingDialect:
    """See `PollingDialect`."""

    said = SAID

    async def rows(self, db: Transaction, query: str, *values: object) -> list[Row]:
        try:
            return await db.fetch(query, *values)
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
        # Only the sqlite3 module itself raises without a code: for a text that is no UTF-8.
        connection = connection_of(db)
        connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            return await db.fetch(query, *values)
        finally:
            connection.text_factory = str

    def target(self, row: Row) -> PollingTarget:
        return target(row)

    def known(self, row: Row) -> KnownTarget:
        number, kind, source_id, event, only, seconds, priority, gone = _read_known(row)
        wanted = None if only is None else _only(only)
        # A number that is no time will not be what is wanted, and be put right.
        return KnownTarget(number, WantedTarget(kind, source_id, event, wanted, seconds, priority), gone)

    async def due(self, db: Transaction, after: tuple[float, int], until: float, most: int) -> list[PollingTarget]:
        return await self._in_order(db, SqlCondition(DUE, ()), after, until, most)

    async def _in_order(
        self, db: Transaction, meant: SqlCondition, after: tuple[float, int], until: float, most: int
    ) -> list[PollingTarget]:
        """Those behind `after`, by their due times up to `until`. `meant` begins with DUE or IDLE."""
        due, last = after
        # In two steps: SQLite does not search by id among those that are due at the same time, and these may be many.
        same, later = AT_THE_SAME_TIME.format(meant.sql), LATER.format(meant.sql)
        found = await self.rows(db, same, *meant.values, due, last, most) if due <= until else []
        if left := most - len(found):
            found += await self.rows(db, later, *meant.values, due, until, left)
        return [target(row) for row in found]

    async def listed(self, db: Transaction, query: Query, meant: SqlCondition) -> list[PollingTarget]:
        after, most = query.after or LONG_AGO, min(query.most, LARGEST)
        if index := await self._index_to_few(db, query):
            page = f"""SELECT {COLUMNS} FROM polling_targets INDEXED BY {index}
                WHERE {meant.sql} AND (next_due, id) > (?, ?) AND next_due {A_NUMBER} ORDER BY next_due, id LIMIT ?"""
            return [target(row) for row in await self.rows(db, page, *meant.values, *after, most)]
        roads = [IDLE] if query.enabled is False or query.gone else [DUE, IDLE]
        conditions = [SqlCondition(f"{road} AND {meant.sql}", meant.values) for road in roads]
        pages = [await self._in_order(db, each, after, inf, most) for each in conditions]
        return sorted((each for page in pages for each in page), key=lambda each: (each.next_due, each.id))[:most]

    async def _index_to_few(self, db: Transaction, query: Query) -> str | None:
        """The index that leads to all that are meant, if these are few."""
        if query.source_id is not None:
            return "polling_targets_name"
        if query.accelerated_at is not None:
            return "polling_targets_until"
        for column, value, index in (("event", query.event, "event"), ("kind", query.kind, "name")):
            if value is not None and await self._are_few(db, column, value):
                return f"polling_targets_{index}"
        return None

    async def _are_few(self, db: Transaction, column: str, value: str) -> bool:
        counted = f"SELECT count(*) FROM (SELECT 1 FROM polling_targets WHERE {column} = ? LIMIT {FEW + 1})"
        ((count,),) = await db.fetch(counted, value)
        return bool(count <= FEW)

    async def count(self, db: Transaction, wall: float) -> StoredTargetCounts:
        ((wanted, idle, paused, due, accelerated, failing, gone),) = await db.fetch(COUNT, wall)
        return StoredTargetCounts(wanted + idle, paused, due, accelerated, failing, gone)

    async def fetched(self, db: Transaction) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        pairs = await db.fetch(FIRST_PAIR)
        while pairs:  # every event and kind that there are targets of: a few, in an index of a million
            (pair,) = pairs
            if (await db.fetch(ANY_FETCHED, *pair))[0][0]:
                found.add(tuple(pair))
            pairs = await db.fetch(NEXT_PAIR, *pair)
        return found

    async def write(self, database: PollingDatabase, runs: Sequence[TargetRun]) -> None:
        """Write these back. The power may take the last of them."""

        async def work(db: Transaction) -> None:
            fine = all(map(is_text, {each.status for each in runs}))
            legibly = runs if fine else [each._replace(status=legible(each.status)) for each in runs]
            await db.execute_many(WRITE, legibly)

        if runs:
            await database.write(work, durable=False)

    async def take_edits(self, database: PollingDatabase, wall: float) -> Edits:
        # To look costs no writer its turn.
        if not await database.peek(lambda db: db.fetch(ANY_EDITS)):
            return Edits()
        return await database.write(lambda db: self._take_edits(db, wall))

    async def _take_edits(self, db: Transaction, wall: float) -> Edits:
        if await db.fetch("SELECT 1 FROM polling_touched LIMIT 1"):
            await db.execute(READ_AGAIN)
            await db.execute("DELETE FROM polling_touched")
        edited = await self.rows(db, EDITS)
        there = [target(row[2:]) for row in edited if row[2] is not None]
        settled = [_settled(each, wall) for each in there]
        promoted = {row[1] for row in edited if row[2 + NAMES.index("promote")] is not None}  # be it with nonsense
        promoted |= {now.id for before, now in zip(there, settled, strict=True) if now.next_due != before.next_due}
        written = [(each.next_due, each.until, each.id) for each in settled if each.id in promoted]
        await db.execute_many(PROMOTED, written)
        if edited:  # at last, so that what was just written is not noted
            await db.execute("DELETE FROM polling_edits WHERE number <= ?", edited[-1][0])
        return Edits(tuple(settled), tuple(row[1] for row in edited if row[2] is None))

    async def update(self, db: Transaction, changed: Mapping[int, WantedTarget], wall: float) -> None:
        await db.execute_many(
            UPDATE,
            (
                {
                    **each._asdict(),
                    "only": None if each.only is None else encoded(each.only),
                    "wall": wall,
                    "id": number,
                }
                for number, each in changed.items()
            ),
        )


def _settled(each: PollingTarget, wall: float) -> PollingTarget:
    """With the due time that it has by what was asked for."""
    due, until = each.next_due or wall, each.until  # one that was put in by hand has no due time
    if each.promote is not None:
        due = min(due, wall)
        until = wall + each.promote if each.promote > 0 else until
    return each if (due, until) == (each.next_due, each.until) else replace(each, next_due=due, until=until)
