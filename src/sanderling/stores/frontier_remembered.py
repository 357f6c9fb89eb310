"""What one crawl of a folder remembers for the next, so that it can ask only for what has changed."""

import sqlite3
import zlib
from collections.abc import Iterable

from sanderling.stores.frontier_file import key_of
from sanderling.stores.frontier_rows import End, Ended

Row = tuple[bytes, str | None, str | None, bytes]


def remember(db: sqlite3.Connection, ended: Iterable[Ended]) -> None:
    """Keep what came with validators. What came without them, or has moved, cannot be asked about any more."""
    learned: list[Row] = []
    gone: list[tuple[bytes]] = []
    for each in ended:
        etag, modified = _sendable(each.etag), _sendable(each.modified)
        if etag or modified:
            # A page of links is a few kilobytes of much the same text: a fifth of it is kept.
            links = zlib.compress("\n".join(each.links).encode(), 1)
            learned.append((key_of(each.url), etag, modified, links))
        elif each.end in (End.FETCHED, End.MOVED):
            gone.append((key_of(each.url),))
    db.executemany("INSERT OR REPLACE INTO remembered VALUES (?, ?, ?, ?)", learned)
    db.executemany("DELETE FROM remembered WHERE key = ?", gone)


def links(db: sqlite3.Connection, url: str) -> tuple[str, ...]:
    """Where the page led when it last came whole; nothing if that is not known."""
    row = db.execute("SELECT links FROM remembered WHERE key = ?", (key_of(url),)).fetchone()
    text = "" if row is None else zlib.decompress(row[0]).decode()
    return tuple(text.split("\n")) if text else ()


def _sendable(validator: str | None) -> str | None:
    """The validator, unless it has bytes that are no text: those cannot be sent back as they came."""
    if validator is None:
        return None
    try:
        validator.encode()
    except UnicodeEncodeError:
        return None
    return validator
