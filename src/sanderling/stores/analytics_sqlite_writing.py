"""What is written into a SQLite file of `events`. Each function is called within a transaction."""
# ruff: noqa: S608 - all names are ours, all values are parameters

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager

from sanderling.stores.analytics import Batch, ErrorRow, Kept, OutboxMessage
from sanderling.stores.analytics_questions import REPLAYABLE, WITHOUT_MESSAGE, Question
from sanderling.stores.analytics_rows import (
    COMMENT_COLUMNS,
    ERROR_COLUMNS,
    EVENT_COLUMNS,
    POST_COLUMNS,
    UNWRITABLE,
    Noted,
    chosen,
    event_values,
    mended_error,
    part,
    sift,
    storage_errors,
    taken,
    values_of,
)

POST_VALUES, COMMENT_VALUES, ERROR_VALUES = map(values_of, (POST_COLUMNS, COMMENT_COLUMNS, ERROR_COLUMNS))
REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, *UNWRITABLE)


def _marks(columns: Iterable[str]) -> str:
    return ", ".join("nullif(?, '')" if name == "project_id" else "?" for name in columns)


# Gives nothing for an event that is there. One that is replayed stays marked for now: so it is told from a new one.
EVENT = f"""INSERT INTO processed_events ({", ".join(EVENT_COLUMNS)}) VALUES ({_marks(EVENT_COLUMNS)})
    ON CONFLICT (event_id) DO UPDATE SET replayed = true WHERE replayed RETURNING job_id, replayed"""
EVENT_REPLAYED = f"""UPDATE processed_events SET ({", ".join(EVENT_COLUMNS[1:])}, replayed)
    = ({_marks(EVENT_COLUMNS[1:-1])}, coalesce(?, message), false) WHERE event_id = ?"""
EVENT_AGAIN = "UPDATE processed_events SET posts = ?, errors = ? WHERE event_id = ?"
POST = f"""INSERT INTO post_analytics ({", ".join(POST_COLUMNS)}) VALUES ({_marks(POST_COLUMNS)})
    ON CONFLICT (coalesce(project_id, ''), platform, post_id)
    DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in POST_COLUMNS)}
    WHERE (coalesce(excluded.crawled_at, excluded.analyzed_at), excluded.analyzed_at, excluded.event_id)
        > (coalesce(crawled_at, analyzed_at), analyzed_at, event_id)
    RETURNING id"""
OLD_COMMENTS = "DELETE FROM post_comments WHERE post_id = ?"
COMMENT = f"""INSERT INTO post_comments (post_id, created_at, {", ".join(COMMENT_COLUMNS)})
    VALUES (?, ?, {_marks(COMMENT_COLUMNS)}) ON CONFLICT (post_id, comment_id) DO NOTHING"""
OF_EVENT = """SELECT id, coalesce(project_id, ''), platform, post_id FROM post_analytics
    WHERE job_id = ? AND event_id = ?"""
OLD_ERRORS = "DELETE FROM crawl_errors WHERE event_id = ?"
ERROR = f"INSERT INTO crawl_errors ({', '.join(ERROR_COLUMNS)}) VALUES ({_marks(ERROR_COLUMNS)})"
MESSAGE = """INSERT INTO outbox (exchange, routing_key, body, created_at)
    VALUES (?, ?, ?, coalesce(nullif(?, 0.0), (julianday('now') - 2440587.5) * 86400.0))"""
# Nobody else writes meanwhile: so both find the same events.
REPLAYED = """INSERT INTO outbox (exchange, routing_key, body) SELECT ?, ?, message FROM processed_events
    WHERE event_id IN ({}) ORDER BY processed_at, event_id"""
MARK = "UPDATE processed_events SET replayed = true WHERE event_id IN ({})"
FORGET = """DELETE FROM crawl_errors WHERE id IN (
    SELECT id FROM crawl_errors WHERE created_at < ? ORDER BY created_at, id LIMIT ?)"""
FORGET_EVENTS = [
    f"""DELETE FROM processed_events WHERE event_id IN (
        SELECT event_id FROM processed_events WHERE processed_at < ? AND {which}
        ORDER BY processed_at, event_id LIMIT ?)"""
    for which in (WITHOUT_MESSAGE, REPLAYABLE)
]


def keep(db: sqlite3.Connection, batch: Batch) -> Kept:
    """Write all of it, unless the event is there and not replayed."""
    noted = _noted(db, batch)
    if noted is None:
        return Kept(new=False)
    posts = _write_posts(db, batch)
    _remove_others(db, batch, noted)
    _write_errors(db, batch.errors)
    add(db, batch.outbox, batch.processed_at)
    return Kept(new=True, posts=posts, errors=len(batch.errors))


def keep_carefully(db: sqlite3.Connection, batch: Batch) -> Kept:
    """The same for a batch that was refused: what is at fault becomes an error of storage."""
    noted = _noted(db, batch)
    if noted is None:
        return Kept(new=False)
    db.execute(OLD_ERRORS, (batch.event_id,))  # also of one that was forgotten
    posts, refused = _sifted(db, batch)
    _remove_others(db, batch, noted, refused)
    errors = [*map(mended_error, batch.errors), *storage_errors(batch, refused)]
    _write_errors(db, errors)
    add(db, batch.outbox, batch.processed_at)
    db.execute(EVENT_AGAIN, (len(batch.posts) - len(refused), len(errors), batch.event_id))
    return Kept(new=True, posts=posts, errors=len(errors))


def _noted(db: sqlite3.Connection, batch: Batch) -> Noted | None:
    """Note the event; None if it is there already, and not replayed."""
    values = event_values(batch)
    found = db.execute(EVENT, values).fetchall()
    if not found:
        return None
    noted = Noted(*found[0])
    if noted.replayed:
        db.execute(EVENT_REPLAYED, (*values[1:], batch.event_id))
        db.execute(OLD_ERRORS, (batch.event_id,))
    return noted


def _remove_others(db: sqlite3.Connection, batch: Batch, noted: Noted, refused: Collection[int] = ()) -> None:
    """Remove posts that a replayed event had the last time, and has no more. Their comments go with them."""
    if noted.replayed:
        keys = taken(batch, refused)
        found = db.execute(OF_EVENT, (noted.job_id, batch.event_id)).fetchall()
        gone = [(number,) for number, *key in found if tuple(key) not in keys]
        db.executemany("DELETE FROM post_analytics WHERE id = ?", gone)


def _sifted(db: sqlite3.Connection, batch: Batch) -> tuple[int, dict[int, str]]:
    """Write the posts that are taken; how many that were, and which are not, and why."""
    posts, offering = 0, sift(chosen(batch))
    try:
        piece = next(offering)
        while True:
            why, count = _offered(db, part(batch, piece))
            posts += count
            piece = offering.send(why)
    except StopIteration as end:
        return posts, end.value


def _offered(db: sqlite3.Connection, batch: Batch) -> tuple[str, int]:
    """Why these posts were refused, if they were; and how many were written."""
    try:
        with _savepoint(db):
            return "", _write_posts(db, batch)
    except REFUSALS as error:
        return str(error) or type(error).__name__, 0


@contextmanager
def _savepoint(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("SAVEPOINT piece")
    try:
        yield
    except REFUSALS:
        db.execute("ROLLBACK TO piece")
        db.execute("RELEASE piece")
        raise
    db.execute("RELEASE piece")


def _write_posts(db: sqlite3.Connection, batch: Batch) -> int:
    """Write posts that are newer than what is there, and put their comments in the place of the old ones."""
    ids: dict[int, int] = {}
    for place in chosen(batch):
        with closing(db.execute(POST, POST_VALUES(batch.posts[place]))) as found:
            ids |= ((place, number) for (number,) in found)
    db.executemany(OLD_COMMENTS, ((number,) for number in ids.values()))
    comments = ((ids[row.post], row) for row in batch.comments if row.post in ids)
    db.executemany(COMMENT, ((number, batch.processed_at, *COMMENT_VALUES(row)) for number, row in comments))
    return len(ids)


def _write_errors(db: sqlite3.Connection, errors: Sequence[ErrorRow]) -> None:
    db.executemany(ERROR, map(ERROR_VALUES, errors))


def add(db: sqlite3.Connection, messages: Sequence[OutboxMessage], now: float = 0.0) -> None:
    """Put messages into the outbox; `now` is the time of those that say none, or else that of the machine."""
    rows = ((each.exchange, each.routing_key, each.body, each.created_at or now) for each in messages)
    db.executemany(MESSAGE, rows)


def sent(db: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Forget messages."""
    db.executemany("DELETE FROM outbox WHERE number = ?", ((number,) for number in numbers))


def replay(db: sqlite3.Connection, found: Question, exchange: str, routing_key: str) -> int:
    """Mark the events that a question finds, and put their messages into the outbox; how many that were."""
    db.execute(REPLAYED.format(found.sql), (exchange, routing_key, *found.values))
    return db.execute(MARK.format(found.sql), found.values).rowcount


def forget_errors(db: sqlite3.Connection, before: float, most: int) -> int:
    """Remove errors that are older."""
    return db.execute(FORGET, (before, most)).rowcount


def forget_events(db: sqlite3.Connection, before: float, most: int) -> int:
    """Remove records of events; how many that were."""
    forgotten = 0
    for statement in FORGET_EVENTS:
        forgotten += db.execute(statement, (before, most - forgotten)).rowcount
    return forgotten
