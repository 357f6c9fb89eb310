"""What one period saw of the main lane, counted where it happens. Memory is bounded, however long the period."""

from collections import Counter
from math import inf

from sanderling.apis.numbered import Status
from sanderling.observe.histogram import Histogram
from sanderling.sequence.scaling import Readings

# Lags are told apart to a tenth, from half a second to a little over three days.
BOUNDS = tuple(0.5 * 1.1**step for step in range(140))
QUANTILE = 0.2  # a fifth of the records are younger; old ones that were found late do not move it
SHORTEST = 0.001  # seconds; a period below that has no rate

FOUND = (Status.SUCCESS, Status.SKIPPED)
ERRORS = (Status.BAD_FORMAT, Status.ERROR, Status.RATE_LIMITED)


class Window:
    """The counts of the current period. Times are in seconds, of one clock that never goes back.

    A hidden id and an API that is switched off are answers too, so they count as asked; they are neither missing nor
    errors, and have no lag. To count a lag of 0 for them would make an outage look like being at the head.
    """

    def __init__(self, now: float) -> None:
        self.ids = 0  # of this period; whoever takes an id adds it
        self._began = now
        self._counts: Counter[Status] = Counter()
        self._lags = Histogram(BOUNDS)

    @property
    def asked(self) -> int:
        """Requests that were answered."""
        return self._counts.total()

    def count(self, status: Status, lag: float | None) -> None:
        """An answer of the main lane, and how old its record was; below 0 is some clock's error, and left out."""
        self._counts[status] += 1
        if lag is not None and lag >= 0 and status in FOUND:
            self._lags.add(lag)

    def seconds(self, now: float) -> float:
        """How long the period has lasted."""
        return max(0.0, now - self._began)

    def close(self, now: float) -> Readings:
        """What the period saw; the next one begins."""
        asked, seconds = self.asked, self.seconds(now)
        found = sum(self._counts[status] for status in FOUND)
        readings = Readings(
            lag=quantile(self._lags, QUANTILE),
            missing=self._counts[Status.NOT_FOUND] / max(1, asked),
            errors=sum(self._counts[status] for status in ERRORS) / max(1, asked),
            rate=found / seconds if seconds >= SHORTEST else 0.0,
            missing_count=self._counts[Status.NOT_FOUND],
            samples=asked,
            seconds=seconds,
        )
        self.ids = 0
        self._began = now
        self._counts.clear()
        self._lags = Histogram(BOUNDS)
        return readings


def quantile(values: Histogram, share: float) -> float | None:
    """The value below which that share of them lies, as if they were spread evenly within a bucket; None if empty."""
    left = share * sum(count for _, count in values.buckets)
    below = 0.0
    for bound, count in values.buckets:
        if count and count >= left:
            return below if bound == inf else below + (bound - below) * left / count
        left -= count
        below = bound
    return None
