"""Followers: from where they were, from now, and from before the log's start."""

import asyncio
import json

from polling.race_day import RaceDay, play

from sanderling.clock import run_virtual
from sanderling.polling.feed import Feed
from sanderling.polling.scheduler import Scheduler
from sanderling.serving import StreamEvent


async def take(feed: Feed, after: int | None, number: int) -> list[StreamEvent]:
    events = feed.follow(after)
    found = [await anext(events) for _ in range(number)]
    await events.aclose()
    return found


def test_followers_get_each_change_once_and_all_of_them_in_order() -> None:
    async def story(day: RaceDay) -> None:
        feed = Feed(day.store, day.clock)
        await feed.start()
        working = asyncio.create_task(feed.work())
        await day.clock.sleep(12)
        newest = feed.position
        assert newest > 5
        assert [each.position for each in await take(feed, 0, newest)] == list(range(1, newest + 1))
        assert [each.position for each in await take(feed, newest - 3, 3)] == [newest - 2, newest - 1, newest]
        behind = Feed(day.store, day.clock)  # what is not in memory comes from the log
        await behind.start()
        assert [each.position for each in await take(behind, 2, newest - 2)] == list(range(3, newest + 1))

        quiet = await take(feed, None, 1)
        assert quiet == [StreamEvent(feed.position)]
        last = json.loads((await take(feed, newest - 1, 1))[0].data)
        assert last.keys() == {"table", "key", "op", "at", "data"}
        working.cancel()

    play(RaceDay, story)


def test_a_position_that_is_not_in_the_log_begins_with_all_rows() -> None:
    async def story(day: RaceDay) -> None:
        await day.clock.sleep(12)
        await day.store.prune(2)
        feed = Feed(day.store, day.clock)
        await feed.start()
        for after in (0, feed.position + 5):
            rows = len(await day.store.records("races")) + len(await day.store.records("events"))
            first, *others = await take(feed, after, 1 + rows)
            assert first.name == "reset"
            assert {each.name for each in others} == {"row"}
            assert {each.position for each in others} == {feed.position}

    play(RaceDay, story)


def test_once_polls_each_document_once() -> None:
    async def once(day: RaceDay) -> None:
        day.start(0)
        await Scheduler.run_once(day.scheduler)
        paths = [path for _, path in day.asked]
        assert len(paths) == len(set(paths)) == 2 + 4 + len(day.races)
        assert len(await day.store.records("races")) == len(day.races)

    async def main() -> None:
        await once(RaceDay())

    run_virtual(main())
