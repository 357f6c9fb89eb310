"""Rows, dead letters and a control of `events`, in memory or in files; and a house around them, on a real socket."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import aiohttp
import msgspec
from known_reports import EVENTS as REPORT
from msgspec import Struct
from polling_house import TOKEN, Answer
from yarl import URL

from sanderling.clock import SystemClock
from sanderling.events.modes import Modes, read_modes, write_modes
from sanderling.events.report import EventsFacts
from sanderling.executor import in_threads
from sanderling.observe.report import Report
from sanderling.stores.analytics import (
    AnalyticsBatch,
    CommentRow,
    ErrorFilter,
    ErrorRow,
    Granularity,
    KeywordCount,
    PostFilter,
    PostPage,
    PostRow,
    PostSummary,
    Sort,
    StoredError,
    StoredPost,
    Trend,
)
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.queue import Dead, DeadLetters, QueueError
from sanderling.stores.sqlite_queue import SqliteQueue
from sanderling.web.access import Token
from sanderling.web.app import AppRules
from sanderling.web.events_api import events_app
from sanderling.web.serve import Address, ServeRules, serving

ANALYTICS, EVENTS = "/api/v1/analytics", "/api/v1/events"
NOON = 1_764_936_000.0  # 2025-12-05, 12:00 in UTC, a Friday
DAY = 86_400.0

_POST: dict[str, Any] = {
    "project_id": "p",
    "platform": "tiktok",
    "published_at": NOON,
    "analyzed_at": NOON + 60,
    "overall_sentiment": "NEUTRAL",
    "overall_sentiment_score": 0.0,
    "overall_confidence": 0.5,
    "primary_intent": "DISCUSSION",
    "intent_confidence": 1.0,
    "impact_score": 1.5,
    "risk_level": "LOW",
    "is_viral": False,
    "is_kol": False,
    "aspects_breakdown": {"PRICE": {"score": 0.25}},
    "keywords": [{"keyword": "price", "aspect": "PRICE"}],
    "sentiment_probabilities": {"NEUTRAL": 1.0},
    "impact_breakdown": {"reach": 2.5},
    "view_count": 100,
    "like_count": 10,
    "comment_count": 3,
    "share_count": 2,
    "save_count": 1,
    "follower_count": 500,
    "processing_time_ms": 1,
    "model_name": "lexicon",
    "model_version": "1",
    "skipped": "",
    "event_id": "evt",
    "job_id": "p-brand-0",
    "batch_index": 0,
    "task_type": "research_and_crawl",
    "keyword_source": "k",
    "crawled_at": NOON + 30,
    "pipeline_version": "crawler_tiktok_v3",
    "brand_name": "Brand",
    "keyword": "brand model",
    "content_text": "It costs too much",
    "content_transcription": "and more",
    "media_duration": 12.5,
    "hashtags": ["brand"],
    "permalink": "https://example.org/1",
    "author_id": "a1",
    "author_name": "Somebody",
    "author_username": "somebody",
    "author_avatar_url": "https://example.org/a.png",
    "author_is_verified": True,
}


def a_post(post_id: str = "1", **columns: object) -> PostRow:
    return PostRow(**(_POST | {"post_id": post_id} | columns))


def a_comment(comment_id: str = "c1", **columns: object) -> CommentRow:
    usual: dict[str, Any] = {
        "post": 0,
        "text": "Indeed",
        "author_name": "Anybody",
        "likes": 2,
        "sentiment": "POSITIVE",
        "sentiment_score": 0.5,
        "commented_at": NOON + 10,
    }
    return CommentRow(**(usual | {"comment_id": comment_id} | columns))


def an_error(index: int = 0, **columns: object) -> ErrorRow:
    usual: dict[str, Any] = {
        "event_id": "evt",
        "content_id": f"x{index}",
        "project_id": "p",
        "job_id": "p-brand-0",
        "platform": "tiktok",
        "error_code": "RATE_LIMITED",
        "error_category": "rate_limiting",
        "error_message": "429",
        "error_details": {"status": 429},
        "permalink": "https://example.org/x",
        "created_at": NOON + index,
    }
    return ErrorRow(**(usual | {"item_index": index} | columns))


def a_batch(event_id: str, **rows: object) -> AnalyticsBatch:
    usual: dict[str, Any] = {
        "job_id": "p-brand-0",
        "project_id": "p",
        "platform": "tiktok",
        "mode": "new",
        "received_at": NOON,
        "processed_at": NOON,
        "posts": [],
        "comments": [],
        "errors": [],
    }
    return AnalyticsBatch(**(usual | {"event_id": event_id} | rows))


def as_stored(*rows: PostRow) -> list[StoredPost]:
    return [StoredPost(id=number, row=row) for number, row in enumerate(rows, 1)]


SUMMARY = PostSummary(
    posts=2,
    by_sentiment={"NEUTRAL": 2},
    by_risk={"LOW": 2},
    by_intent={"DISCUSSION": 2},
    by_platform={"tiktok": 2},
    mean_score=0.25,
    mean_impact=1.5,
    viral=0,
    kol=1,
    views=2**63,  # more than any row can have
    likes=20,
    comments=6,
    shares=4,
    saves=2,
)


@dataclass(slots=True)
class FakeRows:
    """Gives what it was given, and notes what it was asked. Set `trouble` and everything raises it."""

    stored: list[StoredPost] = field(default_factory=list)
    total: int = 0
    comments: list[CommentRow] = field(default_factory=list)
    failed: list[StoredError] = field(default_factory=list)
    periods: list[Trend] = field(default_factory=list)
    words: list[KeywordCount] = field(default_factory=list)
    trouble: Exception | None = None
    asked: list[tuple[object, ...]] = field(default_factory=list)

    def _note(self, *asked: object) -> None:
        self.asked.append(asked)
        if self.trouble is not None:
            raise self.trouble

    async def posts(self, chosen: PostFilter, *, sort: Sort, descending: bool, offset: int, most: int) -> PostPage:
        self._note("posts", chosen, sort, descending, offset, most)
        return PostPage(self.stored[offset : offset + most], self.total or len(self.stored))

    async def post(self, number: int) -> tuple[StoredPost, list[CommentRow]] | None:
        self._note("post", number)
        found = next((each for each in self.stored if each.id == number), None)
        return None if found is None else (found, self.comments)

    async def errors(self, chosen: ErrorFilter, *, offset: int, most: int) -> tuple[list[StoredError], int]:
        self._note("errors", chosen, offset, most)
        return self.failed[offset : offset + most], self.total or len(self.failed)

    async def ping(self) -> None:
        self._note("ping")

    async def summary(self, chosen: PostFilter) -> PostSummary:
        self._note("summary", chosen)
        return SUMMARY

    async def trends(self, chosen: PostFilter, granularity: Granularity) -> list[Trend]:
        self._note("trends", chosen, granularity)
        return self.periods

    async def keywords(self, chosen: PostFilter, most: int) -> list[KeywordCount]:
        self._note("keywords", chosen, most)
        return self.words[:most]

    async def error_counts(self, chosen: ErrorFilter) -> Mapping[str, int]:
        self._note("error_counts", chosen)
        return {"TIMEOUT": 2, "PARSE_ERROR": 1}


class FakeLetters:
    """Dead letters in memory."""

    def __init__(self, *letters: Dead) -> None:
        self.letters = {letter.key: letter for letter in letters}
        self.trouble: Exception | None = None
        self.replayed: list[Collection[str] | None] = []

    async def dead(self, limit: int, after: str = "") -> list[Dead]:
        if self.trouble is not None:
            raise self.trouble
        keys = [*self.letters]
        if after and after not in keys:
            raise QueueError(f"there is no dead letter {after!r} any more")
        start = keys.index(after) + 1 if after else 0
        return [self.letters[key] for key in keys[start : start + limit]]

    async def replay(self, keys: Collection[str] | None = None) -> int:
        if self.trouble is not None:
            raise self.trouble
        self.replayed.append(keys)
        gone = [key for key in self.letters if keys is None or key in keys]
        for key in gone:
            del self.letters[key]
        return len(gone)


class FakeControl:
    """The rest of `events`, as far as the web is concerned."""

    def __init__(self) -> None:
        self.parts = {"database": "ok", "objects": "ok", "queue": "ok"}
        self.now: Report[EventsFacts] | None = REPORT
        self.switched = Modes()
        self.trouble: Exception | None = None

    async def health(self) -> Mapping[str, str]:
        return self.parts

    async def status(self) -> Report[EventsFacts] | None:
        return self.now

    async def modes(self) -> Modes:
        if self.trouble is not None:
            raise self.trouble
        return self.switched

    async def set_modes(self, modes: Modes) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.switched = modes


class FolderControl(FakeControl):
    """The same, with modes in a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    async def modes(self) -> Modes:
        return read_modes(self._folder) or Modes()

    async def set_modes(self, modes: Modes) -> None:
        write_modes(self._folder, modes)


@dataclass(slots=True)
class EventsHouse:
    """A house that is open."""

    address: Address
    session: aiohttp.ClientSession
    rows: FakeRows
    letters: FakeLetters
    control: FakeControl

    async def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask; the path is sent as it is written."""
        url = URL(self.address.url + path, encoded=True)
        async with self.session.request(method, url, json=body, headers=headers, allow_redirects=False) as answer:
            return Answer(answer.status, await answer.read(), dict(answer.headers))

    async def get(self, path: str, **query: object) -> Answer:
        """Ask for what is at a path of the analytics, with these parameters."""
        url = URL(self.address.url + ANALYTICS + path).with_query({name: str(each) for name, each in query.items()})
        return await self.ask("GET", url.raw_path_qs)


@asynccontextmanager
async def events_house(
    *,
    rows: "FakeRows | AnalyticsStore | None" = None,
    letters: DeadLetters | None = None,
    control: "FakeControl | None" = None,
    token: str | None = TOKEN,
    app: AppRules | None = None,
    serve: ServeRules | None = None,
) -> AsyncIterator[EventsHouse]:
    """Open one on this machine, and a client that has the token. What is not given is a fake."""
    store, queue = cast("FakeRows", rows or FakeRows()), cast("FakeLetters", letters or FakeLetters())
    fake = control or FakeControl()
    made = events_app(cast("Any", store), queue, cast("Any", fake), SystemClock(), Random(7), app)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        asyncio.timeout(300),
        serving(made, "127.0.0.1", 0, Token(token) if token else None, serve) as address,
        aiohttp.ClientSession(headers=headers) as session,
    ):
        yield EventsHouse(
            address,
            session,
            store,
            queue,
            fake,
        )


@asynccontextmanager
async def opened_store(path: Path) -> AsyncIterator[AnalyticsStore]:
    """The real rows in a file."""
    with ThreadPoolExecutor(2) as threads:
        store = await open_analytics(f"sqlite:{path}", in_threads(threads))
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def opened_queue(path: Path) -> AsyncIterator[SqliteQueue]:
    """A real queue in a file."""
    queue = SqliteQueue(path, SystemClock())
    try:
        yield queue
    finally:
        await queue.close()


def is_enveloped(answer: Answer) -> bool:
    """Whether an answer, or a problem, has all that is around one."""
    meta = answer.data["meta"]
    same_id = answer.headers["X-Request-ID"] == meta["request_id"]
    return same_id and answer.data["success"] is (answer.status < 400) and meta["version"] == "1"


def as_json(value: Struct) -> dict[str, Any]:
    """A value as JSON has it."""
    return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(value)))
