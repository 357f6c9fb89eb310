"""Where a database of `events` is played with, and small batches to do so."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, TypeVar

import msgspec

from sanderling.stores.analytics import (
    AnalyticsBatch,
    CommentRow,
    ErrorFilter,
    ErrorRow,
    OutboxMessage,
    PostFilter,
    PostRow,
    StoredPost,
)
from sanderling.stores.analytics_store import AnalyticsStore

T = TypeVar("T", PostRow, ErrorRow)

NOW = 1_750_000_000.0  # a Sunday in June 2025, 15:06:40 in UTC
PROJECT = "proj_xyz"
TABLES = ("post_comments", "post_analytics", "crawl_errors", "processed_events", "outbox")


class Place(NamedTuple):
    """Where it is. `sql` is somebody who writes SQL by hand, on a connection of their own."""

    opens: Callable[[], AbstractAsyncContextManager[AnalyticsStore]]
    sql: Callable[[str], Awaitable[list[tuple[Any, ...]]]]
    wipe: Callable[[], Awaitable[None]]
    url: str
    until_idle: Callable[[], Coroutine[Any, Any, None]]  # until whoever was killed is gone for others, too


USUAL: dict[str, Any] = {
    "post_id": "7400000000000000001",
    "project_id": PROJECT,
    "platform": "tiktok",
    "published_at": NOW - 5000,
    "analyzed_at": NOW,
    "overall_sentiment": "NEGATIVE",
    "overall_sentiment_score": -0.5,
    "overall_confidence": 0.75,
    "primary_intent": "COMPLAINT",
    "intent_confidence": 0.625,
    "impact_score": 12.5,
    "risk_level": "LOW",
    "is_viral": False,
    "is_kol": True,
    "aspects_breakdown": {"PRICE": {"label": "NEGATIVE", "score": -0.5, "mentions": 2}},
    "keywords": [{"keyword": "giá", "aspect": "PRICE", "mentions": 2}],
    "sentiment_probabilities": {"NEGATIVE": 0.75, "NEUTRAL": 0.125, "POSITIVE": 0.125},
    "impact_breakdown": {"engagement": 10.0, "reach": 1.25},
    "view_count": 1000,
    "like_count": 100,
    "comment_count": 10,
    "share_count": 5,
    "save_count": 4,
    "follower_count": 50_000,
    "processing_time_ms": 3,
    "model_name": "lexicon",
    "model_version": "1",
    "skipped": "",
    "event_id": "",
    "job_id": "proj_xyz-brand-0",
    "batch_index": 1,
    "task_type": "research_and_crawl",
    "keyword_source": "VF8",
    "crawled_at": NOW - 100,
    "pipeline_version": "crawler_tiktok_v3",
    "brand_name": "VinFast",
    "keyword": "VF8",
    "content_text": "giá quá cao",
    "content_transcription": "xe đẹp 🚗 nhưng đắt",
    "media_duration": 12.5,
    "hashtags": ["xe", "điện"],
    "permalink": "https://example.org/v/1",
    "author_id": "u1",
    "author_name": "An",
    "author_username": "an",
    "author_avatar_url": "",
    "author_is_verified": True,
}


def post(post_id: str = "a", **fields: Any) -> PostRow:  # noqa: ANN401 - of any field
    return PostRow(**(USUAL | {"post_id": post_id} | fields))


def comment(of: int = 0, comment_id: str = "c", **fields: Any) -> CommentRow:  # noqa: ANN401 - of any field
    usual: dict[str, Any] = {
        "text": "đắt quá",
        "author_name": "Bình",
        "likes": 3,
        "sentiment": "NEGATIVE",
        "sentiment_score": -0.25,
    }
    return CommentRow(**({"post": of, "comment_id": comment_id, "commented_at": NOW - 50, **usual} | fields))


def error(index: int = 0, **fields: Any) -> ErrorRow:  # noqa: ANN401 - of any field
    usual: dict[str, Any] = {
        "event_id": "",
        "item_index": index,
        "content_id": f"x{index}",
        "project_id": PROJECT,
        "job_id": "proj_xyz-brand-0",
        "platform": "tiktok",
        "error_code": "RATE_LIMITED",
        "error_category": "rate_limiting",
        "error_message": "too many requests",
        "error_details": {"status": 429},
        "permalink": "https://example.org/v/2",
        "created_at": NOW,
    }
    return ErrorRow(**(usual | fields))


def message(body: bytes = b"{}", **fields: Any) -> OutboxMessage:  # noqa: ANN401 - of any field
    usual: dict[str, Any] = {
        "exchange": "results.inbound",
        "routing_key": "analyze.result",
        "body": body,
        "created_at": NOW,
    }
    return OutboxMessage(**(usual | fields))


def batch(
    event_id: str = "evt_1",
    posts: Iterable[PostRow] = (),
    comments: Iterable[CommentRow] = (),
    errors: Iterable[ErrorRow] = (),
    outbox: Iterable[OutboxMessage] = (),
    **fields: Any,  # noqa: ANN401 - of any field
) -> AnalyticsBatch:
    """Its rows are of its event."""
    usual: dict[str, Any] = {
        "event_id": event_id,
        "job_id": "proj_xyz-brand-0",
        "project_id": PROJECT,
        "platform": "tiktok",
        "mode": "new",
        "received_at": NOW,
        "processed_at": NOW + 1,
        "posts": [of_event(row, event_id) for row in posts],
        "comments": [*comments],
        "errors": [of_event(row, event_id) for row in errors],
        "outbox": [*outbox],
    }
    return AnalyticsBatch(**(usual | fields))


def of_event(row: T, event_id: str) -> T:
    return msgspec.structs.replace(row, event_id=event_id)


async def all_posts(store: AnalyticsStore, project: str = PROJECT) -> list[StoredPost]:
    """In the order in which they were inserted."""
    found: list[StoredPost] = []
    while True:
        page = await store.posts(
            PostFilter(project_id=project), sort="analyzed_at", descending=False, offset=len(found), most=10_000
        )
        found += page.posts
        if not page.posts:
            assert page.total == len(found)
            return sorted(found, key=lambda each: each.id)


async def all_errors(store: AnalyticsStore) -> list[ErrorRow]:
    """By event and place."""
    found: list[ErrorRow] = []
    while True:
        page, total = await store.errors(ErrorFilter(), offset=len(found), most=10_000)
        found += [each.row for each in page]
        if not page:
            assert total == len(found)
            return sorted(found, key=lambda row: (row.event_id, row.item_index))


async def all_messages(store: AnalyticsStore) -> AsyncIterator[OutboxMessage]:
    after = 0
    while found := await store.waiting(after, 100):
        for each in found:
            yield each
        after = found[-1].number


async def nothing_in(place: Place, *tables: str) -> bool:
    return [await place.sql(f"SELECT count(*) FROM {name}") for name in tables or TABLES] == [  # noqa: S608 - ours
        [(0,)] for _ in tables or TABLES
    ]
