"""Readings of a period: counted in the process, or from Prometheus, with the windows and weights of seed 000."""

from bisect import bisect_left, bisect_right
from collections import deque
from math import inf, isfinite
from typing import NamedTuple, Self
from urllib.parse import urlencode

import msgspec

from sanderling.clock import Clock
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest
from sanderling.fetch.options import RequestOptions
from sanderling.observe.alerts import Alert, Alerts, Level
from sanderling.observe.log import log
from sanderling.sequence.description import Meaning
from sanderling.sequence.law import NO_LAG, Readings, histogram_quantile, weighted

BUCKETS = (5.0, 15.0, 25.0, 30.0, 35.0, 40.0, 45.0, 60.0, 90.0, 300.0, 1800.0, 14_400.0, 86_400.0, inf)
SCRAPE = 15.0  # seconds between samples
STEP = 60.0
LAG_WINDOW = 120.0
LONGEST_WINDOW = 4  # minutes
ERRORS = (4, 6, 7, 8, 9, 10)  # the seed counts SystemDisabled among them
STATUS = "pgcr_crawl_summary_status"
LAG = "pgcr_crawl_summary_lag_bucket"


class MetricsError(Exception):
    """Metrics could not be read. The message says why."""


class Sample(NamedTuple):
    """How the counters stood."""

    time: float
    answers: tuple[int, ...]
    lags: tuple[int, ...]


class Meter:
    """Counts answers by meaning and lags by bucket, and remembers both for some minutes."""

    def __init__(self) -> None:
        self.answers = [0] * 11  # by the number of the meaning
        self.lags = [0] * len(BUCKETS)  # cumulated, as Prometheus has them
        self._history: deque[Sample] = deque()

    def count(self, meaning: Meaning) -> None:
        """An answer came."""
        self.answers[meaning] += 1

    def observe(self, lag: float) -> None:
        """A record was so many seconds old when it came; one of the future says nothing."""
        if lag >= 0:
            for index in range(bisect_left(BUCKETS, lag), len(BUCKETS)):
                self.lags[index] += 1

    def sample(self, now: float) -> None:
        """Remember how it stands, as a scrape would."""
        if self._history and now - self._history[-1].time < SCRAPE:
            return
        self._history.append(Sample(now, tuple(self.answers), tuple(self.lags)))
        while self._history[0].time < now - 2 * LONGEST_WINDOW * STEP - LAG_WINDOW:
            self._history.popleft()

    def read(self, now: float, elapsed: float) -> Readings:
        """The readings of a period that took so long and has just ended."""
        minutes = max(1, min(LONGEST_WINDOW, int(elapsed / 60)))
        current = Sample(now, tuple(self.answers), tuple(self.lags))
        window = minutes * STEP
        instants = [now - window + STEP * each for each in range(minutes + 1)]
        missing, errors, rates, lags = [], [], [], []
        for instant in instants:
            counts = self._growth(current, instant, window).answers
            total = sum(counts)
            missing.append(counts[3] / total if total else None)
            errors.append(sum(counts[each] for each in ERRORS) / total if total else None)
            rates.append((counts[1] + counts[2]) / window)
            buckets = zip(BUCKETS, self._growth(current, instant, LAG_WINDOW).lags, strict=True)
            lags.append(histogram_quantile(0.20, [(bound, float(count)) for bound, count in buckets]))
        return Readings(
            weighted(missing) or 0.0, weighted(errors) or 0.0, weighted(list(rates)) or 0.0,
            float(self._growth(current, now, window).answers[3]), _or_default(weighted(lags)),
        )  # fmt: skip

    def _growth(self, current: Sample, end: float, window: float) -> Sample:
        """How much the counters grew in a window."""
        history = [*self._history, current]
        times = [each.time for each in history]
        last = history[max(0, bisect_right(times, end) - 1)]
        first = history[max(0, bisect_right(times, end - window) - 1)]
        answers = tuple(b - a for a, b in zip(first.answers, last.answers, strict=True))
        return Sample(window, answers, tuple(b - a for a, b in zip(first.lags, last.lags, strict=True)))


def _or_default(lag: float | None) -> float:
    return NO_LAG if lag is None else lag


class Prometheus:
    """Reads the same from a server, by the queries of the original."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url.rstrip("/")
        self._clock = clock
        self._client = Client(RequestOptions(private=True, policy="none", timeout=10.0), clock=clock)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__(None, None, None)

    async def read(self, elapsed: float) -> Readings:
        """The readings of a period that has just ended. Raises MetricsError."""
        minutes = max(1, min(LONGEST_WINDOW, int(elapsed / 60)))
        every = f"sum(rate({STATUS}[{minutes}m]))"

        def share(codes: str) -> str:
            return f'sum(rate({STATUS}{{status=~"{codes}"}}[{minutes}m])) / {every}'

        missing = await self._series(share("3"), minutes)
        errors = await self._series(share("4|6|7|8|9|10"), minutes)
        rate = await self._series(f'sum(rate({STATUS}{{status=~"1|2"}}[{minutes}m]))', minutes)
        count = await self._series(f'sum(rate({STATUS}{{status="3"}}[{minutes}m])) * {60 * minutes}', minutes)
        lag = await self._series(f"histogram_quantile(0.20, sum(rate({LAG}[2m])) by (le))", minutes)
        known = [each for each in count if each is not None]
        return Readings(
            weighted(missing) or 0.0, weighted(errors) or 0.0, weighted(rate) or 0.0, known[-1] if known else 0.0,
            _or_default(weighted(lag)),
        )  # fmt: skip

    async def _series(self, query: str, minutes: int) -> list[float | None]:
        end = self._clock.wall()
        values = {"query": query, "start": f"{end - 60 * minutes:.3f}", "end": f"{end:.3f}", "step": "60"}
        response = await self._client.send(HttpRequest(f"{self._url}/api/v1/query_range?{urlencode(values)}"))
        if response.status != 200:
            raise MetricsError(f"Prometheus: {response.outcome.detail or f'HTTP {response.status}'}")
        try:
            found = msgspec.json.decode(response.body, type=_Answer)
            series = found.data.result[0].values if found.data.result else []
            numbers = [float(text) for _, text in series]
        except (ValueError, msgspec.DecodeError) as error:
            raise MetricsError(f"Prometheus: {error}") from None
        if any(number < 0 for number in numbers):
            raise MetricsError(f"Prometheus: {min(numbers)} for {query[:60]}, expected nothing below zero")
        return [number if isfinite(number) else None for number in numbers]


class Metrics:
    """What is counted of answers, and the readings of a period: from Prometheus where there is one."""

    def __init__(self, prometheus: Prometheus | None, alerts: Alerts, clock: Clock) -> None:
        self.meter = Meter()
        self.trouble = ""  # why the last reading failed
        self._prometheus, self._alerts, self._clock = prometheus, alerts, clock

    async def read(self, elapsed: float) -> Readings | None:
        """The readings of a period that has just ended, or None if they could not be had."""
        if self._prometheus is None:
            return self.meter.read(self._clock.now(), elapsed)
        try:
            readings = await self._prometheus.read(elapsed)
        except MetricsError as error:
            self.trouble = str(error)
            log.error("metrics", say=f"Metrics could not be read, the plan stays: {error}")
            return None
        self.trouble = ""
        return readings

    def tell(self, readings: Readings | None, workers: int) -> None:
        """Post how it stands, with what is known, and the workers of the period that has ended."""
        fields = (
            ("Lag Behind Head (P20)", show_elapsed(readings.lag) if readings else "unknown"),
            ("404 Percentage", f"{100 * readings.missing:.3f}%" if readings else "unknown"),
            ("Error Percentage", f"{100 * readings.errors:.3f}%" if readings else "unknown"),
            ("Workers Used", str(workers)),
        )
        self._alerts.post(Alert("Status Update", self.trouble, Level.STATUS, fields))


def show_elapsed(seconds: float) -> str:
    """A duration as the original writes it: 500ms, 45.5s, 5m 30.5s, 1h 30m 15.5s."""
    if seconds < 1:
        return f"{1000 * seconds:.0f}ms"
    minutes, rest = divmod(round(seconds, 1), 60)
    hours, minutes = divmod(int(minutes), 60)
    return " ".join([*([f"{hours}h"] if hours else []), *([f"{minutes}m"] if hours or minutes else []), f"{rest:.1f}s"])


class _Series(msgspec.Struct):
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    data: _Data
