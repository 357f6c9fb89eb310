"""The transactions of a SQLite ledger as bytes, so that another machine can make the same ledger.

Statements and their values are what is written down: given the same file they have the same effect. URLs are the
exception: most that a page leads to are known, so it is written down which were new, and not which were offered.

A ledger that is shared says how far it is in its table `meta`: the number and the token of its last commit.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_file import key_of

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError, compress
else:
    from backports.zstd import ZstdDecompressor, ZstdError, compress

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
NEW_URLS = "INSERT OR IGNORE INTO url (host"  # of which it is looked up what became of them
ADD_URL = "INSERT INTO url (id, host, depth, end, code, key, url) VALUES (?1, ?2, ?3, 0, 0, key_of(?4), ?4)"
NOTE = "INSERT OR REPLACE INTO meta VALUES ('shared', ?)"
LARGEST = 256 * 2**20  # bytes of one transaction
# What a transaction may do on the machine that reads it: nothing with files, or with the shape of tables.
ALLOWED = frozenset(
    {
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_UPDATE,
    }
)

Statement = tuple[str, list[Sequence[Any]]]
_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[tuple[str, list[list[Any]]]])


class SharedHead(NamedTuple):
    """The last commit of a ledger: how many there were before and with it, and its token."""

    number: int = 0
    token: str = ""


class RecordedDb:
    """A connection that writes down what it changes. `share` is handed each transaction, before it is on disk."""

    def __init__(self, db: sqlite3.Connection, share: Callable[[bytes], SharedHead]) -> None:
        self._db = db
        self._share = share
        self._said: list[Statement] = []
        self._urls_from: int | None = None  # the highest id before any URL was offered
        self._changes = 0
        self.executescript = db.executescript
        self.close = db.close
        self.create_function = db.create_function

    @property
    def in_transaction(self) -> bool:
        """As of the connection."""
        return self._db.in_transaction

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """As of the connection. What a transaction changes is shared before it is committed."""
        word = sql[:6].upper()
        if word == "COMMIT":
            self._finish()
        elif word == "BEGIN ":
            self._said, self._urls_from, self._changes = [], None, self._db.total_changes
        elif word in WRITES and self._db.in_transaction:
            return self._write(sql, values)
        return self._db.execute(sql, values)

    def _write(self, sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
        if sql.startswith(NEW_URLS):
            self._offer()
            return self._db.execute(sql, values)
        done = self._db.execute(sql, values)
        if done.rowcount or not sql.startswith("INSERT OR IGNORE"):
            self._say(sql, [values])
        return done

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> sqlite3.Cursor:
        """As of the connection."""
        rows = list(rows)
        if rows and self._db.in_transaction and sql[:6].upper() in WRITES:
            self._say(sql, rows)
        return self._db.executemany(sql, rows)

    def _say(self, sql: str, rows: list[Sequence[Any]]) -> None:
        if self._said and self._said[-1][0] == sql:
            self._said[-1][1].extend(rows)
        else:
            self._said.append((sql, rows))

    def _offer(self) -> None:
        if self._urls_from is None:
            ((self._urls_from,),) = self._db.execute("SELECT coalesce(max(id), 0) FROM url")
            self._said.append((ADD_URL, []))

    def _finish(self) -> None:
        """Share what has changed, and note in the ledger that it is."""
        if self._db.total_changes == self._changes:
            return
        if self._urls_from is not None:
            sql = "SELECT id, host, depth, url FROM url WHERE id > ? ORDER BY id"
            new = self._db.execute(sql, (self._urls_from,)).fetchall()
            next(rows for sql, rows in self._said if sql == ADD_URL).extend(new)
        note_head(self._db, self._share(pack([each for each in self._said if each[1]])))


def pack(said: Sequence[Statement]) -> bytes:
    """A transaction as bytes."""
    return compress(_ENCODER.encode(said), 3)


def unpack(body: bytes) -> list[tuple[str, list[list[Any]]]]:
    """The statements of a transaction. Raises FolderError."""
    frame = ZstdDecompressor()
    try:
        plain = frame.decompress(body, LARGEST)
        if frame.eof and not frame.unused_data:
            return _DECODER.decode(plain)
    except (msgspec.MsgspecError, ZstdError, MemoryError) as error:
        raise FolderError(f"a commit of a shared ledger is damaged: {error}") from None
    found = f"larger than {LARGEST:,} bytes" if len(plain) >= LARGEST else f"not one whole frame in {len(body):,} bytes"
    raise FolderError(f"a commit of a shared ledger is damaged: it is {found}")


def apply_commits(db: sqlite3.Connection, commits: Iterable[tuple[SharedHead, bytes]]) -> None:
    """Make the ledger what it was after these commits: all of them, or none. Raises FolderError."""
    db.create_function("key_of", 1, key_of, deterministic=True)
    # By position, as SQLite calls it.
    db.set_authorizer(lambda what, *_: sqlite3.SQLITE_OK if what in ALLOWED else sqlite3.SQLITE_DENY)
    try:
        db.execute("BEGIN IMMEDIATE")
        for head, body in commits:
            for sql, rows in unpack(body):
                db.executemany(sql, rows)
            note_head(db, head)
        db.execute("COMMIT")
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        raise FolderError(f"a commit of a shared ledger cannot be taken over: {error}") from None
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
        db.set_authorizer(None)


def note_head(db: sqlite3.Connection, head: SharedHead) -> None:
    """Note in a ledger which commit is its last."""
    db.execute(NOTE, (f"{head.number} {head.token}",))


def head_of(db: sqlite3.Connection) -> SharedHead:
    """The last commit that a ledger has."""
    row = db.execute("SELECT value FROM meta WHERE name = 'shared'").fetchone()
    number, _, token = (row[0] if row else "0 ").partition(" ")
    return SharedHead(int(number), token)
