"""The time limits of all exchanges that are under way, with one timer for all of them.

Hardly any exchange ever runs out of time, and to set and move a timer for each costs more than all else here: so a
limit is a number, and a timer looks at all of them when the earliest that it knows of is due.
"""

import asyncio
from collections.abc import Awaitable
from math import inf
from types import TracebackType
from typing import Any, Self

from sanderling.clock import Clock, Timer


class Deadline:
    """How long one exchange may still take; its error says which of its limits has run out."""

    __slots__ = ("_all", "_cancelling", "_end", "_task", "due", "expired", "phase", "started")

    def __init__(self, every: "Deadlines", total: float) -> None:
        self._all = every
        self.started = every.clock.now()
        self._end = self.started + total
        self.phase, self.due = "total", self._end
        self.expired = False

    def __enter__(self) -> Self:
        task: asyncio.Task[Any] | None = asyncio.current_task()
        if task is None:
            raise RuntimeError("an exchange needs a task, to be cut off by")
        self._task, self._cancelling = task, task.cancelling()
        self._all.add(self)
        return self

    def allow(self, phase: str, seconds: float) -> None:
        """Give what follows so many seconds, but never more than are left of the total."""
        due = self._all.clock.now() + seconds
        self.phase, self.due = (phase, due) if due < self._end else ("total", self._end)
        if self.due < self._all.looks_at:
            self._all.look_at(self.due)

    async def without(self, waiting: Awaitable[None]) -> None:
        """Let what it is we who wait for take no time, of the total either."""
        since, self.due = self._all.clock.now(), inf
        await waiting
        self._end += self._all.clock.now() - since

    def expire(self) -> None:
        """It has run out: end what waits."""
        self.expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._all.discard(self)
        if not self._all:
            self._all.stop()
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError(self.phase) from error


class Deadlines(set[Deadline]):
    """Those of all exchanges that are under way."""

    def __init__(self, clock: Clock, total: float) -> None:
        super().__init__()
        self.clock = clock
        self.looks_at = inf
        self._total = total
        self._timer: Timer | None = None

    def begin(self, phase: str, seconds: float) -> Deadline:
        """The deadline of a new exchange, whose first phase may take so long. To be entered by whoever waits for it."""
        deadline = Deadline(self, self._total)
        deadline.allow(phase, seconds)
        return deadline

    def look_at(self, due: float) -> None:
        """Look at all of them then, and not later."""
        if self._timer is not None:
            self._timer.cancel()
        self.looks_at = due
        self._timer = self.clock.call_later(max(0.0, due - self.clock.now()), self._look)

    def stop(self) -> None:
        """Look at none any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self.looks_at = None, inf

    def _look(self) -> None:
        self._timer, self.looks_at = None, inf
        now = self.clock.now()
        for each in self:
            if each.due <= now and not each.expired:
                each.expire()
        if (due := min((each.due for each in self if not each.expired), default=inf)) < inf:
            self.look_at(due)
