"""What every database of `events` promises: AnalyticsContract. A subclass has the fixture `place`.

Here, what is written; `analytics_contract_refusals` has what cannot be, `analytics_contract_replays` what is written
once more, `analytics_contract_history` which events are, `analytics_contract_reading` what is read, and
`analytics_contract_random` a slow and obvious twin.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import Any

import msgspec
import pytest
from analytics_contract_history import HistoryContract
from analytics_contract_killed import KilledContract
from analytics_contract_random import RandomContract
from analytics_contract_reading import ReadingContract
from analytics_contract_refusals import RefusalsContract
from analytics_contract_replays import ReplaysContract
from analytics_play import (
    NOW,
    TABLES,
    Place,
    all_errors,
    all_messages,
    all_posts,
    batch,
    comment,
    error,
    message,
    nothing_in,
    post,
)
from looping import in_loop

from sanderling.clock import SystemClock
from sanderling.events.outbox import OutboxRules, OutboxSender
from sanderling.stores import analytics_questions
from sanderling.stores.analytics import AnalyticsError, BatchResult, OutboxMessage


class BatchesContract:
    @in_loop
    async def test_a_rehearsal_leaves_nothing_also_of_what_is_there(self, place: Place) -> None:
        kept = batch(posts=[post("a")], comments=[comment(0, "1")], errors=[error(1)], outbox=[message(b"x")])
        async with place.opens() as store:
            await store.rehearse(kept)
            assert await nothing_in(place)
            await store.keep(kept)
            before = [await place.sql(f"SELECT count(*) FROM {table}") for table in TABLES]  # noqa: S608 - ours
            await store.rehearse(kept)
            assert [await place.sql(f"SELECT count(*) FROM {table}") for table in TABLES] == before  # noqa: S608 - ours

    @in_loop
    async def test_what_is_kept_is_read_as_it_was(self, place: Place) -> None:
        kept = batch(
            posts=[post("a"), post("b", published_at=None, crawled_at=None, media_duration=None, batch_index=None)],
            comments=[comment(0, "1", likes=9), comment(1, "2"), comment(0, "3", commented_at=None)],
            errors=[error(2), error(3, project_id=None, error_details={"deep": [{"er": None}]})],
            outbox=[message(b"\x00\xff"), message(b"", exchange="", created_at=NOW + 7)],
        )
        async with place.opens() as store:
            assert await store.keep(kept) == BatchResult(new=True, posts=2, errors=2)

        async with place.opens() as store:
            first, second = await all_posts(store)
            assert [first.row, second.row] == kept.posts
            assert await store.post(first.id) == (first, [kept.comments[0], kept.comments[2]])
            assert await store.post(second.id) == (second, [msgspec.structs.replace(kept.comments[1], post=0)])
            assert await all_errors(store) == kept.errors
            found = [each async for each in all_messages(store)]
            assert [msgspec.structs.replace(each, number=0) for each in found] == kept.outbox

    @in_loop
    async def test_an_event_that_is_there_changes_nothing(self, place: Place) -> None:
        first = batch(posts=[post("a")], errors=[error(1)], outbox=[message()])
        other = batch(
            posts=[post("a", crawled_at=NOW), post("b")],
            comments=[comment(0)],
            errors=[error(5)],
            outbox=[message(b"other")],
        )
        async with place.opens() as store:
            assert not await store.processed("evt_1")
            await store.keep(first)
            assert await store.processed("evt_1")

            assert await store.keep(other) == BatchResult(new=False)
            assert await store.keep(first) == BatchResult(new=False)

            (only,) = await all_posts(store)
            assert await store.post(only.id) == (only, [])
            assert only.row == first.posts[0]
            assert await all_errors(store) == first.errors
            assert await store.depth() == 1

    @in_loop
    async def test_what_came_of_an_event_is_noted(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(batch("e", [post("a"), post("b")], errors=[error(2)], mode="legacy", project_id=None))

        columns = "event_id, job_id, project_id, platform, mode, posts, errors"
        assert await place.sql(f"SELECT {columns} FROM processed_events") == [  # noqa: S608 - ours
            ("e", "proj_xyz-brand-0", None, "tiktok", "legacy", 2, 1)
        ]

    @in_loop
    async def test_an_event_without_anything_is_kept_too(self, place: Place) -> None:
        async with place.opens() as store:
            assert await store.keep(batch("empty")) == BatchResult(new=True)
            assert await store.processed("empty")

    @pytest.mark.parametrize("turned", [False, True])
    @pytest.mark.parametrize(
        ("older", "newer"),
        [
            pytest.param({"crawled_at": NOW - 9, "analyzed_at": NOW + 9}, {"crawled_at": NOW - 8}, id="crawled later"),
            pytest.param({"crawled_at": NOW - 9}, {"crawled_at": NOW - 9, "analyzed_at": NOW + 1}, id="analysed later"),
            pytest.param({"crawled_at": NOW - 9}, {"crawled_at": None}, id="crawled nobody knows when"),
            pytest.param({"crawled_at": None, "analyzed_at": NOW - 1}, {"crawled_at": None}, id="both of them"),
            pytest.param({}, {}, id="by the id of their events"),
        ],
    )
    @in_loop
    async def test_the_later_crawl_counts_whichever_comes_first(
        self, place: Place, older: dict[str, Any], newer: dict[str, Any], *, turned: bool
    ) -> None:
        before = batch("evt_1", [post(**older)], [comment(0, "old"), comment(0, "both")])
        after = batch("evt_2", [post(**newer)], [comment(0, "new"), comment(0, "both", likes=1)])
        async with place.opens() as store:
            kept = [await store.keep(each) for each in ((after, before) if turned else (before, after))]

            assert kept == [BatchResult(new=True, posts=1), BatchResult(new=True, posts=0 if turned else 1)]
            (only,) = await all_posts(store)
            assert only.row == after.posts[0]
            found = await store.post(only.id)
            assert found is not None
            assert found[1] == after.comments

    @in_loop
    async def test_posts_of_two_projects_platforms_or_of_none_are_rows_of_their_own(self, place: Place) -> None:
        rows = [post("a"), post("a", project_id="other"), post("a", project_id=None), post("a", platform="youtube")]
        async with place.opens() as store:
            assert (await store.keep(batch("evt_1", rows))).posts == 4
            later = [msgspec.structs.replace(row, crawled_at=NOW) for row in rows]
            assert (await store.keep(batch("evt_2", later))).posts == 4

            assert [each.row.platform for each in await all_posts(store)] == ["tiktok", "youtube"]
            assert [each.row.crawled_at for each in await all_posts(store, "other")] == [NOW]
            ((only,), again) = await all_posts(store, ""), await all_posts(store, "None")
            assert (only.row.project_id, only.row.crawled_at, again) == (None, NOW, [])

    @in_loop
    async def test_a_project_without_a_name_is_none(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(batch("evt_1", [post("a", project_id="")], errors=[error(1, project_id="")]))
            await store.keep(batch("evt_2", [post("a", project_id=None)], project_id=""))

            (only,) = await all_posts(store, "")
            assert (only.row.project_id, only.row.event_id) == (None, "evt_2")
            assert [row.project_id for row in await all_errors(store)] == [None]

    @pytest.mark.parametrize("turned", [False, True])
    @in_loop
    async def test_of_a_post_that_is_in_a_batch_twice_the_later_crawl_counts(
        self, place: Place, *, turned: bool
    ) -> None:
        rows = [post("a", crawled_at=NOW - 2, keyword="old"), post("b"), post("a", crawled_at=NOW - 1, keyword="new")]
        comments = [comment(0, "old"), comment(1, "b"), comment(2, "new")]
        if turned:
            rows.reverse()
            comments = [msgspec.structs.replace(each, post=2 - each.post) for each in comments]
        async with place.opens() as store:
            assert (await store.keep(batch(posts=rows, comments=comments))).posts == 2

            first, second = await all_posts(store)
            assert (first.row.keyword, second.row.post_id) == ("new", "b")
            found = await store.post(first.id)
            assert found is not None
            assert [each.comment_id for each in found[1]] == ["new"]

    @in_loop
    async def test_of_two_that_are_the_same_the_last_in_the_batch_counts(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(batch(posts=[post("a", keyword="first"), post("a", keyword="last")]))

            assert [each.row.keyword for each in await all_posts(store)] == ["last"]

    @in_loop
    async def test_a_comment_that_comes_twice_is_there_once(self, place: Place) -> None:
        twice = [comment(0, "c", text="first"), comment(1, "c", text="of another"), comment(0, "c", text="second")]
        async with place.opens() as store:
            await store.keep(batch(posts=[post("a"), post("b")], comments=twice))

            texts = await place.sql("SELECT text FROM post_comments ORDER BY id")
            assert sorted(texts) == [("first",), ("of another",)]

    @pytest.mark.parametrize("of", [-1, 1])
    @in_loop
    async def test_a_comment_of_no_post_is_refused(self, place: Place, of: int) -> None:
        async with place.opens() as store:
            with pytest.raises(AnalyticsError, match=f"a comment is of post {of}, expected 0 to 0") as told:
                await store.keep(batch(posts=[post("a")], comments=[comment(of)]))

            assert not told.value.transient
            assert await nothing_in(place)


class TogetherContract:
    @in_loop
    async def test_an_event_that_is_kept_ten_times_at_once_is_there_once(self, place: Place) -> None:
        one = batch(posts=[post("a"), post("b")], comments=[comment(1)], errors=[error(2)], outbox=[message()])
        async with place.opens() as store, place.opens() as other:
            kept = await together(*(lambda by=by: by.keep(one) for by in [store, other] * 5))

            assert sorted(kept) == [BatchResult(new=False)] * 9 + [BatchResult(new=True, posts=2, errors=1)]
            counts = [(await place.sql(f"SELECT count(*) FROM {name}"))[0][0] for name in TABLES]  # noqa: S608 - ours
            assert counts == [1, 2, 1, 1, 1]

    @in_loop
    async def test_those_who_write_the_same_posts_at_once_neither_wait_in_a_ring_nor_lose(self, place: Place) -> None:
        names = [f"{n:02}" for n in range(20)]
        batches = [
            batch(
                f"evt_{n:02}",
                [post(name, crawled_at=NOW + (n * 7) % 12) for name in (names if n % 2 else reversed(names))],
                [comment(place, f"of {n}") for place in range(20)],
                outbox=[message(str(n).encode())],
            )
            for n in range(12)
        ]
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(place.opens()) for _ in range(4)]
            tasks = [lambda by=stores[n % 4], each=each: by.keep(each) for n, each in enumerate(batches)]
            assert all(kept.new for kept in await together(*tasks))

            latest = next(each for each in batches if each.posts[0].crawled_at == NOW + 11)
            found = await all_posts(stores[0])
            assert {each.row.event_id for each in found} == {latest.event_id}
            assert len(found) == 20
            texts = await place.sql("SELECT DISTINCT comment_id FROM post_comments")
            assert texts == [(f"of {int(latest.event_id[4:])}",)]
            assert sorted([int(each.body) async for each in all_messages(stores[0])]) == [*range(12)]

    @in_loop
    async def test_whoever_is_cancelled_leaves_nothing_half(self, place: Place) -> None:
        one = batch(posts=[post(f"{n}") for n in range(50)], errors=[error(50)], outbox=[message()])
        async with place.opens() as store:
            with suppress(TimeoutError):  # it may be quicker
                await asyncio.wait_for(store.keep(one), 0.002)

            again = await store.keep(one)
            assert again in (BatchResult(new=False), BatchResult(new=True, posts=50, errors=1))
            counts = [(await place.sql(f"SELECT count(*) FROM {name}"))[0][0] for name in TABLES]  # noqa: S608 - ours
            assert counts == [0, 50, 1, 1, 1]


async def together(*calls: Callable[[], Any]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call()) for call in calls]
    return [task.result() for task in tasks]


class OutboxContract:
    @in_loop
    async def test_messages_come_out_in_order_and_are_forgotten_when_they_were_sent(self, place: Place) -> None:
        async with place.opens() as store:
            await store.add([message(b"1"), message(b"2")])
            await store.keep(batch(outbox=[message(b"3", created_at=0.0)]))
            await store.add([])
            first = await store.waiting(0, 2)
            rest = await store.waiting(first[-1].number, 2)

            assert [each.body for each in [*first, *rest]] == [b"1", b"2", b"3"]
            assert rest[0].created_at == NOW + 1, "that of the batch"
            assert await store.depth() == 3
            await store.sent([first[1].number, first[0].number, 10**6])
            await store.sent([])
            assert await store.waiting(0, 10) == rest
            assert await store.depth() == 1

    @in_loop
    async def test_a_number_is_never_given_again(self, place: Place) -> None:
        async with place.opens() as store:
            await store.add([message(b"1"), message(b"2")])
            first = await store.waiting(0, 10)
            await store.sent([each.number for each in first])
        async with place.opens() as store:
            await store.add([message(b"3")])

            assert [each.body for each in await store.waiting(first[-1].number, 10)] == [b"3"]

    @in_loop
    async def test_a_message_without_a_time_has_that_of_the_database(self, place: Place) -> None:
        async with place.opens() as store:
            await store.add([message(created_at=0.0)])

            (only,) = await store.waiting(0, 1)
            assert only.created_at > NOW

    @in_loop
    async def test_one_at_a_time_has_the_claim_and_whoever_closes_leaves_it(self, place: Place) -> None:
        async with place.opens() as store, place.opens() as other:
            async with store.claim() as ours, other.claim() as theirs:
                assert (ours, theirs) == (True, False)
            async with other.claim() as theirs, store.claim() as ours:
                assert (ours, theirs) == (False, True)
            with pytest.raises(ZeroDivisionError):
                async with store.claim():
                    raise ZeroDivisionError
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05), store.claim():
                    await asyncio.Event().wait()
            async with other.claim() as theirs:
                assert theirs

    @in_loop
    async def test_of_several_who_send_each_message_is_sent_by_one(self, place: Place) -> None:
        arrived: list[bytes] = []

        class Slow:
            async def send(self, messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
                await asyncio.sleep(0.001)
                arrived.extend(each.body for each in messages)
                return []

            async def close(self) -> None:
                pass

        clock, rules = SystemClock(), OutboxRules(batch=5, turn=0.001)
        async with place.opens() as store, place.opens() as other:
            await store.add([message(f"{n}".encode()) for n in range(50)])
            senders = [OutboxSender(each, Slow(), clock, Random(1), rules) for each in (store, other)]
            counts = await together(*(each.send_waiting for each in senders))

            assert arrived == [f"{n}".encode() for n in range(50)]
            assert sum(counts) == sum(each.tally.sent.total() for each in senders) == 50
            assert await store.depth() == 0

    @in_loop
    async def test_large_messages_are_handed_out_a_few_at_a_time(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(analytics_questions, "MOST_MESSAGE_BYTES", 100)
        async with place.opens() as store:
            await store.add([message(b"x" * size) for size in (60, 60, 60, 500, 1)])

            assert [len(each.body) for each in await store.waiting(0, 10)] == [60, 60]
            assert [len(each.body) async for each in all_messages(store)] == [60, 60, 60, 500, 1]

    @in_loop
    async def test_errors_that_are_older_are_forgotten_the_oldest_first(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(batch(errors=[error(n, created_at=NOW - n) for n in range(6)]))

            assert await store.forget_errors(NOW - 1, 3) == 3
            assert [row.item_index for row in await all_errors(store)] == [0, 1, 2]
            assert await store.forget_errors(NOW - 1) == 1
            assert await store.forget_errors(NOW - 1) == 0
            assert [row.item_index for row in await all_errors(store)] == [0, 1]

    @in_loop
    async def test_it_answers_and_says_where_it_is(self, place: Place) -> None:
        async with place.opens() as store:
            await store.ping()
            assert any(word in repr(store) for word in ("analytics.db", "postgresql://"))
            assert "@" not in repr(store), "who may enter is nobody's business"


class AnalyticsContract(
    BatchesContract,
    RefusalsContract,
    ReplaysContract,
    HistoryContract,
    TogetherContract,
    OutboxContract,
    ReadingContract,
    RandomContract,
    KilledContract,
):
    """All of it."""
