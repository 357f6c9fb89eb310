"""What becomes of rows that no database of `events` can take."""

from typing import Any

import msgspec
import pytest
from analytics_play import (
    NOW,
    PROJECT,
    Place,
    all_errors,
    all_posts,
    batch,
    comment,
    error,
    message,
    nothing_in,
    post,
)
from looping import in_loop

from sanderling.stores.analytics import AnalyticsBatch, AnalyticsError, BatchResult

DEEP: dict[str, object] = {}
for _ in range(3000):
    DEEP = {"in": DEEP}

# What no database of ours takes.
UNSTORABLE = {
    "a NUL in the text": {"content_text": "a\0b"},
    "half a character in the text": {"content_text": "a\ud800b"},
    "a NUL in the id": {"post_id": "b\0"},
    "an id of 129 characters": {"post_id": "b" * 129},
    "a platform of 33 characters": {"platform": "p" * 33},
    "a counter of 65 bits": {"view_count": 2**63},
    "a very long counter": {"view_count": 10**400},
    "a score that is no number": {"overall_sentiment_score": float("nan")},
    "an endless impact": {"impact_score": float("inf")},
    "a time after the year 9999": {"published_at": 253_402_300_800.0},
    "a time before the year 1": {"crawled_at": -62_135_596_801.0},
    "an endless time": {"analyzed_at": float("inf")},
    "no time": {"analyzed_at": float("nan")},
    "half a character in a list": {"hashtags": ["\udfff"]},
    "what is nested too deep": {"aspects_breakdown": DEEP},
}


class RefusalsContract:
    @pytest.mark.parametrize("fields", UNSTORABLE.values(), ids=UNSTORABLE)
    @in_loop
    async def test_a_post_that_cannot_be_stored_becomes_an_error_in_its_place(
        self, place: Place, fields: dict[str, Any]
    ) -> None:
        rows = [post("a"), post(**{"post_id": "b"} | fields), post("c")]
        mixed = batch(posts=rows, comments=[comment(1), comment(2)], errors=[error(0), error(2)], outbox=[message()])
        async with place.opens() as store:
            assert await store.keep(mixed) == BatchResult(new=True, posts=2, errors=3)

            assert [each.row for each in await all_posts(store)] == [mixed.posts[0], mixed.posts[2]]
            first, second, third = await all_errors(store)
            assert [first, second] == mixed.errors
            assert (third.item_index, third.error_code, third.error_category) == (3, "STORAGE_ERROR", "storage")
            assert third.content_id.startswith("b")
            assert third.error_message.startswith("cannot be stored: ")
            assert (third.event_id, third.project_id, third.created_at) == ("evt_1", PROJECT, NOW + 1)
            assert await store.depth() == 1
            assert await place.sql("SELECT posts, errors FROM processed_events") == [(2, 3)]
            assert await place.sql("SELECT count(*) FROM post_comments") == [(1,)]
            assert await store.keep(mixed) == BatchResult(new=False)

    @in_loop
    async def test_a_batch_of_which_nothing_can_be_stored_is_all_errors(self, place: Place) -> None:
        rows = [post("a" * 200), post("b\0"), post("c", like_count=-(2**63) - 1)]
        async with place.opens() as store:
            assert await store.keep(batch(posts=rows)) == BatchResult(new=True, posts=0, errors=3)

            assert [row.item_index for row in await all_errors(store)] == [0, 1, 2]
            assert await nothing_in(place, "post_analytics", "post_comments")

    @in_loop
    async def test_of_many_posts_only_those_at_fault_become_errors(self, place: Place) -> None:
        bad = {0, 7, 8, 49}
        rows = [post(f"{n:02}", view_count=2**70 if n in bad else n) for n in range(50)]
        async with place.opens() as store:
            assert await store.keep(batch(posts=rows)) == BatchResult(new=True, posts=46, errors=4)

            assert [row.item_index for row in await all_errors(store)] == sorted(bad)
            assert {each.row.view_count for each in await all_posts(store)} == {*range(50)} - bad

    @in_loop
    async def test_what_cannot_be_stored_of_a_comment_is_cut_and_its_post_stays(self, place: Place) -> None:
        wrong = comment(0, "1" * 300, text="a\0b\ud800", likes=2**70, sentiment_score=float("nan"), commented_at=1e300)
        async with place.opens() as store:
            kept = await store.keep(batch(posts=[post("a")], comments=[wrong, comment(0, "2", likes=1)]))
            assert kept == BatchResult(new=True, posts=1)

            (only,) = await all_posts(store)
            found = await store.post(only.id)
            assert found is not None
            first, second = found[1]
            assert (first.comment_id, first.text, first.likes) == ("1" * 256, "a\N{REPLACEMENT CHARACTER}b?", 2**63 - 1)
            assert (first.sentiment_score, first.commented_at) == (0.0, None)
            assert second == comment(0, "2", likes=1)

    @in_loop
    async def test_what_cannot_be_stored_of_an_error_is_cut(self, place: Place) -> None:
        wrong = error(0, content_id="x\0", error_code="E" * 99, error_details={"a": "\ud800"}, error_message="m" * 9999)
        async with place.opens() as store:
            assert await store.keep(batch(posts=[post("a")], errors=[wrong, error(1)])) == BatchResult(
                new=True, posts=1, errors=2
            )

            first, second = await all_errors(store)
            assert (first.content_id, first.error_code) == ("x\N{REPLACEMENT CHARACTER}", "E" * 64)
            assert (first.error_details, first.error_message) == ({"left_out": "cannot be stored"}, "m" * 9999)
            assert msgspec.structs.replace(second, event_id="") == error(1)

    @pytest.mark.parametrize(
        "wrong",
        [
            pytest.param(batch("e" * 257, [post()]), id="a long event"),
            pytest.param(batch("e\0", [post()]), id="an event with a NUL"),
            pytest.param(batch(posts=[post()], processed_at=float("nan")), id="no time"),
            pytest.param(batch(posts=[post()], outbox=[message(exchange="x" * 257)]), id="a message nobody can send"),
            pytest.param(batch(posts=[post()], errors=[error(1), error(1)]), id="two errors in one place"),
        ],
    )
    @in_loop
    async def test_a_batch_that_cannot_be_noted_is_refused_for_good(self, place: Place, wrong: AnalyticsBatch) -> None:
        async with place.opens() as store:
            with pytest.raises(AnalyticsError, match="refuses it") as told:
                await store.keep(wrong)

            assert not told.value.transient
            assert len(str(told.value)) < 2000
            assert await nothing_in(place)
            assert (await store.keep(batch(posts=[post()]))).new

    @in_loop
    async def test_the_largest_of_everything_is_taken(self, place: Place) -> None:
        most = 2**63 - 1
        large = post(
            "😀" * 128,
            project_id="p" * 256,
            view_count=most,
            like_count=-most - 1,
            content_text="đ" * 1_000_000,
            author_name="😀" * 512,
            job_id="j" * 256,
            published_at=-62_135_596_800.0,
            crawled_at=253_402_300_799.0,
            hashtags=["x" * 100] * 1000,
        )
        async with place.opens() as store:
            assert await store.keep(batch("e" * 256, [large])) == BatchResult(new=True, posts=1)

            (only,) = await all_posts(store, "p" * 256)
            assert msgspec.structs.replace(only.row, event_id="") == large
