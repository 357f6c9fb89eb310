"""The file a frontier is stored in: its tables, how it is made, and what is checked before it is trusted.

Numbers were measured with 1,000,000 URLs over 1,000 hosts, in commits of 5,000 (`bench/frontier.py`).
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from urllib.parse import quote

import msgspec

from sanderling.outcome import Code
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_rows import End, Ended
from sanderling.stores.frontier_tables import AGAIN, DUE, REQUESTS, TABLES, TALLY, VERSION, VISITS, last_id, upgrade
from sanderling.stores.sqlite_file import connect_read_only, version_of

APPLICATION = 0x53414E44  # "SAND": what tells our files from other people's SQLite databases

# Bytes of blake2b that stand for a URL. At a billion URLs of one host two would be taken for one with a probability
# of 1.5e-21; eight bytes less and it would be 3 %.
KEY = 16
# 2 KiB pages enqueue up to a fifth slower, 8 KiB ones end URLs a sixth slower.
PAGE = 4096
# KiB of memory for pages. Twice as much enqueues a fifth faster where links jump from host to host, and no faster
# where they stay on theirs.
CACHE = 32_000
# Pages the write-ahead log may hold before they are moved into the file: 64 MB. A page is mostly written again soon,
# so moving it late is moving it once: 4 times the log made 1.35 times the speed, twice that again 1.1 times.
LOG = 16_000
# URLs that one statement inserts: two thirds of the CPU that one each would take.
TOGETHER = 50
# Bytes of a file that is read whole before it is trusted, even if its last writer closed it: a tenth of a second.
SMALL = 64 * 2**20

_NO_URL = hashlib.blake2b(digest_size=KEY)


class FrontierMeta(msgspec.Struct, frozen=True):
    """What a frontier says of its crawl. Times are seconds since 1970."""

    plan: str = ""  # JSON, for whoever wrote it
    crawl: int = 1  # the how-manieth of this folder
    watermark: int = 0  # the length of pages.jsonl that is vouched for
    finished: bool = False  # nothing waits, and nothing will be asked any more
    closed: bool = False  # the last run came to its end, so the files made from the ledger say what it says
    started: float = 0.0
    ended: float | None = None
    budgets: str = "{}"  # JSON, for whoever wrote it: the bounds of the last run
    moved_hosts: str = "[]"  # JSON: hosts that the first URLs turned out to live at
    known: int = 0  # URLs in this file
    last_id: int = 0  # the highest that was given; the next is higher
    begun: bool = False  # of a job: all that it starts with is known
    requests: int = 0  # of a job: requests that were sent
    records: int = 0  # of a job: rows up to the watermark
    checksum: int = 0  # of a job: CRC-32 of the rows up to the watermark
    inbox: str = "{}"  # JSON: how far what other parts sent is read, by file
    visited: bool = False  # pages are visited again: a URL may have more rows than one
    kept: int = 0  # the length of kept.jsonl that is vouched for
    retried: int = 0  # of a fleet: how often what had failed waited again


def key_of(url: str) -> bytes:
    """What stands for the URL wherever it must be found again."""
    digest = _NO_URL.copy()  # which takes half as long as making one
    digest.update(url.encode())
    return digest.digest()


def create(path: Path, meta: FrontierMeta, earlier: Path | None = None) -> None:
    """Make a ledger at `path`, which must not exist, that remembers what `earlier` does. All of it or an empty file."""
    with plainly(path):
        db = sqlite3.connect(path, isolation_level=None)
        try:
            db.execute(f"PRAGMA page_size = {PAGE}")
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            if earlier is not None:
                db.execute("ATTACH ? AS earlier", (str(earlier),))
            db.execute("BEGIN")
            for statement in (*TABLES, *AGAIN, *REQUESTS, TALLY, VISITS, DUE):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
            if earlier is not None:
                # In the order of the index, which then grows at its end.
                db.execute("INSERT INTO remembered SELECT * FROM earlier.remembered ORDER BY key")
            write_meta(db, meta)
            db.execute("COMMIT")
        finally:
            db.close()


def connect(path: Path) -> sqlite3.Connection:
    """Open the ledger at `path` for its one writer, in this format, and as long as it was."""
    with plainly(path):
        # Used by one thread at a time, but not always by the same one.
        db = sqlite3.connect(_uri(path, "rw"), uri=True, isolation_level=None, check_same_thread=False)
        try:
            check_ours(db, path)
            db.execute("PRAGMA journal_mode = WAL")
            # A commit is on disk when it returns; the default of WAL would lose the last ones with the power.
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA cache_size = -{CACHE}")
            db.execute(f"PRAGMA wal_autocheckpoint = {LOG}")
            db.execute(f"PRAGMA journal_size_limit = {LOG * PAGE}")
            # What is deleted needs no wiping: nothing here is secret.
            db.execute("PRAGMA secure_delete = OFF")
            upgrade(db)
            _check_length(db, path)
            db.executemany("INSERT OR IGNORE INTO code (id, name) VALUES (?, ?)", [(0, ""), (1, Code.OK)])
            db.executemany("INSERT OR IGNORE INTO code (name) VALUES (?)", [(code,) for code in Code])
        except BaseException:
            db.close()
            raise
    return db


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open the ledger at `path` beside its writer, changing nothing."""
    with plainly(path):
        db = connect_read_only(path)
        try:
            check_ours(db, path)
        except BaseException:
            db.close()
            raise
    return db


def disconnect(db: sqlite3.Connection) -> None:
    """Leave one plain file behind, which can be read where nothing can be written, unless somebody is reading now."""
    try:
        db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError:
        pass  # what was committed is safe in either form
    finally:
        db.close()


def read_meta(db: sqlite3.Connection, path: Path) -> FrontierMeta:
    """What the file says of its crawl."""
    said = dict(db.execute("SELECT name, value FROM meta"))
    if version_of(db) < 3:
        said |= dict.fromkeys(("known", "last_id"), last_id(db))
    try:
        return msgspec.convert(said, FrontierMeta, strict=False)
    except msgspec.ValidationError as error:
        raise FolderError(f"{path} is damaged: meta: {error}. Restore it from a copy.") from None


def write_meta(db: sqlite3.Connection, meta: FrontierMeta) -> None:
    """Store all of it."""
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", msgspec.structs.asdict(meta).items())


def check_ours(db: sqlite3.Connection, path: Path) -> None:
    """Raise FolderError if the file is somebody else's, or from a later version of ours."""
    ((application,),) = db.execute("PRAGMA application_id")
    version = version_of(db)
    if application != APPLICATION or version < 1:
        raise FolderError(f"{path} is no ledger of a crawl. Restore it from a copy, or choose an empty folder.")
    if version > VERSION:
        raise FolderError(f"{path} is of format {version}, this version reads up to {VERSION}. Use a newer version.")


def _check_length(db: sqlite3.Connection, path: Path) -> None:
    """Raise FolderError if pages are missing."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ((pages,),) = db.execute("PRAGMA page_count")
    size, wanted = path.stat().st_size, pages * PAGE
    if size < wanted:
        raise FolderError(f"{path} has {size} bytes, expected {wanted}: it was cut short. Restore it from a copy.")


def is_clean(db: sqlite3.Connection) -> bool:
    """Whether the file was closed by whoever wrote in it last."""
    return bool(db.execute("SELECT value FROM meta WHERE name = 'clean'").fetchone() == (1,))


def mark(db: sqlite3.Connection, *, clean: bool) -> None:
    """Note whether the file was closed by whoever wrote in it."""
    db.execute("INSERT OR REPLACE INTO meta VALUES ('clean', ?)", (int(clean),))


def check_whole(db: sqlite3.Connection, path: Path) -> None:
    """Raise FolderError if pages make no sense; a quarter of a second for a million URLs."""
    ((found,),) = db.execute("PRAGMA quick_check(1)")
    if found != "ok":
        raise FolderError(f"{path} is damaged: {found}. Restore it from a copy, or choose an empty folder.")


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def remember(db: sqlite3.Connection, ended: Iterable[Ended]) -> None:
    """Keep what came with validators. What came without them, or has moved, cannot be asked about any more."""
    learned: list[tuple[bytes, str | None, str | None, bytes]] = []
    gone: list[tuple[bytes]] = []
    any_known = db.execute("SELECT 1 FROM remembered LIMIT 1").fetchone() is not None
    for each in ended:
        etag, modified = _sendable(each.etag), _sendable(each.modified)
        if etag or modified:
            learned.append((key_of(each.url), etag, modified, pack_links(each.links)))
        elif any_known and each.end in (End.FETCHED, End.MOVED):
            gone.append((key_of(each.url),))
    db.executemany("INSERT OR REPLACE INTO remembered VALUES (?, ?, ?, ?)", learned)
    db.executemany("DELETE FROM remembered WHERE key = ?", gone)


def remembered_links(db: sqlite3.Connection, url: str) -> tuple[str, ...]:
    """Where the page led when it last came whole; nothing if that is not known."""
    row = db.execute("SELECT links FROM remembered WHERE key = ?", (key_of(url),)).fetchone()
    return unpack_links(row[0]) if row else ()


def pack_links(links: Iterable[str]) -> bytes:
    """Links as they are kept: of a few kilobytes of much the same text a fifth is left."""
    return zlib.compress("\n".join(links).encode(), 1)


def unpack_links(packed: bytes) -> tuple[str, ...]:
    """The links that were kept so."""
    return tuple(filter(None, zlib.decompress(packed).decode().split("\n")))


def _sendable(validator: str | None) -> str | None:
    """The validator, unless it has bytes that are no text: those cannot be sent back as they came."""
    if validator is None:
        return None
    try:
        validator.encode()
    except UnicodeEncodeError:
        return None
    return validator


def insert_urls(db: sqlite3.Connection, rows: Iterator[tuple[int, int, bytes, str]], given: int) -> None:
    """Each that is not known gets the next id; `given` is the highest that was ever given."""
    if last_id(db) < given:
        # SQLite would go on from the highest id in this file: the first gets its id from us.
        sql = "INSERT OR IGNORE INTO url (id, host, depth, end, code, key, url) VALUES (?, ?, ?, 0, 0, ?, ?)"
        any(db.execute(sql, (given + 1, *row)).rowcount for row in rows)
    while some := list(islice(rows, TOGETHER)):
        values = ", ".join(["(?, ?, 0, 0, ?, ?)"] * len(some))
        sql = f"INSERT OR IGNORE INTO url (host, depth, end, code, key, url) VALUES {values}"  # noqa: S608 - ours
        db.execute(sql, list(chain.from_iterable(some)))


def shift_hosts(
    db: sqlite3.Connection, waiting: Mapping[int, int], wall: float, fetched: Mapping[int, int] | None = None
) -> None:
    """So many more URLs of these hosts wait since `wall`, by id, and so many more are fetched."""
    rows = [(number, 0 if fetched is None else fetched[host], host) for host, number in waiting.items()]
    db.executemany("UPDATE host SET waiting = waiting + ?, fetched = fetched + ? WHERE id = ?", rows)
    begun = [(wall, host) for host, number in waiting.items() if number > 0]
    due = "max(?, coalesce((SELECT aside.due FROM aside WHERE aside.host = host.id), 0))"
    db.executemany(f"UPDATE host SET due = {due} WHERE id = ? AND due IS NULL AND waiting > 0", begun)  # noqa: S608
    ended = [(host,) for host, number in waiting.items() if number < 0]
    db.executemany("UPDATE host SET due = NULL WHERE id = ? AND waiting = 0", ended)


def set_aside(db: sqlite3.Connection, host: str, why: tuple[int, int, str], due: float) -> None:
    """The host is next worth asking then, or nobody knows when; what failed while it was at fault has not failed."""
    sql = (
        "INSERT OR REPLACE INTO aside (host, code, status, detail, due) SELECT id, ?, ?, ?, ? FROM host WHERE name = ?"
    )
    db.execute(sql, (*why, due, host))
    db.execute("UPDATE host SET due = ? WHERE name = ? AND due IS NOT NULL", (due, host))
    db.execute("DELETE FROM again WHERE host = (SELECT id FROM host WHERE name = ?)", (host,))


def clear_aside(db: sqlite3.Connection, host: str | None) -> None:
    """The host, or each, is due before all others."""
    which = "SELECT host FROM aside" if host is None else "SELECT id FROM host WHERE name = ?"
    given = () if host is None else (host,)
    db.execute(f"UPDATE host SET due = 0 WHERE due > 0 AND id IN ({which})", given)  # noqa: S608 - ours
    db.execute(f"DELETE FROM aside WHERE host IN ({which})", given)  # noqa: S608 - ours


def add_to_tally(db: sqlite3.Connection, changes: Iterable[tuple[int, int, int]]) -> None:
    """So many more URLs have this end and this reason."""
    sql = "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = number + excluded.number"
    db.executemany(sql, changes)


def rank_again(db: sqlite3.Connection, given: tuple[int, int | None]) -> None:
    """Requests of a job with this end and reason, any if that is None, are about to wait in their order again."""
    db.execute(
        """INSERT OR IGNORE INTO ranked SELECT url.host, request.priority, url.id
        FROM request JOIN url ON url.id = request.id
        WHERE request.priority <> 0 AND url.end = ? AND url.code = coalesce(?, url.code)""",
        given,
    )
