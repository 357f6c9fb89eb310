"""The last day of every system, on disk: a point every ten seconds, in a file of the home that never grows beyond that.

The place of a point is its time within the day, so tomorrow's takes the place of today's. Whoever cannot write the file
has no past beyond the last ten minutes, and everything else all the same.
"""

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sanderling.observe import logs
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.sqlite_file import FileKind, connect_read_only, open_file, transaction
from sanderling.web.house import MOST_FOLDERS
from sanderling.web.house_history import DIGITS

log = logs.get(__name__)

FILE = "dashboard-history.db"
EVERY = 10  # seconds between two points
DAY = 86_400
MOST_POINTS = 720  # of a series, as it is sent
TABLES = (
    "CREATE TABLE system (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, at INTEGER NOT NULL)",
    """CREATE TABLE point (
        system INTEGER NOT NULL, place INTEGER NOT NULL, at INTEGER NOT NULL, points BLOB NOT NULL,
        PRIMARY KEY (system, place)) WITHOUT ROWID""",
)
KIND = FileKind("history of a dashboard", 0x53414E48, 1, TABLES)  # "SANH"

Points = Mapping[str, float | None]


class PastQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which system, and how many seconds back."""

    system: Annotated[str, Meta(min_length=1, max_length=500)]
    range: Literal[3600, 21600, 86400] = 3600


class PastShown(msgspec.Struct, frozen=True, kw_only=True):
    """Some series, the oldest point first; null where nothing is known."""

    every: int  # seconds between two points
    from_: int = msgspec.field(name="from")  # the time of the first
    series: dict[str, list[float | None]]
    trouble: str = ""  # why nothing is kept


class Means:
    """The mean of what was seen since the last point, by system and series."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, tuple[float, int]]] = {}

    def take(self, system: str, points: Points) -> None:
        """Count these in; what is not known does not count."""
        sums = self._sums.setdefault(system, {})
        for name, point in points.items():
            if point is not None:
                total, number = sums.get(name, (0.0, 0))
                sums[name] = (total + point, number + 1)

    def give(self) -> dict[str, dict[str, float]]:
        """All of them, of which something is known; and begin anew."""
        sums, self._sums = self._sums, {}
        means = {
            system: {name: round(total / number, DIGITS) for name, (total, number) in each.items()}
            for system, each in sums.items()
        }
        return {system: each for system, each in means.items() if each}


class Past:
    """What was. It is looked at by its own thread of the moment; several dashboards may write the same file."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE
        self.trouble = ""
        self._means = Means()
        self._written = 0  # the last time, in steps of EVERY

    def __repr__(self) -> str:
        return f"<Past {self.path}>"

    async def take(self, wall: float, systems: Iterable[tuple[str, Points]]) -> None:
        """Take what was seen at `wall`, and write a point if it is time."""
        for system, points in systems:
            self._means.take(system, points)
        step = int(wall) // EVERY
        if step == self._written:
            return
        self._written, means = step, self._means.give()
        if not means:
            return  # and there is no file where nothing has ever run
        try:
            await asyncio.to_thread(self.write, step * EVERY, means)
        except FolderError as error:
            if not self.trouble:
                log.warning("history_not_kept", why=str(error))
            self.trouble = str(error)
        else:
            self.trouble = ""

    def write(self, at: int, means: Mapping[str, Points]) -> None:
        """Write a point of these. Raises FolderError."""
        if self.path.is_symlink():
            raise FolderError(f"{self.path} is a link; the history is kept in a file of its own")
        with closing(open_file(self.path, KIND)) as db, plainly(self.path):
            db.execute("PRAGMA synchronous = OFF")  # the last points may be lost with the power
            with transaction(db):
                known = _forget(db, at)
                for system, points in means.items():
                    _put(db, at, system, points, known)

    def read(self, query: PastQuery, wall: float) -> PastShown:
        """What was of a system. Blocks. Raises FolderError."""
        every = max(EVERY, query.range // MOST_POINTS // EVERY * EVERY)
        last = int(wall) // every * every
        first, number = last - query.range + every, query.range // every
        if not self.path.is_file() or self.path.is_symlink():
            return PastShown(every=every, from_=first, series={}, trouble=self.trouble)
        sums: dict[str, list[tuple[float, int]]] = {}
        with plainly(self.path), closing(connect_read_only(self.path)) as db:
            rows = db.execute(
                "SELECT at, points FROM point WHERE system = (SELECT id FROM system WHERE name = ?) AND at >= ?",
                (query.system, first),
            )
            for at, data in rows:
                place = (at - first) // every
                if 0 <= place < number:
                    _add(sums, place, number, data)
        series = {name: [_mean(each) for each in places] for name, places in sums.items()}
        return PastShown(every=every, from_=first, series=series, trouble=self.trouble)


def _put(db: sqlite3.Connection, at: int, system: str, points: Points, known: set[str]) -> None:
    if system not in known and len(known) >= MOST_FOLDERS:
        return  # names that change all the time must not fill the disk
    known.add(system)
    db.execute(
        "INSERT INTO system (name, at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET at = max(at, excluded.at)",
        (system, at),
    )
    row = (at % DAY // EVERY, at, msgspec.msgpack.encode(points), system)
    db.execute("INSERT OR REPLACE INTO point SELECT id, ?, ?, ? FROM system WHERE name = ?", row)


def _forget(db: sqlite3.Connection, at: int) -> set[str]:
    """Forget systems of which a day has nothing; the names of all others."""
    known = set()
    for number, name, last in db.execute("SELECT id, name, at FROM system").fetchall():
        if last < at - DAY:
            db.execute("DELETE FROM point WHERE system = ?", (number,))
            db.execute("DELETE FROM system WHERE id = ?", (number,))
        else:
            known.add(name)
    return known


def _add(sums: dict[str, list[tuple[float, int]]], place: int, places: int, data: bytes) -> None:
    try:
        points = msgspec.msgpack.decode(data, type=dict[str, float])
    except msgspec.MsgspecError:
        return  # a point that makes no sense is one that is not known
    for name, point in points.items():
        known = sums.setdefault(name, [(0.0, 0)] * places)
        total, number = known[place]
        known[place] = (total + point, number + 1)


def _mean(each: tuple[float, int]) -> float | None:
    total, number = each
    return round(total / number, DIGITS) if number else None
