import asyncio

import pytest

from sanderling.testing import LoopClock, run_virtual


def test_ten_minutes_pass_as_ten_minutes() -> None:
    async def main() -> tuple[float, float]:
        clock = LoopClock(epoch=1000.0)
        for _ in range(600):
            await clock.sleep(1.0)
        return clock.now(), clock.wall()

    assert run_virtual(main()) == pytest.approx((600, 1600))


def test_time_begins_at_zero_and_passes_only_while_everyone_waits() -> None:
    async def main() -> tuple[float, float]:
        clock = LoopClock()
        began = clock.now()
        for _ in range(1000):
            await asyncio.sleep(0)
        return began, clock.now()

    assert run_virtual(main()) == (0, 0)


def test_sleepers_wake_in_the_order_of_their_instants() -> None:
    async def main() -> list[tuple[float, float]]:
        clock, woken = LoopClock(), list[tuple[float, float]]()

        async def sleep(seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append((seconds, clock.now()))

        async with asyncio.TaskGroup() as group:
            for seconds in (3.0, 0.1, 86_400 * 365.0, 1e-9, 2.0):
                group.create_task(sleep(seconds))
        return woken

    woken = run_virtual(main())

    assert [seconds for seconds, _ in woken] == [1e-9, 0.1, 2.0, 3.0, 86_400 * 365.0]
    assert all(now == pytest.approx(seconds) for seconds, now in woken)


def test_calls_are_made_at_their_instant_unless_cancelled() -> None:
    async def main() -> list[float]:
        clock, seen = LoopClock(), list[float]()
        clock.call_later(5, lambda: seen.append(clock.now()))
        clock.call_later(6, lambda: seen.append(clock.now())).cancel()
        await clock.sleep(10)
        return seen

    assert run_virtual(main()) == [pytest.approx(5)]


def test_timeouts_are_virtual_too() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return LoopClock().now()

    assert run_virtual(main()) == pytest.approx(3600)


def test_steps_too_small_to_add_up_still_pass() -> None:
    """A thousand years on, a microsecond is less than the clock can show, and asyncio's own resolution too."""

    async def main() -> float:
        clock = LoopClock()
        await clock.sleep(86_400 * 365_000.0)
        for _ in range(100):
            await clock.sleep(1e-6)
        return clock.now()

    assert run_virtual(main()) == pytest.approx(86_400 * 365_000.0)


def test_a_deadlock_is_reported_and_not_waited_out() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="everyone waits and nobody ever wakes"):
        run_virtual(main())


def test_a_deadlock_among_many_cleans_up_after_itself() -> None:
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(wait())

    with pytest.raises(RuntimeError, match="deadlock"):
        run_virtual(main())

    assert ended == [True] * 3


def test_an_error_comes_out_as_it_is() -> None:
    async def main() -> None:
        await asyncio.sleep(1)
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        run_virtual(main())


def test_outside_a_loop_the_clock_has_no_time() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        LoopClock().now()
