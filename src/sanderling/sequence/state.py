"""How far a crawl is and what it missed, in a SQLite file: one transaction moves both. And where a crawl begins."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.apis.numbered import LARGEST_ID
from sanderling.sequence.cursor import Position, ranges_of
from sanderling.sequence.retries import RAREST, Missed, Reason
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.sqlite_file import FileKind, keep_tally, open_file, tally, transaction

FAILED = f"(reason = '{Reason.ERROR.value}')"  # these are asked apart from all others

TABLES = (
    # One row, once a crawl has begun.
    "CREATE TABLE crawl (api TEXT NOT NULL, next INTEGER NOT NULL, open BLOB NOT NULL, newest INTEGER)",
    # Ranges that never overlap, both ends included.
    """CREATE TABLE missed (
        low INTEGER PRIMARY KEY, high INTEGER NOT NULL, reason TEXT NOT NULL, first_seen REAL NOT NULL,
        last_seen REAL NOT NULL, tries INTEGER NOT NULL, next_check REAL NOT NULL, CHECK (low <= high))""",
    f"CREATE INDEX missed_due ON missed ({FAILED}, next_check)",
)
KIND = FileKind("state of a crawl of ids", 0x53414E53, 1, TABLES)  # "SANS"
COLUMNS = "low, high, reason, first_seen, last_seen, tries, next_check"

Range = tuple[int, int]  # both ends included


@dataclass(slots=True)
class Fates:
    """What became of some ids: those with a record, and those without."""

    gone: list[Range] = field(default_factory=list)  # no longer missed, if they ever were
    missed: list[Missed] = field(default_factory=list)  # from now on, whatever was known of them before

    def __bool__(self) -> bool:
        return bool(self.gone or self.missed)


@dataclass(frozen=True, slots=True)
class SavedCrawl:
    """Where a crawl was."""

    api: str
    position: Position
    newest: int | None


class Hurry(NamedTuple):
    """Ids to be asked soon, both ends included: the first at that time by the wall, the last so many seconds later."""

    wall: float
    low: int
    high: int
    seconds: float = 0.0

    def due(self, number: int) -> float:
        """When an id of it is."""
        return self.wall + self.seconds * max(0, number - self.low) / (self.high - self.low + 1)


class SequenceState:
    """Made where there is none. Its methods may be called from any thread; each is atomic. All raise FolderError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = threading.Lock()
        self._db = open_file(path, KIND)
        with plainly(path):
            # A commit is on disk when it returns; the default of WAL would lose the last ones with the power.
            self._db.execute("PRAGMA synchronous = FULL")
            keep_tally(self._db, "missed", by="reason", amount="{0}.high - {0}.low + 1")

    @contextmanager
    def _alone(self, kind: str | None = None) -> Iterator[sqlite3.Connection]:
        with self._turn, plainly(self.path):
            if kind is None:
                yield self._db
            else:
                with transaction(self._db, kind):
                    yield self._db

    def load(self) -> SavedCrawl | None:
        """Where the crawl was; None before its first write."""
        with self._alone() as db:
            row = db.execute("SELECT api, next, open, newest FROM crawl").fetchone()
        if row is None:
            return None
        try:
            opened = msgspec.msgpack.decode(row[2], type=tuple[int, ...])
        except msgspec.MsgspecError as error:
            raise FolderError(f"{self.path} is damaged: its open ids are none ({error})") from None
        return SavedCrawl(row[0], Position(row[1], opened), row[3])

    def record(self, saved: SavedCrawl, fates: Fates) -> None:
        """Keep all of it or nothing."""
        with self._alone("IMMEDIATE") as db:
            self._apply(db, fates)
            db.execute("DELETE FROM crawl")
            opened = msgspec.msgpack.encode(saved.position.open)
            # SQLite has no larger number: behind the last of all ids, that one is asked for again.
            following = min(saved.position.next, LARGEST_ID)
            db.execute("INSERT INTO crawl VALUES (?, ?, ?, ?)", (saved.api, following, opened, saved.newest))

    def change(self, fates: Fates) -> None:
        """The same, where the crawl itself has not moved."""
        with self._alone("IMMEDIATE") as db:
            self._apply(db, fates)

    # What is missed.

    def due(self, now: float, limit: int, *, failed: bool) -> list[Missed]:
        """What should be asked again by `now`, the most overdue first: what failed, or all that did not.

        What is due later than anything is ever put off was put off by a clock that was wrong, and is due too.
        """
        query = f"""SELECT {COLUMNS} FROM missed WHERE {FAILED} = ?1 AND next_check <= ?2
            UNION ALL SELECT {COLUMNS} FROM missed WHERE {FAILED} = ?1 AND next_check > ?3
            ORDER BY next_check LIMIT ?4"""  # noqa: S608 - ours
        with self._alone() as db:
            return _rows(db.execute(query, (failed, now, now + 2 * RAREST, limit)))

    def next_due(self, *, failed: bool) -> float | None:
        """When something of these is next to be asked again."""
        with self._alone() as db:
            ((due,),) = db.execute(f"SELECT min(next_check) FROM missed WHERE {FAILED} = ?", (failed,))  # noqa: S608 - ours
        return None if due is None else float(due)

    def hasten(self, hurry: Hurry, reason: Reason | None = None, *, every: bool = False) -> int:
        """Let what is missed in a range, for this reason or for any, be asked soon; how many ids that are.

        With `every`, each id is asked, also where a sample would do.
        """
        asked = 0
        with self._alone("IMMEDIATE") as db:
            for each in _overlapping(db, hurry.low, hurry.high):
                if reason not in (None, each.reason):
                    continue
                part = replace(each, low=max(each.low, hurry.low), high=min(each.high, hurry.high), tries=0)
                part = replace(part, next_check=hurry.due(part.low), reason=Reason.ALIVE if every else part.reason)
                _take_out(db, part.low, part.high)
                _put(db, part)  # apart from its neighbours, which nobody wants asked
                asked += len(part)
        return asked

    def counts(self) -> dict[Reason, int]:
        """How many ids are missed, by reason."""
        with self._alone() as db:
            return {Reason(str(reason)): ids for reason, ids in tally(db, "missed").items()}

    def missed(self, after: int = -1, limit: int = 1000, reason: Reason | None = None) -> list[Missed]:
        """A page of what is missed: ranges that begin behind `after`, ascending."""
        with self._alone() as db:
            return _rows(
                db.execute(
                    f"SELECT {COLUMNS} FROM missed WHERE low > ? AND coalesce(?, reason) = reason ORDER BY low LIMIT ?",  # noqa: S608 - ours
                    (after, reason, limit),
                )
            )

    def add_new(self, missed: Iterable[Missed]) -> int:
        """Take in what is not missed already; how many ids that were."""
        added = 0
        with self._alone("IMMEDIATE") as db:
            for each in missed:
                for part in _new_in(db, each):
                    _insert(db, part)
                    added += len(part)
        return added

    def _apply(self, db: sqlite3.Connection, fates: Fates) -> None:
        if fates.gone:
            # Nearly always there is nothing to take out: one look at the whole stretch says so.
            stretch = min(low for low, _ in fates.gone), max(high for _, high in fates.gone)
            if _overlapping(db, *stretch, limit=1):
                for low, high in fates.gone:
                    _take_out(db, low, high)
        for each in fates.missed:
            known = _take_out(db, each.low, each.high)
            first_seen = min((each.first_seen, *(old.first_seen for old in known)))
            _insert(db, replace(each, first_seen=first_seen))

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def __repr__(self) -> str:
        return f"<SequenceState {self.path}>"


def _rows(rows: Iterable[Sequence[object]]) -> list[Missed]:
    return [
        Missed(low, high, Reason(reason), first, last, tries, check)  # type: ignore[arg-type] # SQLite keeps the types
        for low, high, reason, first, last, tries, check in rows
    ]


def _overlapping(db: sqlite3.Connection, low: int, high: int, limit: int = -1) -> list[Missed]:
    """Ranges that have ids from `low` to `high`, ascending."""
    # Ranges do not overlap, so of all that begin before `low` only the last can reach it.
    return _rows(
        db.execute(
            f"""SELECT {COLUMNS} FROM missed
            WHERE low >= coalesce((SELECT max(low) FROM missed WHERE low <= ?), ?) AND low <= ? AND high >= ?
            ORDER BY low LIMIT ?""",  # noqa: S608 - ours
            (low, low, high, low, limit),
        )
    )


def _take_out(db: sqlite3.Connection, low: int, high: int) -> list[Missed]:
    """Make these ids not missed; what there was."""
    found = _overlapping(db, low, high)
    for each in found:
        db.execute("DELETE FROM missed WHERE low = ?", (each.low,))
        for left in each.without(low, high):
            _put(db, left)
    return found


def _insert(db: sqlite3.Connection, new: Missed) -> None:
    """Add a range where there is none, as one with its neighbours if these are like it."""
    for before in _overlapping(db, new.low - 1, new.low - 1):
        if before.joins(new):
            db.execute("DELETE FROM missed WHERE low = ?", (before.low,))
            new = before.join(new)
    after = min(new.high + 1, LARGEST_ID)  # SQLite has no larger number
    for behind in _overlapping(db, after, after):
        if new.joins(behind):
            db.execute("DELETE FROM missed WHERE low = ?", (behind.low,))
            new = new.join(behind)
    _put(db, new)


def _put(db: sqlite3.Connection, new: Missed) -> None:
    db.execute(
        "INSERT INTO missed VALUES (?, ?, ?, ?, ?, ?, ?)",
        (new.low, new.high, new.reason.value, new.first_seen, new.last_seen, new.tries, new.next_check),
    )


def _new_in(db: sqlite3.Connection, wanted: Missed) -> list[Missed]:
    """What of a range is not missed yet."""
    parts, low = [], wanted.low
    for known in _overlapping(db, wanted.low, wanted.high):
        if low < known.low:
            parts.append(replace(wanted, low=low, high=known.low - 1))
        low = known.high + 1
    return [*parts, replace(wanted, low=low)] if low <= wanted.high else parts


BUFFER = 10_000  # ids before the latest that is stored: some of those may not have been there yet


class StartError(Exception):
    """There is nowhere to begin. The message says what to do."""


def begin_at(
    api: str,
    saved: SavedCrawl | None,
    latest: int | None,
    *,
    begin: int | None = None,
    target: int | None = None,
    buffer: int = BUFFER,
) -> Position:
    """The position to begin with: at `target` if there is one, else where the crawl was, else at the latest stored.

    At `begin` if there is none of these. A crawl that goes on needs no buffer: it knows of every id before whether it
    has a fate; and neither does one that has nothing yet.
    """
    if saved is not None and saved.api != api:
        raise StartError(f"this folder follows {saved.api}, not {api}; choose another folder")
    for number in (begin, target):
        if number is not None and not 0 <= number <= LARGEST_ID:
            raise StartError(f"the first id is {number}; expected one from 0 to {LARGEST_ID}")
    if target is not None:
        return Position(max(0, target - buffer))
    if saved is not None:
        return saved.position
    if latest is not None:
        return Position(max(0, latest - buffer))
    if begin is not None:
        return Position(begin)
    raise StartError("nothing is stored yet, so there is no id to go on from: name the first with --begin")


def left_open(saved: SavedCrawl, position: Position, wall: float) -> list[Missed]:
    """Ids that were handed out before and have no fate, of a crawl that now begins behind them: they are missed."""
    left = [number for number in saved.position.open if number < position.low]
    return [Missed(low, high, Reason.IMPORTED, wall, wall, 0, wall) for low, high in ranges_of(left)]
