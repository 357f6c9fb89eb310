"""Progress in a SQLite file."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.ledger_log import RecordedDb, SharedHead
from sanderling.stores.ports import MOST_FAILURES, Due, Finished, HostAside, ProgressError, ProgressView, Unfinished
from sanderling.stores.sqlite_file import FileKind, open_file, transaction

SCHEDULE = "CREATE INDEX did_due ON did (due, failures, did) WHERE due IS NOT NULL"
ASIDE = (
    "CREATE TABLE aside (host TEXT PRIMARY KEY, category TEXT NOT NULL, due INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX aside_due ON aside (due, host)",
)
TABLES = (
    # One row.
    """CREATE TABLE crawl (
        cursor TEXT NOT NULL, segment INTEGER NOT NULL, bytes_written INTEGER NOT NULL,
        scheduled INTEGER NOT NULL DEFAULT 0)""",
    "INSERT INTO crawl VALUES ('', 0, 0, 0)",
    # Without a category it was archived. SQLite keeps an empty text, 0, 1 and NULL in no bytes at all.
    """CREATE TABLE did (
        did TEXT PRIMARY KEY, category TEXT NOT NULL, complete INTEGER NOT NULL,
        failures INTEGER NOT NULL DEFAULT 0, due INTEGER,
        CHECK (complete = 1 OR complete = 0 AND category != '')) WITHOUT ROWID""",
    SCHEDULE,
    # Kept by hand, since counting fifty million rows takes seconds, and a status line asks often.
    "CREATE TABLE tally (category TEXT, complete INTEGER, dids INTEGER NOT NULL, PRIMARY KEY (category, complete))",
    *ASIDE,
)
# From format 1, of release 0.2.0, which had passes: what failed for now is due at once.
UPGRADE = (
    "ALTER TABLE crawl ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE did ADD COLUMN failures INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE did ADD COLUMN due INTEGER",
    "UPDATE did SET due = 0 WHERE complete = 0",
    "UPDATE crawl SET scheduled = (SELECT coalesce(sum(dids), 0) FROM tally WHERE complete = 0)",
    "DROP INDEX did_failed",
    SCHEDULE,
    *ASIDE,
    "PRAGMA user_version = 2",
)

PROGRESS = FileKind("progress of a crawl of repos", 0x53414E50, 2, TABLES)  # "SANP"
# Of one that machines share: how far it is; and which DIDs have come from other parts, or go there: `part`, until they
# are sent. The number of moves tells a message that comes twice from an account that comes back.
SHARED = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
    """CREATE TABLE moved (did TEXT PRIMARY KEY, moves INTEGER NOT NULL, category TEXT NOT NULL,
        failures INTEGER NOT NULL, due INTEGER NOT NULL, part INTEGER) WITHOUT ROWID""",
    "CREATE INDEX moved_part ON moved (part) WHERE part IS NOT NULL",
)

State = tuple[str, int, int, int | None]  # category, whether complete, failures in a row, due time
ARCHIVED: State = ("", 1, 0, None)
UNKNOWN: State = ("", 0, 0, None)


class MovedDid(NamedTuple):
    """A DID that goes from one part of a fleet's crawl to another, which asks its host now."""

    did: str
    moves: int  # from part to part, so far
    category: str
    failures: int
    due: int  # Unix seconds
    part: int | None = None  # that it goes to, while it is to be sent


class SqliteProgress:
    """Made where there is none. Its methods may be called from any thread; each is atomic."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()
        with self._plainly():
            self._db = open_file(path, PROGRESS)
            # A commit is on disk when it returns; the default of WAL would lose the last ones with the power.
            self._db.execute("PRAGMA synchronous = FULL")
            _upgrade(self._db)
            ((self.scheduled,),) = self._db.execute("SELECT scheduled FROM crawl")  # DIDs that have a due time
            found = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'moved'").fetchone()
            self._is_shared = found is not None

    @staticmethod
    def create_shared(path: Path) -> None:
        """Make the empty progress that all copies of one begin with. Raises FolderError."""
        with closing(open_file(path, PROGRESS)) as db, plainly(path):
            for statement in SHARED:
                db.execute(statement)

    def share(self, share: Callable[[bytes], SharedHead]) -> None:
        """From now on, hand each transaction to `share` before it is committed here; what it raises undoes it here too.

        What counts is what `share` keeps: this file is a copy, which a machine that fails may set back a little.
        """
        with self._alone() as db:
            self._db = cast("sqlite3.Connection", RecordedDb(db, share))
            self._db.execute("PRAGMA synchronous = NORMAL")

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
        with self._alone() as db:
            ((cursor,),) = db.execute("SELECT cursor FROM crawl")
        return str(cursor)

    def pending(self, dids: Sequence[str]) -> list[str]:
        with self._alone():
            states = self._states(dids)
            elsewhere = self._moves(dids) if self._is_shared else {}
        known = {did for did, state in states.items() if state[1] or state[3] is not None} | elsewhere.keys()
        return [did for did in dids if did not in known]

    def due(self, after: Due, until: int, limit: int) -> list[Due]:
        with self._alone() as db:
            rows = db.execute(
                """SELECT due, failures, did FROM did INDEXED BY did_due
                WHERE due IS NOT NULL AND (due, failures, did) > (?, ?, ?) AND due <= ?
                ORDER BY due, failures, did LIMIT ?""",
                (*after, until, limit),
            )
            return [Due._make(row) for row in rows]

    def last_due(self) -> int:
        with self._alone() as db:
            ((last,),) = db.execute("SELECT max(due) FROM did INDEXED BY did_due WHERE due IS NOT NULL")
        return int(last or 0)

    def record(
        self,
        done: Sequence[Finished],
        failed: Sequence[Unfinished],
        *,
        cursor: str | None,
        segment: int,
        hosts: Sequence[HostAside] = (),
    ) -> None:
        with self._alone() as db, transaction(db):
            scheduled = self._record(db, done, failed, cursor, segment)
            last = {each.host: each for each in hosts}
            db.executemany("DELETE FROM aside WHERE host = ?", ((host,) for host in last))
            db.executemany("INSERT INTO aside VALUES (?, ?, ?)", (each for each in last.values() if each.category))
        self.scheduled += scheduled

    def _record(
        self,
        db: sqlite3.Connection,
        done: Sequence[Finished],
        failed: Sequence[Unfinished],
        cursor: str | None,
        segment: int | None,
    ) -> int:
        """Within a transaction; how many more are scheduled."""
        old = self._states([*(each.did for each in done), *(each.did for each in failed)])
        new = _after(old, done, failed)
        db.executemany(
            """INSERT INTO did VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            category = excluded.category, complete = excluded.complete, failures = excluded.failures,
            due = excluded.due""",
            ((did, *state) for did, state in new.items()),
        )
        moved = Counter(state[:2] for state in new.values())
        moved.subtract(old[did][:2] for did in new if did in old)
        db.executemany(
            "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET dids = dids + excluded.dids",
            ((*kind, by) for kind, by in moved.items()),
        )
        scheduled = sum((state[3] is not None) - (old.get(did, UNKNOWN)[3] is not None) for did, state in new.items())
        sizes = {each.did: each.size for each in done if old.get(each.did) != ARCHIVED}
        db.execute(
            """UPDATE crawl SET cursor = coalesce(?, cursor), segment = coalesce(?, segment),
            bytes_written = bytes_written + ?, scheduled = scheduled + ?""",
            (cursor, segment, sum(sizes.values()), scheduled),
        )
        return scheduled

    def aside(self, limit: int) -> list[HostAside]:
        with self._alone() as db:
            rows = db.execute("SELECT host, category, due FROM aside ORDER BY due, host LIMIT ?", (limit,))
            return [HostAside._make(row) for row in rows]

    def aside_of(self, host: str) -> HostAside | None:
        with self._alone() as db:
            row = db.execute("SELECT host, category, due FROM aside WHERE host = ?", (host,)).fetchone()
        return None if row is None else HostAside._make(row)

    def clear_aside(self) -> None:
        with self._alone() as db, transaction(db):
            db.execute("DELETE FROM aside")

    def view(self) -> ProgressView:
        with self._alone() as db, transaction(db, "DEFERRED"):
            ((cursor, segment, bytes_written, scheduled),) = db.execute(
                "SELECT cursor, segment, bytes_written, scheduled FROM crawl"
            )
            ((due,),) = db.execute("SELECT min(due) FROM did INDEXED BY did_due WHERE due IS NOT NULL")
            ((aside,),) = db.execute("SELECT count(*) FROM aside")
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
            scheduled=scheduled,
            due=due,
            hosts_aside=aside,
        )

    def reasons(self, dids: Sequence[str]) -> dict[str, str]:
        with self._alone():
            return {did: state[0] for did, state in self._states(dids).items() if state[0]}

    def release(self, dids: Sequence[str]) -> None:
        with self._alone() as db, transaction(db):
            scheduled = self._remove(db, dids)
        self.scheduled -= scheduled

    def forget(self, dids: Sequence[str]) -> None:
        with self._alone() as db:
            db.execute("PRAGMA secure_delete = ON")
            with transaction(db):
                scheduled = self._remove(db, dids)
                if self._is_shared:
                    db.executemany("DELETE FROM moved WHERE did = ?", ((did,) for did in dids))
            db.execute("VACUUM")  # what was freed earlier was not overwritten then
        self.scheduled -= scheduled

    def _remove(self, db: sqlite3.Connection, dids: Sequence[str]) -> int:
        """Within a transaction; how many fewer are scheduled."""
        old = self._states(dids)
        db.executemany("DELETE FROM did WHERE did = ?", ((did,) for did in old))
        gone = Counter(state[:2] for state in old.values())
        db.executemany(
            "UPDATE tally SET dids = dids - ? WHERE category = ? AND complete = ?",
            ((number, *kind) for kind, number in gone.items()),
        )
        scheduled = sum(state[3] is not None for state in old.values())
        db.execute("UPDATE crawl SET scheduled = scheduled - ?", (scheduled,))
        return scheduled

    # Of one that machines share.

    def send_away(self, moved: Mapping[Due, int]) -> None:
        """These belong to other parts, by their numbers: they are not known here any more, and are still to be sent."""
        with self._alone() as db, transaction(db):
            states = self._states([each.did for each in moved])
            before = self._moves(states)
            rows = [
                (each.did, before.get(each.did, 0) + 1, states[each.did][0], each.failures, each.due, part)
                for each, part in moved.items()
                if each.did in states
            ]
            db.executemany("INSERT OR REPLACE INTO moved VALUES (?, ?, ?, ?, ?, ?)", rows)
            scheduled = self._remove(db, list(states))
        self.scheduled -= scheduled

    def unsent(self, limit: int) -> list[MovedDid]:
        """The first of those that are still to be sent."""
        with self._alone() as db:
            sql = "SELECT * FROM moved INDEXED BY moved_part WHERE part IS NOT NULL ORDER BY part, did LIMIT ?"
            return [MovedDid._make(row) for row in db.execute(sql, (limit,))]

    def sent(self, dids: Sequence[str]) -> None:
        """These are on their way, for good."""
        with self._alone() as db, transaction(db):
            db.executemany("UPDATE moved SET part = NULL WHERE did = ?", ((did,) for did in dids))

    def take_in(self, moved: Sequence[MovedDid]) -> list[Due]:
        """Schedule what other parts have sent, each once, however often it comes; those that are new."""
        with self._alone() as db, transaction(db):
            last = {each.did: each for each in sorted(moved, key=lambda each: each.moves)}
            before = self._moves(last)
            new = [each for did, each in last.items() if before.get(did, 0) < each.moves]
            db.executemany("INSERT OR REPLACE INTO moved VALUES (?, ?, ?, ?, ?, NULL)", (each[:5] for each in new))
            failed = [Unfinished(each.did, each.category, False, each.failures, each.due) for each in new]  # noqa: FBT003 - a row
            scheduled = self._record(db, [], failed, None, None)
        self.scheduled += scheduled
        return [Due(each.due, each.failures, each.did) for each in new]

    def _moves(self, dids: Iterable[str]) -> dict[str, int]:
        sql = "SELECT did, moves FROM json_each(?) CROSS JOIN moved ON did = value"
        return dict(self._db.execute(sql, (_listed(list(dids)),)).fetchall())

    def reset(self) -> None:
        with self._alone() as db, transaction(db):
            db.execute("DELETE FROM did")
            db.execute("DELETE FROM tally")
            db.execute("DELETE FROM aside")
            if self._is_shared:
                db.execute("DELETE FROM moved")
            db.execute("UPDATE crawl SET cursor = '', segment = 0, bytes_written = 0, scheduled = 0")
        self.scheduled = 0

    def close(self) -> None:
        """Let go of the file, once nobody is at it."""
        with self._turn:
            self._db.close()

    def _states(self, dids: Sequence[str]) -> dict[str, State]:
        """What is known of these. All in one parameter: there may be fifty thousand, and SQLite takes fewer."""
        rows = self._db.execute(
            "SELECT did, category, complete, failures, due FROM json_each(?) CROSS JOIN did ON did = value",
            (_listed(dids),),
        )
        return {did: (category, complete, failures, due) for did, category, complete, failures, due in rows}

    def __repr__(self) -> str:
        return f"<SqliteProgress {self._path}>"


def _upgrade(db: sqlite3.Connection) -> None:
    """Bring a file of an earlier release to this format."""
    if db.execute("PRAGMA user_version").fetchone() == (PROGRESS.version,):
        return
    with transaction(db):
        if db.execute("PRAGMA user_version").fetchone() < (PROGRESS.version,):  # else somebody else was quicker
            for statement in UPGRADE:
                db.execute(statement)


def _after(old: dict[str, State], done: Sequence[Finished], failed: Sequence[Unfinished]) -> dict[str, State]:
    """What becomes of each DID of a record that changes."""
    new: dict[str, State] = {}
    for each in failed:
        if not (new.get(each.did) or old.get(each.did, UNKNOWN))[1]:
            due = None if each.permanent else each.due
            failures = 0 if due is None else min(each.failures, MOST_FAILURES)
            new[each.did] = (each.category, int(each.permanent), failures, due)
    new |= {each.did: ARCHIVED for each in done}
    return {did: state for did, state in new.items() if old.get(did) != state}


def _listed(texts: Sequence[str]) -> str:
    return msgspec.json.encode(texts).decode()
