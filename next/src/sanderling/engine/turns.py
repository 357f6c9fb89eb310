"""Hosts by when their turn is, hosts that may be forgotten, and who calls when it is time."""

import heapq
from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum
from itertools import count
from math import inf

from sanderling.clock import Clock, Timer
from sanderling.engine.host import Host

_ORDER = count()
SOONEST = 0.0005  # seconds


class Turns:
    """Hosts by time; among those whose time has come, whoever got its place first.

    A host with a million items has one place, like a host with ten.
    """

    def __init__(self) -> None:
        self._places: dict[Host, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Host]] = []  # with places that were given up, until they come to the top

    def __len__(self) -> int:
        return len(self._places)

    def put(self, host: Host, due: float) -> None:
        """Give the host this turn instead of the one it has. It keeps its place if the time is the same."""
        place = self._places.get(host)
        if place is None or place[0] != due:
            order = next(_ORDER)
            self._places[host] = due, order
            heapq.heappush(self._heap, (due, order, host))

    def remove(self, host: Host) -> None:
        """Take the host's turn away, if it has one."""
        self._places.pop(host, None)

    def due(self) -> float:
        """When the next turn is; infinity if there is none."""
        heap, places = self._heap, self._places
        while heap:
            due, order, host = heap[0]
            place = places.get(host)
            if place is not None and place[1] == order:
                return due
            heapq.heappop(heap)
        return inf

    def next(self, now: float) -> Host | None:
        """The host whose turn it is; it has none any more."""
        if self.due() > now:
            return None
        host = heapq.heappop(self._heap)[2]
        del self._places[host]
        return host


class Rest(IntEnum):
    """Why a host may be forgotten to make room; each makes way for those below it, and for hosts that can work now."""

    IDLE = 0  # it has no work
    PARKED = 1  # it has some, for which no run waits
    LATER = 2  # it has some, and it is due much later


class Resting:
    """Hosts that may be forgotten, those first that rest for longest."""

    def __init__(self) -> None:
        self._tiers: tuple[OrderedDict[Host, None], ...] = (OrderedDict(), OrderedDict(), OrderedDict())

    def __len__(self) -> int:
        return sum(map(len, self._tiers))

    @property
    def later(self) -> int:
        """How many have work that is due much later."""
        return len(self._tiers[Rest.LATER])

    def put(self, host: Host, rest: Rest) -> None:
        """The host rests from now on."""
        self._tiers[rest][host] = None

    def remove(self, host: Host) -> None:
        """It does not rest, if it did."""
        for tier in self._tiers:
            tier.pop(host, None)

    def first_above(self, rest: Rest | None) -> Host | None:
        """The host that makes way for one that rests for this reason, or that can work."""
        for tier in self._tiers[:rest]:
            if tier:
                return next(iter(tier))
        return None


class Alarm:
    """Calls a function at the earliest of the times that it was set to.

    A later time changes nothing: a call too many costs less than a new timer with every response.
    """

    def __init__(self, clock: Clock, call: Callable[[], object]) -> None:
        self._clock = clock
        self._call = call
        self._timer: Timer | None = None
        self._due = inf

    def set(self, due: float, now: float) -> None:
        """Call at `due` at the latest."""
        if due < self._due:
            self.cancel()
            # Never sooner: by a rounding error it would come before `due`, again and again.
            self._due, self._timer = due, self._clock.call_later(max(SOONEST, due - now), self._ring)

    def cancel(self) -> None:
        """Do not call."""
        if self._timer is not None:
            self._timer.cancel()
        self._due, self._timer = inf, None

    def _ring(self) -> None:
        self._due, self._timer = inf, None
        self._call()
