import asyncio
from types import AsyncGeneratorType

import pytest
from followers import Follower, following, numbers, opened
from looping import virtual
from memory_changes import MemoryChanges, Mood, broken, calm, change
from structlog.testing import capture_logs

from sanderling.polling.change_feed import LOOK_SECONDS, READS, RING, RING_BYTES, TRIM_SECONDS, ChangeFeed, Trimmed
from sanderling.stores.polling import PollingStoreError
from sanderling.testing import LoopClock, run_virtual

# --- from memory, or from the store ---


@virtual
async def test_what_is_noted_is_followed_without_asking_the_store() -> None:
    store = MemoryChanges(5)
    feed = await opened(store)
    followers = [Follower(5), Follower(5, most=2)]

    async with following(feed, *followers):
        for count in (1, 3, 1):
            feed.note(store.commit(count))
            await asyncio.sleep(1)

    assert [follower.seen for follower in followers] == [[6, 7, 8, 9, 10]] * 2
    assert store.reads == []


@virtual
async def test_what_is_older_than_the_memory_comes_from_the_store_and_the_rest_from_memory() -> None:
    store = MemoryChanges(700)
    feed = await opened(store)
    feed.note(store.commit(RING))
    follower = Follower(0)

    async with following(feed, follower):
        await asyncio.sleep(1)

    assert follower.seen == [*range(1, 701 + RING)]
    assert store.reads == [(0, 500), (500, 500)]


@virtual
async def test_of_large_changes_few_are_held_in_memory_and_followers_get_them_all() -> None:
    store = MemoryChanges()
    feed = await opened(store)
    store.kept = [change(seq, "x" * (RING_BYTES // 4)) for seq in range(1, 10)]
    store.newest = 9
    feed.note(store.kept[:8])
    feed.note(store.kept[8:])
    follower = Follower(0)

    async with following(feed, follower):
        await asyncio.sleep(1)

    assert follower.seen == [*range(1, 10)]
    assert "3 in memory" in repr(feed)


@virtual
async def test_a_change_that_is_larger_than_the_memory_is_read_from_the_store() -> None:
    store = MemoryChanges()
    feed = await opened(store)
    store.kept = [change(1, "x" * (RING_BYTES + 1))]
    store.newest = 1
    feed.note(store.kept)
    follower = Follower(0)

    async with following(feed, follower):
        await asyncio.sleep(1)

    assert follower.seen == [1]
    assert "0 in memory" in repr(feed)


@virtual
async def test_numbers_that_nobody_noted_are_read_from_the_store() -> None:
    store = MemoryChanges()
    feed = await opened(store)
    follower = Follower(0)

    async with following(feed, follower):
        feed.note(store.commit(2))
        await asyncio.sleep(1)
        store.commit(3)
        feed.note(store.commit(2))
        await asyncio.sleep(1)

    assert follower.seen == [1, 2, 3, 4, 5, 6, 7]


@virtual
async def test_what_was_committed_unnoticed_is_found_within_a_second_and_read_once_for_all() -> None:
    store = MemoryChanges()
    feed = await opened(store)
    followers = [Follower(0) for _ in range(50)]

    async with following(feed, *followers), asyncio.TaskGroup() as group:
        group.create_task(feed.tend())
        await asyncio.sleep(0.5)
        store.reads.clear()
        store.commit(3)
        await asyncio.sleep(LOOK_SECONDS)
        assert [follower.seen for follower in followers] == [[1, 2, 3]] * 50
        assert store.reads == [(0, RING)]
        feed.close()


@virtual
async def test_what_a_look_has_found_is_not_told_twice() -> None:
    store = MemoryChanges()
    feed = await opened(store)
    follower = Follower(0)

    async with following(feed, follower):
        made = store.commit(3)
        await feed.look()
        await asyncio.sleep(0)
        feed.note(made)
        feed.note(store.commit(1))
        await asyncio.sleep(1)

    assert follower.seen == [1, 2, 3, 4]


@virtual
async def test_the_memory_is_bounded() -> None:
    store = MemoryChanges()
    feed = await opened(store)

    for count in (RING, 1, 5 * RING, 7):
        feed.note(store.commit(count))

    assert len(feed._ring) == RING
    assert (feed._ring[0].seq, feed._ring[-1].seq) == (feed.newest - RING + 1, feed.newest)


@virtual
async def test_a_follower_that_waits_holds_no_changes() -> None:
    store = MemoryChanges()
    feed = await opened(store)
    feed.note(store.commit(3))
    follower = feed.follow(0)
    assert numbers(await anext(follower)) == [1, 2, 3]

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(anext(follower))
        await asyncio.sleep(1)
        assert isinstance(follower, AsyncGeneratorType)
        assert follower.ag_frame is not None
        assert follower.ag_frame.f_locals == {"self": feed, "after": 3, "most": 500}
        feed.note(store.commit(1))
        assert numbers(await waiting) == [4]


@virtual
async def test_followers_do_not_all_read_at_once() -> None:
    store, now, most = MemoryChanges(3), 0, 0
    feed = await opened(store)

    async def busy() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.1)
        now -= 1

    store.mood = busy
    followers = [Follower(0) for _ in range(50)]
    async with following(feed, *followers):
        await asyncio.sleep(60)

    assert [follower.seen for follower in followers] == [[1, 2, 3]] * 50
    assert most == READS


# --- what is no longer there ---


@virtual
async def test_a_follower_from_before_the_oldest_is_told_where_the_changes_begin() -> None:
    store = MemoryChanges(10)
    store.forget(4)
    feed = await opened(store)

    for after in (0, 5):
        with pytest.raises(Trimmed, match=f"changes after {after} were asked for, and those from 7 on") as raised:
            await anext(feed.follow(after))
        assert raised.value.oldest == 7
    assert numbers(await anext(feed.follow(6))) == [7, 8, 9, 10]


@virtual
async def test_a_number_that_never_was_is_not_waited_for() -> None:
    store = MemoryChanges(10)
    store.forget(4)
    feed = await opened(store)

    with pytest.raises(Trimmed, match="those from 7 on are there"):
        await anext(feed.follow(11))


@virtual
async def test_a_number_that_is_in_the_store_and_was_not_told_yet_is_followed() -> None:
    store = MemoryChanges(10)
    feed = await opened(store)
    store.commit(2)
    follower = Follower(11)

    async with following(feed, follower):
        await asyncio.sleep(1)

    assert follower.seen == [12]


@virtual
async def test_when_everything_is_gone_the_next_number_is_the_oldest() -> None:
    store = MemoryChanges(10)
    store.kept.clear()
    feed = await opened(store)

    with pytest.raises(Trimmed) as raised:
        await anext(feed.follow(3))
    assert (raised.value.oldest, feed.oldest, feed.newest) == (11, 11, 10)


@virtual
async def test_a_follower_that_is_overtaken_by_the_trimming_is_told() -> None:
    store = MemoryChanges(2_000)
    feed = await opened(store)
    follower = feed.follow(0, most=10)
    assert numbers(await anext(follower))[-1] == 10

    store.forget(100)

    with pytest.raises(Trimmed, match="those from 1901 on are there"):
        await anext(follower)


@virtual
async def test_numbers_that_belong_to_nothing_hold_up_nobody() -> None:
    """A transaction that was undone may have used some up."""
    store = MemoryChanges(3)
    store.newest = 5
    feed = await opened(store)
    follower = Follower(3)

    async with following(feed, follower):
        await asyncio.sleep(7)
        feed.note(store.commit(1))
        await asyncio.sleep(0.001)
        assert follower.seen == [6]
    assert len(store.reads) < 6


@virtual
async def test_a_store_that_is_behind_what_we_were_told_is_asked_again() -> None:
    """Between the two questions that a follower asks, it catches up."""
    store, asked = MemoryChanges(), 0
    feed = await opened(store)
    follower = Follower(0)

    async def catching_up() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            store.commit(2)

    store.mood = catching_up
    async with following(feed, follower):
        feed._reach(2)
        await asyncio.sleep(6)

    assert (follower.seen, follower.trimmed) == ([1, 2], None)


# --- a store that fails ---


@virtual
async def test_a_follower_outlasts_a_store_that_fails_and_asks_ever_more_rarely() -> None:
    store = MemoryChanges(3)
    feed = await opened(store)
    follower, asked = Follower(0), list[float]()

    async def failing() -> None:
        asked.append(asyncio.get_running_loop().time())
        await broken()

    store.mood = failing
    with capture_logs() as lines:
        async with following(feed, follower, Follower(0)):
            await asyncio.sleep(60)
            assert "disk I/O error" in feed.trouble
            store.mood = calm
            await asyncio.sleep(5)
            await feed.look()
            assert feed.trouble == ""

    assert follower.seen == [1, 2, 3]
    pauses = [round(later - earlier, 3) for earlier, later in zip(asked[::2], asked[2::2], strict=False)]
    assert pauses[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert [line["event"] for line in lines] == ["feed_store_fails", "feed_store_works_again"]


@virtual
async def test_a_number_of_the_future_is_judged_only_when_the_store_can_be_asked() -> None:
    store = MemoryChanges(3)
    feed = await opened(store)
    store.mood = broken
    follower = Follower(9)

    async with following(feed, follower):
        await asyncio.sleep(60)
        assert not follower.ended
        store.mood = calm
        await asyncio.sleep(5)
        assert follower.trimmed is not None


@virtual
async def test_opening_says_that_the_store_fails() -> None:
    store = MemoryChanges(3)
    store.mood = broken

    with pytest.raises(PollingStoreError, match="disk I/O error"):
        await ChangeFeed(store, LoopClock()).open()


# --- tending and closing ---


@virtual
async def test_the_store_is_trimmed_once_a_minute() -> None:
    store = MemoryChanges(100)
    feed = await opened(store, keep=30)

    async with asyncio.TaskGroup() as group:
        group.create_task(feed.tend())
        await asyncio.sleep(TRIM_SECONDS / 2)
        assert (store.trims, feed.oldest) == ([30], 71)
        store.commit(5)
        await asyncio.sleep(2 * TRIM_SECONDS)
        assert (store.trims, feed.oldest) == ([30, 30, 30], 76)
        feed.close()


@virtual
async def test_a_trimming_that_failed_is_made_up_for() -> None:
    store = MemoryChanges(100)
    feed = await opened(store, keep=30)
    store.mood = broken

    async with asyncio.TaskGroup() as group:
        group.create_task(feed.tend())
        await asyncio.sleep(10)
        store.mood = calm
        await asyncio.sleep(2)
        assert store.trims == [30]
        feed.close()


@pytest.mark.parametrize("mood", [calm, broken])
def test_closing_ends_all_followers_and_the_tending(mood: Mood) -> None:
    """Those that wait, those that pause after an error, those that are about to begin."""

    async def main() -> None:
        store = MemoryChanges(10)
        feed = await opened(store)
        store.mood = mood
        followers = [Follower(10), Follower(2), Follower(99), Follower(0)]
        async with asyncio.TaskGroup() as group:
            group.create_task(feed.tend())
            for follower in followers[:-1]:
                group.create_task(follower.follow(feed))
            await asyncio.sleep(30)
            feed.close()
            group.create_task(followers[-1].follow(feed))
            closed = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() == closed
        assert all(follower.ended for follower in followers)

    run_virtual(main())


@virtual
async def test_a_follower_whose_read_fails_after_the_closing_does_not_wait_to_try_again() -> None:
    store = MemoryChanges(10)
    feed = await opened(store)

    async def failing_slowly() -> None:
        await asyncio.sleep(10)
        await broken()

    store.mood = failing_slowly
    async with following(feed, Follower(0)):
        await asyncio.sleep(5)

    assert asyncio.get_running_loop().time() == 10


@virtual
async def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="0 changes to keep, expected at least 1"):
        ChangeFeed(MemoryChanges(), LoopClock(), keep=0)
    with pytest.raises(ValueError, match="0 changes at a time, expected at least 1"):
        await anext(ChangeFeed(MemoryChanges(), LoopClock()).follow(0, most=0))
