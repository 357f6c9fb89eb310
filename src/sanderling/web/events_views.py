"""What the routes of `events` give: posts, sums, errors and dead letters as they are shown.

Times of posts and errors are ISO 8601 in UTC, as their dates are asked for.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct

from sanderling.stores.analytics import CommentRow, StoredError, StoredPost
from sanderling.stores.queue import Dead
from sanderling.web.events_envelope import moment

V = TypeVar("V", bound=Struct)

TIMES = frozenset({"published_at", "analyzed_at", "crawled_at", "commented_at", "created_at"})
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


class PostAlerts(Struct, frozen=True, kw_only=True):
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


@cache
def _shared(view: type[Struct], row: type[Struct]) -> frozenset[str]:
    return frozenset(view.__struct_fields__) & frozenset(row.__struct_fields__)


def view_of(kind: type[V], row: Struct, **own: object) -> V:
    """A row as it is shown: the fields that both have, times as dates, and what is `own` to the view."""
    fields: dict[str, Any] = {name: getattr(row, name) for name in _shared(kind, type(row)) if name not in own}
    dates = {name: None if fields[name] is None else moment(fields[name]) for name in TIMES & fields.keys()}
    return kind(**fields | dates, **own)


def shortened(text: str, most: int) -> str:
    """A text of so many characters at most."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def post_item(stored: StoredPost, most: int = LISTED) -> PostItem:
    """A post as it is listed, with so many characters of its text."""
    return view_of(PostItem, stored.row, id=stored.id, content_text=shortened(stored.row.content_text, most))


def post_detail(stored: StoredPost, comments: Sequence[CommentRow]) -> PostDetail:
    """A post with all that is known of it."""
    shown = tuple(view_of(CommentView, each) for each in comments)
    return view_of(PostDetail, stored.row, id=stored.id, comments=shown)


def error_view(stored: StoredError) -> ErrorView:
    """An error as it is listed."""
    message = shortened(stored.row.error_message, EXPLAINED)
    return view_of(ErrorView, stored.row, id=stored.id, error_message=message)


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
