"""Small plots: a line of blocks for a series, and what was seen so far. Pure."""

from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil, isfinite

BLOCKS = "▁▂▃▄▅▆▇█"
POINTS = 600  # that are remembered of a series
UNKNOWN = " "


class Trail:
    """The last points of the series of one system."""

    def __init__(self) -> None:
        self._series: dict[str, deque[float | None]] = {}
        self._length = 0

    def add(self, points: Mapping[str, float | None]) -> None:
        """Take the points of now; a series that is new was unknown so far."""
        for name in points.keys() - self._series.keys():
            self._series[name] = deque([None] * self._length, maxlen=POINTS)
        for name, series in self._series.items():
            series.append(points.get(name))
        self._length = min(POINTS, self._length + 1)

    def of(self, name: str) -> Sequence[float | None]:
        """The points of a series, the oldest first."""
        return tuple(self._series.get(name, ()))


def spark(points: Sequence[float | None], width: int) -> str:
    """The last points as blocks, the newest at the right, the largest as high as goes; what is unknown is empty."""
    shown = points[-width:] if width > 0 else ()
    known = [each for each in shown if each is not None and isfinite(each)]
    most = max(known, default=0.0)
    return "".join(_cell(each, most) for each in shown).rjust(width, UNKNOWN)


def _cell(point: float | None, most: float) -> str:
    if point is None or not isfinite(point):
        return UNKNOWN
    if point <= 0 or most <= 0:
        return BLOCKS[0]
    # What is not nothing does not look like it: a single failure among thousands is the point of looking.
    return BLOCKS[min(len(BLOCKS) - 1, max(1, ceil(point / most * len(BLOCKS)) - 1))]
