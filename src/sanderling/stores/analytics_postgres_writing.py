"""What is written into PostgreSQL for `events`. Each function is called within a transaction.

Tricky bits:

- The rows of a table travel as one JSON document: a batch is some five statements, however many rows it has, and the
  server takes it apart quicker than we could.
- Any number of processes may write at once. All of them lock in one order, the event first and then posts by key. So
  nobody waits in a ring. Only an event that is replayed, and has fewer posts than the last time, locks those after the
  others: whoever the server ends because of that begins again.
- The outbox comes last and is written by one transaction at a time, until its commit. So its numbers become visible in
  their order, and whoever has read up to one has missed none.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, get_type_hints

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import msgspec

from sanderling.stores.analytics import Batch, CommentRow, ErrorRow, Kept, OutboxMessage, PostRow
from sanderling.stores.analytics_questions import REPLAYABLE, WITHOUT_MESSAGE, Question
from sanderling.stores.analytics_rows import (
    COMMENT_COLUMNS,
    ERROR_COLUMNS,
    EVENT_COLUMNS,
    POST_COLUMNS,
    TIME_COLUMNS,
    UNWRITABLE,
    Noted,
    chosen,
    event_values,
    key_of,
    mended_error,
    part,
    sift,
    storage_errors,
    taken,
    written,
)
from sanderling.stores.postgres_server import DATA

KINDS: Mapping[object, str] = {
    **dict.fromkeys((str, str | None), "text"),
    **dict.fromkeys((int, int | None), "bigint"),
    **dict.fromkeys((float, float | None), "float8"),
    bool: "boolean",
}


def _document(of: type[msgspec.Struct]) -> str:
    """The rows of a JSON document, which is the first parameter."""
    hints = get_type_hints(of)
    listed = ", ".join(f"{name} {KINDS.get(hints[name], 'jsonb')}" for name in of.__struct_fields__)
    return f"json_to_recordset($1::json) AS given ({listed})"


def _values(columns: Iterable[str]) -> str:
    """Columns of a document, as they are stored."""
    special = {name: f"to_timestamp({name})" for name in TIME_COLUMNS} | {"project_id": "nullif(project_id, '')"}
    return ", ".join(special.get(name, name) for name in columns)


# Gives nothing for an event that is there. One that is replayed stays marked for now: so it is told from a new one.
EVENT = f"""INSERT INTO processed_events AS its ({", ".join(EVENT_COLUMNS)})
    VALUES ($1, nullif($2, ''), $3, $4, $5, to_timestamp($6), to_timestamp($7), $8, $9, $10)
    ON CONFLICT (event_id) DO UPDATE SET replayed = true WHERE its.replayed RETURNING job_id, replayed"""
EVENT_REPLAYED = f"""UPDATE processed_events SET ({", ".join(EVENT_COLUMNS[1:])}, replayed)
    = (nullif($2, ''), $3, $4, $5, to_timestamp($6), to_timestamp($7), $8, $9, coalesce($10, message), false)
    WHERE event_id = $1"""
EVENT_AGAIN = "UPDATE processed_events SET posts = $2, errors = $3 WHERE event_id = $1"
POSTS = f"""INSERT INTO post_analytics AS its ({", ".join(POST_COLUMNS)})
    SELECT {_values(POST_COLUMNS)} FROM {_document(PostRow)}
    ON CONFLICT (coalesce(project_id, ''), platform, post_id)
    DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in POST_COLUMNS)}
    WHERE (coalesce(excluded.crawled_at, excluded.analyzed_at), excluded.analyzed_at, excluded.event_id)
        > (coalesce(its.crawled_at, its.analyzed_at), its.analyzed_at, its.event_id)
    RETURNING id, coalesce(project_id, ''), platform, post_id"""
OLD_COMMENTS = "DELETE FROM post_comments WHERE post_id = ANY($1::bigint[])"
# The second parameter has for each place the id of the post, or none.
COMMENTS = f"""INSERT INTO post_comments (post_id, created_at, {", ".join(COMMENT_COLUMNS)})
    SELECT posts.id, to_timestamp($3), {_values(COMMENT_COLUMNS)} FROM {_document(CommentRow)}
    JOIN unnest($2::bigint[]) WITH ORDINALITY AS posts (id, place) ON place = post + 1 AND posts.id IS NOT NULL
    ON CONFLICT (post_id, comment_id) DO NOTHING"""
# The last three parameters are the keys that stay.
OTHERS = """DELETE FROM post_analytics WHERE event_id = $1 AND job_id = $2
    AND (coalesce(project_id, ''), platform, post_id)
        NOT IN (SELECT * FROM unnest($3::text[], $4::text[], $5::text[]))"""
OLD_ERRORS = "DELETE FROM crawl_errors WHERE event_id = $1"
ERRORS = f"""INSERT INTO crawl_errors ({", ".join(ERROR_COLUMNS)})
    SELECT {_values(ERROR_COLUMNS)} FROM {_document(ErrorRow)}"""
# "SANB", and beside it the schema.
OUTBOX_ALONE = "SELECT pg_advisory_xact_lock(1396788802, hashtext(current_schema()))"
OUTBOX = """INSERT INTO outbox (exchange, routing_key, body, created_at)
    SELECT exchange, key, body, coalesce(to_timestamp(nullif(at, 0)), now())
    FROM unnest($1::text[], $2::text[], $3::bytea[], $4::float8[]) AS given (exchange, key, body, at)"""
SENT = "DELETE FROM outbox WHERE number = ANY($1::bigint[])"
MARK = """WITH found AS ({} FOR UPDATE SKIP LOCKED)
    UPDATE processed_events AS its SET replayed = true FROM found WHERE its.event_id = found.event_id
    RETURNING its.event_id"""
REPLAYED = """INSERT INTO outbox (exchange, routing_key, body) SELECT $1, $2, message FROM processed_events
    WHERE event_id = ANY($3::text[]) ORDER BY processed_at, event_id"""
FORGET = """DELETE FROM crawl_errors WHERE id IN (
    SELECT id FROM crawl_errors WHERE created_at < to_timestamp($1) ORDER BY created_at, id LIMIT $2
    FOR UPDATE SKIP LOCKED)"""
FORGET_EVENTS = [
    f"""WITH old AS (
        SELECT event_id FROM processed_events WHERE processed_at < to_timestamp($1) AND {which}
        ORDER BY processed_at, event_id LIMIT $2 FOR UPDATE SKIP LOCKED)
    DELETE FROM processed_events AS its USING old WHERE its.event_id = old.event_id"""
    for which in (WITHOUT_MESSAGE, REPLAYABLE)
]


async def keep(db: Any, batch: Batch) -> Kept:  # noqa: ANN401 - asyncpg has no types
    """Write all of it, unless the event is there and not replayed."""
    noted = await _noted(db, batch)
    if noted is None:
        return Kept(new=False)
    posts = await _write_posts(db, batch)
    await _remove_others(db, batch, noted)
    await _write_errors(db, batch.errors)
    await add(db, batch.outbox, batch.processed_at)
    return Kept(new=True, posts=posts, errors=len(batch.errors))


async def keep_carefully(db: Any, batch: Batch) -> Kept:  # noqa: ANN401 - no types
    """The same for a batch that was refused: what is at fault becomes an error of storage."""
    noted = await _noted(db, batch)
    if noted is None:
        return Kept(new=False)
    await db.execute(OLD_ERRORS, batch.event_id)  # also of one that was forgotten
    posts, refused = await _sifted(db, batch)
    await _remove_others(db, batch, noted, refused)
    errors = [*map(mended_error, batch.errors), *storage_errors(batch, refused)]
    await _write_errors(db, errors)
    await add(db, batch.outbox, batch.processed_at)
    await db.execute(EVENT_AGAIN, batch.event_id, len(batch.posts) - len(refused), len(errors))
    return Kept(new=True, posts=posts, errors=len(errors))


async def _noted(db: Any, batch: Batch) -> Noted | None:  # noqa: ANN401 - no types
    """Note the event; None if it is there already, and not replayed. Waits for whoever is writing the same one."""
    values = event_values(batch)
    found = await db.fetchrow(EVENT, *values)
    if found is None:
        return None
    noted = Noted(*found)
    if noted.replayed:
        await db.execute(EVENT_REPLAYED, *values)
        await db.execute(OLD_ERRORS, batch.event_id)
    return noted


async def _remove_others(db: Any, batch: Batch, noted: Noted, refused: Collection[int] = ()) -> None:  # noqa: ANN401 - no types
    """Remove posts that a replayed event had the last time, and has no more. Their comments go with them."""
    if noted.replayed:
        keys = taken(batch, refused)
        columns = [[key[place] for key in keys] for place in range(3)]
        await db.execute(OTHERS, batch.event_id, noted.job_id, *columns)


async def _sifted(db: Any, batch: Batch) -> tuple[int, dict[int, str]]:  # noqa: ANN401 - no types
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


async def _offered(db: Any, batch: Batch) -> tuple[str, int]:  # noqa: ANN401 - no types
    """Why these posts were refused, if they were; and how many were written."""
    try:
        async with db.transaction():
            return "", await _write_posts(db, batch)
    except UNWRITABLE as error:
        return str(error) or type(error).__name__, 0
    except asyncpg.PostgresError as error:
        if not (error.sqlstate or "").startswith(DATA):
            raise
        return str(error), 0


async def _write_posts(db: Any, batch: Batch) -> int:  # noqa: ANN401 - no types
    """Write posts that are newer than what is there, and put their comments in the place of the old ones."""
    places = chosen(batch)
    if not places:
        return 0
    rows = await db.fetch(POSTS, written([batch.posts[place] for place in places]))
    ids = {tuple(key): number for number, *key in rows}
    if not ids:
        return 0
    await db.execute(OLD_COMMENTS, [*ids.values()])
    if batch.comments:
        of_place: list[int | None] = [None] * len(batch.posts)
        for place in places:
            of_place[place] = ids.get(key_of(batch.posts[place]))
        await db.execute(COMMENTS, written(batch.comments), of_place, batch.processed_at)
    return len(ids)


async def _write_errors(db: Any, errors: Sequence[ErrorRow]) -> None:  # noqa: ANN401 - no types
    if errors:
        await db.execute(ERRORS, written(errors))


async def add(db: Any, messages: Sequence[OutboxMessage], now: float = 0.0) -> None:  # noqa: ANN401 - no types
    """Put messages into the outbox; `now` is the time of those that say none, or else that of the server."""
    if messages:
        await db.execute(OUTBOX_ALONE)
        rows = [(each.exchange, each.routing_key, each.body, each.created_at or now) for each in messages]
        await db.execute(OUTBOX, *map(list, zip(*rows, strict=True)))


async def sent(db: Any, numbers: Sequence[int]) -> None:  # noqa: ANN401 - no types
    """Forget messages."""
    await db.execute(SENT, numbers)


async def replay(db: Any, found: Question, exchange: str, routing_key: str) -> int:  # noqa: ANN401 - no types
    """Mark the events that a question finds, and put their messages into the outbox; how many that were."""
    events = [event for (event,) in await db.fetch(MARK.format(found.sql), *found.values)]
    if events:
        await db.execute(OUTBOX_ALONE)
        await db.execute(REPLAYED, exchange, routing_key, events)
    return len(events)


async def forget_errors(db: Any, before: float, most: int) -> int:  # noqa: ANN401 - no types
    """Remove errors that are older; how many that were."""
    return _count(await db.execute(FORGET, before, most))


async def forget_events(db: Any, before: float, most: int) -> int:  # noqa: ANN401 - no types
    """Remove records of events; how many that were."""
    forgotten = 0
    for statement in FORGET_EVENTS:
        forgotten += _count(await db.execute(statement, before, most - forgotten))
    return forgotten


def _count(tag: str) -> int:
    """How many rows a statement has changed, by what the server says of it."""
    return int(tag.rpartition(" ")[2])
