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


class Batches(Protocol):
    """Where batches go. All methods of all of these raise AnalyticsError."""

    async def keep(self, batch: AnalyticsBatch) -> BatchResult:
        """Write all of it in one transaction, durably; nothing if the event was processed and is not replayed."""

    async def rehearse(self, batch: AnalyticsBatch) -> None:
        """Write a batch under ids of its own and take it back: whether batches can be kept now."""

    async def processed(self, event_id: str) -> Processed | None:
        """The event, if it is in the rows: unless it is replayed, its batch need not be fetched."""


class History(Protocol):
    """What was processed."""

    async def replayable(self, chosen: EventFilter) -> Replayable:
        """How many events of a filter there are."""

    async def replay(self, chosen: EventFilter, *, exchange: str, routing_key: str, most: int = 1_000) -> int:
        """Mark events that are not marked yet, and put their messages into the outbox; how many that were.

        All in one transaction, up to so many at a time, the first processed first. 0: nothing is left.
        """

    async def forget_errors(self, before: float, most: int = 10_000) -> int:
        """Remove errors that are older, up to so many at a time; how many that were."""

    async def forget_events(self, before: float, most: int = 10_000) -> int:
        """Remove records of events that were processed before, up to so many at a time; how many that were.

        Their rows stay. A message of such an event that comes once more is processed once more.
        """


class Outbox(Protocol):
    """Messages on their way out."""

    def claim(self) -> AbstractAsyncContextManager[bool]:
        """Whether we may send from it now: one at a time may, of all processes that use the database.

        Hold it for moments, and ask again. Whoever dies with it, however that happens, leaves it to the others.
        """

    async def add(self, messages: Sequence[OutboxMessage]) -> None:
        """Put them in, in one transaction."""

    async def waiting(self, after: int, most: int) -> list[OutboxMessage]:
        """The next ones after a number."""

    async def sent(self, numbers: Sequence[int]) -> None:
        """Forget these."""

    async def depth(self) -> int:
        """How many wait."""


class Reading(Protocol):
    """What people ask."""

    async def posts(self, chosen: PostFilter, *, sort: Sort, descending: bool, offset: int, most: int) -> PostPage:
        """A page of posts."""

    async def post(self, number: int) -> tuple[StoredPost, list[CommentRow]] | None:
        """One post, with its comments."""

    async def errors(self, chosen: ErrorFilter, *, offset: int, most: int) -> tuple[list[StoredError], int]:
        """A page of errors, the newest first, and how many there are."""

    async def ping(self) -> None:
        """Answer, if it can."""


class Summing(Protocol):
    """The same, summed up."""

    async def summary(self, chosen: PostFilter) -> PostSummary:
        """All of them together."""

    async def trends(self, chosen: PostFilter, granularity: Granularity) -> list[Trend]:
        """By time of publication, or of analysis where that is unknown; periods without posts are left out."""

    async def keywords(self, chosen: PostFilter, most: int) -> list[KeywordCount]:
        """The most frequent keywords."""

    async def error_counts(self, chosen: ErrorFilter) -> Mapping[str, int]:
        """Errors by code."""


class AnalyticsStore(Batches, History, Outbox, Reading, Summing, Protocol):
    """All of it, in one database."""

    @property
    def connections(self) -> int:
        """How many connections to it are open."""

    async def close(self) -> None:
        """Let go."""
