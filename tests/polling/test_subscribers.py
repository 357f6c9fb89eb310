import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from looping import virtual
from memory_changes import MemoryChanges, Mood, broken, calm
from structlog.testing import capture_logs

from sanderling.polling.change_feed import ChangeFeed
from sanderling.polling.change_sinks import SinkError
from sanderling.polling.subscribers import SEND_SECONDS, Subscriber
from sanderling.stores.polling import RowChange
from sanderling.testing import LoopClock, run_virtual


class Longest(random.Random):
    """Chance that always gives the most."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002 - its signature
        return b


@dataclass
class Shelf:
    """A sink that keeps what it gets, first or last of all asking its moods."""

    before: Mood = calm
    after: Mood = calm
    poison: int = 0  # a number that it does not take
    batches: list[list[int]] = field(default_factory=list)
    tries: list[tuple[float, int, int]] = field(default_factory=list)

    async def send(self, changes: Sequence[RowChange]) -> None:
        numbers = [change.seq for change in changes]
        self.tries.append((asyncio.get_running_loop().time(), numbers[0], numbers[-1]))
        await self.before()
        if self.poison in numbers:
            raise SinkError(f"status 500: cannot take {self.poison}")
        self.batches.append(numbers)
        await self.after()

    async def close(self) -> None:
        pass

    @property
    def seen(self) -> list[int]:
        return [number for batch in self.batches for number in batch]

    @property
    def first_seen(self) -> list[int]:
        return [*dict.fromkeys(self.seen)]

    @property
    def pauses(self) -> list[float]:
        times = [time for time, _, _ in self.tries]
        return [round(later - earlier, 3) for earlier, later in pairwise(times)]


def refusing(why: str = "status 503", wait: float = 0.0) -> Mood:
    async def refuse() -> None:
        raise SinkError(why, wait)

    return refuse


async def hanging() -> None:
    await asyncio.Event().wait()


@dataclass
class Set:
    store: MemoryChanges
    feed: ChangeFeed
    shelf: Shelf
    subscriber: Subscriber


@asynccontextmanager
async def subscribed(
    newest: int, position: int | None, *, shelf: Shelf | None = None, rng: random.Random | None = None
) -> AsyncIterator[Set]:
    """While a subscriber runs; the feed is closed at the end."""
    store, shelf = MemoryChanges(newest), shelf or Shelf()
    if position is not None:
        store.positions["board"] = position
    feed = ChangeFeed(store, LoopClock())
    await feed.open()
    subscriber = Subscriber("board", shelf, feed, store, LoopClock(), rng or Longest())
    async with asyncio.TaskGroup() as group:
        group.create_task(subscriber.run())
        yield Set(store, feed, shelf, subscriber)
        feed.close()


# --- from where, and how far ---


@virtual
async def test_a_new_one_gets_what_comes_from_now_on_and_its_place_is_written_at_once() -> None:
    async with subscribed(5, None) as one:
        await asyncio.sleep(1)
        assert one.store.positions == {"board": 5}
        one.feed.note(one.store.commit(2))
        await asyncio.sleep(1)

        assert one.shelf.seen == [6, 7]
        assert one.store.positions == {"board": 7}
        assert (one.subscriber.position, one.subscriber.sent, one.subscriber.trouble) == (7, 2, "")


@virtual
async def test_one_that_was_there_before_goes_on_where_it_was() -> None:
    async with subscribed(1_205, 3) as one:
        await asyncio.sleep(1)

        assert one.shelf.seen == [*range(4, 1_206)]
        assert [len(batch) for batch in one.shelf.batches] == [500, 500, 202]
        assert one.store.positions == {"board": 1_205}


@virtual
async def test_the_position_moves_only_when_the_sink_has_confirmed() -> None:
    async with subscribed(5, 0, shelf=Shelf(after=hanging)) as one:
        await asyncio.sleep(1)
        assert one.shelf.seen == [1, 2, 3, 4, 5]
        assert one.store.positions == {"board": 0}
        one.shelf.after = calm
        await asyncio.sleep(2 * SEND_SECONDS)

        assert one.store.positions == {"board": 5}
        assert one.shelf.first_seen == [1, 2, 3, 4, 5]


# --- everything arrives ---


class Troubles:
    """A sink and a store that fail, hang and are slow, by chance; and a process that dies."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.store = MemoryChanges(3)
        self.store.positions["board"] = 0
        self.shelf = Shelf(self.sink_mood, self.sink_mood)

    async def sink_mood(self) -> None:
        await asyncio.sleep(self.rng.choice([0.0, 0.0, 0.4]))
        chance = self.rng.random()
        if chance < 0.25:
            raise SinkError("status 500", self.rng.choice([0.0, 90.0]))
        if chance < 0.3:
            await hanging()

    async def store_mood(self) -> None:
        await asyncio.sleep(self.rng.choice([0.0, 0.0, 0.2]))
        if self.rng.random() < 0.2:
            await broken()

    async def live(self, seconds: float, commits: int) -> None:
        """One process, until it is killed."""
        self.store.mood = calm
        feed = ChangeFeed(self.store, LoopClock())
        await feed.open()
        self.store.mood = self.store_mood
        subscriber = Subscriber("board", self.shelf, feed, self.store, LoopClock(), self.rng)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(subscriber.run()), group.create_task(feed.tend())]
            for _ in range(commits):
                await asyncio.sleep(seconds / (commits + 1))
                feed.note(self.store.commit(self.rng.choice([1, 2, 700])))
            await asyncio.sleep(seconds / (commits + 1))
            for task in tasks:
                task.cancel()


LIVES = st.tuples(st.sampled_from([0.1, 1.0, 30.0, 200.0]), st.integers(0, 4))


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.lists(LIVES, max_size=6))
def test_every_change_arrives_and_in_order_whatever_fails_and_whenever_it_dies(
    seed: int, lives: list[tuple[float, int]]
) -> None:
    troubles = Troubles(seed)

    async def main() -> None:
        for seconds, commits in lives:
            await troubles.live(seconds, commits)
        troubles.shelf.before = troubles.shelf.after = calm
        await troubles.live(400, 1)

    run_virtual(main())

    assert troubles.shelf.first_seen == [*range(1, troubles.store.newest + 1)]
    assert troubles.store.positions == {"board": troubles.store.newest}


# --- a sink that fails ---


@virtual
async def test_pauses_grow_up_to_a_minute_and_begin_anew_after_a_success() -> None:
    async with subscribed(1, 0, shelf=Shelf(refusing())) as one:
        await asyncio.sleep(300)
        assert one.shelf.pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
        one.shelf.before = calm
        await asyncio.sleep(60)
        assert one.shelf.seen == [1]

        one.shelf.before = refusing()
        one.shelf.tries.clear()
        one.feed.note(one.store.commit(1))
        await asyncio.sleep(8)
        assert one.shelf.pauses == [1, 2, 4]


@virtual
async def test_pauses_are_a_matter_of_chance() -> None:
    async with subscribed(1, 0, shelf=Shelf(refusing()), rng=random.Random(7)) as one:
        await asyncio.sleep(1_000)

    ceilings = [min(60, 2**place) for place in range(len(one.shelf.pauses))]
    shares = [pause / ceiling for pause, ceiling in zip(one.shelf.pauses, ceilings, strict=True)]
    assert all(0 <= share <= 1 for share in shares)
    assert min(shares) < 0.3
    assert max(shares) > 0.7


@virtual
async def test_a_receiver_that_asks_for_time_gets_it() -> None:
    async with subscribed(1, 0, shelf=Shelf(refusing("status 429", wait=500))) as one:
        await asyncio.sleep(1_200)

        assert one.shelf.pauses == [500, 500]


@virtual
async def test_a_sink_that_hangs_is_cut_off_and_tried_again() -> None:
    async with subscribed(2, 0, shelf=Shelf(hanging)) as one:
        await asyncio.sleep(SEND_SECONDS + 0.5)
        assert one.subscriber.trouble == "no answer within 60 s"
        one.shelf.before = calm
        await asyncio.sleep(1)

        assert one.shelf.seen == [1, 2]
        assert one.subscriber.trouble == ""


@virtual
async def test_what_a_receiver_refuses_is_not_dropped_and_its_words_are_known() -> None:
    async with subscribed(2, 0, shelf=Shelf(refusing("status 422: no such table"))) as one:
        await asyncio.sleep(100_000)
        assert one.subscriber.trouble == "status 422: no such table"
        one.shelf.before = calm
        await asyncio.sleep(61)

        assert one.shelf.first_seen == [1, 2]


@virtual
async def test_all_before_a_change_that_is_not_taken_arrive_and_all_after_it_wait() -> None:
    async with subscribed(900, 0, shelf=Shelf(poison=337)) as one:
        await asyncio.sleep(10_000)
        assert one.shelf.first_seen == [*range(1, 337)]
        assert one.store.positions == {"board": 336}
        assert one.shelf.tries[-1][1:] == (337, 337)

        one.shelf.poison, arrived = 0, len(one.shelf.batches)
        await asyncio.sleep(100)
        assert one.shelf.seen == [*range(1, 901)]
        assert [len(batch) for batch in one.shelf.batches[arrived:]] == [1, 2, 4, 8, 16, 32, 64, 37, 256, 144]


@virtual
async def test_the_first_retry_is_the_same_again() -> None:
    async with subscribed(8, 0, shelf=Shelf(refusing())) as one:
        await asyncio.sleep(20)

        assert [(first, last) for _, first, last in one.shelf.tries] == [(1, 8), (1, 8), (1, 4), (1, 2), (1, 1)]


@virtual
async def test_trouble_and_recovery_are_logged_once_each() -> None:
    with capture_logs() as lines:
        async with subscribed(1, 0, shelf=Shelf(refusing("status 503: busy"))) as one:
            await asyncio.sleep(10)
            one.shelf.before = calm
            await asyncio.sleep(10)

    failing, recovered = lines
    assert failing["event"] == "subscriber_fails"
    assert (failing["subscriber"], failing["position"], failing["why"]) == ("board", 0, "status 503: busy")
    assert failing["log_level"] == "warning"
    assert recovered["event"] == "subscriber_recovered"
    assert (recovered["subscriber"], recovered["failures"], recovered["seconds"]) == ("board", 4, 15)


@virtual
async def test_closing_the_feed_ends_a_subscriber_in_the_middle_of_a_pause() -> None:
    async with subscribed(5, 0, shelf=Shelf(refusing(wait=3_600))) as one:
        await asyncio.sleep(10)
        one.feed.close()
        closed = asyncio.get_running_loop().time()

    assert asyncio.get_running_loop().time() == closed
    assert one.store.positions == {"board": 0}


# --- a store that fails, or has forgotten ---


@virtual
async def test_a_position_that_cannot_be_read_is_waited_for() -> None:
    store, shelf = MemoryChanges(5), Shelf()
    store.positions["board"] = 3
    feed = ChangeFeed(store, LoopClock())
    await feed.open()
    store.mood = broken
    subscriber = Subscriber("board", shelf, feed, store, LoopClock(), Longest())

    async with asyncio.TaskGroup() as group:
        group.create_task(subscriber.run())
        await asyncio.sleep(100)
        assert "disk I/O error" in subscriber.trouble
        store.mood = calm
        await asyncio.sleep(61)
        assert (shelf.seen, subscriber.trouble) == ([4, 5], "")
        feed.close()


@virtual
async def test_what_was_confirmed_is_not_sent_again_because_the_position_cannot_be_written() -> None:
    async with subscribed(5, 5) as one:
        await asyncio.sleep(1)
        one.store.mood = broken
        one.feed.note(one.store.commit(2))
        await asyncio.sleep(100)
        assert one.subscriber.position == 5
        one.store.mood = calm
        await asyncio.sleep(61)

        assert one.shelf.batches == [[6, 7]]
        assert one.store.positions == {"board": 7}


@pytest.mark.parametrize(("position", "lost"), [(2, 4), (99, 0)])
def test_one_whose_place_is_gone_goes_on_at_the_oldest_and_says_so(position: int, lost: int) -> None:
    """Ninety-nine is of another database."""

    async def main() -> None:
        store, shelf = MemoryChanges(10), Shelf()
        store.forget(4)
        store.positions["board"] = position
        feed = ChangeFeed(store, LoopClock())
        await feed.open()
        async with asyncio.TaskGroup() as group:
            group.create_task(Subscriber("board", shelf, feed, store, LoopClock(), Longest()).run())
            await asyncio.sleep(1)
            feed.close()
        assert shelf.seen == [7, 8, 9, 10]
        assert store.positions == {"board": 10}

    with capture_logs() as lines:
        run_virtual(main())

    (line,) = lines
    assert (line["event"], line["subscriber"]) == ("subscriber_trimmed", "board")
    assert (line["position"], line["lost"]) == (position, lost)
