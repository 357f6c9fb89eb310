"""The last ten minutes of every series. Pure."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice

POINTS = 600  # of a series: ten minutes
EVERY = 1.0  # seconds between two points
DIGITS = 4  # of a point; a screen shows three


class Ring:
    """The last points of some series, one a second. `now` is any seconds that only go forward."""

    def __init__(self, names: Sequence[str]) -> None:
        self._second: int | None = None
        self._series: dict[str, deque[float | None]] = {name: deque(maxlen=POINTS) for name in names}

    def put(self, now: float, points: Mapping[str, float | None]) -> None:
        """Put the points of now; what is missing, and every second that was passed over, is unknown."""
        second = int(now // EVERY)
        missed = 0 if self._second is None else min(POINTS, second - self._second - 1)
        for name, series in self._series.items():
            if self._second is not None and second <= self._second and series:
                series.pop()
            series.extend([None] * missed)
            point = points.get(name)
            series.append(None if point is None else round(point, DIGITS))
        self._second = second if self._second is None else max(second, self._second)

    def newest(self) -> dict[str, float | None]:
        """The newest point of each."""
        return {name: series[-1] if series else None for name, series in self._series.items()}

    def history(self, wall: float) -> dict[str, object]:
        """All of them, as of `wall`."""
        points = max((len(series) for series in self._series.values()), default=0)
        shown: dict[str, object] = {"every": EVERY, "from": round(wall - EVERY * max(0, points - 1), 3)}
        return shown | {name: list(islice(series, points)) for name, series in self._series.items()}
