"""What the routes of `events` give: posts, sums, errors and dead letters as they are shown.

Times of posts and errors are ISO 8601 in UTC, as their dates are asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from operator import attrgetter
from typing import Any

from msgspec import Struct

from sanderling.stores.analytics import (
    CommentRow,
    ErrorRow,
    KeywordCount,
    PostRow,
    StoredError,
    StoredPost,
    Trend,
)
from sanderling.stores.queue import Dead
from sanderling.web.events_envelope import Pagination, moment
from sanderling.web.events_types import DEEPEST

LISTED, ALERTED, EXPLAINED = 300, 200, 1_000  # characters of a text in a list, of one in an alert, of a message
LONGEST_BODY = 500  # characters of a dead letter


class PostItem(Struct, frozen=True, kw_only=True):
    """A post in a list. Its text is cut."""

    id: int  # its number here
    post_id: str  # the platform's
    project_id: str | None
    platform: str
    permalink: str
    published_at: datetime | None
    analyzed_at: datetime
    brand_name: str
    keyword: str
    job_id: str
    content_text: str
    author_id: str
    author_name: str
    author_username: str
    author_is_verified: bool
    follower_count: int
    overall_sentiment: str
    overall_sentiment_score: float
    overall_confidence: float
    primary_intent: str
    intent_confidence: float
    impact_score: float
    risk_level: str
    is_viral: bool
    is_kol: bool
    view_count: int
    like_count: int
    comment_count: int
    share_count: int
    save_count: int


class CommentView(Struct, frozen=True, kw_only=True):
    """A comment of a post."""

    comment_id: str
    text: str
    author_name: str
    likes: int
    sentiment: str
    sentiment_score: float
    commented_at: datetime | None


class PostDetail(PostItem, frozen=True, kw_only=True):
    """A post, all of it, and its comments: the most liked first."""

    content_transcription: str
    media_duration: float | None
    hashtags: Sequence[str]
    author_avatar_url: str
    aspects_breakdown: Mapping[str, Any]
    keywords: Sequence[Any]
    sentiment_probabilities: Mapping[str, float]
    impact_breakdown: Mapping[str, float]
    processing_time_ms: int
    model_name: str
    model_version: str
    skipped: str  # why it was not analysed, if it was not
    event_id: str
    batch_index: int | None
    task_type: str
    keyword_source: str
    crawled_at: datetime | None
    pipeline_version: str
    fetch_status: str
    comments: tuple[CommentView, ...]


class TrendView(Struct, frozen=True, kw_only=True):
    """A day, a week from Monday or a month, in UTC, by its first day. Those without posts are left out."""

    period: date
    posts: int
    by_sentiment: Mapping[str, int]
    mean_score: float
    mean_impact: float


class KeywordView(Struct, frozen=True, kw_only=True):
    """A keyword, how many posts have it, and how they feel on average."""

    keyword: str
    aspect: str
    posts: int
    mean_score: float


class AlertCounts(Struct, frozen=True, kw_only=True):
    """How many there are of each sort, shown or not."""

    critical_posts: int
    viral_posts: int
    crisis_intents: int


class Alerts(Struct, frozen=True, kw_only=True):
    """What somebody should look at, the newest first. A post may be in all three lists."""

    critical_posts: tuple[PostItem, ...]
    viral_posts: tuple[PostItem, ...]
    crisis_intents: tuple[PostItem, ...]
    totals: AlertCounts


class ErrorView(Struct, frozen=True, kw_only=True):
    """An item that was not fetched, or cannot be read. Its message is cut."""

    id: int
    event_id: str
    item_index: int  # its place in the batch
    content_id: str
    project_id: str | None
    job_id: str
    platform: str
    error_code: str
    error_category: str
    error_message: str
    error_details: Mapping[str, Any]
    permalink: str
    created_at: datetime


class ErrorCounts(Struct, frozen=True, kw_only=True):
    """Errors by code, the most frequent first."""

    by_code: Mapping[str, int]


class Alive(Struct, frozen=True, kw_only=True):
    """That it answers."""

    status: str = "ok"


class Parts(Struct, frozen=True, kw_only=True):
    """How it stands with what it needs: `ok`, or why not. `degraded` if anything is not."""

    status: str
    parts: Mapping[str, str]


class DeadView(Struct, frozen=True, kw_only=True):
    """A message that was given up. Its body is cut; `size` are its bytes."""

    key: str
    why: str
    tries: int
    at: float  # Unix seconds
    size: int
    body: str


class DeadPage(Struct, frozen=True, kw_only=True):
    """Some dead letters, the first buried first."""

    letters: tuple[DeadView, ...]
    next: str | None  # the last key; null if there is none, and only then it is the last page


class Replayed(Struct, frozen=True, kw_only=True):
    """How many messages are processed again."""

    replayed: int


def _alike(view: type[Struct], row: type[Struct], *but: str) -> Callable[[Any], dict[str, Any]]:
    """What gives the fields of a row that its view has as well, except some."""
    names = [name for name in view.__struct_fields__ if name in row.__struct_fields__ and name not in but]
    values = attrgetter(*names)
    return lambda found: dict(zip(names, values(found), strict=True))


_item = _alike(PostItem, PostRow, "published_at", "analyzed_at", "content_text")
_detail = _alike(PostDetail, PostRow, "published_at", "analyzed_at", "crawled_at")
_comment = _alike(CommentView, CommentRow, "commented_at")
_error = _alike(ErrorView, ErrorRow, "error_message", "created_at")


def moment_if_known(seconds: float | None) -> datetime | None:
    """A time as it is shown, if it is known."""
    return None if seconds is None else moment(seconds)


def shortened(text: str, most: int) -> str:
    """A text of so many characters at most."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def post_item(stored: StoredPost, most: int = LISTED) -> PostItem:
    """A post as it is listed, with so many characters of its text."""
    row = stored.row
    return PostItem(
        id=stored.id,
        published_at=moment_if_known(row.published_at),
        analyzed_at=moment(row.analyzed_at),
        content_text=shortened(row.content_text, most),
        **_item(row),
    )


def post_detail(stored: StoredPost, comments: Sequence[CommentRow]) -> PostDetail:
    """A post with all that is known of it."""
    row = stored.row
    return PostDetail(
        id=stored.id,
        published_at=moment_if_known(row.published_at),
        analyzed_at=moment(row.analyzed_at),
        crawled_at=moment_if_known(row.crawled_at),
        comments=tuple(comment_view(each) for each in comments),
        **_detail(row),
    )


def comment_view(row: CommentRow) -> CommentView:
    """A comment as it is shown."""
    return CommentView(commented_at=moment_if_known(row.commented_at), **_comment(row))


def error_view(stored: StoredError) -> ErrorView:
    """An error as it is listed."""
    row = stored.row
    message = shortened(row.error_message, EXPLAINED)
    return ErrorView(id=stored.id, error_message=message, created_at=moment(row.created_at), **_error(row))


def trend_view(trend: Trend) -> TrendView:
    """A period as it is shown."""
    return TrendView(
        period=moment(trend.start).date(),
        posts=trend.posts,
        by_sentiment=trend.by_sentiment,
        mean_score=trend.mean_score,
        mean_impact=trend.mean_impact,
    )


def keyword_view(counted: KeywordCount) -> KeywordView:
    """A keyword as it is shown."""
    return KeywordView(**counted._asdict())


def dead_view(letter: Dead) -> DeadView:
    """A dead letter as it is listed."""
    # A character has four bytes at most: the rest is not even looked at.
    text = letter.body[: 4 * LONGEST_BODY + 4].decode("utf-8", "replace")
    return DeadView(
        key=letter.key,
        why=letter.why,
        tries=letter.tries,
        at=letter.at,
        size=len(letter.body),
        body=shortened(text, LONGEST_BODY),
    )


def pagination_of(page: int, size: int, total: int) -> Pagination:
    """Which page of how many."""
    pages = -(-total // size)
    return Pagination(
        page=page,
        page_size=size,
        total_items=total,
        total_pages=pages,
        has_next=page < pages and page * size <= DEEPEST,
        has_prev=page > 1,
    )
