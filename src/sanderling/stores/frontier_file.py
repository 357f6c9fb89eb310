"""The file a frontier is stored in: its tables, how it is made, and what is checked before it is trusted.

Numbers were measured with 1,000,000 URLs over 1,000 hosts, in commits of 5,000 (`bench/frontier.py`).
"""

import hashlib
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from sanderling.ids import partition_of
from sanderling.outcome import Code
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_rows import PAGES, End, Ended
from sanderling.stores.sqlite_file import transaction, version_of

# 2: URLs may be left out. 3: partitions of hosts, URLs that wait since they failed, ids with gaps. 4: requests of jobs.
# 5: sums of what is known, by end and by host. 6: second visits.
VERSION = 6
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
# Bytes of a file that is read whole before it is trusted, even if its last writer closed it: a tenth of a second.
SMALL = 64 * 2**20

TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
    # The partition of a host is that of all its rows, here and in every other table.
    # `waiting` and `fetched` are sums of its URLs, kept by every commit.
    """CREATE TABLE host (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partition INTEGER NOT NULL,
        waiting INTEGER NOT NULL DEFAULT 0, fetched INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX host_partition ON host (partition)",
    "CREATE TABLE code (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    # Ids ascend in the order of discovery; those between may be in another file. SQLite stores 0 and 1 in no bytes at
    # all: a URL that waits and one that was fetched (end 1, code 1) take the same space, so no page splits.
    """CREATE TABLE url (
        id INTEGER PRIMARY KEY, host INTEGER NOT NULL, depth INTEGER NOT NULL,
        end INTEGER NOT NULL CHECK (end BETWEEN 0 AND 7), code INTEGER NOT NULL,
        key BLOB NOT NULL, url TEXT NOT NULL)""",
    # The host first: links mostly stay on their host, so a batch of them touches few pages of this index.
    "CREATE UNIQUE INDEX url_known ON url (host, key)",
    # Every index ends with the id, so this is the queue of each host in order.
    "CREATE INDEX url_waiting ON url (host) WHERE end = 0",
    """CREATE TABLE failure (
        id INTEGER PRIMARY KEY, status INTEGER NOT NULL, detail TEXT NOT NULL, requests INTEGER NOT NULL DEFAULT 0)""",
    # Hosts that did not answer in the last run, why, and when to ask next; what waits for them still waits.
    """CREATE TABLE aside (
        host INTEGER PRIMARY KEY, code INTEGER NOT NULL, status INTEGER NOT NULL, detail TEXT NOT NULL,
        due REAL NOT NULL DEFAULT 0)""",
    "CREATE TABLE moved (key BLOB PRIMARY KEY, target TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE remembered (key BLOB NOT NULL UNIQUE, etag TEXT, modified TEXT, links BLOB NOT NULL)",
    """CREATE TABLE robots (
        origin TEXT PRIMARY KEY, status INTEGER NOT NULL, body BLOB NOT NULL, fetched_at REAL NOT NULL)""",
)
# URLs that wait since they failed. The host is that of the URL, for the index by which all of one host are forgiven.
AGAIN = (
    """CREATE TABLE again (
        id INTEGER PRIMARY KEY, failures INTEGER NOT NULL, due REAL NOT NULL, code INTEGER NOT NULL,
        status INTEGER NOT NULL, detail TEXT NOT NULL, host INTEGER NOT NULL)""",
    "CREATE INDEX again_host ON again (host)",
)
# How many URLs ended so, for this reason: to count them is to read them all.
TALLY = """CREATE TABLE tally (
    end INTEGER NOT NULL, code INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (end, code)) WITHOUT ROWID"""
# What a job knows of a URL beside the URL; a crawl of pages has no rows here. `ranked` has those that wait and whose
# priority is not 0, in their order; all others wait in the order of their ids, by the index `url_waiting`.
REQUESTS = (
    "CREATE TABLE reader (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE request (
        id INTEGER PRIMARY KEY, reader INTEGER NOT NULL, priority INTEGER NOT NULL, data BLOB)""",
    """CREATE TABLE ranked (
        host INTEGER NOT NULL, priority INTEGER NOT NULL, id INTEGER NOT NULL,
        PRIMARY KEY (host, priority, id)) WITHOUT ROWID""",
)
# When each page is due again, in seconds since 1970, and what its visits have taught (`frontier_visits.py`).
VISITS = """CREATE TABLE visit (
    id INTEGER PRIMARY KEY, due REAL NOT NULL, seen REAL NOT NULL, shape REAL NOT NULL, exposure REAL NOT NULL,
    visits INTEGER NOT NULL, changes INTEGER NOT NULL, rows INTEGER NOT NULL, content BLOB)"""
DUE = "CREATE INDEX visit_due ON visit (due)"


class FrontierMeta(msgspec.Struct, frozen=True):
    """What a frontier says of its crawl. Times are seconds since 1970."""

    plan: str = ""  # JSON, for whoever wrote it
    crawl: int = 1  # the how-manieth of this folder
    watermark: int = 0  # the length of pages.jsonl that is vouched for
    finished: bool = False  # nothing waits, and nothing will be asked any more
    closed: bool = False  # the last run came to its end, so the files made from the ledger say what it says
    started: float = 0.0
    ended: float | None = None
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


def key_of(url: str) -> bytes:
    """What stands for the URL wherever it must be found again."""
    return hashlib.blake2b(url.encode(), digest_size=KEY).digest()


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
        db = sqlite3.connect(_uri(path, "ro"), uri=True, isolation_level=None)
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


def upgrade(db: sqlite3.Connection) -> None:
    """Bring a file of an earlier format to this one, a format at a time, each whole or not at all."""
    while (version := version_of(db)) < VERSION:
        UPGRADES[version](db)


def _allow_left_out(db: sqlite3.Connection) -> None:
    """From 1 to 2. SQLite has no other way to change a CHECK without a copy."""
    db.execute("PRAGMA writable_schema = ON")
    with _at_once(db, 2):
        db.execute("UPDATE sqlite_schema SET sql = replace(sql, 'AND 6)', 'AND 7)') WHERE name = 'url'")
    db.execute("PRAGMA writable_schema = RESET")  # and reads the schema anew


def _add_blame(db: sqlite3.Connection) -> None:
    """From 2 to 3."""
    db.create_function("partition_of", 1, partition_of, deterministic=True)
    with _at_once(db, 3):
        db.execute("ALTER TABLE host ADD COLUMN partition INTEGER NOT NULL DEFAULT 0")
        db.execute("UPDATE host SET partition = partition_of(name)")
        db.execute("CREATE INDEX host_partition ON host (partition)")
        db.execute("ALTER TABLE failure ADD COLUMN requests INTEGER NOT NULL DEFAULT 0")
        db.execute(  # some of format 2 have none
            """CREATE TABLE IF NOT EXISTS aside (
            host INTEGER PRIMARY KEY, code INTEGER NOT NULL, status INTEGER NOT NULL, detail TEXT NOT NULL)"""
        )
        db.execute("ALTER TABLE aside ADD COLUMN due REAL NOT NULL DEFAULT 0")
        for statement in AGAIN:
            db.execute(statement)
        last = last_id(db)
        db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [("known", last), ("last_id", last)])


def last_id(db: sqlite3.Connection) -> int:
    """The highest id in the file; where ids have no gaps it is also their number."""
    ((last,),) = db.execute("SELECT coalesce(max(id), 0) FROM url")
    return int(last)


def _add_requests(db: sqlite3.Connection) -> None:
    """From 3 to 4."""
    with _at_once(db, 4):
        for statement in REQUESTS:
            db.execute(statement)


def _add_sums(db: sqlite3.Connection) -> None:
    """From 4 to 5. Reads every URL, once: half a second for a million."""
    with _at_once(db, 5):
        db.execute("ALTER TABLE host ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0")
        db.execute("ALTER TABLE host ADD COLUMN fetched INTEGER NOT NULL DEFAULT 0")
        db.execute(TALLY)
        numbers, waiting, fetched = Counter[tuple[int, int]](), Counter[int](), Counter[int]()
        for (host, end, code), number in Counter(db.execute("SELECT host, end, code FROM url")).items():
            numbers[end, code] += number
            waiting[host] += number * (end == End.WAITING)
            fetched[host] += number * (end in PAGES)
        db.executemany("INSERT INTO tally VALUES (?, ?, ?)", [(*key, number) for key, number in numbers.items()])
        rows = [(waiting[host], fetched[host], host) for host in waiting]
        db.executemany("UPDATE host SET waiting = ?, fetched = ? WHERE id = ?", rows)


def _add_visits(db: sqlite3.Connection) -> None:
    """From 5 to 6."""
    with _at_once(db, 6):
        db.execute(VISITS)
        db.execute(DUE)


UPGRADES = {1: _allow_left_out, 2: _add_blame, 3: _add_requests, 4: _add_sums, 5: _add_visits}


@contextmanager
def _at_once(db: sqlite3.Connection, version: int) -> Iterator[None]:
    """All or nothing, and then the file is of that format."""
    with transaction(db):
        yield
        db.execute(f"PRAGMA user_version = {version}")


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
    for each in ended:
        etag, modified = _sendable(each.etag), _sendable(each.modified)
        if etag or modified:
            learned.append((key_of(each.url), etag, modified, pack_links(each.links)))
        elif each.end in (End.FETCHED, End.MOVED):
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
    db.executemany("INSERT OR IGNORE INTO url (host, depth, end, code, key, url) VALUES (?, ?, 0, 0, ?, ?)", rows)


def shift_hosts(db: sqlite3.Connection, waiting: Mapping[int, int], fetched: Mapping[int, int] | None = None) -> None:
    """So many more URLs of these hosts wait, by id, and so many more are fetched."""
    rows = [(number, 0 if fetched is None else fetched[host], host) for host, number in waiting.items()]
    db.executemany("UPDATE host SET waiting = waiting + ?, fetched = fetched + ? WHERE id = ?", rows)


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
