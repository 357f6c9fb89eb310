"""Clocks that go back, count from anywhere or are set by somebody."""

import asyncio
from collections.abc import Callable

import pytest
from driven import HOST, Driven, limiter_on

from sanderling.clock import Timer
from sanderling.limit import Limiter, LimiterRules, PaceRules, Permit
from sanderling.testing import FakeClock, LoopClock, run_virtual


@pytest.mark.parametrize("back", [0.1, 100.0, 1e9])
def test_a_clock_that_goes_back_neither_frees_nor_blocks(back: float) -> None:
    driven = Driven(now=1000)
    driven.take()

    driven.clock.jump_back(back)
    assert driven.limiter.try_acquire(HOST) is None

    driven.clock.advance(0.4)
    assert driven.limiter.try_acquire(HOST) is None
    driven.clock.advance(0.2)
    driven.take()


def test_a_penalty_is_served_in_full_on_a_clock_that_goes_back() -> None:
    driven = Driven(now=1000)
    driven.ask(429, retry_after=10)

    driven.clock.jump_back(500)
    driven.limiter.ready_at(HOST)
    driven.clock.advance(9.9)
    assert driven.limiter.try_acquire(HOST) is None

    driven.clock.advance(0.5)
    driven.take()


def test_a_waiter_is_served_on_a_clock_that_goes_back() -> None:
    """What passed between the last look and the jump is lost, so it may wait as long again, but no longer."""

    async def main() -> bool:
        driven = Driven(now=1000)
        driven.take()
        waiter = asyncio.create_task(driven.limiter.acquire(HOST))
        await asyncio.sleep(0)
        driven.clock.jump_back(500)
        driven.clock.advance(1.0)
        await asyncio.sleep(0)
        return waiter.done()

    assert run_virtual(main())


class BehindClock(LoopClock):
    """Counts from far less than the loop does, and fails if it is asked for timers without end."""

    behind, armed = 400.01, 0

    def now(self) -> float:
        return super().now() - self.behind

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        self.armed += 1
        assert self.armed < 500, "set again and again, and no time passes"
        return super().call_later(seconds, callback)


@pytest.mark.parametrize("rate", [3.0, 7.0, 50.0])
def test_a_wait_that_is_too_short_to_move_the_loop_ends_all_the_same(rate: float) -> None:
    """Nearer to zero numbers are finer: what is still to come on our clock may be nothing on the loop's."""

    async def main() -> int:
        clock = BehindClock()
        await clock.sleep(clock.behind)
        limiter = limiter_on(clock, LimiterRules(pace=PaceRules(initial_rps=rate, max_rps=100)))
        for _ in range(100):
            (await limiter.acquire(HOST)).release(sent=True)
        return clock.armed

    assert run_virtual(main()) >= 99


@pytest.mark.parametrize("now", [-1e6, -1.0, 0.0, 1e9])
def test_a_clock_may_count_from_anywhere(now: float) -> None:
    driven = Driven(now=now)

    driven.take().release()
    driven.ask()
    driven.ask(429, retry_after=10)

    assert driven.clock.now() < now + 1
    assert driven.limiter.ready_at(HOST) == pytest.approx(driven.clock.now() + 10, abs=0.5)


def test_the_system_clock_is_the_default() -> None:
    async def main() -> Permit:
        return await Limiter().acquire(HOST)

    assert asyncio.run(main()).host == HOST


class WallClock(FakeClock):
    """Counts where nothing should be read."""

    reads = 0

    def wall(self) -> float:
        self.reads += 1
        return super().wall()


def test_leave_to_call_does_not_hang_on_the_wall_clock() -> None:
    clock = WallClock()
    limiter = Limiter(clock=clock)
    limiter.try_acquire(HOST)
    limiter.snapshot()
    limiter.forget_idle()
    assert clock.reads == 0

    limiter.restore(limiter.save())

    assert clock.reads == 2
