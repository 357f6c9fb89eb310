"""An event loop that never waits: when everyone sleeps, time jumps to whoever wakes first.

Real asyncio with real tasks, timers and futures. Sockets have no place in it: nothing outside moves while time jumps.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from math import ulp
from typing import Any, TypeVar

from sanderling.clock import Timer

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting for the next timer, sets the time to its instant."""

    def __init__(self, next_timer: Callable[[], float]) -> None:
        super().__init__()
        self.time = 0.0
        self._next_timer = next_timer

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:
            return []  # somebody is ready already; who comes from outside (a signal) is heard before time jumps
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("everyone waits and nobody ever wakes: a deadlock under virtual time")
        # Not time + timeout: by a rounding error that can fall short of the timer, again and again.
        self.time = max(self.time, self._next_timer())
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; its `time` is virtual and starts at 0."""

    _scheduled: list[asyncio.TimerHandle]  # asyncio's own heap of timers
    _clock_resolution: float  # and how much earlier than it should it may make a call

    def __init__(self) -> None:
        self._jumping = _JumpingSelector(self._next_timer)
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds."""
        return self._jumping.time

    def _next_timer(self) -> float:
        when = self._scheduled[0].when()
        # A call is made before `time` plus this. Months on, a nanosecond more is the same time, and it never would be.
        self._clock_resolution = max(self._clock_resolution, ulp(when))
        return when


class LoopClock:
    """The clock of whichever loop runs; under `run_virtual`, virtual."""

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
        """Make the call after `seconds` of the loop's time."""
        return asyncio.get_running_loop().call_later(seconds, callback)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on a virtual loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
