"""Which DIDs exist, and at which host each is."""

import sqlite3
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import msgspec

from sanderling.repos import plc
from sanderling.repos.plc import EndpointError, ImportTally, Operation, RememberedOperation
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.sqlite_file import FileKind, make_tables, open_file, transaction

# Operations of one transaction: 24,000 a second went in, up to 1.5 million DIDs. Ten times as many were a third faster,
# and ever less so: their DIDs are random, so in a large file each is on a page of its own.
BATCH = 10_000
# KiB of memory for pages, and pages the write-ahead log may hold before they are moved into the file: 64 MB each.
CACHE = 64_000
LOG = 16_000

TABLES = (
    "CREATE TABLE directory (cursor TEXT NOT NULL, dids INTEGER NOT NULL)",  # one row; DIDs that have a host
    "INSERT INTO directory VALUES ('', 0)",
    "CREATE TABLE host (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE)",
    # Texts compare bytewise. `kept` is what to undo with: nothing for a DID that was put here without operations.
    "CREATE TABLE did (did TEXT PRIMARY KEY, host INTEGER, kept BLOB NOT NULL) WITHOUT ROWID",
)
DIRECTORY = FileKind("directory of DIDs", 0x53414E49, 1, TABLES)  # "SANI"
_KEPT = struct.Struct("<qq8sI?")


class DirectoryError(Exception):
    """A directory cannot be used. The message says what was found and what to do."""


class DirectoryEntry(NamedTuple):
    """A DID and its host, a base URL like https://host.example."""

    did: str
    host: str


class Directory(Protocol):
    """Which DIDs exist and where. All methods raise DirectoryError."""

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        """The first DIDs after `after` in bytewise order; none without a host."""

    def hosts_of(self, dids: Sequence[str]) -> dict[str, str]:
        """The hosts of these, as far as they have one."""

    def count(self) -> int:
        """How many DIDs have a host."""


class SqliteDirectory:
    """A directory in a file, made where there is none, or without a path in one that is gone when it is closed.

    Its methods may be called from any thread; each is atomic. A commit survives kill -9. With the power the last ones
    may be lost, together with their cursor, so that they are asked for again.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path or Path("a temporary directory of DIDs")
        self._turn = threading.Lock()
        with self._plainly():
            if path is None:
                self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
                make_tables(self._db, DIRECTORY)
            else:
                self._db = open_file(path, DIRECTORY)
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(f"PRAGMA cache_size = -{CACHE}")
            self._db.execute(f"PRAGMA wal_autocheckpoint = {LOG}")

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            with plainly(self._path):
                yield
        except FolderError as error:
            raise DirectoryError(str(error)) from error

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        with self._turn, self._plainly():
            yield self._db

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        """The first DIDs after `after` in bytewise order; none without a host."""
        with self._alone() as db:
            rows = db.execute(
                # CROSS, so that it goes through the DIDs in their order and not from host to host.
                "SELECT did, url FROM did CROSS JOIN host ON host.id = host WHERE did > ? ORDER BY did LIMIT ?",
                (after, limit),
            )
            return [DirectoryEntry(*row) for row in rows]

    def hosts_of(self, dids: Sequence[str]) -> dict[str, str]:
        """The hosts of these, as far as they have one."""
        with self._alone() as db:
            rows = db.execute(
                "SELECT did, url FROM json_each(?) CROSS JOIN did ON did = value CROSS JOIN host ON host.id = host",
                (_listed(dids),),
            )
            return dict(rows.fetchall())

    def count(self) -> int:
        """How many DIDs have a host."""
        with self._alone() as db:
            ((dids,),) = db.execute("SELECT dids FROM directory")
        return int(dids)

    def cursor(self) -> str:
        """Up to where the log of operations was applied; "" for nothing of it."""
        with self._alone() as db:
            ((cursor,),) = db.execute("SELECT cursor FROM directory")
        return str(cursor)

    def apply(self, operations: Sequence[Operation], cursor: str | None = None) -> None:
        """Fold some operations in and move the cursor, all or nothing. Any order will do, and they may come again."""
        changed: dict[str, list[Operation]] = defaultdict(list)
        for each in operations:
            changed[each.did].append(each)
        with self._alone() as db, transaction(db):
            known = self._known(changed)
            hosts = self._numbers({each.host for each in operations if each.host})
            rows = []
            for did in sorted(changed):
                new = (
                    RememberedOperation(
                        each.created_at, each.seq, plc.tag_of(each.cid), hosts.get(each.host, 0), each.nullified
                    )
                    for each in changed[did]
                )
                kept = plc.fold([*_unpacked(known[did][1] if did in known else b""), *new])
                rows.append((did, plc.host_now(kept) or None, b"".join(_KEPT.pack(*each) for each in kept)))
            self._write(rows, known)
            db.execute("UPDATE directory SET cursor = coalesce(?, cursor)", (cursor,))

    def put(self, entries: Iterable[DirectoryEntry]) -> None:
        """Say where some DIDs are, all or nothing; the last word on each counts, until an operation says otherwise."""
        given = dict(entries)
        with self._alone() as db, transaction(db):
            known = self._known(given)
            hosts = self._numbers(set(given.values()))
            self._write([(did, hosts[given[did]], known.get(did, (0, b""))[1]) for did in sorted(given)], known)

    def import_export(
        self, file: BinaryIO, *, plain: bool = False, watch: Callable[[ImportTally], None] = lambda _: None
    ) -> ImportTally:
        """Apply an export, from the beginning of the log or from the cursor on; `watch` is called on the way.

        Stopped half-way, it may be begun again, with the same file or from the cursor.
        """
        tally = ImportTally()
        operations = plc.read(lines_of(file), tally, plain=plain)
        while batch := list(islice(operations, BATCH)):
            self.apply(batch, tally.cursor)
            watch(tally)
        return tally

    def _known(self, dids: Iterable[str]) -> dict[str, tuple[int | None, bytes]]:
        rows = self._db.execute(
            "SELECT did, host, kept FROM json_each(?) CROSS JOIN did ON did = value", (_listed(list(dids)),)
        )
        return {did: (host, kept) for did, host, kept in rows}

    def _numbers(self, hosts: set[str]) -> dict[str, int]:
        self._db.executemany("INSERT OR IGNORE INTO host (url) VALUES (?)", ((host,) for host in sorted(hosts)))
        rows = self._db.execute(
            "SELECT url, host.id FROM json_each(?) CROSS JOIN host ON url = value", (_listed(list(hosts)),)
        )
        return dict(rows.fetchall())

    def _write(self, rows: Sequence[tuple[str, int | None, bytes]], known: dict[str, tuple[int | None, bytes]]) -> None:
        """`rows` are sorted: neighbours are on one page."""
        self._db.executemany(
            "INSERT INTO did VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET host = excluded.host, kept = excluded.kept",
            (row for row in rows if row[1:] != known.get(row[0])),
        )
        more = sum(1 for _, host, _ in rows if host) - sum(1 for host, _ in known.values() if host)
        self._db.execute("UPDATE directory SET dids = dids + ?", (more,))

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def __repr__(self) -> str:
        return f"<SqliteDirectory {self._path}>"


def _unpacked(kept: bytes) -> Iterator[RememberedOperation]:
    return (RememberedOperation._make(each) for each in _KEPT.iter_unpack(kept))


def _listed(texts: Sequence[str]) -> str:
    """For json_each: all in one parameter, since there may be fifty thousand, and SQLite takes fewer."""
    return msgspec.json.encode(texts).decode()


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. Of one that is too long there is only the beginning, which is too long as well."""
    most = plc.LONGEST_LINE + 1
    while line := file.readline(most):
        yield line
        while len(line) == most and not line.endswith(b"\n"):
            line = file.readline(most)


def read_did_file(
    path: Path, tally: ImportTally, *, host: str = "", plain: bool = False, at: Path | None = None
) -> SqliteDirectory:
    """A temporary directory, or one `at` a path, of the lines `did host`; those of DIDs alone are at `host`.

    Of a DID the last counts. Empty lines and those that begin with # are nothing. A line that is none raises
    DirectoryError; an endpoint that is none is counted, since such files are made from what strangers have written.
    """
    directory = SqliteDirectory(at)
    try:
        with plainly(path), path.open("rb") as file:
            entries = _entries(file, path, tally, host, plain=plain)
            while batch := list(islice(entries, BATCH)):
                directory.put(batch)
    except FolderError as error:
        directory.close()
        raise DirectoryError(str(error)) from error
    except BaseException:
        directory.close()
        raise
    return directory


def _entries(file: BinaryIO, path: Path, tally: ImportTally, host: str, *, plain: bool) -> Iterator[DirectoryEntry]:
    for line in lines_of(file):
        tally.lines += 1
        words = line.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").split()
        if not words or words[0].startswith("#"):
            continue
        did, *rest = words
        if len(line) > plc.LONGEST_LINE or not plc.is_did(did) or len(rest) > 1:
            raise DirectoryError(f"{path}, line {tally.lines}: {line[:80]!r}, expected `did https://host`")
        if not (rest or host):
            raise DirectoryError(f"{path}, line {tally.lines}: {did} without a host; expected one, there or for all")
        try:
            yield DirectoryEntry(did, plc.host_at(rest[0] if rest else host, plain=plain))
        except EndpointError as error:
            tally.refused[error.reason] += 1
            tally.show(f"{did}: {error}")
