"""Reading a crawl's ledger and rows beside the crawl, for whoever wants its records."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sanderling.ids import HostError, host_of
from sanderling.stores import frontier_reading
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_file import FrontierMeta, connect_to_read, read_meta
from sanderling.stores.frontier_reading import KnownUrl
from sanderling.stores.record_source import RecordsError, nearest
from sanderling.stores.rows_file import read_rows

COMPARED = 20_000  # URLs that are looked at for the nearest


@contextmanager
def open_ledger(path: Path) -> Iterator[tuple[sqlite3.Connection, FrontierMeta]]:
    """The ledger, and what it says of its crawl. Raises RecordsError."""
    try:
        with closing(connect_to_read(path)) as db:
            yield db, read_meta(db, path)
    except FolderError as error:
        raise RecordsError(str(error)) from None


def rows_behind(path: Path, start: int, end: int) -> Iterator[tuple[bytes, int]]:
    """The rows from one byte to another, each with the byte that it ends at. Raises RecordsError."""
    if start > end:
        raise RecordsError(
            f"{path} counts {end} bytes, and {start} were read before: it was cut short or replaced."
            " Export to another target, from the beginning."
        )
    if end and not path.exists():
        raise RecordsError(f"{path} is missing, and its ledger counts {end} bytes in it. Restore it from a copy.")
    return read_rows(path, start, end)


def nearest_urls(db: sqlite3.Connection, key: str) -> list[str]:
    """The URLs of the same host that are most like this key, if it is a URL, and not the key itself."""
    try:
        return nearest(key, (url for url in frontier_reading.urls_of(db, host_of(key), COMPARED) if url != key))
    except HostError:
        return []


def explain_end(known: KnownUrl) -> str:
    """What became of an item, and why, in words."""
    return f"{known.end.name.lower().replace('_', ' ')}: {known.why}"
