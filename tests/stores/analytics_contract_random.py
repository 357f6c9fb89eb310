"""That a database of `events` does what a slow and obvious twin does, whatever batches come."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from analytics_play import (
    NOW,
    PROJECT,
    Place,
    all_errors,
    all_messages,
    all_posts,
    batch,
    comment,
    error,
    message,
    post,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sanderling.stores.analytics import (
    AnalyticsBatch,
    BatchResult,
    CommentRow,
    EventFilter,
    PostFilter,
    PostRow,
    Replayable,
)
from sanderling.stores.analytics_store import AnalyticsStore

EXAMPLES = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
DAY = 86_400.0

# On so few keys that everything happens.
MOMENTS = st.sampled_from([NOW, NOW + 0.5, NOW + DAY, NOW - 40 * DAY])
POST = st.builds(
    post,
    st.sampled_from("abc"),
    project_id=st.sampled_from([PROJECT, PROJECT, "other", None]),
    platform=st.sampled_from(["tiktok", "youtube"]),
    published_at=st.none() | MOMENTS,
    analyzed_at=MOMENTS,
    crawled_at=st.none() | MOMENTS,
    overall_sentiment=st.sampled_from(["NEGATIVE", "POSITIVE"]),
    overall_sentiment_score=st.sampled_from([-1.0, 0.25, 1.0]),
    is_viral=st.booleans(),
    view_count=st.sampled_from([0, 5, 2**63 - 1, 2**63]),  # the last cannot be stored
)
ERROR = st.builds(error, st.integers(0, 5), project_id=st.sampled_from([PROJECT, None]))
MESSAGE = st.builds(message, st.binary(max_size=3))


@st.composite
def batches(draw: st.DrawFn) -> AnalyticsBatch:
    posts = draw(st.lists(POST, max_size=4))
    of, names = st.integers(0, max(0, len(posts) - 1)), st.sampled_from("12")
    comments = draw(st.lists(st.builds(comment, of, names, likes=st.integers(0, 3)), max_size=4)) if posts else []
    errors = draw(st.lists(ERROR, max_size=2, unique_by=lambda row: row.item_index))
    event = draw(st.sampled_from([f"evt_{n}" for n in range(6)]))
    brought, at = draw(st.binary(max_size=2)), draw(MOMENTS)
    return batch(event, posts, comments, errors, draw(st.lists(MESSAGE, max_size=2)), message=brought, processed_at=at)


class Replay(NamedTuple):
    """As many as that, of one project or of any, of those processed since."""

    most: int
    project_id: str | None
    since: float


STEP = batches() | batches() | st.builds(Replay, st.integers(1, 4), st.sampled_from([None, PROJECT, ""]), MOMENTS)


class Twin:
    """The rows, in dicts."""

    def __init__(self) -> None:
        self.posts: dict[tuple[str | None, str, str], tuple[PostRow, dict[str, CommentRow]]] = {}
        self.errors: dict[tuple[str, int], str] = {}
        self.events: dict[str, tuple[float, str, bytes]] = {}  # when it was processed, whose it is, what brought it
        self.marked: set[str] = set()
        self.messages: list[bytes] = []

    def keep(self, kept: AnalyticsBatch) -> BatchResult:
        event = kept.event_id
        if event in self.events and event not in self.marked:
            return BatchResult(new=False)
        brought = kept.message or (self.events[event][2] if event in self.events else b"")
        self.events[event] = kept.processed_at, kept.project_id or "", brought
        self.marked.discard(event)
        self.messages += [each.body for each in kept.outbox]
        self.errors = {at: code for at, code in self.errors.items() if at[0] != event}
        self.errors |= {(kept.event_id, row.item_index): row.error_code for row in kept.errors}
        best = self._best(kept)
        bad = [place for place in best if kept.posts[place].view_count >= 2**63]
        free = [index for index in range(20) if index not in {row.item_index for row in kept.errors}]
        self.errors |= {(kept.event_id, free[place]): "STORAGE_ERROR" for place in bad}
        written = sum(self._put(kept, place) for place in best if place not in bad)
        keys = {self._key(kept.posts[place]) for place in best if place not in bad}
        gone = [key for key, (row, _) in self.posts.items() if row.event_id == event and key not in keys]
        for key in gone:
            del self.posts[key]
        return BatchResult(new=True, posts=written, errors=len(kept.errors) + len(bad))

    def meant(self, asked: Replay) -> tuple[list[str], int]:
        """Which can be replayed, in order, and how many cannot."""
        meant = {
            event: (at, event, brought)
            for event, (at, project, brought) in self.events.items()
            if event not in self.marked and asked.project_id in (None, project) and at >= asked.since
        }
        able = sorted(each for each in meant.values() if each[2])
        return [event for _, event, _ in able], len(meant) - len(able)

    def replay(self, asked: Replay) -> int:
        chosen = self.meant(asked)[0][: asked.most]
        self.marked |= {*chosen}
        self.messages += [self.events[event][2] for event in chosen]
        return len(chosen)

    def _best(self, kept: AnalyticsBatch) -> Iterable[int]:
        best: dict[Any, int] = {}
        for place, row in enumerate(kept.posts):
            key = self._key(row)
            if key not in best or self._age(row) >= self._age(kept.posts[best[key]]):
                best[key] = place
        return best.values()

    def _put(self, kept: AnalyticsBatch, place: int) -> bool:
        row = kept.posts[place]
        there = self.posts.get(self._key(row))
        if there is not None and self._age(there[0]) >= self._age(row):
            return False
        comments: dict[str, CommentRow] = {}
        for each in kept.comments:
            if each.post == place:
                comments.setdefault(each.comment_id, msgspec.structs.replace(each, post=0))
        self.posts[self._key(row)] = (row, comments)
        return True

    @staticmethod
    def _key(row: PostRow) -> tuple[str | None, str, str]:
        return row.project_id, row.platform, row.post_id

    @staticmethod
    def _age(row: PostRow) -> tuple[float, float, str]:
        return row.analyzed_at if row.crawled_at is None else row.crawled_at, row.analyzed_at, row.event_id


async def take(step: AnalyticsBatch | Replay, store: AnalyticsStore, twin: Twin) -> None:
    if isinstance(step, AnalyticsBatch):
        assert await store.keep(step) == twin.keep(step)
        return
    chosen = EventFilter(from_date=step.since, project_id=step.project_id)
    able, unable = twin.meant(step)
    assert await store.replayable(chosen) == Replayable(len(able), unable)
    assert await store.replay(chosen, exchange="x", routing_key="k", most=step.most) == twin.replay(step)


async def compare(store: AnalyticsStore, twin: Twin) -> None:
    for project in (PROJECT, "other", None):
        expected = {key: kept for key, kept in twin.posts.items() if key[0] == project}
        found = await all_posts(store, project or "")
        assert {(each.row.platform, each.row.post_id): each.row for each in found} == {
            key[1:]: row for key, (row, _) in expected.items()
        }
        for each in found:
            shown = await store.post(each.id)
            assert shown is not None
            comments = twin.posts[(project, each.row.platform, each.row.post_id)][1]
            assert {row.comment_id: row for row in shown[1]} == comments
    assert {(row.event_id, row.item_index): row.error_code for row in await all_errors(store)} == twin.errors
    assert [each.body async for each in all_messages(store)] == twin.messages
    events = {f"evt_{n}": await store.processed(f"evt_{n}") for n in range(6)}
    assert {event for event, each in events.items() if each and not each.replayed} == twin.events.keys() - twin.marked


async def compare_sums(store: AnalyticsStore, rows: list[PostRow], chosen: PostFilter) -> None:
    rows = [row for row in rows if is_meant(row, chosen)]
    summary = await store.summary(chosen)
    assert (summary.posts, summary.by_platform) == (len(rows), Counter(row.platform for row in rows))
    assert summary.by_sentiment == Counter(row.overall_sentiment for row in rows)
    assert (summary.views, summary.viral) == (sum(row.view_count for row in rows), sum(row.is_viral for row in rows))
    if rows:
        mean = sum(row.overall_sentiment_score for row in rows) / len(rows)
        assert summary.mean_score == pytest.approx(mean)
    for granularity in ("day", "week", "month"):
        trends = await store.trends(chosen, granularity)
        assert {each.start: each.posts for each in trends} == Counter(start_of(row, granularity) for row in rows)


def is_meant(row: PostRow, chosen: PostFilter) -> bool:
    moment = row.analyzed_at if row.published_at is None else row.published_at
    return (
        (row.project_id or "") == chosen.project_id
        and chosen.platform in (None, row.platform)
        and chosen.is_viral in (None, row.is_viral)
        and (chosen.from_date is None or moment >= chosen.from_date)
        and (chosen.to_date is None or moment < chosen.to_date)
    )


def start_of(row: PostRow, granularity: str) -> float:
    moment = datetime.fromtimestamp(row.analyzed_at if row.published_at is None else row.published_at, UTC)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if granularity == "week":
        day -= timedelta(day.weekday())
    return (day.replace(day=1) if granularity == "month" else day).timestamp()


FILTER = st.builds(
    PostFilter,
    project_id=st.sampled_from([PROJECT, "other", ""]),
    platform=st.sampled_from([None, "tiktok"]),
    is_viral=st.sampled_from([None, True, False]),
    from_date=st.none() | MOMENTS,
    to_date=st.none() | MOMENTS,
)


class RandomContract:
    def test_it_does_what_a_dict_would_do(self, place: Place) -> None:
        async def play(steps: list[AnalyticsBatch | Replay], chosen: PostFilter) -> None:
            await place.wipe()
            twin = Twin()
            async with place.opens() as store:
                for step in steps:
                    await take(step, store, twin)
                await compare(store, twin)
                await compare_sums(store, [row for row, _ in twin.posts.values()], chosen)

        @EXAMPLES
        @given(st.lists(STEP, max_size=10), FILTER)
        def check(steps: list[AnalyticsBatch | Replay], chosen: PostFilter) -> None:
            asyncio.run(play(steps, chosen))

        check()

    def test_the_order_in_which_batches_come_does_not_matter(self, place: Place) -> None:
        @EXAMPLES
        @given(st.lists(batches(), max_size=4, unique_by=lambda each: each.event_id), st.randoms(use_true_random=False))
        def check(kept: list[AnalyticsBatch], order: Random) -> None:
            shuffled = [*kept]
            order.shuffle(shuffled)
            assert asyncio.run(outcome(place, kept)) == asyncio.run(outcome(place, shuffled))

        check()


COMMENTS = """SELECT project_id, platform, post_analytics.post_id, comment_id, likes
    FROM post_comments JOIN post_analytics ON post_analytics.id = post_comments.post_id"""


async def outcome(place: Place, kept: list[AnalyticsBatch]) -> list[Any]:
    await place.wipe()
    async with place.opens() as store:
        for each in kept:
            await store.keep(each)
        posts = [each.row for project in (PROJECT, "other", "") for each in await all_posts(store, project)]
        comments = await place.sql(COMMENTS)
        return [sorted(map(str, posts)), sorted(map(str, comments)), await all_errors(store)]
