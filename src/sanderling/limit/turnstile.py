"""Standing in line: one line and one timer per gate, nobody overtakes, and all that is needed is taken at once."""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from math import inf, nextafter

from sanderling.clock import Clock
from sanderling.limit.gate import Gate, claim_all
from sanderling.limit.lane import Owner, Permit
from sanderling.limit.line import Line, Waiter

WAITS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, inf)  # bounds of the histogram of waits, in seconds

# Seconds a timer is set for at least. Our clock may have stood still while the loop's went on; added to its larger
# number, a wait of a few ulps of ours is nothing, and the timer would be set again and again without time passing.
TICK = 1e-6


class CircuitOpen(Exception):  # noqa: N818 - it names the state, and reads so in an except clause
    """The host fails and is left alone. Not an attempt, not a failure: ask again at `until`, on the limiter's clock."""

    def __init__(self, host: str, until: float) -> None:
        super().__init__(f"{host}: circuit open until {until:.3f} on the limiter's clock")
        self.host = host
        self.until = until


class Turnstile:
    """Lets waiters through the gates they wait at. Whoever changes a gate calls `serve` afterwards."""

    def __init__(self, owner: Owner, clock: Clock, now: Callable[[], float]) -> None:
        self._owner = owner
        self._clock = clock
        self._now = now
        self.denied = self.throttled = 0
        self.waits = [0] * len(WAITS)
        self.waited = 0.0
        self._unserved: deque[Gate] = deque()
        self._serving = False

    async def stand(self, waiter: Waiter) -> Permit:
        """The permit, when the waiter's turn has come at all its gates. Raises CircuitOpen if one is closed."""
        first = waiter.gates[0]
        first.line = first.line or Line()
        first.line.push(waiter)
        waiter.future = asyncio.get_running_loop().create_future()
        for gate in waiter.gates:
            gate.wanted += 1
        self.serve(first)
        try:
            permit = await waiter.future
        except asyncio.CancelledError:
            self._abandon(waiter)
            raise
        finally:
            for gate in waiter.gates:
                gate.wanted -= 1
        self._note_wait(self._now() - waiter.since)
        return permit

    def _abandon(self, waiter: Waiter) -> None:
        """The waiter was cancelled: in line, or between being given a permit and waking up to take it."""
        future = waiter.future
        if future is None or future.cancelled() or not future.done():
            self._leave(waiter)
        elif future.exception() is None:
            future.result().release()

    def _leave(self, waiter: Waiter) -> None:
        """Step out of all lines, and let the next in each have its turn."""
        for gate in waiter.gates[: waiter.at + 1]:
            if gate.line is not None:
                gate.line.leave(waiter)
                self.serve(gate)

    def serve(self, gate: Gate) -> None:
        """Let everyone through who may go now, and set the timer for the one who may not.

        What that does to further gates is done after it, not within it: a thousand waiters who are turned away one
        after the other must not become a thousand calls inside each other.
        """
        self._unserved.append(gate)
        if self._serving:
            return
        self._serving = True
        try:
            while self._unserved:
                self._serve(self._unserved.popleft())
        finally:
            self._serving = False

    def _serve(self, gate: Gate) -> None:
        line = gate.line
        while line is not None and (head := line.head) is not None:
            # One who was cancelled but has not yet woken to leave is nobody to serve; leaving, it serves the next.
            cancelled = head.future is not None and head.future.cancelled()
            if cancelled or head.gates[head.at] is not gate or not self._advance(head):
                break
        gate.settle()

    def _advance(self, waiter: Waiter) -> bool:
        """Move the head of a line as far as it may go; whether it left that line.

        A token that is held while another is waited for would be sent late, and late tokens make bursts: so the waiter
        holds places, not tokens.
        """
        gate, now = waiter.gates[waiter.at], self._now()
        if (until := gate.refusal(now)) is not None:
            self._deny(waiter, gate, until)
            return True
        if (due := gate.due(now)) > now:
            self._arm(gate, now, due)
            return False
        if waiter.at + 1 < len(waiter.gates):
            self._move_on(waiter)
            return False
        for at, earlier in enumerate(waiter.gates[: waiter.at]):
            if earlier.refusal(now) is not None or earlier.due(now) > now:
                self._step_back(waiter, at)
                return True
        if (due := claim_all(waiter.gates, now, gate.wanted)) > now:
            self._arm(gate, now, due)
            return False
        self._grant(waiter, now)
        return True

    def _move_on(self, waiter: Waiter) -> None:
        """Keep the place here, and stand in the next gate's line."""
        waiter.at += 1
        gate = waiter.gates[waiter.at]
        gate.line = gate.line or Line()
        gate.line.push(waiter)
        self.serve(gate)

    def _step_back(self, waiter: Waiter, at: int) -> None:
        """An earlier gate has closed meanwhile: give up the places after it, and wait there."""
        later = waiter.gates[at + 1 : waiter.at + 1]
        waiter.at = at
        for gate in later:
            if gate.line is not None:
                gate.line.leave(waiter)
        self.serve(waiter.gates[at])
        for gate in later:
            self.serve(gate)

    def _grant(self, waiter: Waiter, now: float) -> None:
        parts = []
        for gate, cost in zip(waiter.gates, waiter.costs, strict=True):
            parts.append(gate.grant(self._owner, now, cost))
            if gate.line is not None:
                gate.line.serve(cost)
        self._owner.granted += 1
        permit = parts[0]
        permit.also, permit.job = tuple(parts[1:]), waiter.job
        if waiter.future is not None:
            waiter.future.set_result(permit)
        for gate in waiter.gates[:-1]:
            self.serve(gate)

    def _deny(self, waiter: Waiter, gate: Gate, until: float) -> None:
        self.denied += 1
        if waiter.future is not None:
            waiter.future.set_exception(CircuitOpen(gate.host, until))
        for each in waiter.gates[: waiter.at + 1]:
            if each.line is not None:
                each.line.leave(waiter)
        for each in waiter.gates[: waiter.at]:
            self.serve(each)

    def _arm(self, gate: Gate, now: float, due: float) -> None:
        """One timer per gate, for its head. It is left alone if it wakes us in time; waking early costs a look."""
        if gate.timer is not None:
            timer, wakes = gate.timer
            if wakes <= due:
                return
            timer.cancel()
        wait = max(due - now, TICK)
        while now + wait < due:  # rounding: a timer that fires a hair early would be set again and again
            wait = nextafter(wait, inf)
        gate.timer = (self._clock.call_later(wait, lambda: self._wake(gate)), due)

    def _wake(self, gate: Gate) -> None:
        gate.timer = None
        self.serve(gate)

    def _note_wait(self, seconds: float) -> None:
        if seconds > 0:
            self.throttled += 1
            self.waited += seconds
            self.waits[bisect_left(WAITS, seconds)] += 1
