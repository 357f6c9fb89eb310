"""The records of a folder of events: all posts as they are when the reading begins, then those of every later event.

A post that a later event brought again is there again, as it is then. Comments stand in their post.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from sanderling.events.outbox import DATABASE
from sanderling.stores.analytics_rows import COMMENT_COLUMNS, ERROR_COLUMNS, FLAG_COLUMNS, JSON_COLUMNS, POST_COLUMNS
from sanderling.stores.analytics_sqlite_tables import ANALYTICS
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.record_source import (
    MOST_HISTORY,
    Record,
    RecordLookup,
    RecordsError,
    SourceDescription,
    nearest,
    read_position,
    write_position,
)
from sanderling.stores.sqlite_file import open_to_read

PAGE = 200  # posts of one look at the file, which is let go of in between
COMPARED = 20_000  # ids that are looked at for the nearest
EVENT = ("event_id", "project_id", "job_id", "platform", "mode", "received_at", "processed_at", "posts", "errors")

COLUMNS = ", ".join(("id", *POST_COLUMNS))
# What a later event brought comes with that event.
POSTS = f"""SELECT {COLUMNS} FROM post_analytics WHERE id > ? AND NOT EXISTS (
    SELECT 1 FROM processed_events AS later WHERE later.event_id = post_analytics.event_id AND later.rowid > ?)
    ORDER BY id LIMIT {PAGE}"""
EVENTS = f"SELECT rowid, event_id, job_id FROM processed_events WHERE rowid >= ? ORDER BY rowid LIMIT {PAGE}"
OF_EVENT = f"""SELECT {COLUMNS} FROM post_analytics WHERE job_id = ? AND event_id = ? AND id > ?
    ORDER BY id LIMIT {PAGE}"""
COMMENTS = f"SELECT {', '.join(COMMENT_COLUMNS)} FROM post_comments WHERE post_id = ? ORDER BY id"
LATEST = "SELECT coalesce(max(rowid), 0) FROM processed_events"


class EventPosition(msgspec.Struct, frozen=True):
    """Behind a post: of all of them, until `event`; or of that event."""

    event: int
    post: int
    snapshot: bool = False


class EventRecords:
    """The posts of a folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / DATABASE
        with self._open():
            self.about = SourceDescription("events", "events", ("id", *POST_COLUMNS, "comments"))

    def read(self, after: str | None = None) -> Iterator[Record]:
        """The posts behind a position."""
        with self._open() as db:
            ((latest,),) = db.execute(LATEST)
            if after is None:
                at = EventPosition(latest, 0, snapshot=True)
            else:
                at = read_position(after, EventPosition, self._path)
            if at.event > latest:
                raise RecordsError(
                    f"{self._path} has {latest} events, and {at.event} were read before: it is another file, or the"
                    " events were forgotten. Export to another target, from the beginning."
                )
            if at.snapshot:
                yield from self._posts(db, at)
                at = EventPosition(at.event + 1, 0)
            yield from self._events(db, at)

    def _posts(self, db: sqlite3.Connection, at: EventPosition) -> Iterator[Record]:
        post = at.post
        while found := db.execute(POSTS, (post, at.event)).fetchall():
            for row in found:
                post = row[0]
                yield Record(_post(db, row), write_position(EventPosition(at.event, post, snapshot=True)))

    def _events(self, db: sqlite3.Connection, at: EventPosition) -> Iterator[Record]:
        number, post = at.event, at.post
        while found := db.execute(EVENTS, (number,)).fetchall():
            for event, event_id, job_id in found:
                post = post if event == number else 0
                yield from self._of_event(db, event, (job_id, event_id), post)
            number, post = found[-1][0] + 1, 0

    def _of_event(self, db: sqlite3.Connection, number: int, names: tuple[str, str], post: int) -> Iterator[Record]:
        while found := db.execute(OF_EVENT, (*names, post)).fetchall():
            for row in found:
                post = row[0]
                yield Record(_post(db, row), write_position(EventPosition(number, post)))

    def show(self, key: str) -> RecordLookup:
        """A post by its own id, an event by its id, or an item that failed; or why it is not there."""
        with self._open() as db:
            posts = [
                _post(db, row)
                for row in db.execute(
                    f"SELECT {COLUMNS} FROM post_analytics WHERE post_id = ? ORDER BY id LIMIT {MOST_HISTORY}", (key,)
                )
            ]
            if posts:
                return RecordLookup(posts[-1], posts[:-1])
            event = db.execute(f"SELECT {', '.join(EVENT)} FROM processed_events WHERE event_id = ?", (key,)).fetchone()
            errors = [
                _row(ERROR_COLUMNS, row)
                for row in db.execute(
                    f"""SELECT {", ".join(ERROR_COLUMNS)} FROM crawl_errors WHERE event_id = ? OR content_id = ?
                    ORDER BY id DESC LIMIT {MOST_HISTORY}""",
                    (key, key),
                )
            ][::-1]
            if event is not None:
                return RecordLookup(_encode(_row(EVENT, event)), [_encode(error) for error in errors])
            near = nearest(key, _post_ids(db))
        if errors:
            last = errors[-1]
            why = f"failed: {last['error_code']}: {last['error_message']} (event {last['event_id']})"
            return RecordLookup(None, [_encode(error) for error in errors], why, near)
        return RecordLookup(
            why="no post, no event and no failed item has that id; it may still be in the queue", nearest=near
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with plainly(self._path), closing(open_to_read(self._path, ANALYTICS)) as db:
                yield db
        except FolderError as error:
            raise RecordsError(str(error)) from None

    def close(self) -> None:
        """Nothing is held open."""


_encode = msgspec.json.Encoder().encode


def _post_ids(db: sqlite3.Connection) -> Iterator[str]:
    rows = db.execute(f"SELECT post_id FROM post_analytics ORDER BY id DESC LIMIT {COMPARED}")
    return (name for (name,) in rows)


def _post(db: sqlite3.Connection, row: Sequence[object]) -> bytes:
    post = _row(("id", *POST_COLUMNS), row)
    post["comments"] = [_row(COMMENT_COLUMNS, each) for each in db.execute(COMMENTS, (row[0],))]
    return _encode(post)


def _row(names: Sequence[str], values: Sequence[object]) -> dict[str, object]:
    found = dict(zip(names, values, strict=True))
    for name in found.keys() & JSON_COLUMNS:
        text = found[name]
        found[name] = None if text is None else msgspec.Raw(str(text).encode())
    for name in found.keys() & FLAG_COLUMNS:
        found[name] = bool(found[name])
    return found
