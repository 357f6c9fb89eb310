"""Whose turn is it? Hosts by when they may next be requested, each with one place."""

import heapq
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

    def __contains__(self, host: Host) -> bool:
        return host in self._places

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
