"""What every queue promises. Run as a script, with the folder above on the path, it works until it is killed."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from killed import killed

from sanderling.clock import SystemClock
from sanderling.stores.queue import (
    LARGEST_BODY,
    LONGEST_KEY,
    Dead,
    Delivery,
    Depth,
    Letter,
    QueueError,
    UnfitLetterError,
    WholeQueue,
    open_queue,
)

T = TypeVar("T")
Opens = Callable[[], WholeQueue]

# Long enough for a machine that is busy with other things; only a queue that lost something waits so long.
PATIENCE = 60.0
# To be sure that nothing comes any more.
QUIET = 0.5
BATCH = 20
DELAY = 0.2
EMPTY = Depth(0, 0, 0, 0)


def played(opens: Opens, play: Callable[[WholeQueue], Awaitable[T]], seconds: float = 300) -> T:
    """Open a queue, and close it afterwards."""

    async def run() -> T:
        queue = opens()
        try:
            async with asyncio.timeout(seconds):
                return await play(queue)
        finally:
            await queue.close()

    return asyncio.run(run())


def letters(first: int, count: int) -> list[Letter]:
    return [Letter(str(number), f"body of {number}".encode()) for number in range(first, first + count)]


def keys(deliveries: list[Delivery]) -> list[str]:
    return [each.key for each in deliveries]


async def taken(queue: WholeQueue, count: int, wait: float = PATIENCE) -> list[Delivery]:
    """So many, however few at a time."""
    found: list[Delivery] = []
    while len(found) < count:
        some = await queue.take(count - len(found), wait)
        assert some, f"{len(found)} of {count} came"
        found += some
    return found


async def drained(queue: WholeQueue) -> list[Delivery]:
    """All that are left, done."""
    found: list[Delivery] = []
    while some := await queue.take(100, QUIET):
        await queue.done(some)
        found += some
    return found


async def settled(queue: WholeQueue, depth: Depth) -> None:
    """A server takes its time to count."""
    for _ in range(1000):
        if await queue.depth() == depth:
            return
        await asyncio.sleep(0.02)
    assert await queue.depth() == depth


async def publish_for_ever(queue: WholeQueue, first: int) -> None:
    for number in range(first, sys.maxsize, BATCH):
        await queue.publish(letters(number, BATCH))
        print("published", flush=True)  # noqa: T201 - for whoever wants to kill it


async def take_for_ever(queue: WholeQueue) -> None:
    """Every other letter is done, the others are kept."""
    for _ in range(sys.maxsize):
        deliveries = await taken(queue, 10)
        await queue.done([each for each in deliveries if int(each.key) % 2])
        print("done", flush=True)  # noqa: T201 - the same


def script(url: str, name: str) -> list[str]:
    """The command that runs this file, but for what it shall do: a number to publish from, or `take`."""
    return [__file__, url, name]


class QueueContract:
    """A subclass has the fixtures `opens`, to open the same queue again, and `child`, the command of a script there.

    Its queues must be able to delay by DELAY.
    """

    def test_what_is_published_is_taken_in_its_order_and_done(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> list[Delivery]:
            await queue.publish(letters(0, 30))
            await queue.publish(letters(30, 20))
            await settled(queue, Depth(ready=50, taken=0, delayed=0, dead=0))

            deliveries = await taken(queue, 50)

            await settled(queue, Depth(ready=0, taken=50, delayed=0, dead=0))
            await queue.done(deliveries)
            await settled(queue, EMPTY)
            assert await queue.take(10, QUIET) == []
            return deliveries

        deliveries = played(opens, play)
        assert [Letter(each.key, each.body) for each in deliveries] == letters(0, 50)
        assert {each.tries for each in deliveries} == {0}

    def test_it_is_there_after_a_restart(self, opens: Opens) -> None:
        played(opens, lambda queue: queue.publish(letters(0, 5)))

        assert keys(played(opens, drained)) == ["0", "1", "2", "3", "4"]
        assert played(opens, drained) == []

    def test_who_takes_waits_for_the_first(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> None:
            assert await queue.take(5, QUIET) == []
            async with asyncio.TaskGroup() as group:
                taking = group.create_task(queue.take(5, PATIENCE))
                await asyncio.sleep(0)
                await queue.publish(letters(0, 1))

            assert keys(taking.result()) == ["0"]

        played(opens, play)

    def test_no_more_are_taken_than_asked_for(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> None:
            await queue.publish(letters(0, 7))

            first = await taken(queue, 3)

            assert keys(first) == ["0", "1", "2"]
            await settled(queue, Depth(ready=4, taken=3, delayed=0, dead=0))
            await queue.done(first)
            assert keys(await drained(queue)) == ["3", "4", "5", "6"]

        played(opens, play)

    @pytest.mark.parametrize("most", [0, -1])
    def test_to_take_none_is_a_mistake(self, opens: Opens, most: int) -> None:
        with pytest.raises(ValueError, match=f"cannot take {most} letters"):
            played(opens, lambda queue: queue.take(most, 0))

    def test_what_failed_comes_back_later_and_is_counted(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> None:
            await queue.publish(letters(0, 1))
            for tries in range(3):
                (delivery,) = await taken(queue, 1)
                assert (delivery.key, delivery.body, delivery.tries) == ("0", b"body of 0", tries)
                await queue.later(delivery, DELAY, "" if tries == 1 else "the store is away " * 1000)
                await settled(queue, Depth(ready=0, taken=0, delayed=1, dead=0))

            await queue.publish(letters(1, 1))
            assert {each.key: each.tries for each in await drained(queue)} == {"0": 3, "1": 0}

        played(opens, play)

    def test_what_is_not_its_own_fault_is_not_counted(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> None:
            await queue.publish(letters(0, 1))
            for failed in (False, True, False):
                (delivery,) = await taken(queue, 1)
                await queue.later(delivery, DELAY, "switched off", failed=failed)
                await settled(queue, Depth(ready=0, taken=0, delayed=1, dead=0))

            assert [each.tries for each in await drained(queue)] == [1]

        played(opens, play)

    def test_the_dead_are_listed_and_replayed(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> None:
            before = SystemClock().wall()
            await queue.publish(letters(0, 3))
            (first, second, third) = await taken(queue, 3)
            await queue.later(first, DELAY, "once")
            (again,) = await taken(queue, 1)
            await queue.bury(third, "no record: é " * 1000)
            await queue.bury(again, "gave up")
            await queue.done([second])
            await settled(queue, Depth(ready=0, taken=0, delayed=0, dead=2))

            for _ in range(2):
                (one, other) = await queue.dead(10)
                assert (one.key, one.body, one.tries, one.why) == ("2", b"body of 2", 0, ("no record: é " * 1000)[:500])
                assert (other.key, other.tries, other.why) == ("0", 1, "gave up")
                assert before - 1 <= one.at <= other.at <= SystemClock().wall() + 1
            assert await queue.replay(["0", "no such key"]) == 1
            assert [(each.key, each.tries) for each in await drained(queue)] == [("0", 0)]
            assert await queue.replay() == 1
            assert [(each.key, each.body, each.tries) for each in await drained(queue)] == [("2", b"body of 2", 0)]
            assert (await queue.dead(10), await queue.replay()) == ([], 0)

        played(opens, play)

    def test_the_dead_come_in_pages_in_the_order_they_were_buried(self, opens: Opens) -> None:
        order = [str(number) for number in random.Random(2).sample(range(25), 25)]

        async def play(queue: WholeQueue) -> list[str]:
            await queue.publish(letters(0, 25))
            deliveries = {each.key: each for each in await taken(queue, 25)}
            for key in order:
                await queue.bury(deliveries[key], "why")
            found: list[str] = []
            for _ in range(4):
                page = await queue.dead(10, found[-1] if found else "")
                assert len(page) <= 10
                found += (each.key for each in page)
            with pytest.raises(QueueError, match=r"no .*letter 'gone' any more; begin with the first page"):
                await queue.dead(10, "gone")
            return found

        assert played(opens, play) == order

    def test_a_close_gives_back_what_was_taken(self, opens: Opens) -> None:
        async def play(other: WholeQueue) -> None:
            queue = opens()
            await queue.publish(letters(0, 10))
            deliveries = await taken(queue, 6)
            await queue.done(deliveries[:2])
            await queue.close()
            await queue.close()

            assert sorted(keys(await taken(other, 8))) == [str(number) for number in range(2, 10)]

        played(opens, play)

    def test_what_is_said_twice_counts_once(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> None:
            await queue.publish(letters(0, 3))
            first, second, third = await taken(queue, 3)

            await queue.done([first, first])
            await queue.done([first])
            await queue.later(first, DELAY, "no longer ours")
            await queue.bury(first, "no longer ours")
            await queue.bury(second, "ours")
            await queue.later(second, DELAY, "no longer ours")
            await queue.done([second])

            await settled(queue, Depth(ready=0, taken=1, delayed=0, dead=1))
            await queue.done([third])
            await settled(queue, Depth(ready=0, taken=0, delayed=0, dead=1))

        played(opens, play)

    def test_deliveries_of_an_earlier_life_are_harmless(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> None:
            earlier = opens()
            await earlier.publish(letters(0, 3))
            stale = await taken(earlier, 3)
            await earlier.close()
            fresh = await taken(queue, 3)

            await queue.done(stale)
            for each in stale:
                await queue.later(each, DELAY, "too late")
                await queue.bury(each, "too late")

            await settled(queue, Depth(ready=0, taken=3, delayed=0, dead=0))
            await queue.done(fresh)
            await settled(queue, EMPTY)

        played(opens, play)

    def test_a_body_is_any_bytes(self, opens: Opens) -> None:
        bodies = [b"", bytes(range(256)) * 3, b"\xff" * 70_000, random.Random(1).randbytes(5_000_000)]
        odd = ["é", "'; --", '"]', "\N{WAVING HAND SIGN}", "%s", "k" * LONGEST_KEY]
        sent = [Letter(str(number), body) for number, body in enumerate(bodies)] + [Letter(key, b"x") for key in odd]

        async def play(queue: WholeQueue) -> list[Delivery]:
            await queue.publish(sent)
            return await drained(queue)

        assert [Letter(each.key, each.body) for each in played(opens, play)] == sent

    @pytest.mark.parametrize(
        ("bad", "expected"),
        [
            (Letter("", b"x"), "letter '' has an empty key"),
            (Letter("k" * (LONGEST_KEY + 1), b"x"), "has a key of 201 bytes"),
            (Letter("é" * LONGEST_KEY, b"x"), "has a key of 400 bytes"),
            (Letter("a\0b", b"x"), "all printable"),
            (Letter("\udc80", b"x"), "all printable"),
            (Letter("large", bytes(LARGEST_BODY + 1)), "letter 'large' has 15,728,641 bytes, at most 15,728,640"),
        ],
    )
    def test_what_is_no_letter_is_refused_with_all_beside_it(self, opens: Opens, bad: Letter, expected: str) -> None:
        async def play(queue: WholeQueue) -> None:
            with pytest.raises(UnfitLetterError, match=expected) as unfit:
                await queue.publish([*letters(0, 1), bad])
            assert unfit.value.key == bad.key
            assert await queue.depth() == EMPTY

        played(opens, play)

    def test_a_letter_may_be_published_dead(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> tuple[list[Dead], Depth, list[Delivery]]:
            await queue.publish(letters(0, 2))
            await queue.publish_dead(Letter("1", b"instead"), "too large")
            dead, depth = await queue.dead(10), await queue.depth()
            await queue.done(await taken(queue, 2))
            assert await queue.replay(["1"]) == 1
            return dead, depth, await taken(queue, 1)

        (dead,), depth, again = played(opens, play)

        assert (dead[:4], dead.at > 1.5e9) == (("1", b"instead", "too large", 0), True)
        assert depth == Depth(2, 0, 0, 1)
        assert [(each.key, each.body) for each in again] == [("1", b"instead")]

    def test_nothing_may_be_published_and_done(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> Depth:
            await queue.publish([])
            await queue.done([])
            return await queue.depth()

        assert played(opens, play) == EMPTY

    def test_of_two_letters_with_one_key_the_last_is_published(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> list[Delivery]:
            await queue.publish([Letter("a", b"1"), Letter("b", b"2"), Letter("a", b"3")])
            return await drained(queue)

        assert {(each.key, each.body) for each in played(opens, play)} == {("a", b"3"), ("b", b"2")}

    def test_each_letter_goes_to_one_of_those_who_take(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> Counter[str]:
            others = [opens(), opens()]
            await queue.publish(letters(0, 200))

            async def work(each: WholeQueue) -> list[str]:
                return keys(await drained(each))

            async with asyncio.TaskGroup() as group:
                working = [group.create_task(work(each)) for each in (queue, queue, *others)]
            for each in others:
                await each.close()
            return Counter(key for task in working for key in task.result())

        assert played(opens, play) == Counter(str(number) for number in range(200))

    def test_who_is_cancelled_while_taking_loses_nothing(self, opens: Opens) -> None:
        async def play(queue: WholeQueue) -> list[str]:
            chance = random.Random(7)
            await queue.publish(letters(0, 40))
            for _ in range(30):
                taking = asyncio.ensure_future(queue.take(7, PATIENCE))
                for _ in range(chance.randrange(12)):
                    await asyncio.sleep(0)
                if not taking.done():
                    taking.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await taking
                else:
                    await queue.done(taking.result())
                    await queue.publish([Letter(each.key, each.body) for each in taking.result()])
            return keys(await taken(queue, 40))

        assert sorted(played(opens, play)) == sorted(str(number) for number in range(40))

    def test_a_publisher_that_is_killed_has_lost_nothing_that_was_confirmed(
        self, opens: Opens, child: list[str]
    ) -> None:
        chance, confirmed = random.Random(4), set()
        for life in range(3):
            first, batches = life * 1_000_000, chance.randrange(1, 9)
            killed([*child, str(first)], after=batches)
            confirmed |= {str(first + number) for number in range(batches * BATCH)}

        found = played(opens, drained)

        assert confirmed <= {each.key for each in found}
        assert all(each.body == f"body of {each.key}".encode() for each in found)

    def test_what_a_killed_consumer_had_comes_back_at_once(self, opens: Opens, child: list[str]) -> None:
        played(opens, lambda queue: queue.publish(letters(0, 100)))

        killed([*child, "take"], after=3)
        killed([*child, "take"], after=2)

        left = {int(each.key) for each in played(opens, drained)}
        assert left >= set(range(0, 100, 2))
        assert left < set(range(100))


if __name__ == "__main__":
    place = open_queue(sys.argv[1], sys.argv[2], SystemClock())
    if sys.argv[3] == "take":
        asyncio.run(take_for_ever(place))
    else:
        asyncio.run(publish_for_ever(place, int(sys.argv[3])))
