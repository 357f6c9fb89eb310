"""Which rows of a batch are written, and what becomes of those that a database does not take. Pure.

Of two rows of a post the one that was crawled later counts; where that is unknown or the same, the one analysed later;
and then the one whose event has the greater id. So it does not matter in which order batches come.

A batch is written at once. If it is refused, its posts are offered in ever smaller pieces, until those are found that
are at fault: each becomes an error of storage, in the place of the item that it was. Comments are cut to what can be
stored, since a post should not go for what others wrote below it.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from itertools import count, islice
from math import isfinite
from operator import attrgetter
from typing import NamedTuple

import msgspec

from sanderling.outcome import Code
from sanderling.stores.analytics import AnalyticsBatch, AnalyticsError, CommentRow, ErrorRow, PostRow
from sanderling.stores.database import UNWRITABLE, DatabaseTrouble, encoded
from sanderling.stores.polling_rows import LARGEST, SMALLEST, legible

POST_COLUMNS = PostRow.__struct_fields__
COMMENT_COLUMNS = tuple(name for name in CommentRow.__struct_fields__ if name != "post")
ERROR_COLUMNS = ErrorRow.__struct_fields__
EVENT_COLUMNS = (
    *("event_id", "project_id", "job_id", "platform", "mode", "received_at", "processed_at"),
    *("posts", "errors", "message"),
)
JSON_COLUMNS = frozenset(
    {
        *("aspects_breakdown", "keywords", "sentiment_probabilities", "impact_breakdown", "hashtags"),
        "error_details",
    }
)
TIME_COLUMNS = frozenset({"published_at", "analyzed_at", "crawled_at", "commented_at", "created_at"})
FLAG_COLUMNS = frozenset({"is_viral", "is_kol", "author_is_verified"})
# The years 1 and 10000.
EARLIEST, LATEST = -62_135_596_800, 253_402_300_800
LONGEST_EVENT, LONGEST_CONTENT, LONGEST_COMMENT_ID = 256, 128, 256  # characters, as the columns have it
LONGEST_WHY = 500  # characters: some quote what they were given

Key = tuple[str, str, str]

_crawled = attrgetter("crawled_at", "analyzed_at", "event_id")


class RefusedRowsError(AnalyticsError):
    """The database does not take that data, now or later."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=False)


def raised(message: str, trouble: DatabaseTrouble) -> AnalyticsError:
    """The error of the port."""
    if trouble is DatabaseTrouble.REFUSED:
        return RefusedRowsError(message)
    answered = trouble in (DatabaseTrouble.BUSY, DatabaseTrouble.FAILED, DatabaseTrouble.BROKEN)
    transient = trouble in (DatabaseTrouble.BUSY, DatabaseTrouble.FAILED, DatabaseTrouble.AWAY, DatabaseTrouble.FULL)
    return AnalyticsError(message, transient=transient, answered=answered, full=trouble is DatabaseTrouble.FULL)


class Noted(NamedTuple):
    """An event that is to be kept: a new one, or one that is replayed, with the job that it had the last time."""

    job_id: str
    replayed: bool


def event_values(batch: AnalyticsBatch) -> tuple[object, ...]:
    """What is noted about an event, in the order of columns."""
    names = (batch.event_id, batch.project_id, batch.job_id, batch.platform, batch.mode)
    numbers = (batch.received_at, batch.processed_at, len(batch.posts), len(batch.errors))
    return (*names, *numbers, batch.message or None)


class RehearsedError(Exception):
    """What was written is to be taken back."""


def rehearsal(batch: AnalyticsBatch) -> AnalyticsBatch:
    """The batch under ids that no event and no post has, and without messages."""
    posts = [msgspec.structs.replace(each, post_id=f"~{each.post_id}"[:LONGEST_CONTENT]) for each in batch.posts]
    event = f"~{batch.event_id}"[:LONGEST_EVENT]
    errors = [msgspec.structs.replace(each, event_id=event) for each in batch.errors]
    return msgspec.structs.replace(batch, event_id=event, posts=posts, errors=errors, outbox=())


def key_of(row: PostRow) -> Key:
    """What tells posts apart."""
    return row.project_id or "", row.platform, row.post_id


def later(one: PostRow, other: PostRow) -> bool:
    """Whether one counts, and not the other."""
    return _age(one) > _age(other)


def _age(row: PostRow) -> tuple[float, float, str]:
    crawled, analyzed, event = _crawled(row)
    return analyzed if crawled is None else crawled, analyzed, event


def chosen(batch: AnalyticsBatch) -> list[int]:
    """The places of the posts to write: one per key, in the order of keys, so that nobody waits in a ring.

    Raises AnalyticsError if a comment is of no post.
    """
    posts = batch.posts
    wrong = next((each for each in batch.comments if not 0 <= each.post < len(posts)), None)
    if wrong is not None:
        message = f"event {batch.event_id[:60]!r}: a comment is of post {wrong.post}, expected 0 to {len(posts) - 1}"
        raise AnalyticsError(message, transient=False)
    best: dict[Key, int] = {}
    for place, row in enumerate(posts):
        known = best.setdefault(key_of(row), place)
        if known != place and not later(posts[known], row):
            best[key_of(row)] = place
    return [place for _, place in sorted(best.items())]


def taken(batch: AnalyticsBatch, refused: Collection[int]) -> set[Key]:
    """The keys of the posts that were to be written, but for those in these places."""
    return {key_of(batch.posts[place]) for place in chosen(batch) if place not in refused}


class BatchPiece(NamedTuple):
    """Places of some posts of a batch; with their comments as they are, or mended."""

    places: Sequence[int]
    mended: bool = False


def sift(places: Sequence[int]) -> Generator[BatchPiece, str, dict[int, str]]:
    """Offer posts in pieces; it is sent why a piece was refused, or "". Ends with those refused alone, and why."""
    refused: dict[int, str] = {}
    pieces = [BatchPiece(places)]
    while pieces:
        piece = pieces.pop()
        why = yield piece
        half = len(piece.places) // 2
        if why and half:
            pieces += BatchPiece(piece.places[half:]), BatchPiece(piece.places[:half])
        elif why and not piece.mended:
            pieces.append(piece._replace(mended=True))
        elif why:
            refused[piece.places[0]] = why
    return refused


def part(batch: AnalyticsBatch, piece: BatchPiece) -> AnalyticsBatch:
    """The same event with these posts alone, and their comments."""
    now = {place: number for number, place in enumerate(piece.places)}
    comments = [msgspec.structs.replace(row, post=now[row.post]) for row in batch.comments if row.post in now]
    return msgspec.structs.replace(
        batch,
        posts=[batch.posts[place] for place in piece.places],
        comments=[mended_comment(row) for row in comments] if piece.mended else comments,
    )


def storage_errors(batch: AnalyticsBatch, refused: Mapping[int, str]) -> list[ErrorRow]:
    """An error for each post that was refused, with the place that its item had.

    All items of a batch are posts or errors; so the posts have, in order, the places that no error has.
    """
    taken = {row.item_index for row in batch.errors}
    places = [*islice((index for index in count() if index not in taken), len(batch.posts))]
    return [_storage_error(batch, places[place], batch.posts[place], why) for place, why in sorted(refused.items())]


def _storage_error(batch: AnalyticsBatch, index: int, row: PostRow, why: str) -> ErrorRow:
    error = ErrorRow(
        event_id=batch.event_id,
        item_index=index,
        content_id=row.post_id,
        project_id=row.project_id,
        job_id=row.job_id,
        platform=row.platform,
        error_code=Code.STORAGE_ERROR.value,
        error_category=str(Code.STORAGE_ERROR.category),
        error_message=f"cannot be stored: {why[:LONGEST_WHY]}",
        error_details={},
        permalink=row.permalink,
        created_at=batch.processed_at,
    )
    return mended_error(error)


def mended_comment(row: CommentRow) -> CommentRow:
    """The comment, cut to what can be stored; the same, if all of it can."""
    return CommentRow(
        post=row.post,
        comment_id=_text(row.comment_id, LONGEST_COMMENT_ID),
        text=_text(row.text),
        author_name=_text(row.author_name, 512),
        likes=_whole(row.likes),
        sentiment=_text(row.sentiment, 16),
        sentiment_score=row.sentiment_score if isfinite(row.sentiment_score) else 0.0,
        commented_at=row.commented_at if _is_moment(row.commented_at) else None,
    )


def mended_error(row: ErrorRow) -> ErrorRow:
    """The error, cut to what can be stored; the same, if all of it can."""
    return ErrorRow(
        event_id=_text(row.event_id, LONGEST_EVENT),
        item_index=_whole(row.item_index),
        content_id=_text(row.content_id, LONGEST_CONTENT),
        project_id=None if row.project_id is None else _text(row.project_id, 256),
        job_id=_text(row.job_id, 256),
        platform=_text(row.platform, 32),
        error_code=_text(row.error_code, 64),
        error_category=_text(row.error_category, 32),
        error_message=_text(row.error_message),
        error_details=row.error_details if _is_writable(row.error_details) else {"left_out": "cannot be stored"},
        permalink=_text(row.permalink, 4096),
        created_at=row.created_at if _is_moment(row.created_at) else 0.0,
    )


def _text(text: str, most: int | None = None) -> str:
    return legible(text)[:most]


def _whole(number: int) -> int:
    return max(SMALLEST, min(number, LARGEST))


def _is_moment(seconds: float | None) -> bool:
    return seconds is not None and EARLIEST <= seconds < LATEST


def _is_writable(value: object) -> bool:
    try:
        return "\\u0000" not in encoded(value)
    except UNWRITABLE:
        return False
