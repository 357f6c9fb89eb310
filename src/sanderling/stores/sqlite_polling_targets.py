"""Targets in a SQLite file: what is due, what was edited, what discovery and whoever polls write. One connection each.

Rows are read as far as they go: SQLite holds whatever somebody writes by hand, and what an admin cannot have meant is
as if it were not set.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from sanderling.stores.polling import (
    LONGEST_PAUSE,
    Edits,
    Found,
    Known,
    PollingStoreError,
    Ran,
    Reconciliation,
    Target,
)
from sanderling.stores.polling_rows import LONGEST_SECONDS, MOST_EDITS, is_text, legible
from sanderling.stores.sqlite_polling_tables import INTERVAL, UNWANTED, WANTED, quoted

T = TypeVar("T")
Raw = tuple[Any, ...]

NAMES = Target.__struct_fields__
COLUMNS = ", ".join(map(quoted, NAMES))
KNOWN = ("id", *Found._fields, "gone")
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


class Reader:
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


_read_target, _read_known = Reader(NAMES), Reader(KNOWN)


def rows(
    db: sqlite3.Connection, query: str, values: Sequence[object] | dict[str, object], make: Callable[[Raw], T]
) -> list[T]:
    """What the rows of a query make, also of those with a text that is none."""
    try:
        return [make(row) for row in db.execute(query, values)]
    except sqlite3.OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
    # Only the sqlite3 module itself raises without a code: for a text that is no UTF-8.
    db.text_factory = lambda text: text.decode(errors="replace")
    try:
        return [make(row) for row in db.execute(query, values)]
    finally:
        db.text_factory = str


def target(row: Raw) -> Target:
    """A target, from its columns."""
    r = _read_target(row)
    # Each by its place: this is what takes the time when thousands are due.
    return Target(
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


# --- for whoever polls ---

DUE, IDLE = f"polling_targets_due WHERE {WANTED}", f"polling_targets_idle WHERE {UNWANTED}"  # indexes, and for whom
AT_THE_SAME_TIME = (
    f"SELECT {COLUMNS} FROM polling_targets INDEXED BY {{}} AND next_due = ? AND id > ? ORDER BY id LIMIT ?"
)
LATER = f"""SELECT {COLUMNS} FROM polling_targets INDEXED BY {{}} AND next_due > ? AND next_due <= ?
    ORDER BY next_due, id LIMIT ?"""


def in_order(
    db: sqlite3.Connection, meant: str, values: Sequence[object], after: tuple[float, int], until: float, most: int
) -> list[Target]:
    """Those behind `after`, by their due times up to `until`. `meant` begins with DUE or IDLE."""
    due, last = after
    # In two steps: SQLite does not search by id among those that are due at the same time, and these may be very many.
    first = rows(db, AT_THE_SAME_TIME.format(meant), (*values, due, last, most), target) if due <= until else []
    left = most - len(first)
    return first + (rows(db, LATER.format(meant), (*values, due, until, left), target) if left else [])


def due(db: sqlite3.Connection, after: tuple[float, int], until: float, most: int) -> list[Target]:
    """Those that are wanted and due."""
    return in_order(db, DUE, (), after, until, most)


def find(db: sqlite3.Connection, kind: str, source_id: str) -> Target | None:
    """The one of that name."""
    if not (is_text(kind) and is_text(source_id)):
        return None
    query = f"SELECT {COLUMNS} FROM polling_targets WHERE kind = ? AND source_id = ?"
    return next(iter(rows(db, query, (kind, source_id), target)), None)


_SET = ", ".join(f"{name} = ?{place}" for place, name in enumerate(Ran._fields, 1) if name != "id")
WRITE = f"UPDATE polling_targets SET {_SET} WHERE id = ?1"


def write(db: sqlite3.Connection, runs: Sequence[Ran]) -> None:
    """Write these back."""
    if not all(map(is_text, {each.status for each in runs})):
        runs = [each._replace(status=legible(each.status)) for each in runs]
    db.executemany(WRITE, runs)


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


def any_edits(db: sqlite3.Connection) -> bool:
    """Whether there is anything to take. To look costs no writer its turn."""
    noted = "SELECT 1 FROM polling_edits UNION ALL SELECT 1 FROM polling_touched LIMIT 1"
    return db.execute(noted).fetchone() is not None


def take_edits(db: sqlite3.Connection, wall: float) -> Edits:
    """Those that were noted first; they are noted no more."""
    if db.execute("SELECT 1 FROM polling_touched LIMIT 1").fetchone():
        db.execute(READ_AGAIN)
        db.execute("DELETE FROM polling_touched")
    edited = rows(db, EDITS, (), tuple)
    there = [target(row[2:]) for row in edited if row[2] is not None]
    settled = [_settled(each, wall) for each in there]
    promoted = {row[1] for row in edited if row[2 + NAMES.index("promote")] is not None}  # be it with nonsense
    promoted |= {now.id for before, now in zip(there, settled, strict=True) if now.next_due != before.next_due}
    written = [(each.next_due, each.until, each.id) for each in settled if each.id in promoted]
    db.executemany("UPDATE polling_targets SET promote = NULL, next_due = ?, until = ? WHERE id = ?", written)
    if edited:  # at last, so that what was just written is not noted
        db.execute("DELETE FROM polling_edits WHERE number <= ?", (edited[-1][0],))
    return Edits(tuple(settled), tuple(row[1] for row in edited if row[2] is None))


def _settled(each: Target, wall: float) -> Target:
    """With the due time that it has by what was asked for."""
    due, until = each.next_due or wall, each.until  # one that was put in by hand has no due time
    if each.promote is not None:
        due = min(due, wall)
        until = wall + each.promote if each.promote > 0 else until
    return each if (due, until) == (each.next_due, each.until) else replace(each, next_due=due, until=until)


CLAMP = f"""UPDATE polling_targets SET next_due = :wall
    WHERE (next_due > :wall + {LONGEST_PAUSE} AND next_due > :wall + {INTERVAL}) OR next_due = 0"""


def clamp(db: sqlite3.Connection, wall: float) -> None:
    """Let those be due that are so later than they can be, and those that were put in by hand."""
    db.execute(CLAMP, {"wall": wall})


def shift(db: sqlite3.Connection, seconds: float) -> None:
    """Move all times that are to come."""
    db.execute("UPDATE polling_targets SET next_due = next_due + ?1, until = until + ?1", (seconds,))


# --- for discovery ---

FOUND = f"SELECT {', '.join(map(quoted, KNOWN))} FROM polling_targets ORDER BY id"
# Other parts of a document are wanted: then it is due, and read again.
AS_FOUND = """event = :event, seconds = :seconds, priority = :priority, gone = NULL, "only" = :only,
    next_due = CASE WHEN polling_targets."only" IS :only THEN next_due ELSE :wall END,
    etag = CASE WHEN polling_targets."only" IS :only THEN etag ELSE '' END,
    modified = CASE WHEN polling_targets."only" IS :only THEN modified ELSE '' END,
    digest = CASE WHEN polling_targets."only" IS :only THEN digest ELSE x'' END"""
INSERT = f"""INSERT INTO polling_targets (kind, source_id, event, "only", seconds, priority, next_due)
    VALUES (:kind, :source_id, :event, :only, :seconds, :priority, :wall)
    ON CONFLICT (kind, source_id) DO UPDATE SET {AS_FOUND}"""
UPDATE = f"UPDATE polling_targets SET {AS_FOUND} WHERE id = :id"


def known(db: sqlite3.Connection) -> list[Known]:
    """All of them."""
    return rows(db, FOUND, (), _known)


def _known(row: Raw) -> Known:
    number, kind, source_id, event, only, seconds, priority, gone = _read_known(row)
    wanted = None if only is None else _only(only)
    # A number that is no time will not be what is wanted, and be put right.
    return Known(number, Found(kind, source_id, event, wanted, seconds, priority), gone)


def apply(db: sqlite3.Connection, plan: Reconciliation, wall: float) -> None:
    """Do what discovery plans."""
    db.executemany("DELETE FROM polling_targets WHERE id = ?", zip(plan.delete, strict=True))
    db.executemany(
        "UPDATE polling_targets SET gone = ? WHERE id = ? AND gone IS NULL", zip(repeat(wall), plan.gone, strict=False)
    )
    db.executemany(UPDATE, (_as_stored(each, wall) | {"id": number} for number, each in plan.update))
    db.executemany(INSERT, (_as_stored(each, wall) for each in plan.insert))


def _as_stored(each: Found, wall: float) -> dict[str, object]:
    for text in (each.kind, each.source_id, each.event, *(each.only or ())):
        if not is_text(text):
            said = f"target {each.kind[:60]!r} {each.source_id[:60]!r}: {text[:60]!r} cannot be stored, expected a text"
            raise PollingStoreError(said, transient=False)
    only = None if each.only is None else msgspec.json.encode(each.only).decode()
    return {**each._asdict(), "only": only, "wall": wall}


FIRST_PAIR = "SELECT event, kind FROM polling_targets ORDER BY event, kind LIMIT 1"
# In two parts: SQLite would begin a search behind a pair at the first of a million that have it.
NEXT_PAIR = """SELECT event, kind FROM polling_targets WHERE event = ?1 AND kind > ?2
    UNION ALL SELECT event, kind FROM polling_targets WHERE event > ?1 ORDER BY event, kind LIMIT 1"""
ANY_FETCHED = """SELECT EXISTS (SELECT 1 FROM polling_targets INDEXED BY polling_targets_event
    WHERE event = ? AND kind = ? AND fetched IS NOT NULL)"""


def fetched(db: sqlite3.Connection) -> set[tuple[str, str]]:
    """Event and kind of those that ever went well."""
    return {pair for pair in _pairs(db) if db.execute(ANY_FETCHED, pair).fetchone()[0]}


def _pairs(db: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Every event and kind that there are targets of: a few, in an index of a million."""
    pair = db.execute(FIRST_PAIR).fetchone()
    while pair:
        yield pair
        pair = db.execute(NEXT_PAIR, pair).fetchone()
