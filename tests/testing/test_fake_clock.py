import asyncio

import pytest

from sanderling.testing import FakeClock


def test_it_moves_only_when_told_to() -> None:
    clock = FakeClock(now=5.0, wall=1000.0)

    assert (clock.now(), clock.wall()) == (5.0, 1000.0)
    clock.advance(2.5)
    assert (clock.now(), clock.wall()) == (7.5, 1002.5)


def test_each_call_is_made_at_its_own_instant_and_in_order() -> None:
    clock, seen = FakeClock(), list[tuple[str, float]]()
    for name, due in (("c", 3.0), ("a", 1.0), ("b", 1.0), ("late", 9.0)):
        clock.call_later(due, lambda name=name: seen.append((name, clock.now())))  # type: ignore[misc]

    clock.advance(5)

    assert seen == [("a", 1.0), ("b", 1.0), ("c", 3.0)]
    assert clock.now() == 5
    assert repr(clock) == "<FakeClock 5.000, 1 timers>"


def test_a_call_that_is_due_is_made_even_if_no_time_passes() -> None:
    clock, seen = FakeClock(), list[int]()
    clock.call_later(0, lambda: seen.append(1))
    clock.call_later(-5, lambda: seen.append(2))

    clock.advance(0)

    assert seen == [1, 2]


def test_a_call_that_was_cancelled_is_not_made() -> None:
    clock, seen = FakeClock(), list[int]()
    timer = clock.call_later(1, lambda: seen.append(1))

    timer.cancel()
    timer.cancel()
    clock.advance(5)

    assert seen == []


def test_a_call_may_ask_for_another_on_the_way() -> None:
    clock, seen = FakeClock(), list[float]()

    def again() -> None:
        seen.append(clock.now())
        clock.call_later(1.5, again)

    clock.call_later(1.0, again)
    clock.advance(5)

    assert seen == [1.0, 2.5, 4.0]


def test_the_wall_clock_can_be_set_and_goes_on_from_there() -> None:
    clock = FakeClock()
    clock.advance(10)

    clock.set_wall(500.0)
    clock.advance(5)

    assert (clock.now(), clock.wall()) == (15.0, 505.0)


def test_the_wall_clock_may_be_set_by_a_call_on_the_way() -> None:
    clock = FakeClock()
    clock.call_later(2, lambda: clock.set_wall(100.0))

    clock.advance(5)

    assert clock.wall() == pytest.approx(103)


def test_a_jump_back_moves_neither_the_wall_clock_nor_what_is_left_to_wait() -> None:
    clock, seen = FakeClock(now=100, wall=1000), list[float]()
    clock.call_later(3, lambda: seen.append(clock.now()))

    clock.jump_back(50)
    assert (clock.now(), clock.wall()) == (50, 1000)

    clock.advance(2.9)
    assert seen == []
    clock.advance(0.1)
    assert seen == [53]


def test_a_sleeper_wakes_when_its_time_has_come() -> None:
    async def main() -> list[bool]:
        clock = FakeClock()
        sleeper = asyncio.create_task(clock.sleep(3))
        seen = []
        for _ in range(3):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            seen.append(sleeper.done())
            clock.advance(1.5)
        return seen

    assert asyncio.run(main()) == [False, False, True]


def test_a_sleeper_that_was_cancelled_can_be_passed_by() -> None:
    async def main() -> bool:
        clock = FakeClock()
        sleeper = asyncio.create_task(clock.sleep(3))
        await asyncio.sleep(0)
        sleeper.cancel()
        clock.advance(5)
        await asyncio.wait([sleeper])
        return sleeper.cancelled()

    assert asyncio.run(main())


def test_an_instant_is_reached_exactly() -> None:
    clock = FakeClock(0.1)

    clock.advance_to(0.7)

    assert clock.now() == 0.7
    clock.advance_to(0.3)
    assert clock.now() == 0.7, "it never goes back"
