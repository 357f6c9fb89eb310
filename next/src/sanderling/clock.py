"""Time: the real clock, a fake one that moves when told to, and an event loop on virtual time.

No other module reads the time. Everything else gets a `Clock`, or a number that came from one.
"""

import asyncio
import heapq
import selectors
import time
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from math import inf, nextafter
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Timer(Protocol):
    """A call that will be made later, unless it is cancelled."""

    def cancel(self) -> None:
        """Prevent the call; harmless after it was made."""


class Clock(Protocol):
    """The current time, and ways to wait."""

    def now(self) -> float:
        """Seconds that only go forward, for measuring and for deadlines."""

    def wall(self) -> float:
        """Seconds since 1970, which an operator may set; only for what outlives the process."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` after `seconds`, from the running event loop."""


class SystemClock:
    """The real clock."""

    # The builtins themselves, so that the limiter's fast path pays for no extra call.
    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` after `seconds`, from the running event loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)


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


def boot_seconds() -> float:
    """Seconds since the machine started, counted while it sleeps too: for leases, which others end meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def cpu_seconds() -> float:
    """CPU time this process has used, in user and system mode."""
    return time.process_time()


class FakeTimer:
    """A call that a `FakeClock` will make, unless cancelled."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Prevent the call."""
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
        self._wall_offset = wall - now
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._order = count()

    def __repr__(self) -> str:
        return f"<FakeClock {self._now:.3f}, {len(self._timers)} timers>"

    def now(self) -> float:
        """Seconds on this clock."""
        return self._now

    def wall(self) -> float:
        """Seconds since 1970 on this clock."""
        return self._now + self._wall_offset

    def set_wall(self, wall: float) -> None:
        """Set the wall clock as an operator would; `now` does not change."""
        self._wall_offset = wall - self._now

    def jump_back(self, seconds: float) -> None:
        """Move `now` back, which no real clock should do."""
        self._now -= seconds
        self._wall_offset += seconds
        self._timers = [(due - seconds, order, timer) for due, order, timer in self._timers]

    async def sleep(self, seconds: float) -> None:
        """Return when the clock was advanced by `seconds`."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> FakeTimer:
        """Call `callback` when the clock was advanced by `seconds`."""
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (self._now + max(0.0, seconds), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move the clock, making the calls on the way."""
        self.advance_to(self._now + seconds)

    def advance_to(self, end: float) -> None:
        """Move the clock to exactly `end`, which adding a difference may miss by a rounding error."""
        while self._timers and self._timers[0][0] <= end:
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            timer.fire()
        self._now = max(self._now, end)


class LoopClock:
    """The clock of the running event loop; under `run_virtual`, virtual time."""

    def __init__(self, epoch: float = 1_800_000_000.0) -> None:
        self._epoch = epoch

    def now(self) -> float:
        """The loop's seconds."""
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        """Seconds since 1970, if the loop began at `epoch`."""
        return self._epoch + self.now()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of the loop's time."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` after `seconds` of the loop's time."""
        return asyncio.get_running_loop().call_later(seconds, callback)


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting for the next timer, moves the time to it."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.timers: list[float] = []  # a heap of when timers are due, cancelled ones among them

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = [] if timeout == 0 else super().select(0)  # a signal is delivered before time jumps
        if timeout is None and not ready:
            raise RuntimeError("deadlock under virtual time: every task waits and no timer is set")
        if timeout and not ready:
            # Not time + timeout: by a rounding error that can fall short of the timer, again and again.
            self.time = max(self.time, heapq.heappop(self.timers))
        # asyncio calls what is due before time + resolution. After virtual months that sum is rounded down to `time`,
        # and the timer would never be called.
        if self.time + _RESOLUTION == self.time:
            self.time = nextafter(self.time, inf)
        return ready


_RESOLUTION = time.get_clock_info("monotonic").resolution


class VirtualLoop(asyncio.SelectorEventLoop):
    """Real asyncio on virtual time: when every task sleeps, time jumps to the next timer. Sockets do not work on it."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds since the loop began."""
        return self._jumping.time

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call `callback` at `when`; every timer of asyncio comes this way."""
        heapq.heappush(self._jumping.timers, when)
        return super().call_at(when, callback, *args, context=context)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
