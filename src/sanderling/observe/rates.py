"""Counters of a system as rates, from what it says again and again. Pure."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

WINDOW = 5.0  # seconds that rates are taken over: steady, and still of now
DRIFT = 1.0  # seconds between two beginnings that are one
DIGITS = 4  # of a rate; a screen shows three


class Run(NamedTuple):
    """By what a process is known to be the same: another one counts from 0 again."""

    pid: int
    started: float

    def goes_on(self, earlier: "Run") -> bool:
        """Whether it is that one. Some reckon back when they began, by two clocks, and never say quite the same."""
        return self.pid == earlier.pid and abs(self.started - earlier.started) < DRIFT


class _Count(NamedTuple):
    wall: float
    totals: dict[str, float]


class Rates:
    """How fast counters grow. They may fall, as those of hosts that are forgotten do; a rate is never below 0."""

    def __init__(self) -> None:
        self._run: Run | None = None
        self._counts: deque[_Count] = deque()
        self._last: Mapping[str, float] = {}

    def take(self, run: Run, wall: float, counters: Mapping[str, float]) -> None:
        """Count what a process said at `wall`, by its own clock. What it said twice counts once."""
        known = self._counts[-1] if self._counts else None
        goes_on = self._run is not None and run.goes_on(self._run)
        self._run = run
        if known is None or not goes_on or wall < known.wall:
            # A new process, or a clock that was set back: what was counted before says nothing any more.
            self._counts = deque([_Count(wall, dict.fromkeys(counters, 0.0))])
        elif wall > known.wall:
            grown = {name: max(0.0, number - self._last.get(name, number)) for name, number in counters.items()}
            self._counts.append(
                _Count(wall, {name: known.totals.get(name, 0.0) + more for name, more in grown.items()})
            )
            while len(self._counts) > 2 and wall - self._counts[1].wall >= WINDOW:
                self._counts.popleft()
        else:
            return
        self._last = dict(counters)

    def rate(self, name: str) -> float | None:
        """By how much it grows a second; None if that is not known yet."""
        last = self._counts[-1] if self._counts else None
        first = next((each for each in self._counts if name in each.totals), None)
        if last is None or first is None or first is last or name not in last.totals:
            return None
        return round((last.totals[name] - first.totals[name]) / (last.wall - first.wall), DIGITS)
