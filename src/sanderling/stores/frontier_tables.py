"""The tables of a frontier's file, and how a file of an earlier format gets them."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sanderling.ids import partition_of
from sanderling.stores.frontier_rows import PAGES, End
from sanderling.stores.sqlite_file import transaction, version_of

# 2: URLs may be left out. 3: partitions of hosts, URLs that wait since they failed, ids with gaps. 4: requests of jobs.
# 5: sums of what is known, by end and by host. 6: second visits. 7: since when URLs of a host wait.
VERSION = 7

HOST_DUE = "CREATE INDEX host_due ON host (due) WHERE due IS NOT NULL"
TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
    # The partition of a host is that of all its rows, here and in every other table.
    # `waiting` and `fetched` are sums of its URLs, kept by every commit. It is `due` since something waits for it, or
    # when it is next worth asking; NULL while nothing waits. A commit that leaves this as it is spares its index.
    """CREATE TABLE host (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partition INTEGER NOT NULL,
        waiting INTEGER NOT NULL DEFAULT 0, fetched INTEGER NOT NULL DEFAULT 0, due REAL)""",
    "CREATE INDEX host_partition ON host (partition)",
    HOST_DUE,
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


def _add_due(db: sqlite3.Connection) -> None:
    """From 6 to 7. Since when URLs wait was not kept: the order in which hosts were met has to do."""
    with _at_once(db, 7):
        db.execute("ALTER TABLE host ADD COLUMN due REAL")
        db.execute("UPDATE host SET due = 0 WHERE waiting > 0")
        db.execute("UPDATE host SET due = aside.due FROM aside WHERE aside.host = host.id AND waiting > 0")
        db.execute(HOST_DUE)


UPGRADES = {1: _allow_left_out, 2: _add_blame, 3: _add_requests, 4: _add_sums, 5: _add_visits, 6: _add_due}


@contextmanager
def _at_once(db: sqlite3.Connection, version: int) -> Iterator[None]:
    """All or nothing, and then the file is of that format."""
    with transaction(db):
        yield
        db.execute(f"PRAGMA user_version = {version}")
