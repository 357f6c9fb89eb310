"""Progress in a SQLite file."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.ports import Finished, ProgressError, ProgressView, Unfinished
from sanderling.stores.sqlite_file import Kind, open_file, transaction

TABLES = (
    # One row.
    "CREATE TABLE crawl (cursor TEXT NOT NULL, segment INTEGER NOT NULL, bytes_written INTEGER NOT NULL)",
    "INSERT INTO crawl VALUES ('', 0, 0)",
    # Without a category it was archived. SQLite keeps an empty text, 0 and 1 in no bytes at all.
    """CREATE TABLE did (
        did TEXT PRIMARY KEY, category TEXT NOT NULL, complete INTEGER NOT NULL,
        CHECK (complete = 1 OR complete = 0 AND category != '')) WITHOUT ROWID""",
    # What a later pass asks for, in its order: few among many that are complete.
    "CREATE INDEX did_failed ON did (did, category) WHERE complete = 0",
    # Kept by hand, since counting fifty million rows takes seconds, and a status line asks often.
    "CREATE TABLE tally (category TEXT, complete INTEGER, dids INTEGER NOT NULL, PRIMARY KEY (category, complete))",
)

PROGRESS = Kind("progress of a crawl of repos", 0x53414E50, 1, TABLES)  # "SANP"

State = tuple[str, int]  # category and whether complete
ARCHIVED: State = ("", 1)


class SqliteProgress:
    """Made where there is none. Its methods may be called from any thread; each is atomic."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()
        with self._plainly():
            self._db = open_file(path, PROGRESS)
            # A commit is on disk when it returns; the default of WAL would lose the last ones with the power.
            self._db.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            with plainly(self._path):
                yield
        except FolderError as error:
            raise ProgressError(str(error)) from error

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        with self._turn, self._plainly():
            yield self._db

    def cursor(self) -> str:
        """All DIDs up to this one were seen to; "" at the start."""
        with self._alone() as db:
            ((cursor,),) = db.execute("SELECT cursor FROM crawl")
        return str(cursor)

    def pending(self, dids: Sequence[str]) -> list[str]:
        """Of these, in their order, those that are not complete."""
        with self._alone():
            states = self._states(dids)
        return [did for did in dids if not states.get(did, ("", 0))[1]]

    def record(
        self, done: Sequence[Finished], failed: Sequence[Unfinished], *, cursor: str | None, segment: int
    ) -> None:
        """Keep all of it or nothing; it may be said twice. Without a `cursor` the old one stays."""
        with self._alone() as db, transaction(db):
            old = self._states([*(each.did for each in done), *(each.did for each in failed)])
            new = _after(old, done, failed)
            db.executemany(
                """INSERT INTO did VALUES (?, ?, ?)
                ON CONFLICT DO UPDATE SET category = excluded.category, complete = excluded.complete""",
                ((did, *state) for did, state in new.items()),
            )
            moved = Counter(new.values())
            moved.subtract(old[did] for did in new if did in old)
            db.executemany(
                "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET dids = dids + excluded.dids",
                ((*state, by) for state, by in moved.items()),
            )
            sizes = {each.did: each.size for each in done if old.get(each.did) != ARCHIVED}
            db.execute(
                "UPDATE crawl SET cursor = coalesce(?, cursor), segment = ?, bytes_written = bytes_written + ?",
                (cursor, segment, sum(sizes.values())),
            )

    def failed(self, categories: Sequence[str], after: str, limit: int) -> list[tuple[str, str]]:
        """DIDs after `after` that failed in one of these, but not for good, and their category; by DID, bytewise."""
        with self._alone() as db:
            return db.execute(
                """SELECT did, category FROM did INDEXED BY did_failed
                WHERE complete = 0 AND did > ? AND category IN (SELECT value FROM json_each(?))
                ORDER BY did LIMIT ?""",
                (after, _listed(categories), limit),
            ).fetchall()

    def view(self) -> ProgressView:
        """How far it is, counted."""
        with self._alone() as db, transaction(db, "DEFERRED"):
            ((cursor, segment, bytes_written),) = db.execute("SELECT cursor, segment, bytes_written FROM crawl")
            tally = db.execute("SELECT category, complete, dids FROM tally").fetchall()
        failed: Counter[str] = Counter()
        for category, _, dids in tally:
            failed[category] += dids
        return ProgressView(
            cursor=cursor,
            completed=sum(dids for _, complete, dids in tally if complete),
            total_crawled=failed.pop("", 0),
            failed={category: dids for category, dids in sorted(failed.items()) if dids},
            segment=segment,
            bytes_written=bytes_written,
        )

    def reset(self) -> None:
        """Forget everything."""
        with self._alone() as db, transaction(db):
            db.execute("DELETE FROM did")
            db.execute("DELETE FROM tally")
            db.execute("UPDATE crawl SET cursor = '', segment = 0, bytes_written = 0")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _states(self, dids: Sequence[str]) -> dict[str, State]:
        """What is known of these. All in one parameter: there may be fifty thousand, and SQLite takes fewer."""
        rows = self._db.execute(
            "SELECT did, category, complete FROM json_each(?) CROSS JOIN did ON did = value", (_listed(dids),)
        )
        return {did: (category, complete) for did, category, complete in rows}

    def __repr__(self) -> str:
        return f"<SqliteProgress {self._path}>"


def _after(old: dict[str, State], done: Sequence[Finished], failed: Sequence[Unfinished]) -> dict[str, State]:
    """What becomes of each DID of a record that changes."""
    new: dict[str, State] = {}
    for each in failed:
        if not (new.get(each.did) or old.get(each.did, ("", 0)))[1]:
            new[each.did] = (each.category, int(each.permanent))
    new |= {each.did: ARCHIVED for each in done}
    return {did: state for did, state in new.items() if old.get(did) != state}


def _listed(texts: Sequence[str]) -> str:
    return msgspec.json.encode(texts).decode()
