"""What is known of a sequence on disk: how far it is, what was left out and why, and what is missed.

Rows are on disk before the commit that counts them, and an id leaves `open` in the same commit in which its row counts:
after a kill it is either stored or requested again.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from sanderling.files import FolderError
from sanderling.sequence.follower import Position
from sanderling.sequence.retries import Reason, is_retried
from sanderling.stores import RowFile
from sanderling.stores.sqlite_file import SqliteFile

FILE = "sequence.db"
ROWS = "records"
_APPLICATION = 0x53516E31
_FORMAT = 2
_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE missed (
    low INTEGER PRIMARY KEY, high INTEGER NOT NULL, reason TEXT NOT NULL, tries INTEGER NOT NULL,
    since REAL NOT NULL, due REAL NOT NULL);
CREATE INDEX missed_due ON missed (due);
CREATE TABLE skipped (low INTEGER PRIMARY KEY, high INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE TABLE visit (
    number INTEGER PRIMARY KEY, nth INTEGER NOT NULL, since REAL NOT NULL, due REAL NOT NULL, crc INTEGER NOT NULL);
CREATE INDEX visit_due ON visit (due);
CREATE TABLE missed_count (reason TEXT, tries INTEGER, ids INTEGER NOT NULL, PRIMARY KEY (reason, tries)) WITHOUT ROWID;
CREATE TRIGGER missed_in AFTER INSERT ON missed BEGIN
    INSERT INTO missed_count VALUES (new.reason, new.tries, new.high - new.low + 1)
    ON CONFLICT DO UPDATE SET ids = ids + excluded.ids; END;
CREATE TRIGGER missed_out AFTER DELETE ON missed BEGIN
    UPDATE missed_count SET ids = ids - (old.high - old.low + 1) WHERE reason = old.reason AND tries = old.tries; END
"""
_CONTAINING = "SELECT low, high, reason, tries, since, due FROM missed WHERE low <= ? ORDER BY low DESC LIMIT 1"


def key_of(number: int) -> bytes:
    """The key of an id's rows."""
    return number.to_bytes(16, "big")


@dataclass(frozen=True, slots=True)
class Missed:
    """Ids without a record that share what is known of them, both ends included."""

    low: int
    high: int
    reason: Reason
    tries: int  # in vain
    since: float
    due: float

    def __len__(self) -> int:
        return self.high - self.low + 1


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A state of a record."""

    number: int
    line: bytes  # its JSON; empty: it was deleted
    visit: int = 0  # 0: it is new


@dataclass(frozen=True, slots=True)
class Visit:
    """When a record is requested again, to see whether it has changed."""

    number: int
    nth: int  # which visit
    since: float  # when the record was stored first
    due: float
    crc: int  # of the state that is stored


class SavedState(msgspec.Struct):
    """What a run has to know of those before it."""

    api: str = ""  # what the ids are of, as it was given
    game: bool = False
    plan: dict[str, Any] = {}
    begin: int = 0  # the first id of all
    position: Position = msgspec.field(default_factory=lambda: Position(0))
    gaps: list[int] = []  # widths of gaps that were met, the last first
    run: int = 0  # ids since the last gap
    base: str = ""
    revisit: str = ""
    given: int = 0  # entries of rows that `following` has given
    limiter: bytes = b""
    files: list[RowFile] = []


@dataclass(slots=True)
class SequenceBatch:
    """What is committed at once."""

    decided: list[int] = field(default_factory=list)  # have a record, or never will: not missed any more
    skipped: list[tuple[int, str]] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    visited: list[int] = field(default_factory=list)  # for the last time

    def __bool__(self) -> bool:
        return bool(self.decided or self.skipped or self.missed or self.visits or self.visited)


class SequenceStore:
    """The file of a folder."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.file = SqliteFile(folder / FILE, _APPLICATION, read_only=read_only)
        self.state = SavedState()
        self.is_new = False

    async def __aenter__(self) -> Self:
        await self.file.open()
        try:
            await self.file.call(self._open)
        except BaseException:
            await self.file.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.file.close()

    def _open(self) -> None:
        db = self.file.db
        ((objects,),) = db.execute("SELECT count(*) FROM sqlite_schema")
        if not objects:
            self.is_new = True
            with self.file.transaction():
                for statement in _TABLES.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {_APPLICATION}")
                db.execute(f"PRAGMA user_version = {_FORMAT}")
            return
        ((version,),) = db.execute("PRAGMA user_version")
        if version != _FORMAT:
            found = f"{self.file.path} has format {version}, expected {_FORMAT}"
            raise FolderError(found, "use the release of Sanderling that wrote it, or another folder")
        row = db.execute("SELECT value, crc FROM state WHERE name = 'state'").fetchone()
        self.is_new = row is None
        if row is not None:
            if zlib.crc32(row[0]) != row[1]:
                raise FolderError(f"{self.file.path} is damaged: its state", "restore the folder from a copy")
            self.state = msgspec.msgpack.decode(row[0], type=SavedState)

    async def commit(self, batch: SequenceBatch, state: SavedState) -> None:
        """Everything or nothing, on disk when this returns."""

        def write() -> None:
            with self.file.transaction() as db:
                for number in batch.decided:
                    _take_out(db, number)
                for number, reason in batch.skipped:
                    _take_out(db, number)
                    _skip(db, number, reason)
                for each in batch.missed:
                    if each.low == each.high:
                        _take_out(db, each.low)
                    else:
                        db.execute("DELETE FROM missed WHERE low = ?", (each.low,))
                    _insert(db, (each.low, each.high, each.reason, each.tries, each.since, each.due))
                visits = [(each.number, each.nth, each.since, each.due, each.crc) for each in batch.visits]
                db.executemany("INSERT OR REPLACE INTO visit VALUES (?, ?, ?, ?, ?)", visits)
                db.executemany("DELETE FROM visit WHERE number = ?", [(number,) for number in batch.visited])
                value = msgspec.msgpack.encode(state)
                db.execute("INSERT OR REPLACE INTO state VALUES ('state', ?, ?)", (value, zlib.crc32(value)))

        await self.file.call(write)
        self.state = state

    async def due(self, now: float, most: int) -> list[Missed]:
        """What is to be asked again, the earliest first."""
        rows = "SELECT low, high, reason, tries, since, due FROM missed WHERE due <= ? ORDER BY due LIMIT ?"
        return await self.file.call(lambda: [_missed(row) for row in self.file.db.execute(rows, (now, most))])

    async def visits(self, now: float, most: int) -> list[Visit]:
        """Records to be requested again, the earliest first."""
        rows = "SELECT number, nth, since, due, crc FROM visit WHERE due <= ? ORDER BY due LIMIT ?"
        return await self.file.call(lambda: [Visit(*row) for row in self.file.db.execute(rows, (now, most))])

    async def break_up(self, each: Missed, most: int) -> list[Missed]:
        """The first ids of a range one by one; the rest stays a range."""
        count = min(most, len(each))
        single = [
            Missed(number, number, Reason.ALIVE, max(1, each.tries), each.since, each.due)
            for number in range(each.low, each.low + count)
        ]

        def write() -> None:
            with self.file.transaction() as db:
                db.execute("DELETE FROM missed WHERE low = ?", (each.low,))
                if count < len(each):
                    _insert(db, (each.low + count, each.high, each.reason, each.tries, each.since, each.due))
                for one in single:
                    _insert(db, (one.low, one.high, one.reason, one.tries, one.since, one.due))

        await self.file.call(write)
        return single

    async def wake_around(self, number: int, width: int, now: float) -> None:
        """Something turned up in a gap: ask each id near it."""

        def write() -> None:
            with self.file.transaction() as db:
                for beside in (number - 1, number + 1):
                    row = db.execute(_CONTAINING, (beside,)).fetchone()
                    if row is None or row[1] < beside or row[2] != Reason.GAP:
                        continue
                    low, high, reason, tries, since, due = row
                    first, last = max(low, number - width), min(high, number + width)
                    db.execute("DELETE FROM missed WHERE low = ?", (low,))
                    if low < first:
                        _insert(db, (low, first - 1, reason, tries, since, due))
                    if last < high:
                        _insert(db, (last + 1, high, reason, tries, since, due))
                    _insert(db, (first, last, Reason.ALIVE, 1, since, now))

        await self.file.call(write)

    async def retried(self) -> int:
        """How many are still within their first retries."""
        counts = await self.count_missed()
        return sum(number for (_, retried), number in counts.items() if retried)

    async def missed(self, after: int = -1, most: int = 2000, reason: str | None = None) -> list[Missed]:
        """The next ranges behind an id, in ascending order."""
        rows = (
            "SELECT low, high, reason, tries, since, due FROM missed"
            " WHERE low > ? AND (? IS NULL OR reason = ?) ORDER BY low LIMIT ?"
        )
        values = (after, reason, reason, most)
        return await self.file.call(lambda: [_missed(row) for row in self.file.db.execute(rows, values)])

    async def skipped(self) -> list[tuple[int, int, str]]:
        """Ranges without a record that is wanted, and why."""
        rows = "SELECT low, high, reason FROM skipped ORDER BY low"
        return await self.file.call(lambda: list(self.file.db.execute(rows)))

    async def count_missed(self) -> dict[tuple[str, bool], int]:
        """Ids that have no record, by reason and whether they are still within their first retries."""
        rows = "SELECT reason, tries, ids FROM missed_count WHERE ids"
        counts: dict[tuple[str, bool], int] = {}
        for reason, tries, number in await self.file.call(lambda: list(self.file.db.execute(rows))):
            name = (reason, is_retried(Reason(reason), tries))
            counts[name] = counts.get(name, 0) + number
        return counts

    async def retry(self, low: int, high: int, reason: str | None) -> int:
        """Let missed ids of a range be asked before all others, each of them; how many there are."""

        def write() -> int:
            number = 0
            with self.file.transaction() as db:
                rows = "SELECT low, high, reason, tries, since, due FROM missed WHERE low <= ? AND high >= ?"
                for each in [_missed(row) for row in db.execute(rows, (high, low))]:
                    if reason is not None and each.reason != reason:
                        continue
                    first, last = max(low, each.low), min(high, each.high)
                    db.execute("DELETE FROM missed WHERE low = ?", (each.low,))
                    if each.low < first:
                        _insert(db, (each.low, first - 1, each.reason, each.tries, each.since, each.due))
                    if last < each.high:
                        _insert(db, (last + 1, each.high, each.reason, each.tries, each.since, each.due))
                    kept = Reason.ALIVE if each.reason is Reason.GAP else each.reason
                    _insert(db, (first, last, kept, max(1, each.tries), each.since, 0.0))
                    number += last - first + 1
            return number

        return await self.file.call(write)

    async def add_missed(self, ranges: Sequence[tuple[int, int]], now: float) -> int:
        """Add ids that somebody names, if they are not missed already; how many are new."""

        def write() -> int:
            added = 0
            with self.file.transaction() as db:
                for low, high in ranges:
                    for number in range(low, high + 1):
                        row = db.execute(_CONTAINING, (number,)).fetchone()
                        if row is None or row[1] < number:
                            _insert(db, (number, number, Reason.IMPORTED, 1, now, now))
                            added += 1
            return added

        return await self.file.call(write)


def _missed(row: Iterable[Any]) -> Missed:
    low, high, reason, tries, since, due = row
    return Missed(low, high, Reason(reason), tries, since, due)


def _insert(db: Any, row: tuple[Any, ...]) -> None:  # noqa: ANN401 - a connection of sqlite3
    db.execute("INSERT INTO missed VALUES (?, ?, ?, ?, ?, ?)", row)


def _take_out(db: Any, number: int) -> None:  # noqa: ANN401
    """Take an id out of the range it is in, if it is in one."""
    row = db.execute(_CONTAINING, (number,)).fetchone()
    if row is None or row[1] < number:
        return
    low, high, *rest = row
    db.execute("DELETE FROM missed WHERE low = ?", (low,))
    if low < number:
        _insert(db, (low, number - 1, *rest))
    if number < high:
        _insert(db, (number + 1, high, *rest))


def _skip(db: Any, number: int, reason: str) -> None:  # noqa: ANN401
    """Add an id to the ranges that are left out, which grow together."""
    low = high = number
    before = db.execute("SELECT low, high, reason FROM skipped WHERE low <= ? ORDER BY low DESC LIMIT 1", (number,))
    row = before.fetchone()
    if row is not None and row[1] >= number:
        return
    if row is not None and row[1] == number - 1 and row[2] == reason:
        low = row[0]
        db.execute("DELETE FROM skipped WHERE low = ?", (low,))
    behind = db.execute("SELECT high, reason FROM skipped WHERE low = ?", (number + 1,)).fetchone()
    if behind is not None and behind[1] == reason:
        high = behind[0]
        db.execute("DELETE FROM skipped WHERE low = ?", (number + 1,))
    db.execute("INSERT INTO skipped VALUES (?, ?, ?)", (low, high, reason))
