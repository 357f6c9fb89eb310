"""What `events` asks of a database: rows of posts, comments and errors, which events were processed, and an outbox.

| table | key | what |
|---|---|---|
| `post_analytics` | project, platform, post | a post and what is known about it; the later crawl counts |
| `post_comments` | post row, comment | the comments that came with it |
| `crawl_errors` | event, place in the batch | an item that was not fetched, or cannot be read |
| `processed_events` | event | a batch that is in the rows, what came of it, and the message that brought it |
| `outbox` | number | messages that must go out because of it |

Tricky bits:

- All rows of a batch, its event and its messages are written in one transaction. An event that is there already changes
  nothing, whoever brings it again: so a message may come twice, and its rows are there once. Whether it is the same
  event that comes, and not another batch under its id, is for the caller to say: `processed` has the message.
- A post that two projects found is two rows. One without a project (a dry run) is a row of its own, too.
- What goes out is read from the outbox in the order of its numbers, and forgotten after it has arrived.
- An event that is **replayed** is marked, and its message goes out again. Its rows stay until the batch is kept once
  more; only then what the first time made of it, and the second does not, is removed. So a replay that fails midway,
  since the object is gone for example, loses nothing.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, NamedTuple, Protocol

import msgspec

VERSION = 1
EXPECTED = "expected sqlite:PATH or postgresql://user@host:5432/database"


class AnalyticsError(Exception):
    """The database cannot be used, or not now; nothing was written. The message says where, and what was found."""

    def __init__(self, message: str, *, transient: bool = True, answered: bool = False, full: bool = False) -> None:
        super().__init__(message)
        self.full = full  # whether there is no room, which somebody has to make
        self.transient = transient  # whether the same may go well later; otherwise it is the data's fault, or a setting
        self.answered = answered  # whether it can be reached, and fails at this: that may be about the data alone

    def given_up(self, tries: int) -> "AnalyticsError":
        """The same for whoever does not try again."""
        return AnalyticsError(
            f"{self}; after {tries} tries", transient=self.transient, answered=self.answered, full=self.full
        )

    @property
    def stays(self) -> bool:
        """Whether it may fail for ever: the database has answered, or has no room."""
        return self.full or self.answered


class PostRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A post. Times are Unix seconds; counters have 64 bits."""

    post_id: str  # the platform's
    project_id: str | None
    platform: str
    published_at: float | None
    analyzed_at: float
    overall_sentiment: str
    overall_sentiment_score: float
    overall_confidence: float
    primary_intent: str
    intent_confidence: float
    impact_score: float
    risk_level: str
    is_viral: bool
    is_kol: bool
    aspects_breakdown: Mapping[str, object]
    keywords: Sequence[object]
    sentiment_probabilities: Mapping[str, float]
    impact_breakdown: Mapping[str, float]
    view_count: int
    like_count: int
    comment_count: int
    share_count: int
    save_count: int
    follower_count: int
    processing_time_ms: int
    model_name: str  # what produced the sentiment, and its version
    model_version: str
    skipped: str  # why it was not analysed, if it was not
    # Where it came from.
    event_id: str
    job_id: str
    batch_index: int | None
    task_type: str
    keyword_source: str
    crawled_at: float | None
    pipeline_version: str
    brand_name: str
    keyword: str
    # What it says.
    content_text: str
    content_transcription: str
    media_duration: float | None
    hashtags: Sequence[str]
    permalink: str
    author_id: str
    author_name: str
    author_username: str
    author_avatar_url: str
    author_is_verified: bool
    fetch_status: str = "success"


class CommentRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A comment of a post of the same batch: `post` is the place of that among the batch's posts."""

    post: int
    comment_id: str
    text: str
    author_name: str
    likes: int
    sentiment: str
    sentiment_score: float
    commented_at: float | None


class ErrorRow(msgspec.Struct, frozen=True, kw_only=True):
    """An item that was not fetched, or cannot be read."""

    event_id: str
    item_index: int
    content_id: str
    project_id: str | None
    job_id: str
    platform: str
    error_code: str
    error_category: str
    error_message: str
    error_details: Mapping[str, object]
    permalink: str
    created_at: float


class OutboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that must go out: to which exchange, under which routing key, and what it says."""

    exchange: str
    routing_key: str
    body: bytes
    number: int = 0  # given by the database
    created_at: float = 0.0


class AnalyticsBatch(msgspec.Struct, frozen=True, kw_only=True):
    """All that is written because of one event."""

    event_id: str
    job_id: str
    project_id: str | None
    platform: str
    mode: str  # new, legacy or inline
    received_at: float
    processed_at: float
    posts: Sequence[PostRow]
    comments: Sequence[CommentRow]
    errors: Sequence[ErrorRow]
    outbox: Sequence[OutboxMessage] = ()
    message: bytes = b""  # as it came, so that it can be replayed


class BatchResult(NamedTuple):
    """What a batch changed; nothing if its event was there already."""

    new: bool
    posts: int = 0
    errors: int = 0


class Processed(NamedTuple):
    """An event that is in the rows."""

    message: bytes | None  # that brought it; None if it was not kept
    replayed: bool  # whether it is to be kept once more


class PostFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which posts are meant; None means: no matter. Times are Unix seconds: from the one on, before the other."""

    project_id: str
    brand_name: str | None = None
    keyword: str | None = None
    platform: str | None = None
    sentiment: str | None = None
    risk_level: str | None = None
    intent: str | None = None
    is_viral: bool | None = None
    is_kol: bool | None = None
    from_date: float | None = None
    to_date: float | None = None


Sort = Literal["analyzed_at", "published_at", "impact_score", "view_count", "like_count"]
Granularity = Literal["day", "week", "month"]


class StoredPost(msgspec.Struct, frozen=True, kw_only=True):
    """A post as it is stored."""

    id: int
    row: PostRow


class PostPage(NamedTuple):
    """A page of posts, and how many there are in all."""

    posts: list[StoredPost]
    total: int


class PostSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Posts of a filter, summed up."""

    posts: int
    by_sentiment: Mapping[str, int]
    by_risk: Mapping[str, int]
    by_intent: Mapping[str, int]
    by_platform: Mapping[str, int]
    mean_score: float
    mean_impact: float
    viral: int
    kol: int
    views: int
    likes: int
    comments: int
    shares: int
    saves: int


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """A day, a week from Monday or a month, in UTC."""

    start: float
    posts: int
    by_sentiment: Mapping[str, int]
    mean_score: float
    mean_impact: float


class KeywordCount(NamedTuple):
    """A keyword, how many posts have it, and how they feel on average."""

    keyword: str
    aspect: str
    posts: int
    mean_score: float


class StoredError(msgspec.Struct, frozen=True, kw_only=True):
    """An error as it is stored."""

    id: int
    row: ErrorRow


class ErrorFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which errors are meant; None means: no matter."""

    project_id: str | None = None
    job_id: str | None = None
    error_code: str | None = None
    error_category: str | None = None
    from_date: float | None = None
    to_date: float | None = None


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are meant, by when they were processed; None means: no matter. Times are Unix seconds."""

    from_date: float
    to_date: float | None = None
    project_id: str | None = None
    job_id: str | None = None


class Replayable(NamedTuple):
    """How many events of a filter can be replayed, and how many cannot: their messages were not kept."""

    events: int
    without_message: int


class MessageOutbox(Protocol):
    """Messages on their way out; an AnalyticsStore is one, and has the words for it."""

    def claim(self) -> AbstractAsyncContextManager[bool]: ...
    async def add(self, messages: Sequence[OutboxMessage]) -> None: ...
    async def waiting(self, after: int, most: int) -> list[OutboxMessage]: ...
    async def sent(self, numbers: Sequence[int]) -> None: ...
    async def depth(self) -> int: ...
