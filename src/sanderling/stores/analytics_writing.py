"""What is written into a database of `events`. Each function is called within a transaction.

Tricky bits:

- To PostgreSQL the rows of a table travel as one JSON document: a batch is some five statements, however many rows it
  has.
- Any number of processes may write at once. All of them lock in one order, the event first and then posts by key. So
  nobody waits in a ring. Only an event that is replayed, and has fewer posts than the last time, locks those after the
  others: whoever the server ends because of that begins again.
- The outbox comes last and is written by one transaction at a time, until its commit. So its numbers become visible in
  their order, and whoever has read up to one has missed none.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

from collections.abc import Collection, Mapping, Sequence
from typing import get_type_hints

import msgspec

from sanderling.stores.analytics import AnalyticsBatch, BatchResult, CommentRow, ErrorRow, OutboxMessage, PostRow
from sanderling.stores.analytics_questions import REPLAYABLE, WITHOUT_MESSAGE, Question
from sanderling.stores.analytics_rows import (
    COMMENT_COLUMNS,
    ERROR_COLUMNS,
    EVENT_COLUMNS,
    JSON_COLUMNS,
    POST_COLUMNS,
    TIME_COLUMNS,
    Noted,
    chosen,
    event_values,
    key_of,
    mended_error,
    part,
    sift,
    storage_errors,
    taken,
)
from sanderling.stores.database import ColumnType, Dialect, Insert, RefusalError, Transaction, encoded

KINDS: Mapping[object, str] = {
    **dict.fromkeys((str, str | None), "text"),
    **dict.fromkeys((int, int | None), "bigint"),
    **dict.fromkeys((float, float | None), "float8"),
    bool: "boolean",
}
MOMENT = ColumnType("REAL", "timestamptz", travels="float8", made="to_timestamp({0})")


def _columns(of: type[msgspec.Struct], names: Sequence[str]) -> dict[str, ColumnType]:
    """The columns of rows of that type."""
    hints = get_type_hints(of)
    special = {
        **dict.fromkeys(TIME_COLUMNS, MOMENT),
        **dict.fromkeys(JSON_COLUMNS, ColumnType("TEXT", "jsonb", packed=encoded)),
        "project_id": ColumnType("TEXT", "text", mark="nullif(?, '')", made="nullif({0}, '')"),
    }
    return {name: special.get(name) or ColumnType("", KINDS[hints[name]]) for name in names}


POSTS = Insert(
    "post_analytics",
    _columns(PostRow, POST_COLUMNS),
    f"""ON CONFLICT (coalesce(project_id, ''), platform, post_id)
    DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in POST_COLUMNS)}
    WHERE (coalesce(excluded.crawled_at, excluded.analyzed_at), excluded.analyzed_at, excluded.event_id)
        > (coalesce(its.crawled_at, its.analyzed_at), its.analyzed_at, its.event_id)
    RETURNING id, coalesce(project_id, ''), platform, post_id""",
    fields=POST_COLUMNS,
)
# Here the place of a post is the id that it has in the database.
COMMENTS = Insert(
    "post_comments",
    {"post_id": ColumnType("INTEGER", "bigint"), **_columns(CommentRow, COMMENT_COLUMNS)},
    "ON CONFLICT (post_id, comment_id) DO NOTHING",
    fields=("post", *COMMENT_COLUMNS),
    same={"created_at": MOMENT},
)
ERRORS = Insert("crawl_errors", _columns(ErrorRow, ERROR_COLUMNS), fields=ERROR_COLUMNS)
_TEXT = ColumnType("TEXT", "text")
OUTBOX = Insert(
    "outbox",
    {
        "exchange": _TEXT,
        "routing_key": _TEXT,
        "body": ColumnType("BLOB", "bytea"),
        # That of the machine, or of the server, for those that say none.
        "created_at": ColumnType(
            "REAL",
            "timestamptz",
            mark="coalesce(nullif(?, 0.0), (julianday('now') - 2440587.5) * 86400.0)",
            travels="float8",
            made="coalesce(to_timestamp(nullif({0}, 0)), now())",
        ),
    },
)
OUTBOX_ALONE = 1396788802  # "SANB": whoever has it writes to the outbox
EVENT_AGAIN = "UPDATE processed_events SET posts = ?, errors = ? WHERE event_id = ?"
OF_EVENT = """SELECT id, coalesce(project_id, ''), platform, post_id FROM post_analytics
    WHERE job_id = ? AND event_id = ?"""
OLD_ERRORS = "DELETE FROM crawl_errors WHERE event_id = ?"


def _event_marks(dialect: Dialect) -> list[str]:
    at = {"received_at", "processed_at"}
    marks = [
        dialect.moment.format(f"?{place}") if name in at else f"?{place}" for place, name in enumerate(EVENT_COLUMNS, 1)
    ]
    marks[EVENT_COLUMNS.index("project_id")] = "nullif(?2, '')"
    return marks


def note_event(dialect: Dialect) -> str:
    """Gives nothing for an event that is there. One that is replayed stays marked: so it is told from a new one."""
    return f"""INSERT INTO processed_events AS its ({", ".join(EVENT_COLUMNS)})
        VALUES ({", ".join(_event_marks(dialect))})
        ON CONFLICT (event_id) DO UPDATE SET replayed = true WHERE its.replayed RETURNING job_id, replayed"""


def note_replayed(dialect: Dialect) -> str:
    """The same values for one that is replayed, which keeps its message if there is no other."""
    _, *marks, message = _event_marks(dialect)
    return f"""UPDATE processed_events SET ({", ".join(EVENT_COLUMNS[1:])}, replayed)
        = ({", ".join(marks)}, coalesce({message}, message), false) WHERE event_id = ?1"""


def old_errors(dialect: Dialect) -> str:
    """Removes errors that are older."""
    return f"""DELETE FROM crawl_errors WHERE id IN (
        SELECT id FROM crawl_errors WHERE created_at < {dialect.moment.format("?")} ORDER BY created_at, id LIMIT ?
        {dialect.skip_locked})"""


def old_events(dialect: Dialect) -> list[str]:
    """Remove events that are older: those without a message, and the others."""
    return [
        f"""DELETE FROM processed_events WHERE event_id IN (WITH old AS (
            SELECT event_id FROM processed_events WHERE processed_at < {dialect.moment.format("?")} AND {which}
            ORDER BY processed_at, event_id LIMIT ? {dialect.skip_locked}) SELECT event_id FROM old)"""
        for which in (WITHOUT_MESSAGE, REPLAYABLE)
    ]


async def keep(db: Transaction, batch: AnalyticsBatch) -> BatchResult:
    """Write all of it, unless the event is there and not replayed."""
    noted = await _noted(db, batch)
    if noted is None:
        return BatchResult(new=False)
    posts = await _write_posts(db, batch)
    await _remove_others(db, batch, noted)
    await db.insert(ERRORS, batch.errors)
    await add(db, batch.outbox, batch.processed_at)
    return BatchResult(new=True, posts=posts, errors=len(batch.errors))


async def keep_carefully(db: Transaction, batch: AnalyticsBatch) -> BatchResult:
    """The same for a batch that was refused: what is at fault becomes an error of storage."""
    noted = await _noted(db, batch)
    if noted is None:
        return BatchResult(new=False)
    await db.execute(OLD_ERRORS, batch.event_id)  # also of one that was forgotten
    posts, refused = await _sifted(db, batch)
    await _remove_others(db, batch, noted, refused)
    errors = [*map(mended_error, batch.errors), *storage_errors(batch, refused)]
    await db.insert(ERRORS, errors)
    await add(db, batch.outbox, batch.processed_at)
    await db.execute(EVENT_AGAIN, len(batch.posts) - len(refused), len(errors), batch.event_id)
    return BatchResult(new=True, posts=posts, errors=len(errors))


async def _noted(db: Transaction, batch: AnalyticsBatch) -> Noted | None:
    """Note the event; None if it is there already, and not replayed. Waits for whoever is writing the same one."""
    values = event_values(batch)
    found = await db.fetch(note_event(db.dialect), *values)
    if not found:
        return None
    noted = Noted(*found[0])
    if noted.replayed:
        await db.execute(note_replayed(db.dialect), *values)
        await db.execute(OLD_ERRORS, batch.event_id)
    return noted


async def _remove_others(db: Transaction, batch: AnalyticsBatch, noted: Noted, refused: Collection[int] = ()) -> None:
    """Remove posts that a replayed event had the last time, and has no more. Their comments go with them."""
    if noted.replayed:
        keys = taken(batch, refused)
        found = await db.fetch(OF_EVENT, noted.job_id, batch.event_id)
        gone = [number for number, *key in found if tuple(key) not in keys]
        await _delete(db, "post_analytics", "id", gone)


async def _delete(db: Transaction, table: str, column: str, values: list[int]) -> None:
    if values:
        await db.execute(f"DELETE FROM {table} WHERE {db.dialect.among.format(column)}", values)


async def _sifted(db: Transaction, batch: AnalyticsBatch) -> tuple[int, dict[int, str]]:
    """Write the posts that are taken; how many that were, and which are not, and why."""
    posts, offering = 0, sift(chosen(batch))
    try:
        piece = next(offering)
        while True:
            why, count = await _offered(db, part(batch, piece))
            posts += count
            piece = offering.send(why)
    except StopIteration as end:
        return posts, end.value


async def _offered(db: Transaction, batch: AnalyticsBatch) -> tuple[str, int]:
    """Why these posts were refused, if they were; and how many were written."""
    try:
        async with db.savepoint():
            return "", await _write_posts(db, batch)
    except RefusalError as error:
        return str(error), 0


async def _write_posts(db: Transaction, batch: AnalyticsBatch) -> int:
    """Write posts that are newer than what is there, and put their comments in the place of the old ones."""
    places = chosen(batch)
    rows = await db.insert(POSTS, [batch.posts[place] for place in places])
    ids = {row[1:]: row[0] for row in rows}
    await _delete(db, "post_comments", "post_id", [*ids.values()])
    of_place = {place: ids[key] for place in places if (key := key_of(batch.posts[place])) in ids}
    comments = (row for row in batch.comments if row.post in of_place)
    moved = [msgspec.structs.replace(row, post=of_place[row.post]) for row in comments]
    await db.insert(COMMENTS, moved, batch.processed_at)
    return len(ids)


async def add(db: Transaction, messages: Sequence[OutboxMessage], now: float = 0.0) -> None:
    """Put messages into the outbox; `now` is the time of those that say none, or else that of the database."""
    if messages:
        await db.lock(OUTBOX_ALONE)
        await db.insert(
            OUTBOX, [(each.exchange, each.routing_key, each.body, each.created_at or now) for each in messages]
        )


async def sent(db: Transaction, numbers: Sequence[int]) -> None:
    """Forget messages."""
    await _delete(db, "outbox", "number", [*numbers])


async def replay(db: Transaction, found: Question, exchange: str, routing_key: str) -> int:
    """Mark the events that a question finds, and put their messages into the outbox; how many that were."""
    mark = f"""UPDATE processed_events SET replayed = true WHERE event_id IN (
        WITH found AS ({found.sql} {db.dialect.skip_locked}) SELECT event_id FROM found) RETURNING event_id"""
    events = [event for (event,) in await db.fetch(mark, *found.values)]
    if events:
        await db.lock(OUTBOX_ALONE)
        replayed = f"""INSERT INTO outbox (exchange, routing_key, body) SELECT ?, ?, message FROM processed_events
            WHERE {db.dialect.among.format("event_id")} ORDER BY processed_at, event_id"""
        await db.execute(replayed, exchange, routing_key, events)
    return len(events)


async def forget_errors(db: Transaction, before: float, most: int) -> int:
    """Remove errors that are older; how many that were."""
    return await db.execute(old_errors(db.dialect), before, most)


async def forget_events(db: Transaction, before: float, most: int) -> int:
    """Remove records of events; how many that were."""
    forgotten = 0
    for statement in old_events(db.dialect):
        forgotten += await db.execute(statement, before, most - forgotten)
    return forgotten
