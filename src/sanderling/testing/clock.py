"""A clock that moves only when told to."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count


class FakeTimer:
    """A call that the fake clock will make, unless cancelled."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Make sure the call is not made."""
        self._callback = None

    def fire(self) -> None:
        """Make the call, once."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class FakeClock:
    """Time as a number. `advance` moves it and makes the calls that fall due, each at its own instant."""

    def __init__(self, now: float = 0.0, wall: float = 1_800_000_000.0) -> None:
        self._now = now
        self._ahead = wall - now  # of the wall clock
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._order = count()

    def __repr__(self) -> str:
        return f"<FakeClock {self._now:.3f}, {len(self._timers)} timers>"

    def now(self) -> float:
        """Seconds on this clock."""
        return self._now

    def wall(self) -> float:
        """Seconds since 1970, on this clock."""
        return self._now + self._ahead

    def set_wall(self, wall: float) -> None:
        """An operator sets the wall clock; `now` does not notice."""
        self._ahead = wall - self._now

    def jump_back(self, seconds: float) -> None:
        """What no clock should do."""
        self._now -= seconds
        self._ahead += seconds
        self._timers = [(due - seconds, order, timer) for due, order, timer in self._timers]

    async def sleep(self, seconds: float) -> None:
        """Return when the clock was advanced by `seconds`."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            # A sleeper that was cancelled and has not yet run is no longer to be woken.
            if not woken.done():
                woken.set_result(None)

        timer = self.call_later(seconds, wake)
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> FakeTimer:
        """Make the call when the clock was advanced by `seconds`."""
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (self._now + max(0.0, seconds), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move the clock, making the calls on the way."""
        self.advance_to(self._now + seconds)

    def advance_to(self, end: float) -> None:
        """Move the clock to an instant exactly, which adding a difference may miss by a rounding error."""
        while self._timers and self._timers[0][0] <= end:
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            timer.fire()
        self._now = max(self._now, end)
