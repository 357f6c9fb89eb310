"""Items of a crawl, one after the other, from the SQLite files in its folder: which failed, why, and when each is next.

For whoever looks while the crawl runs, or after it: the files are opened to be read, and what is read is bounded, since
there may be fifty million. A list goes on after the position of the last item that was read.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_rows import End
from sanderling.stores.sqlite_file import connect_read_only, version_of

STEPS = 10_000  # of SQLite's machine between two looks at whether it takes too long
MOST = 200_000  # rows that are read for one page, whether or not they are wanted
LARGEST = (1 << 63) - 1  # that SQLite can compare with


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One of them. Times are Unix seconds, None if there is none or it is not known."""

    id: str  # the URL, DID, ids, target or key
    state: str
    why: str = ""
    host: str = ""
    tries: int = 0
    at: float | None = None  # when it came to that
    next: float | None = None  # when it is asked again
    kind: str = ""  # of a target


class PositionError(ValueError):
    """A position that no list has given."""


Row = tuple[str, Item | None]  # the position after it, and the item; None for what is passed over
Listing = Callable[[sqlite3.Connection, str], Iterator[Row]]


@contextmanager
def opened(path: Path, application: int, too_long: Callable[[], bool]) -> Iterator[sqlite3.Connection]:
    """The file as it is at one moment; nothing is changed. Raises FolderError, also for what takes too long."""
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"there is no {path.name} in the folder, or it is no file; nothing can be listed")
    with plainly(path), closing(connect_read_only(path)) as db:
        # What is in the file may be anybody's: a table may be a view that never ends.
        db.execute("PRAGMA trusted_schema = OFF")
        db.set_progress_handler(too_long, STEPS)
        ((found,),) = db.execute("PRAGMA application_id")
        if found != application:
            raise FolderError(f"{path.name} is not a file of ours; nothing can be listed")
        db.execute("BEGIN")
        yield db


def _number(after: str) -> int:
    """A position that is a number. Raises PositionError."""
    if not after:
        return -LARGEST
    if not after.removeprefix("-").isascii() or not after.removeprefix("-").isdigit() or len(after) > 20:
        raise PositionError(f"{after!a:.60} is no position in this list; begin without one")
    number = int(after)
    if abs(number) > LARGEST:
        raise PositionError(f"{after!a:.60} is no position in this list; begin without one")
    return number


def numbers_in(after: str, many: int) -> list[int]:
    """The numbers that a position begins with. Raises PositionError."""
    words = after.split(" ", many)
    if len(words) < many:
        raise PositionError(f"{after!a:.60} is no position in this list; begin without one")
    return [_number(word) for word in words[:many]]


def ended(end: End) -> Listing:
    """URLs of a frontier that ended so, by id."""

    def rows(db: sqlite3.Connection, after: str) -> Iterator[Row]:
        requests = "failure.requests" if version_of(db) >= 3 else "0"
        found = db.execute(
            f"""SELECT url.id, url.url, host.name, code.name, failure.status, failure.detail, url.end, {requests}
            FROM failure JOIN url ON url.id = failure.id JOIN host ON host.id = url.host
            JOIN code ON code.id = url.code
            WHERE failure.id > ? ORDER BY failure.id LIMIT ?""",  # noqa: S608 - ours, above
            (_number(after), MOST + 1),
        )
        for number, url, host, code, status, detail, how, sent in found:
            item = None
            if how == end:
                why = _why(code, status, detail)
                item = Item(id=url, state=end.name.lower(), why=why, host=host, tries=sent)
            yield str(number), item

    return rows


def again(db: sqlite3.Connection, after: str) -> Iterator[Row]:
    """URLs of a frontier that failed and are asked again, by id."""
    if version_of(db) < 3:
        return  # earlier formats have no such rows
    found = db.execute(
        """SELECT url.id, url.url, host.name, code.name, again.status, again.detail, again.failures, again.due
        FROM again JOIN url ON url.id = again.id JOIN host ON host.id = again.host JOIN code ON code.id = again.code
        WHERE again.id > ? ORDER BY again.id LIMIT ?""",
        (_number(after), MOST + 1),
    )
    for number, url, host, code, status, detail, failures, due in found:
        why = _why(code, status, detail)
        yield str(number), Item(id=url, state="again", why=why, host=host, tries=failures, next=due)


def aside(db: sqlite3.Connection, after: str) -> Iterator[Row]:
    """Hosts of a frontier that were set aside, by id."""
    if version_of(db) < 3:
        return
    found = db.execute(
        """SELECT aside.host, host.name, code.name, aside.status, aside.detail, aside.due FROM aside
        JOIN host ON host.id = aside.host JOIN code ON code.id = aside.code WHERE aside.host > ?
        ORDER BY aside.host LIMIT ?""",
        (_number(after), MOST + 1),
    )
    for number, host, code, status, detail, due in found:
        why = _why(code, status, detail)
        yield str(number), Item(id=host, state="set aside", why=why, host=host, next=due or None)


def _why(code: str, status: int, detail: str) -> str:
    return " ".join(str(each) for each in (code, status or "", detail) if each)


def repos_failed(db: sqlite3.Connection, after: str) -> Iterator[Row]:
    """DIDs that failed for good, by DID."""
    rows = db.execute(
        "SELECT did, category, complete, failures FROM did WHERE did > ? ORDER BY did LIMIT ?", (after, MOST + 1)
    )
    for did, category, complete, failures in rows:
        wanted = complete and category
        yield did, Item(id=did, state="failed", why=category, tries=failures) if wanted else None


def repos_again(db: sqlite3.Connection, after: str) -> Iterator[Row]:
    """DIDs that failed for now, those that are due first."""
    due, _, did = after.partition(" ")
    rows = db.execute(
        """SELECT did, category, failures, due FROM did INDEXED BY did_due
        WHERE due IS NOT NULL AND (due, failures, did) > (?, ?, ?) ORDER BY due, failures, did LIMIT ?""",
        (_number(due), *_pair(did), MOST + 1),
    )
    for name, category, failures, when in rows:
        yield (
            f"{when} {failures} {name}",
            Item(id=name, state="again", why=category, tries=failures, next=float(when)),
        )


def _pair(text: str) -> tuple[int, str]:
    number, _, rest = text.partition(" ")
    return _number(number), rest


def missed(reason: str) -> Listing:
    """Ids of a sequence that are missed for this reason, ascending."""

    def rows(db: sqlite3.Connection, after: str) -> Iterator[Row]:
        found = db.execute(
            "SELECT low, high, reason, last_seen, tries, next_check FROM missed WHERE low > ? ORDER BY low LIMIT ?",
            (_number(after), MOST + 1),
        )
        for low, high, why, seen, tries, due in found:
            item = None
            if why == reason:
                name = str(low) if low == high else f"{low}-{high}"
                item = Item(id=name, state=reason, tries=tries, at=seen, next=due)
            yield str(low), item

    return rows
