import asyncio

import pytest

from sanderling.clock import Clock, ScaledClock


def test_it_is_a_clock_that_begins_at_nought() -> None:
    clock: Clock = ScaledClock(speed=2)

    assert 0 <= clock.now() < 60


def test_sleeping_takes_a_fraction_of_the_seconds() -> None:
    async def sleep() -> tuple[float, float]:
        loop, clock = asyncio.get_running_loop(), ScaledClock(speed=10_000)
        began = loop.time()
        await clock.sleep(500)
        return clock.now(), loop.time() - began

    scaled, real = asyncio.run(sleep())

    assert scaled >= 499
    assert 0.049 < real < 30


def test_the_wall_clock_runs_as_fast() -> None:
    clock = ScaledClock(speed=1000)

    began = clock.wall() - clock.now()

    assert clock.wall() - clock.now() == pytest.approx(began, abs=60)
    assert began > 1_600_000_000


def test_a_call_is_made_later_unless_cancelled() -> None:
    async def calls() -> list[str]:
        clock, made = ScaledClock(speed=1000), list[str]()
        done = asyncio.Event()
        clock.call_later(5, lambda: made.append("never")).cancel()
        clock.call_later(20, done.set)
        clock.call_later(10, lambda: made.append("once"))
        async with asyncio.timeout(300):
            await done.wait()
        return made

    assert asyncio.run(calls()) == ["once"]
