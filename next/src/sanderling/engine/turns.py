"""Whose turn is it, and who may be forgotten? Hosts by when they may be requested, and those that rest."""

import heapq
from collections import OrderedDict
from enum import IntEnum
from itertools import count
from math import inf

from sanderling.engine.host import Host

_ORDER = count()


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
