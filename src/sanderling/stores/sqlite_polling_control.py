"""Targets in a SQLite file, for people: lists, counts, and what an admin sets; settings, and how far subscribers are.

A list is in the order of due times. There may be a million targets, so there are two roads to a page of it: through the
index of due times, passing over what is not meant, or through another index to all that are meant, if these are few.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

import sqlite3
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from sanderling.stores.polling import Counts, Field, PollingStoreError, Query, Target
from sanderling.stores.polling_rows import LARGEST, is_text
from sanderling.stores.sqlite_polling_tables import UNWANTED, WANTED
from sanderling.stores.sqlite_polling_targets import COLUMNS, DUE, IDLE, in_order, rows, target

# So many are put in order in some 10 ms. Of more, a page is found soon enough on the other road.
FEW = 20_000
LONG_AGO = (-inf, 0)
A_NUMBER = "<= 9e999"  # to SQLite a text is more than any number
# SQLite finds these in an index of a million without looking at each.
ALL_KINDS = """(WITH RECURSIVE every (kind) AS (
    SELECT min(kind) FROM polling_targets
    UNION ALL SELECT (SELECT min(kind) FROM polling_targets WHERE kind > every.kind) FROM every WHERE kind IS NOT NULL)
    SELECT kind FROM every WHERE kind IS NOT NULL)"""


class Condition(NamedTuple):
    """What is meant, in SQL, with the values for it."""

    sql: str
    values: tuple[object, ...]


def _meant(query: Query) -> Condition | None:
    """What a query means, but for its page; None if nothing can be meant."""
    names = (query.kind, query.source_id, query.event)
    if not all(name is None or is_text(name) for name in names):
        return None
    terms: list[tuple[bool, str, tuple[object, ...]]] = [
        (query.kind is not None, "kind = ?", (query.kind,)),
        (query.source_id is not None and query.kind is None, f"kind IN {ALL_KINDS}", ()),
        (query.source_id is not None, "source_id = ?", (query.source_id,)),
        (query.event is not None, "event = ?", (query.event,)),
        (query.enabled is True, "enabled IS NOT 0", ()),
        (query.enabled is False, "enabled IS 0", ()),
        (query.gone is True, "gone IS NOT NULL", ()),
        (query.gone is False, "gone IS NULL", ()),
        (query.due_before is not None, "next_due <= ?", (query.due_before,)),
        (query.accelerated_at is not None, "until > ?", (query.accelerated_at,)),
    ]
    meant = [(sql, values) for holds, sql, values in terms if holds]
    return Condition(
        " AND ".join([sql for sql, _ in meant] or ["true"]), tuple(value for _, values in meant for value in values)
    )


def listed(db: sqlite3.Connection, query: Query) -> list[Target]:
    """A page."""
    meant, most = _meant(query), min(query.most, LARGEST)
    if meant is None or most < 1:
        return []
    after = query.after or LONG_AGO
    if index := _index_to_few(db, query):
        page = f"""SELECT {COLUMNS} FROM polling_targets INDEXED BY {index}
            WHERE {meant.sql} AND (next_due, id) > (?, ?) AND next_due {A_NUMBER} ORDER BY next_due, id LIMIT ?"""
        return rows(db, page, (*meant.values, *after, most), target)
    roads = [IDLE] if query.enabled is False or query.gone else [DUE, IDLE]
    pages = [in_order(db, f"{road} AND {meant.sql}", meant.values, after, inf, most) for road in roads]
    return sorted((each for page in pages for each in page), key=lambda each: (each.next_due, each.id))[:most]


def _index_to_few(db: sqlite3.Connection, query: Query) -> str | None:
    """The index that leads to all that are meant, if these are few."""
    if query.source_id is not None:
        return "polling_targets_name"
    if query.accelerated_at is not None:
        return "polling_targets_until"
    if query.event is not None and _are_few(db, "event", query.event):
        return "polling_targets_event"
    if query.kind is not None and _are_few(db, "kind", query.kind):
        return "polling_targets_name"
    return None


def _are_few(db: sqlite3.Connection, column: str, value: str) -> bool:
    counted = f"SELECT count(*) FROM (SELECT 1 FROM polling_targets WHERE {column} = ? LIMIT {FEW + 1})"
    ((count,),) = db.execute(counted, (value,))
    return bool(count <= FEW)


def change(db: sqlite3.Connection, kind: str, source_id: str, fields: Mapping[Field, object]) -> bool:
    """Set these, which were checked."""
    if not (is_text(kind) and is_text(source_id)):
        return False
    values = ", ".join(f"{name} = ?" for name in fields) or "enabled = enabled"
    set_them = f"UPDATE polling_targets SET {values} WHERE kind = ? AND source_id = ?"
    return db.execute(set_them, (*fields.values(), kind, source_id)).rowcount > 0


def promote(db: sqlite3.Connection, query: Query, seconds: float) -> int:
    """Ask for all that are meant and polled."""
    meant = _meant(query)
    if meant is None:
        return 0
    ask = f"UPDATE polling_targets SET promote = ? WHERE {meant.sql} AND {WANTED}"
    return db.execute(ask, (seconds, *meant.values)).rowcount


COUNT = f"""SELECT
    (SELECT count(*) FROM polling_targets WHERE {WANTED}),
    (SELECT count(*) FROM polling_targets WHERE {UNWANTED} AND gone IS NULL),
    (SELECT count(*) FROM polling_targets WHERE {UNWANTED} AND gone IS NULL AND enabled IS 0),
    (SELECT count(*) FROM polling_targets WHERE {WANTED} AND next_due <= :wall),
    (SELECT count(*) FROM polling_targets WHERE {WANTED} AND until > :wall AND until {A_NUMBER}),
    (SELECT count(*) FROM polling_targets WHERE failures > 0 AND gone IS NULL),
    (SELECT count(*) FROM polling_targets WHERE {UNWANTED} AND gone IS NOT NULL)"""


def count(db: sqlite3.Connection, wall: float) -> Counts:
    """How many there are."""
    ((wanted, idle, paused, due, accelerated, failing, gone),) = db.execute(COUNT, {"wall": wall})
    return Counts(wanted + idle, paused, due, accelerated, failing, gone)


def settings(db: sqlite3.Connection) -> dict[str, str]:
    """All of them."""
    texts = "SELECT key, value FROM polling_settings WHERE typeof(key) = 'text' AND typeof(value) = 'text'"
    return dict(rows(db, texts, (), tuple))


def put(db: sqlite3.Connection, key: str, value: str | None) -> None:
    """Write one, or remove it."""
    if not (is_text(key) and is_text(value or "")):
        raise PollingStoreError(f"setting {key[:60]!r} cannot be stored, expected a text", transient=False)
    if value is None:
        db.execute("DELETE FROM polling_settings WHERE key = ?", (key,))
    else:
        db.execute("INSERT OR REPLACE INTO polling_settings VALUES (?, ?)", (key, value))


def position(db: sqlite3.Connection, name: str) -> int | None:
    """How far a subscriber is."""
    row = db.execute("SELECT seq FROM polling_positions WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def advance(db: sqlite3.Connection, name: str, seq: int) -> None:
    """Note how far it is."""
    db.execute("INSERT OR REPLACE INTO polling_positions VALUES (?, ?)", (name, seq))
