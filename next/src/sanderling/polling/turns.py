"""Whose turn it is to request: what is live goes first, others use what it leaves."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sanderling.clock import Clock

# Of the time of an upstream so slow that nothing fits between two live requests, others get this share.
SHARE = 0.04
_LOOK = 0.05  # seconds until a waiting one looks again


class PollTurns:
    """At most `limit` requests in flight.

    With a limit of one, a request that is not live begins only if its usual time fits before the next live one is due;
    with more, one place is left for what is live.
    """

    def __init__(self, clock: Clock, next_live: Callable[[], float | None]) -> None:
        self.limit = 1
        self.busy = 0
        self._clock = clock
        self._next_live = next_live
        self._live_waiting: list[object] = []  # in the order in which they came
        self._others_waiting = 0
        self._may_delay_at = 0.0
        self._moved = asyncio.Event()
        self._usual: dict[str, float] = {}

    def usual(self, kind: str) -> float:
        """Seconds that a request of this kind takes; slow ones are remembered longer than fast ones."""
        return self._usual.get(kind, max(self._usual.values(), default=0.02))

    def learn(self, kind: str, took: float) -> None:
        """Take in how long a request took."""
        known = self._usual.get(kind, took)
        self._usual[kind] = max(took, known + (took - known) * 0.3)

    async def take_live(self) -> None:
        """Wait for as long as there is no place."""
        ticket = object()
        self._live_waiting.append(ticket)
        try:
            while self.busy >= self.limit or self._is_owed() or self._live_waiting[0] is not ticket:
                await self._wait()
        finally:
            self._live_waiting.remove(ticket)
        self.busy += 1

    async def take(self, kind: str) -> None:
        """Wait until a request of this kind may begin beside what is live."""
        self._others_waiting += 1
        try:
            while not self._has_room(self.usual(kind)):
                await self._wait()
        finally:
            self._others_waiting -= 1
        self.busy += 1

    def release(self) -> None:
        """A request has ended."""
        self.busy -= 1
        self._moved.set()

    def _is_owed(self) -> bool:
        """Whether another's turn has come although it delays what is live."""
        if self.limit > 1 or not self._others_waiting or self._next_live() is None:
            return False
        return self._clock.now() >= self._may_delay_at > 0

    def _has_room(self, usual: float) -> bool:
        if self.busy >= self.limit:
            return False
        due = self._next_live()
        if due is None:
            return not self._live_waiting
        if self.limit > 1:
            return self.busy < self.limit - 1
        now = self._clock.now()
        if not self._live_waiting and now + usual <= due:
            return True
        if not self._may_delay_at:
            self._may_delay_at = now + usual / SHARE
        if now < self._may_delay_at:
            return False
        self._may_delay_at = now + usual / SHARE
        return True

    async def _wait(self) -> None:
        self._moved.clear()
        timer = self._clock.call_later(_LOOK, self._moved.set)
        try:
            with suppress(TimeoutError):
                await self._moved.wait()
        finally:
            timer.cancel()
