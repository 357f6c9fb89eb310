"""What one period saw of the main lane: counted in process (`Window`), or read from a Prometheus server.

Such a server sees all processes of a crawl and outlives each of them. One that knows nothing must not look like a crawl
in which nothing is missing, or an empty Prometheus would drive the workers to the top: what is not known is a
`ReadingError`, and the caller keeps its plan. Only the lag may be unknown while requests were made: then none of them
found a record. What is averaged is asked for once per minute of the window, and the newest weighs most. A count is that
of the newest minutes, asked for once: the oldest of such a row would be that of a window which ended before this one
began.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Protocol

from sanderling.apis.numbered import Status
from sanderling.clock import Clock
from sanderling.observe.histogram import Histogram
from sanderling.observe.prometheus import PrometheusError, Series

ROUNDING = 1e-9  # a share that was averaged from others may be a hair above 1

# Lags are told apart to a tenth, from half a second to a little over three days.
BOUNDS = tuple(0.5 * 1.1**step for step in range(140))
QUANTILE = 0.2  # a fifth of the records are younger; old ones that were found late do not move it
SHORTEST = 0.001  # seconds; a period below that has no rate

FOUND = (Status.SUCCESS, Status.SKIPPED)
ERRORS = (Status.BAD_FORMAT, Status.ERROR, Status.RATE_LIMITED)


@dataclass(frozen=True, slots=True)
class PeriodReadings:
    """What one closed period saw of the main lane. Times are in seconds, shares are of requests."""

    lag: float | None  # a fifth of the records were younger; None if there was no record
    missing: float  # share that said not found
    errors: float  # share that was malformed, failed, or refused
    rate: float  # records a second, kept or skipped
    missing_count: float
    samples: int  # requests
    seconds: float

    def __post_init__(self) -> None:
        for name in ("lag", "missing", "errors", "rate", "missing_count", "samples", "seconds"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value}; expected a number from 0 up")
        for name in ("missing", "errors"):
            if getattr(self, name) > 1 + ROUNDING:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a share between 0 and 1")


class ReadingsWindow:
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

    def close(self, now: float) -> PeriodReadings:
        """What the period saw; the next one begins."""
        asked, seconds = self.asked, self.seconds(now)
        found = sum(self._counts[status] for status in FOUND)
        readings = PeriodReadings(
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


ANSWERS = "sanderling_sequence_answers_total"
LAGS = "sanderling_sequence_lag_seconds_bucket"
STEP = 60.0  # seconds

_MATCHER = r'[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"\\]*"'
_MATCHERS = re.compile(rf"({_MATCHER}(,{_MATCHER})*)?")


class ReadingError(Exception):
    """There is no reading of this period; the message says why."""


class PrometheusApi(Protocol):
    """What is asked of a Prometheus server. Raises PrometheusError."""

    async def query(self, expr: str, at: float) -> list[Series]:
        """What `expr` is at one instant."""

    async def query_range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """What `expr` was at each step from `start` to `end`."""


@dataclass(frozen=True, slots=True)
class PrometheusRules:
    """Which series, and over what time."""

    # Of the crawl, if the server knows several: label matchers, as in job="game",instance="a:9095".
    match: str = ""
    lag_minutes: int = 2
    # The last minutes of a period speak for it; at its start the crawl was still settling.
    most_minutes: int = 4

    def __post_init__(self) -> None:
        if not _MATCHERS.fullmatch(self.match):
            raise ValueError(f'match is {self.match[:100]!r}, expected label matchers, as in job="game"')
        for name in ("lag_minutes", "most_minutes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 1")


class PrometheusSource:
    """Asks the server at the end of each period."""

    def __init__(self, server: PrometheusApi, clock: Clock, rules: PrometheusRules | None = None) -> None:
        self._server = server
        self._clock = clock
        self._rules = rules or PrometheusRules()

    async def read(self, seconds: float) -> PeriodReadings:
        """The readings of a period that took so long and ends now. Raises ReadingError."""
        window, end = minutes(seconds, self._rules.most_minutes), self._clock.wall()
        asked = _Queries(self._rules, window)
        start = end - window * 60
        try:
            return PeriodReadings(
                missing=_known(await self._mean(asked.missing, start, end)),
                errors=_known(await self._mean(asked.errors, start, end)),
                rate=_known(await self._mean(asked.rate, start, end)),
                lag=await self._mean(asked.lag, start, end),
                missing_count=_known(await self._newest(asked.missing_count, end)),
                samples=round(_known(await self._newest(asked.samples, end))),
                seconds=window * 60.0,
            )
        except PrometheusError as error:
            raise ReadingError(f"Prometheus: {error}") from None
        except ValueError as error:
            raise ReadingError(f"Prometheus gave a reading that cannot be: {error}") from None

    async def _mean(self, expr: str, start: float, end: float) -> float | None:
        return weighted_mean(await self._server.query_range(expr, start, end, STEP))

    async def _newest(self, expr: str, end: float) -> float | None:
        return weighted_mean(await self._server.query(expr, end))


def _known(value: float | None) -> float:
    if value is None:
        raise ReadingError("Prometheus has counted no request of the crawl in this time")
    return value


def minutes(seconds: float, most: int) -> int:
    """The window for a period: its whole minutes, but at least one, for Prometheus refuses none, and at most `most`."""
    return max(1, int(min(most, seconds // 60)))


def weighted_mean(found: Sequence[Series]) -> float | None:
    """The mean of the first series, whose samples weigh 1, 2, 3 and so on; None if there is no number in it.

    A sample that is no number is left out, and those behind it weigh as much as they would otherwise.
    """
    samples = enumerate(found[0].samples, start=1) if found else ()
    numbers = [(weight, value) for weight, (_, value) in samples if isfinite(value)]
    if not numbers:
        return None
    return math.fsum(weight * value for weight, value in numbers) / sum(weight for weight, _ in numbers)


class _Queries:
    """The questions about the last `window` minutes."""

    def __init__(self, rules: PrometheusRules, window: int) -> None:
        self._match = rules.match
        self._over = f"[{window}m]"
        every = self._rate()
        missing = self._rate_of(Status.NOT_FOUND)
        self.missing = f"{missing} / {every}"
        self.errors = f"{self._rate_of(Status.BAD_FORMAT, Status.ERROR, Status.RATE_LIMITED)} / {every}"
        self.rate = self._rate_of(Status.SUCCESS, Status.SKIPPED)
        self.missing_count = f"{missing} * {window * 60}"
        self.samples = f"{every} * {window * 60}"
        buckets = f"sum by (le) (rate({LAGS}{{{self._match}}}[{rules.lag_minutes}m]))"
        self.lag = f"histogram_quantile({QUANTILE}, {buckets})"

    def _rate_of(self, *statuses: Status) -> str:
        """Answers a second with one of these; 0 if none ever had it, but only where there were answers at all."""
        of = f'status=~"{"|".join(statuses)}"'
        return f"({self._rate(of)} or {self._rate()} * 0)"

    def _rate(self, *matchers: str) -> str:
        return f"sum(rate({ANSWERS}{{{','.join(filter(None, (*matchers, self._match)))}}}{self._over}))"
