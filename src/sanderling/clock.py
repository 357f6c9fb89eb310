"""The one place that reads time: everything else is handed a `Clock`, or a number that came from one."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that will be made later, unless it is cancelled."""

    def cancel(self) -> None:
        """Make sure the call is not made; harmless once it was."""


class Clock(Protocol):
    """What time it is, and how to wait. `now` counts seconds from nowhere in particular; `wall` is the Unix epoch's."""

    def now(self) -> float:
        """Seconds that only ever go forward, for measuring and for deadlines."""

    def wall(self) -> float:
        """Seconds since 1970, which an operator may set; only for what outlives the process."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` after `seconds`, from the running event loop."""


class SystemClock:
    """The real clock. `now` is the builtin itself, so that the limiter's fast path pays for no wrapper."""

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    @staticmethod
    def boot() -> float:
        """As `now`, but on Linux it also goes on while the machine sleeps: for leases, which others end meanwhile."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` after `seconds`, from the running event loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)


class ScaledClock:
    """The real clock, `speed` times as fast and beginning at 0: minutes of a simulated host, watched in seconds."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._began, self._wall = time.monotonic(), time.time()

    def now(self) -> float:
        """Seconds on this clock."""
        return (time.monotonic() - self._began) * self.speed

    def wall(self) -> float:
        """Seconds since 1970, right when it began and ahead ever since."""
        return self._wall + self.now()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` on this clock."""
        await asyncio.sleep(seconds / self.speed)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` after `seconds` on this clock, from the running event loop."""
        return asyncio.get_running_loop().call_later(seconds / self.speed, callback)


class Pauses:
    """Pauses that `stop` ends: those that are under way, and all that follow."""

    def __init__(self, clock: Clock) -> None:
        self.stopped = False
        self._clock = clock
        self._over: set[asyncio.Event] = set()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`, or when `stop` was called."""
        if self.stopped:
            return
        over = asyncio.Event()
        timer = self._clock.call_later(seconds, over.set)
        self._over.add(over)
        try:
            await over.wait()
        finally:
            timer.cancel()
            self._over.discard(over)

    def stop(self) -> None:
        """End all pauses."""
        self.stopped = True
        for over in self._over:
            over.set()


def never_back(now: Callable[[], float]) -> Callable[[], float]:
    """A `now` that stands still while its clock goes back, and goes on from there."""
    last, lost = now(), 0.0

    def steady() -> float:
        nonlocal last, lost
        here = now() + lost
        if here < last:
            lost += last - here
            here = last
        last = here
        return here

    return steady
