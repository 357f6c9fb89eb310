"""Requests that are out, and which of them receive too little to keep a slot that others want."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import msgspec

from sanderling.engine.classes import Class
from sanderling.limit import Permit
from sanderling.outcome import Code, Outcome

WATCHED = 10.0  # seconds over which what was received counts
LEAST = 1024.0  # bytes a second; less is slow
# Seconds for which an answer that has begun may be slow though nobody waits for its slot. A page of 60 KB arrives in
# time at that rate; without a bound one page held a crawl for 300 s, four times over.
LONGEST_SLOW = 60.0
GRACE = 10.0  # seconds for slow requests to end, when we stop
LOOK_EVERY = 2.0

CUT = Outcome(Code.TIMEOUT, detail="timeout: received less than 1 KB/s while others waited")
TRICKLED = Outcome(Code.TIMEOUT, detail="timeout: received less than 1 KB/s for a minute")
SUPERSEDED = Outcome(Code.CANCELLED, detail="cut off: a later request was answered, or hangs too")
UNANSWERED = Outcome(Code.DEFERRED, detail="no answer yet")
STOPPED = Outcome(Code.CANCELLED, detail="stopped before the answer had come")


class Dispatch(msgspec.Struct, gc=False):
    """What is asked for, by which leave, and why."""

    work: Any
    permit: Permit
    of: Class
    judges: bool = False  # it is to tell how the host is
    probe: bool = False  # its failure is the host's
    dropped: bool = False  # what comes of it is of no use otherwise
    unproven: bool = False  # the host had not answered when it was sent, or did not any more
    aside: bool = False  # the host was set aside then
    slotless: bool = False  # it holds no slot
    down: bool = False  # the host was down then, and asked for work all the same


class Flight(msgspec.Struct, eq=False, gc=False):
    """A request that is out."""

    host: str
    key: Hashable
    task: asyncio.Task[Any]  # that waits for it
    received: Callable[[Any], int | None]  # bytes so far; None if it is meant to be silent
    marked: float  # when its bytes were last looked at
    sent: Dispatch
    began: float
    older: "Flight | None" = None  # an earlier request for the same item
    let_go: bool = False  # its item may be asked for again meanwhile
    bytes: int = 0  # by then
    slow: bool = False
    slow_since: float | None = None  # if it has begun
    cut: Outcome | None = None  # why it was ended
    over: bool = False
    cancelled: bool = False  # by `end`, and not by somebody else

    def look(self, now: float) -> None:
        """Say whether it was slow over the last while, if that is long enough to tell."""
        if now - self.marked < WATCHED:
            return
        received = self.received(self.sent.work)
        self.slow = received is not None and received - self.bytes < LEAST * (now - self.marked)
        since = self.marked if self.slow_since is None else self.slow_since
        self.slow_since = since if self.slow and received else None
        self.marked, self.bytes = now, received or 0

    def end(self, why: Outcome) -> None:
        """Cut it off, unless that was done."""
        if self.cut is None:
            self.cut = why
            asyncio.get_running_loop().call_soon(self._cancel)  # what has just arrived comes first

    def _cancel(self) -> None:
        if not self.over:
            self.cancelled = True
            self.task.cancel()


def end_slow(flights: Iterable[Flight], now: float, stopped: float | None) -> None:
    """End answers that have trickled for too long, and probes sooner; all slow ones a while after we `stopped`."""
    for flight in flights:
        if flight.cut is None:
            flight.look(now)
            longest = WATCHED if flight.sent.judges else LONGEST_SLOW
            if flight.slow_since is not None and now - flight.slow_since >= longest:
                flight.end(TRICKLED)
            elif stopped is not None and now >= stopped + GRACE and flight.slow:
                flight.end(STOPPED)


def cut_slow(flights: Iterable[Flight], slots: int, per_host: int, now: float) -> float:
    """End the oldest of those that are slow, if they hold more than half of the slots; when to look again.

    So do those of one host, of its own slots.
    """
    flying = [each for each in flights if each.cut is None]
    slow, of_host = 0, Counter[str]()
    for flight in reversed(flying):  # the last that left is the first that may stay
        flight.look(now)
        if flight.slow:
            slow += 1
            of_host[flight.host] += 1
            if slow > slots // 2 or of_host[flight.host] > per_host // 2:
                flight.end(CUT)
    return max(now + 1.0, min((each.marked + WATCHED for each in flying), default=now + WATCHED))
