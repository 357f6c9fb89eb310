"""Why something is asked, and whose turn it is where several reasons want the same permit."""

from collections.abc import Mapping, Sequence
from enum import IntEnum


class Class(IntEnum):
    """Why something is asked. Classes of one host share its permits and slots by weight."""

    LIVE = 0
    NEW = 1
    AGAIN = 2
    MISSED = 3
    PROBE = 4


class Shares:
    """Start-time fair queueing.

    Each class has a tag that grows by what it was given, over its weight; the lowest is next. A class that was away has
    saved up nothing, and one with little to ask for is never kept out by one with much.
    """

    __slots__ = ("_tags", "_time")

    def __init__(self) -> None:
        self._tags = [0.0] * len(Class)
        self._time = 0.0

    def next(self, classes: Sequence[Class]) -> Class:
        """The class whose turn it is, of those that want one."""
        return min(classes, key=lambda each: (max(self._tags[each], self._time), each))

    def charge(self, of: Class, weights: Mapping[Class, float]) -> None:
        """The class was given a permit."""
        self._time = max(self._tags[of], self._time)
        self._tags[of] = self._time + 1 / weights[of]
