"""The SQLite file of `events`: made, known again, and brought from one revision to another."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from sanderling.executor import Executor
from sanderling.stores.analytics import VERSION, AnalyticsError
from sanderling.stores.analytics_revisions import VERSION_TABLE, check, known, steps
from sanderling.stores.analytics_rows import raised
from sanderling.stores.sqlite_database import SqliteDatabase, plainly
from sanderling.stores.sqlite_file import FileKind, open_file, transaction

OLDEST = (3, 35, 0)  # the first that gives back what it has inserted, and removes columns
# The tables are made by the revisions.
ANALYTICS = FileKind("store of analytics", 0x53414E41, VERSION, ())  # "SANA"


async def open_database(path: Path, executor: Executor) -> SqliteDatabase:
    """The file at `path`, made where there is none. Its work is done by `executor`. Raises AnalyticsError."""
    return await executor(_open, path, executor)


def _open(path: Path, executor: Executor) -> SqliteDatabase:
    return SqliteDatabase(path, _open_tables(path), executor, raised)


def _open_tables(path: Path) -> sqlite3.Connection:
    """The file at `path`, made where there is none, if it is at the last revision. Raises AnalyticsError."""
    if sqlite3.sqlite_version_info < OLDEST:
        message = f"SQLite here is {sqlite3.sqlite_version}, expected {'.'.join(map(str, OLDEST))} or later"
        raise AnalyticsError(message, transient=False)
    with plainly(path, raised):
        db = open_file(path, ANALYTICS)
        try:
            found = _revision(db)
            if found is None:
                _migrate(path, "head")
                found = _revision(db)
            check(found, path)
        except BaseException:
            db.close()
            raise
    return db


async def revision(path: Path) -> str | None:
    """Which one the file is at; None if it has no tables yet. Raises AnalyticsError, also if there is none."""
    return await asyncio.to_thread(read_revision, path)


def read_revision(path: Path) -> str | None:
    """The same, in the caller's thread."""
    if not path.exists():
        raise AnalyticsError(f"there is no {path}", transient=False)
    with plainly(path, raised), closing(open_file(path, ANALYTICS)) as db:
        return known(_revision(db), path)


def _revision(db: sqlite3.Connection) -> str | None:
    there = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (VERSION_TABLE,)).fetchall()
    rows = db.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall() if there else []  # noqa: S608 - ours
    return rows[0][0] if rows else None


async def migrate(path: Path, target: str) -> None:
    """Bring the file at `path` to a revision, all of it or nothing; made where there is none. Raises AnalyticsError."""
    await asyncio.to_thread(_migrate, path, target)


def _migrate(path: Path, target: str) -> None:
    with plainly(path, raised), closing(open_file(path, ANALYTICS)) as db:
        # A table that goes must not take what refers to it along: it may be on its way to a new shape.
        db.execute("PRAGMA foreign_keys = OFF")
        with transaction(db):  # others wait, and then find it done
            for statement in filter(None, (each.sqlite for each in steps(_revision(db), target, path))):
                db.execute(statement)
