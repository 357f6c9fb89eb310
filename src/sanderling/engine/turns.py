"""Whose turn is it? Hosts by when they may next be asked, each with one place in the queue."""

import heapq
from itertools import count
from typing import Protocol, TypeVar


class Placed(Protocol):
    """What can have a place among the turns."""

    turn: float | None  # when its turn is, if it has a place


P = TypeVar("P", bound=Placed)


class Turns(dict[P, int]):
    """Hosts by when they may next be asked; among those who may, whoever has waited longest.

    A host with a million things to ask for has one place, like a host with ten. The dict says which place is a host's
    own: by its time alone it could be taken for one in another queue, or an older one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[float, int, P]] = []  # with places that were left for earlier ones
        self._order = count()

    def add(self, host: P, due: float) -> None:
        """Give the host its place, unless it has one."""
        if host.turn is None:
            self._put(host, due)

    def hasten(self, host: P, due: float) -> None:
        """Let a host that has a later place have this one: what it waited for came sooner than was to be expected."""
        if host in self and host.turn is not None and due < host.turn:
            self._put(host, due)

    def remove(self, host: P) -> None:
        """Take the host's place away, if it has one."""
        if self.pop(host, None) is not None:
            host.turn = None

    def next(self, now: float) -> P | None:
        """The host whose turn it is; it has no place any more until it is added again."""
        due = self.due()
        if due is None or due > now:
            return None
        host = heapq.heappop(self._heap)[2]
        host.turn = None
        del self[host]
        return host

    @property
    def first(self) -> P | None:
        """The host that has the next turn."""
        return None if self.due() is None else self._heap[0][2]

    def due(self) -> float | None:
        """When the next turn is."""
        heap = self._heap
        while heap and self.get(heap[0][2]) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def _put(self, host: P, due: float) -> None:
        host.turn = due
        self[host] = order = next(self._order)
        heapq.heappush(self._heap, (due, order, host))
