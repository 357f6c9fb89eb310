"""Copies of a ledger, each with some of its hosts and all that is known of them.

Ids stay what they are; what cannot be told to be of another host is in every copy: what earlier crawls of the folder
remember of URLs that this one has not met.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from sanderling.ids import HostError, host_of
from sanderling.stores import frontier_file
from sanderling.stores.durable import plainly
from sanderling.stores.frontier_file import FrontierMeta, connect_to_read, read_meta, write_meta

OF_ID = ("failure", "again", "visit", "request")
OF_HOST = ("aside", "ranked")
OF_KEY = ("moved", "remembered")


def split_ledger(source: Path, target: Path, is_own: Callable[[str], bool], **changes: object) -> FrontierMeta:
    """Make a ledger at `target` with the hosts of `source` that are its own; what it says of its crawl, with `changes`.

    The ledger is of this format, and nobody writes in it meanwhile. Raises FolderError.
    """
    with closing(connect_to_read(source)) as old:
        meta = read_meta(old, source)
        hosts = [(number,) for number, name in old.execute("SELECT id, name FROM host") if is_own(name)]
        origins = [(each,) for (each,) in old.execute("SELECT origin FROM robots") if is_own(_host_in(each))]
    meta = msgspec.structs.replace(meta, inbox="{}", **changes)
    frontier_file.create(target, meta)
    with plainly(target), closing(sqlite3.connect(target, isolation_level=None)) as db:
        db.execute("ATTACH ? AS old", (str(source),))
        db.execute("BEGIN")
        _copy(db, hosts, origins)
        ((known,),) = db.execute("SELECT count(*) FROM url")
        meta = msgspec.structs.replace(meta, known=known)
        write_meta(db, meta)
        db.execute("COMMIT")
    return meta


def _copy(db: sqlite3.Connection, hosts: list[tuple[int]], origins: list[tuple[str]]) -> None:
    """Copy rows, each table in the order of its ids: what is found by them then grows at its end."""
    run = db.execute
    run("CREATE TEMP TABLE own (id INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO own VALUES (?)", hosts)
    for table in ("code", "reader"):
        run(f"INSERT INTO {table} SELECT * FROM old.{table}")  # noqa: S608 - ours
    run("INSERT INTO host SELECT * FROM old.host WHERE id IN (SELECT id FROM own)")
    run("INSERT INTO url SELECT * FROM old.url WHERE host IN (SELECT id FROM own) ORDER BY id")
    for table in OF_ID if not _has_bytes(db) else (*OF_ID, "wrote"):
        run(f"INSERT INTO {table} SELECT * FROM old.{table} WHERE id IN (SELECT id FROM main.url)")  # noqa: S608
    for table in OF_HOST:
        run(f"INSERT INTO {table} SELECT * FROM old.{table} WHERE host IN (SELECT id FROM own)")  # noqa: S608
    run("CREATE TEMP TABLE other (key BLOB PRIMARY KEY) WITHOUT ROWID")
    run("INSERT OR IGNORE INTO other SELECT key FROM old.url WHERE host NOT IN (SELECT id FROM own)")
    for table in OF_KEY:
        run(f"INSERT INTO {table} SELECT * FROM old.{table} WHERE key NOT IN (SELECT key FROM other)")  # noqa: S608
    db.executemany("INSERT INTO robots SELECT * FROM old.robots WHERE origin = ?", origins)
    run("INSERT INTO tally SELECT end, code, count(*) FROM main.url GROUP BY end, code")


def _has_bytes(db: sqlite3.Connection) -> bool:
    """Whether it is the ledger of a job, which knows which bytes came of which request; the copy has that, too."""
    found = db.execute("SELECT sql FROM old.sqlite_master WHERE name = 'wrote'").fetchone()
    if found is not None:
        db.execute(found[0])
    return found is not None


def _host_in(origin: str) -> str:
    try:
        return host_of(f"{origin}/")
    except HostError:
        return ""
