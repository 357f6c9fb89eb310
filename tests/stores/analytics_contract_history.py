"""What every database of `events` promises about what was processed: how it is replayed, and how forgotten."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from analytics_contract_replays import ALL, FIRST, bodies, later, replay, shown
from analytics_play import NOW, Place, all_errors, batch, error, post
from looping import in_loop

from sanderling.stores.analytics import AnalyticsBatch, AnalyticsError, BatchResult, EventFilter, Replayable


def processed(number: int, **fields: Any) -> AnalyticsBatch:  # noqa: ANN401 - of any field
    """An event that was processed so many seconds after another."""
    usual: dict[str, Any] = {"processed_at": NOW + number, "message": str(number).encode()}
    return batch(f"evt_{9 - number}", **(usual | fields))


class HistoryContract:
    @in_loop
    async def test_events_are_replayed_the_first_processed_first_some_at_a_time(self, place: Place) -> None:
        async with place.opens() as store:
            for number in (3, 1, 4, 0, 2):
                await store.keep(processed(number))

            assert [await replay(store, most=2) for _ in range(4)] == [2, 2, 1, 0]
            assert await replay(store, most=-1) == 0
            assert await bodies(store) == [b"0", b"1", b"2", b"3", b"4"]

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, [0, 1, 2, 3, 4]),
            ({"from_date": NOW + 1}, [1, 2, 3, 4]),
            ({"from_date": NOW + 1, "to_date": NOW + 3}, [1, 2]),
            ({"project_id": "other"}, [1, 2]),
            ({"project_id": "other", "job_id": "j"}, [2]),
            ({"job_id": "j"}, [2, 3]),
            ({"project_id": ""}, [4]),
            ({"project_id": "nobody's"}, []),
            ({"job_id": "' OR 1=1 --"}, []),
            ({"job_id": "a\0b"}, []),
            ({"project_id": "\ud800"}, []),
            ({"from_date": float("nan")}, []),
            ({"from_date": float("inf")}, []),
            ({"from_date": float("-inf"), "to_date": 1e300}, [0, 1, 2, 3, 4]),
        ],
    )
    @in_loop
    async def test_a_filter_says_which_are_meant(
        self, place: Place, fields: dict[str, Any], expected: list[int]
    ) -> None:
        chosen = EventFilter(**({"from_date": 0.0} | fields))
        async with place.opens() as store:
            await store.keep(processed(0))
            await store.keep(processed(1, project_id="other"))
            await store.keep(processed(2, project_id="other", job_id="j"))
            await store.keep(processed(3, job_id="j"))
            await store.keep(processed(4, project_id=None))

            assert await store.replayable(chosen) == Replayable(len(expected), 0)
            assert await replay(store, chosen) == len(expected)
            assert [int(each) for each in await bodies(store)] == expected
            assert await store.replayable(chosen) == Replayable(0, 0)

    @in_loop
    async def test_an_event_whose_message_was_not_kept_cannot_be_replayed(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(processed(0, message=b""))
            await store.keep(processed(1))
            await store.keep(processed(2, message=b""))

            assert await store.replayable(ALL) == Replayable(1, 2)
            assert await replay(store) == 1
            assert await store.replayable(ALL) == Replayable(0, 2)
            assert await store.processed("evt_9")

    @in_loop
    async def test_of_many_who_replay_at_once_each_event_goes_out_once(self, place: Place) -> None:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(place.opens()) for _ in range(3)]
            for number in range(10):
                await stores[0].keep(batch(f"evt_{number}", processed_at=NOW + number, message=str(number).encode()))
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(replay(by, most=2)) for by in stores * 3]

            replayed = sum(task.result() for task in tasks)
            while more := await replay(stores[0]):
                replayed += more
            assert replayed == 10
            assert sorted(await bodies(stores[0])) == [str(number).encode() for number in range(10)]

    @pytest.mark.parametrize("wrong", ["x" * 257, "\0", "\ud800"])
    @in_loop
    async def test_what_nobody_can_send_is_refused_and_nothing_is_marked(self, place: Place, wrong: str) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            with pytest.raises(AnalyticsError, match="refuses it") as told:
                await store.replay(ALL, exchange=wrong, routing_key="k")

            assert not told.value.transient
            assert await store.processed("evt_1")
            assert await store.depth() == 0

    @in_loop
    async def test_events_that_were_processed_before_are_forgotten_some_at_a_time(self, place: Place) -> None:
        async with place.opens() as store:
            for number in range(6):
                await store.keep(processed(number, message=b"m" if number % 2 else b""))

            assert await store.forget_events(NOW + 4, -1) == 0
            assert await store.forget_events(NOW + 4, 3) == 3
            assert await store.forget_events(NOW + 4) == 1
            assert await store.forget_events(NOW + 4) == 0
            kept = [await store.processed(f"evt_{9 - number}") for number in range(6)]
            assert kept == [None] * 4 + [(None, False), (b"m", False)]

    @in_loop
    async def test_one_that_is_replayed_is_forgotten_only_after_it_was_kept_again(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            await replay(store)
            assert await store.forget_events(NOW + 1000) == 0

            await store.keep(later(post("a")))
            assert (await shown(store)).keys() == {"a"}, "it was still known what there had been"
            assert await store.forget_events(NOW + 50) == 0
            assert await store.forget_events(NOW + 1000) == 1

    @in_loop
    async def test_a_message_of_an_event_that_was_forgotten_is_processed_once_more(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            await store.forget_events(NOW + 1000)
            assert (await shown(store)).keys() == {"a", "b", "c"}
            assert await all_errors(store) == FIRST.errors

            second = later(post("a"), post("d"), errors=[error(3), error(5)])
            assert await store.keep(second) == BatchResult(new=True, posts=2, errors=2)
            assert await store.processed("evt_1")
            found = await shown(store)
            assert found.keys() == {"a", "b", "c", "d"}
            assert found["a"] == (second.posts[0], [])
            assert await all_errors(store) == second.errors
            assert await place.sql("SELECT posts, errors FROM processed_events") == [(2, 2)]

    @in_loop
    async def test_it_says_how_many_connections_are_open(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(FIRST)
            await store.ping()

            assert store.connections == 2, "one who writes, one who looks"
