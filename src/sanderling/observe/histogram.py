"""A histogram that is counted where things happen and read when Prometheus asks."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import inf


class Histogram:
    """How many values lie up to each bound, and their sum. For one thread."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` ascend; what is above the last is counted too."""
        if any(later <= earlier for earlier, later in pairwise(bounds)):
            raise ValueError(f"bounds are {list(bounds)}, expected them to ascend")
        self._bounds = tuple(map(float, bounds))
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def copy(self) -> "Histogram":
        """As it is now; another thread may read that while this one goes on."""
        twin = Histogram(self._bounds)
        twin._counts, twin.total = self._counts.copy(), self.total
        return twin

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """(at most this, how many of them), ascending, up to inf; not cumulated."""
        return list(zip((*self._bounds, inf), self._counts, strict=True))

    def __repr__(self) -> str:
        return f"<Histogram of {sum(self._counts)} values, together {self.total:g}>"
