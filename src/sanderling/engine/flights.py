"""Requests that are out, and which of them receive too little to keep a slot that others want."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sanderling.engine.classes import Class
from sanderling.limit import Permit

WATCHED = 10.0  # seconds over which what was received counts
LEAST = 1024.0  # bytes a second; less is slow


class Dispatch(NamedTuple):
    """What is asked for, by which leave, and why."""

    work: Any
    permit: Permit
    of: Class
    judges: bool = False  # it is to tell how the host is
    probe: bool = False  # its failure is the host's
    dropped: bool = False  # what comes of it is of no use otherwise
    unproven: bool = False  # the host had not answered when it was sent, or did not any more
    aside: bool = False  # the host was set aside then


@dataclass(slots=True, eq=False)
class Flight:
    """A request that is out."""

    host: str
    key: Hashable
    limit: asyncio.Timeout  # by which it can be ended
    received: Callable[[], int | None]  # bytes so far; None if it is meant to be silent
    marked: float  # when its bytes were last looked at
    unproven: bool = False  # see `Dispatch`
    bytes: int = 0  # by then
    slow: bool = False
    cut: bool = False

    def look(self, now: float) -> None:
        """Say whether it was slow over the last while, if that is long enough to tell."""
        if now - self.marked < WATCHED:
            return
        received = self.received()
        self.slow = received is not None and received - self.bytes < LEAST * (now - self.marked)
        self.marked, self.bytes = now, received or 0


def cut_slow(flights: Iterable[Flight], slots: int, per_host: int, now: float) -> float:
    """End the oldest of those that are slow, if they hold more than half of the slots; when to look again.

    So do those of one host, of its own slots.
    """
    flying = [each for each in flights if not each.cut]
    slow, of_host = 0, Counter[str]()
    for flight in reversed(flying):  # the last that left is the first that may stay
        flight.look(now)
        if flight.slow:
            slow += 1
            of_host[flight.host] += 1
            if slow > slots // 2 or of_host[flight.host] > per_host // 2:
                flight.cut = True
                flight.limit.reschedule(0.0)  # which is past, so it runs out now
    return max(now + 1.0, min((each.marked + WATCHED for each in flying), default=now + WATCHED))
