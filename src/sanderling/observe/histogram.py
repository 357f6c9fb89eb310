"""A histogram that is counted where things happen and read when somebody looks."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import inf


class Histogram:
    """How many values lie up to each bound and above the last, and their sum. For one thread."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` ascend; what is above the last is counted too."""
        if any(later <= earlier for earlier, later in pairwise(bounds)):
            raise ValueError(f"bounds are {list(bounds)}, expected them to ascend")
        self.bounds = tuple(map(float, bounds))
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """(at most this, how many of them), ascending, up to inf; not cumulated."""
        return list(zip((*self.bounds, inf), self.counts, strict=True))

    def __repr__(self) -> str:
        return f"<Histogram of {sum(self.counts)} values, together {self.total:g}>"
