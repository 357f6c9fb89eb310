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

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` after `seconds`, from the running event loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)
