"""What every database of `events` promises about an event that is replayed: what becomes of its rows."""

import asyncio
from contextlib import suppress
from typing import Any

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
from looping import in_loop

from sanderling.stores.analytics import (
    AnalyticsBatch,
    AnalyticsError,
    BatchResult,
    CommentRow,
    EventFilter,
    PostRow,
    Replayable,
)
from sanderling.stores.analytics_store import AnalyticsStore

ALL = EventFilter(from_date=0.0)
WHOLE = """SELECT (SELECT count(*) FROM post_analytics), (SELECT count(*) FROM crawl_errors),
    (SELECT replayed FROM processed_events)"""
FIRST = batch(
    posts=[post("a"), post("b"), post("c")],
    comments=[comment(0, "of a"), comment(1, "of b"), comment(1, "too")],
    errors=[error(3), error(4)],
    message=b"\x00first",
)


async def replay(store: AnalyticsStore, chosen: EventFilter = ALL, most: int = 1_000) -> int:
    return await store.replay(chosen, exchange="x", routing_key="k", most=most)


async def bodies(store: AnalyticsStore) -> list[bytes]:
    return [each.body async for each in all_messages(store)]


def later(*posts: PostRow, seconds: float = 100.0, **fields: Any) -> AnalyticsBatch:  # noqa: ANN401 - of any field
    """The same event once more, with these posts, which were analysed later."""
    usual: dict[str, Any] = {"processed_at": NOW + 1 + seconds, "message": b"again"}
    rows = [msgspec.structs.replace(row, analyzed_at=NOW + seconds) for row in posts]
    return batch("evt_1", rows, **(usual | fields))


async def shown(store: AnalyticsStore, project: str = PROJECT) -> dict[str, tuple[PostRow, list[CommentRow]]]:
    """Posts and their comments, by the id of the post."""
    found = {}
    for each in await all_posts(store, project):
        whole = await store.post(each.id)
        assert whole is not None
        found[each.row.post_id] = (whole[0].row, whole[1])
    return found


async def numbers(store: AnalyticsStore) -> dict[str, int]:
    return {each.row.post_id: each.id for each in await all_posts(store)}


class ReplaysContract:
    @in_loop
    async def test_a_replayed_event_goes_out_again_and_can_be_kept_once_more(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            assert await replay(store) == 1

            (sent,) = [each async for each in all_messages(store)]
            assert (sent.exchange, sent.routing_key, sent.body) == ("x", "k", b"\x00first")
            assert sent.created_at > NOW
            assert await store.processed("evt_1") == (FIRST.message, True)
            assert await replay(store) == 0, "it is marked"
            assert await store.keep(later(post("a"))) == BatchResult(new=True, posts=1)
            assert await store.processed("evt_1") == (b"again", False)
            assert await store.keep(later(post("a"))) == BatchResult(new=False)
            assert await store.depth() == 1

    @in_loop
    async def test_until_it_is_kept_again_all_stays_as_it_was(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            before = await shown(store)
            await replay(store)

        async with place.opens() as store:
            assert await shown(store) == before
            assert await all_errors(store) == FIRST.errors
            assert await store.processed("evt_1") == (FIRST.message, True)

    @in_loop
    async def test_what_is_noted_about_it_is_that_of_the_last_time(self, place: Place) -> None:
        columns = "job_id, project_id, platform, mode, posts, errors, replayed"
        async with place.opens() as store:
            await store.keep(FIRST)
            await replay(store)
            await store.keep(later(post("a"), job_id="j", project_id=None, platform="youtube", mode="legacy"))

            found = await place.sql(f"SELECT {columns} FROM processed_events")  # noqa: S608 - ours
            assert found == [("j", None, "youtube", "legacy", 1, 0, False)]
            until = EventFilter(from_date=NOW + 100, to_date=NOW + 102)
            assert await store.replayable(until) == Replayable(1, 0)
            await replay(store)
            assert await bodies(store) == [b"\x00first", b"again"]

    @in_loop
    async def test_a_batch_without_a_message_leaves_the_one_it_had(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            await replay(store)
            await store.keep(later(post("a"), message=b""))
            await replay(store)

            assert await bodies(store) == [b"\x00first"] * 2

    @in_loop
    async def test_a_post_that_is_an_error_now_is_removed_and_comes_back(self, place: Place) -> None:
        neighbour = batch("evt_2", [post("of another event")], [comment(0)], [error(0)])
        async with place.opens() as store:
            await store.keep(FIRST)
            await store.keep(neighbour)
            before = await numbers(store)

            await replay(store)
            second = later(post("a"), post("c"), comments=[comment(0, "new")], errors=[error(1), error(3)])
            assert await store.keep(second) == BatchResult(new=True, posts=2, errors=2)
            found = await shown(store)
            assert found.keys() == {"a", "c", "of another event"}
            assert found["a"] == (second.posts[0], [comment(0, "new")])
            assert [row.item_index for row in await all_errors(store)] == [1, 3, 0]
            assert await place.sql("SELECT count(*) FROM post_comments") == [(2,)]

            await replay(store)
            third = later(post("a"), post("b"), post("c"), seconds=200.0, comments=[comment(1, "of b")])
            assert await store.keep(third) == BatchResult(new=True, posts=3)
            found = await shown(store)
            assert [found[name] for name in "abc"] == [
                (third.posts[0], []),
                (third.posts[1], [comment(0, "of b")]),
                (third.posts[2], []),
            ]
            assert [row.event_id for row in await all_errors(store)] == ["evt_2"]
            after = await numbers(store)
            assert {name: after[name] for name in ("a", "c", "of another event")} == {
                name: before[name] for name in ("a", "c", "of another event")
            }

    @in_loop
    async def test_posts_of_a_project_that_is_another_now_move_and_those_of_its_other_projects_stay(
        self, place: Place
    ) -> None:
        rows = [post("a"), post("a", project_id="other"), post("b", project_id=None)]
        async with place.opens() as store:
            await store.keep(batch(posts=rows, message=b"m"))
            await replay(store)
            moved = later(post("a"), post("a", project_id="third"), post("b", project_id="other"))
            assert (await store.keep(moved)).posts == 3

            projects = (PROJECT, "other", "third", "")
            assert [[*await shown(store, project)] for project in projects] == [["a"], ["b"], ["a"], []]
            await replay(store)
            await store.keep(later(post("a"), post("a", project_id=""), seconds=200.0))
            assert [[*await shown(store, project)] for project in projects] == [["a"], [], [], ["a"]]

    @in_loop
    async def test_a_post_that_a_later_event_wrote_is_left_alone(self, place: Place) -> None:
        newer = batch("evt_2", [post("a", crawled_at=NOW), post("b", crawled_at=NOW)], [comment(0), comment(1)])
        async with place.opens() as store:
            await store.keep(FIRST)
            await store.keep(newer)
            await replay(store)

            assert (await store.keep(later(post("a"), errors=[error(1)]))).posts == 0
            found = await shown(store)
            assert [found[name] for name in "ab"] == [(row, [comment(0)]) for row in newer.posts]
            assert "c" not in found

    @in_loop
    async def test_of_one_whose_job_is_another_now_the_rest_is_found_all_the_same(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            await replay(store)
            await store.keep(later(post("a", job_id="j"), job_id="j"))
            assert [*await shown(store)] == ["a"]

            await replay(store)
            await store.keep(later(seconds=200.0))
            assert await shown(store) == {}

    @pytest.mark.parametrize("seconds", [-100.0, 0.0])
    @in_loop
    async def test_a_clock_that_went_back_loses_nothing(self, place: Place, seconds: float) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            before = await shown(store)
            await replay(store)
            second = later(*FIRST.posts, comments=FIRST.comments, errors=FIRST.errors, seconds=seconds)

            assert await store.keep(second) == BatchResult(new=True, posts=0, errors=2)
            assert await shown(store) == before
            assert await all_errors(store) == FIRST.errors
            assert await store.processed("evt_1")

    @in_loop
    async def test_a_post_that_cannot_be_stored_this_time_is_an_error_and_the_others_stay(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            before = await numbers(store)
            await replay(store)
            unstorable = post("b", content_text="\0")
            second = later(post("a"), unstorable, post("d"), post("b", crawled_at=1.0), errors=[error(3)])

            assert await store.keep(second) == BatchResult(new=True, posts=2, errors=2)
            after = await numbers(store)
            assert after.keys() == {"a", "d"}
            assert after["a"] == before["a"]
            errors = await all_errors(store)
            assert [(row.item_index, row.error_code) for row in errors] == [(1, "STORAGE_ERROR"), (3, "RATE_LIMITED")]
            assert await store.processed("evt_1")

    @in_loop
    async def test_a_replay_that_is_refused_loses_nothing_and_can_be_tried_again(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            before = await shown(store)
            await replay(store)
            with pytest.raises(AnalyticsError, match="refuses it"):
                await store.keep(later(post("a"), errors=[error(1), error(1)]))

            assert await shown(store) == before
            assert await all_errors(store) == FIRST.errors
            assert await store.processed("evt_1") == (FIRST.message, True)
            assert (await store.keep(later(post("a")))).new

    @in_loop
    async def test_whoever_is_cancelled_leaves_it_as_it_was_or_all_of_it_new(self, place: Place) -> None:
        first = batch(posts=[post(f"{n}") for n in range(50)], errors=[error(50)], message=b"m")
        second = later(*(post(f"{n}", keyword="new") for n in range(49)), errors=[error(49), error(50)])
        async with place.opens() as store:
            await store.keep(first)
            await replay(store)
            with suppress(TimeoutError):  # it may be quicker
                await asyncio.wait_for(store.keep(second), 0.002)

            # In one statement: a file may be written a moment longer than anyone waits for it.
            assert await place.sql(WHOLE) in ([(50, 1, True)], [(49, 2, False)])
            await store.keep(second)
            assert {row.keyword for row, _ in (await shown(store)).values()} == {"new"}
            assert await all_errors(store) == second.errors

    @in_loop
    async def test_an_old_message_that_comes_first_is_the_replay_and_the_other_changes_nothing(
        self, place: Place
    ) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            await replay(store)

            assert (await store.keep(FIRST)).new
            assert await store.keep(later(post("a"))) == BatchResult(new=False)
            assert (await shown(store)).keys() == {"a", "b", "c"}
            assert await all_errors(store) == FIRST.errors

    @in_loop
    async def test_a_replayed_event_that_is_kept_ten_times_at_once_is_kept_once(self, place: Place) -> None:
        second = later(post("a"), post("d"), errors=[error(1)], outbox=[message()])
        async with place.opens() as store, place.opens() as other:
            await store.keep(FIRST)
            await replay(store)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(by.keep(second)) for by in [store, other] * 5]

            kept = sorted(task.result() for task in tasks)
            assert kept == [BatchResult(new=False)] * 9 + [BatchResult(new=True, posts=2, errors=1)]
            assert (await shown(store)).keys() == {"a", "d"}
            assert await store.depth() == 2
