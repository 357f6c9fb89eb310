"""Callers who wait for permits: first come, first served at each host, with one timer for each."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from math import inf, nextafter
from typing import Generic, TypeVar

from sanderling.clock import Clock
from sanderling.limit.breaker import State
from sanderling.limit.scope import Scope

P = TypeVar("P")


class CircuitOpen(Exception):  # noqa: N818 - seed 003's name, and no error: the host is to be left alone for a while
    """The host fails and is left alone until `until`, on the limiter's clock. This is no attempt and no failure."""

    def __init__(self, host: str, until: float) -> None:
        super().__init__(f"the circuit of {host} is open until {until:.3f} on the limiter's clock")
        self.host = host
        self.until = until


class Waiter(Generic[P]):
    """A caller on its way through the queues of a host and of the scopes it needs."""

    __slots__ = ("at", "future", "path")

    def __init__(self, path: Sequence[Scope], future: "asyncio.Future[P]") -> None:
        self.path = path
        self.at = 0  # the queue it has come to; it stays at the head of those before
        self.future = future


class Queues(Generic[P]):
    """Gives permits to waiters. Whoever changes a host calls `serve` afterwards.

    A waiter holds places and no tokens: a token held for one host while another is waited for would be used late, and
    late tokens make bursts.
    """

    def __init__(self, clock: Clock, now: Callable[[], float], grant: Callable[[Sequence[Scope], float], P]) -> None:
        self._clock = clock
        self._now = now
        self._grant = grant
        self._unserved: deque[Scope] = deque()
        self._serving = False

    async def wait(self, path: Sequence[Scope], put_back: Callable[[P], None]) -> P:
        """The permit, when its turn has come everywhere. Raises CircuitOpen. A cancelled caller's is put back."""
        waiter = Waiter[P](path, asyncio.get_running_loop().create_future())
        for state in path:
            state.wanted += 1
        _enter(waiter)
        self.serve(path[0])
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if waiter.future.cancelled() or not waiter.future.done():
                self._leave(waiter, 0)
            elif waiter.future.exception() is None:
                put_back(waiter.future.result())  # cancelled between the grant and waking up
            raise
        finally:
            for state in path:
                state.wanted -= 1

    def serve(self, state: Scope) -> None:
        """Let everyone through who may go now, and set the timer for the one who may not.

        A loop and no recursion: a thousand waiters who are turned away must not be a thousand calls within each other.
        """
        if not state.queue:
            return
        self._unserved.append(state)
        if self._serving:
            return
        self._serving = True
        try:
            while self._unserved:
                state = self._unserved.popleft()
                while state.queue and self._advance(state.queue[0], state):
                    pass
        finally:
            self._serving = False

    def _advance(self, waiter: "Waiter[P]", state: Scope) -> bool:
        """Move the head of a queue as far as it may go. Returns whether it left that queue."""
        if waiter.future.done() or waiter.path[waiter.at] is not state:
            return False  # cancelled, and leaves as soon as it wakes; or it waits further on
        now = self._now()
        due = state.ready_at(now)
        if state.breaker.state is State.OPEN:
            waiter.future.set_exception(CircuitOpen(state.name, state.breaker.until))
            self._leave(waiter, 0)
            return True
        if due > now:
            self._arm(state, now, due)
            return False
        if waiter.at + 1 < len(waiter.path):
            waiter.at += 1
            _enter(waiter)
            self.serve(waiter.path[waiter.at])
            return False
        for at, earlier in enumerate(waiter.path[: waiter.at]):
            if earlier.ready_at(now) > now:  # it has closed meanwhile
                self._leave(waiter, at + 1)
                waiter.at = at
                self.serve(earlier)
                return True
        waiter.future.set_result(self._grant(waiter.path, now))
        self._leave(waiter, 0)
        return True

    def _leave(self, waiter: "Waiter[P]", start: int) -> None:
        """Step out of the queues from `start` on; who is next there has a turn."""
        for state in waiter.path[start : waiter.at + 1]:
            queue = state.queue
            if queue is None:
                continue
            queue.remove(waiter)
            if queue:
                self.serve(state)
            else:
                state.queue = None
                self._disarm(state)

    def _arm(self, state: Scope, now: float, due: float) -> None:
        if state.timer is not None:
            timer, fires = state.timer
            if fires <= due:
                return  # it wakes us in time; waking early costs a look
            timer.cancel()
        wait = due - now
        while now + wait < due:  # by a rounding error it would fire too early, again and again
            wait = nextafter(wait, inf)
        state.timer = self._clock.call_later(wait, lambda: self._wake(state)), due

    def _disarm(self, state: Scope) -> None:
        if state.timer is not None:
            state.timer[0].cancel()
            state.timer = None

    def _wake(self, state: Scope) -> None:
        state.timer = None
        self.serve(state)


def _enter(waiter: Waiter[P]) -> None:
    state = waiter.path[waiter.at]
    state.queue = state.queue or deque()
    state.queue.append(waiter)
