"""Each number once and in order, whatever happens to the store and to the followers; and at what cost."""

import asyncio
import random
import sys
from collections.abc import Sequence

from followers import Follower, following, numbers, opened
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_changes import MemoryChanges, broken, calm

from sanderling.polling.change_feed import RING, ChangeFeed
from sanderling.testing import run_virtual

MOODS = st.sampled_from(["calm", "slow", "failing"])
STEPS = st.one_of(
    st.tuples(st.just("commit"), st.integers(1, 40), st.sampled_from(["told", "late", "never"]), st.integers(0, 1)),
    st.tuples(st.just("burst"), st.sampled_from([RING - 1, RING, RING + 1, 2 * RING + 7])),
    st.tuples(st.just("trim"), st.integers(1, 60)),
    st.tuples(st.just("follow"), st.integers(0, 50), st.integers(1, 30), st.sampled_from([0.0, 0.01, 0.7])),
    st.tuples(st.just("mood"), MOODS),
)


class Play:
    """A feed and its store, under a plan of steps with some time in between."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.store = MemoryChanges(20)
        self.followers: list[Follower] = []
        self.committed = list(range(1, 21))

    async def play(self, steps: Sequence[tuple[object, ...]]) -> None:
        feed = await opened(self.store, keep=50)
        async with asyncio.TaskGroup() as group:
            group.create_task(feed.tend())
            for step in steps:
                self.step(feed, group, step)
                await asyncio.sleep(self.rng.choice([0.0, 0.0, 0.001, 0.3]))
            self.store.mood = calm
            await asyncio.sleep(1_000)
            assert feed.newest == self.store.newest
            feed.close()

    def step(self, feed: ChangeFeed, group: asyncio.TaskGroup, step: tuple[object, ...]) -> None:
        match step:
            case ("commit", int(count), str(told), int(holes)):
                self.commit(feed, count, told, holes)
            case ("burst", int(count)):
                self.commit(feed, count, "told", 0)
            case ("trim", int(keep)):
                self.store.forget(keep)
            case ("follow", int(back), int(most), float(think)):
                after = max(0, self.store.newest - back)
                follower = Follower(after, most, lambda: self.rng.choice([0.0, think]))
                self.followers.append(follower)
                group.create_task(self.follow(follower, feed))
            case ("mood", str(mood)):
                self.store.mood = {"calm": calm, "slow": self.slow, "failing": self.failing}[mood]

    async def follow(self, follower: Follower, feed: ChangeFeed) -> None:
        await follower.follow(feed)
        if follower.trimmed is not None:
            assert follower.reached + 1 < follower.trimmed.oldest
            assert follower.reached + 1 not in numbers(self.store.kept)

    def commit(self, feed: ChangeFeed, count: int, told: str, holes: int) -> None:
        made = self.store.commit(count, holes=holes)
        self.committed += numbers(made)
        if told == "told":
            feed.note(made)
        elif told == "late":  # a look may be faster; what is told later stays in its order
            asyncio.get_running_loop().call_soon(feed.note, made)

    async def slow(self) -> None:
        await asyncio.sleep(self.rng.choice([0.0, 0.002, 0.5]))

    async def failing(self) -> None:
        await self.slow()
        if self.rng.random() < 0.5:
            await broken()


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.lists(STEPS, max_size=40))
def test_a_follower_gets_every_number_once_and_in_order_or_the_word_that_some_are_gone(
    seed: int, steps: list[tuple[object, ...]]
) -> None:
    play = Play(seed)

    run_virtual(play.play(steps))

    for follower in play.followers:
        assert follower.ended
        due = [number for number in play.committed if number > follower.after]
        assert follower.seen == (due if follower.trimmed is None else due[: len(follower.seen)])


def calls_of(followers: int) -> int:
    """How many functions are called while so many follow twenty commits."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    async def main() -> None:
        store = MemoryChanges()
        feed = await opened(store)
        all_of_them = [Follower(0) for _ in range(followers)]
        async with following(feed, *all_of_them):
            for _ in range(20):
                feed.note(store.commit(3))
                await asyncio.sleep(0.01)
        assert all(follower.seen == [*range(1, 61)] for follower in all_of_them)

    sys.setprofile(count)
    try:
        run_virtual(main())
    finally:
        sys.setprofile(None)
    return calls


def test_ten_times_the_followers_cost_ten_times_as_much() -> None:
    assert calls_of(500) < 11 * calls_of(50)
