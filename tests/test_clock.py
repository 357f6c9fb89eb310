import asyncio
import time

from sanderling.clock import Clock, SystemClock
from sanderling.testing import FakeClock, LoopClock


def test_the_system_clock_is_the_builtin_itself() -> None:
    """The limiter's fast path pays for no wrapper."""
    clock = SystemClock()

    assert clock.now is time.monotonic
    assert clock.wall is time.time


def test_its_sleep_and_its_calls_are_those_of_the_running_loop() -> None:
    async def main() -> list[str]:
        clock, seen = SystemClock(), list[str]()
        clock.call_later(0, lambda: seen.append("called"))
        clock.call_later(0, lambda: seen.append("cancelled")).cancel()
        await clock.sleep(0)
        await clock.sleep(0)
        return seen

    assert asyncio.run(main()) == ["called"]


def test_every_clock_has_the_same_four_words() -> None:
    clocks: list[Clock] = [SystemClock(), FakeClock(), LoopClock()]

    for clock in clocks:
        assert all(callable(getattr(clock, word)) for word in ("now", "wall", "sleep", "call_later"))
