"""SQLite files of ours: made, told from other people's, opened, and written all or nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sanderling.stores.durable import FolderError, plainly

BUSY_SECONDS = 30.0  # that a write waits for another process: an import of a million ids takes its turns, too
MODE_TRIES = 20
# Bytes of the log that may wait to be copied into the file: as many as the file has. One of 2 MB needs no log of 60,
# and a large one, whose pages lie far apart, gains by a longer one.
SHORTEST_LOG = 4 << 20
LOOK = "PRAGMA schema_version"  # reads the first page
LOOK_AFTER = 200  # transactions, after which the size of the file is looked at again


@dataclass(frozen=True, slots=True)
class FileKind:
    """What sort of file it is."""

    what: str  # for messages
    application: int  # four letters that tell it from other people's databases
    version: int
    tables: tuple[str, ...]


def open_file(path: Path, kind: FileKind) -> sqlite3.Connection:
    """The file at `path`, made where there is none; in WAL mode, for any thread, without implicit transactions.

    Raises FolderError, and changes nothing, if it is something else's or of a later version.
    """
    with plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            new = _check(db, path, kind)
            _set_mode(db)
            if new:
                _make_first(db, path, kind)
        except BaseException:
            db.close()
            raise
    return db


def _check(db: sqlite3.Connection, path: Path, kind: FileKind) -> bool:
    """Whether the file is new."""
    # In one statement, so that all is of one moment: another process may be making the file just now.
    ((application, version, tables),) = db.execute(
        """SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
        FROM pragma_application_id, pragma_user_version"""
    )
    if tables and application != kind.application:
        raise FolderError(f"{path} is no {kind.what}; choose another file")
    if tables and version > kind.version:
        raise FolderError(f"{path} is of format {version}, this version reads {kind.version}; use a newer version")
    return not tables


def _make_first(db: sqlite3.Connection, path: Path, kind: FileKind) -> None:
    """Make the tables, unless somebody else was quicker."""
    with transaction(db):
        if _check(db, path, kind):
            _make_tables(db, kind)


def _set_mode(db: sqlite3.Connection) -> None:
    """Switch to WAL. Two who do so at once do not wait for each other, as SQLite makes others do."""
    for _ in range(MODE_TRIES - 1):
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            db.execute("BEGIN IMMEDIATE")  # waits until the other one is done
            db.execute("ROLLBACK")
        else:
            return
    db.execute("PRAGMA journal_mode = WAL")


def version_of(db: sqlite3.Connection) -> int:
    """The format of a file."""
    ((version,),) = db.execute("PRAGMA user_version")
    return int(version)


def make_tables(db: sqlite3.Connection, kind: FileKind) -> None:
    """Make an empty database one of this kind."""
    with transaction(db):
        _make_tables(db, kind)


def _make_tables(db: sqlite3.Connection, kind: FileKind) -> None:
    for statement in kind.tables:
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {kind.application}")
    db.execute(f"PRAGMA user_version = {kind.version}")


class LogBound:
    """Keeps the log of a connection in proportion to its file. `look` after each transaction."""

    def __init__(self, db: sqlite3.Connection, path: Path, longest: int) -> None:
        ((self._page,),) = db.execute("PRAGMA page_size")
        self._db = db
        self._path = path
        self._longest = longest
        self._bound = 0
        self._next = 0  # transactions until the next look
        self.look()

    def look(self) -> None:
        """Set the bound, now and then."""
        self._next -= 1
        if self._next >= 0:
            return
        self._next = LOOK_AFTER
        bound = max(SHORTEST_LOG, min(self._longest, self._path.stat().st_size))
        if not self._bound or bound >= 2 * self._bound or bound == self._longest != self._bound:
            self._bound = bound
            self._db.execute(f"PRAGMA wal_autocheckpoint = {bound // self._page}")
            self._db.execute(f"PRAGMA journal_size_limit = {bound}")


@contextmanager
def transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """All of it, or nothing; and what is read is of one moment."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has rolled it back already
            db.execute("ROLLBACK")
        raise


def connect_read_only(path: Path) -> sqlite3.Connection:
    """A connection to the file at `path`, beside whoever writes it, by which nothing can be changed.

    A writer that was killed may have left half a transaction. Only who may write can undo that, so it is done first.
    """
    db = _connect(path, "ro")
    try:
        db.execute(LOOK)
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
        with closing(_connect(path, "rw")) as writer:
            writer.execute(LOOK)
        return _connect(path, "ro")
    except BaseException:
        db.close()
        raise
    return db


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode={mode}", uri=True, isolation_level=None)


def open_to_read(path: Path, kind: FileKind) -> sqlite3.Connection:
    """The file at `path`, beside whoever writes it; nothing is changed. Raises FolderError."""
    with plainly(path):
        db = connect_read_only(path)
        try:
            empty = _check(db, path, kind)
        except BaseException:
            db.close()
            raise
        if empty:
            db.close()
            raise FolderError(f"{path} is empty; nothing was stored yet")
    return db


# `of` is a value of the column that is counted by, `number` how many rows have it, or what is summed up of them.
TABLE = "CREATE TABLE {0}_tally (of PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID"
FILL = "INSERT INTO {0}_tally SELECT {1}, sum({2}) FROM {0} GROUP BY {1}"
CHANGE = "INSERT INTO {0}_tally VALUES ({3}.{1}, {4}({2})) ON CONFLICT DO UPDATE SET number = number + excluded.number"
INSERTED = "CREATE TRIGGER {0}_tally_inserted AFTER INSERT ON {0} BEGIN {1}; END"
DELETED = "CREATE TRIGGER {0}_tally_deleted AFTER DELETE ON {0} BEGIN {1}; END"
UPDATED = "CREATE TRIGGER {0}_tally_updated AFTER UPDATE OF {1} ON {0} BEGIN {2}; {3}; END"


def keep_tally(db: sqlite3.Connection, table: str, by: str, amount: str = "1") -> None:
    """Count the rows of `table` by a column from now on, or sum up `amount`, in which {0} stands for the row.

    A file that has no such count gets it here, in one pass over the table. All names are ours.
    """
    if _is_kept(db, table):
        return
    with transaction(db):
        if _is_kept(db, table):  # by another process, meanwhile
            return
        out, into = (
            CHANGE.format(table, by, amount.format(row), row, sign) for row, sign in (("old", "-"), ("new", ""))
        )
        db.execute(TABLE.format(table))
        db.execute(FILL.format(table, by, amount.format(table)))
        db.execute(INSERTED.format(table, into))
        db.execute(DELETED.format(table, out))
        db.execute(UPDATED.format(table, by, out, into))


def tally(db: sqlite3.Connection, table: str) -> dict[int | str, int]:
    """The counts that are not 0, by value, in the order of values."""
    rows = db.execute(f"SELECT of, number FROM {table}_tally WHERE number != 0 ORDER BY of")  # noqa: S608 - ours
    return dict(rows.fetchall())


def _is_kept(db: sqlite3.Connection, table: str) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (f"{table}_tally",))
    return found.fetchone() is not None
