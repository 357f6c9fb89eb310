"""Readings from a Prometheus server: what is asked, how it is averaged, and what is never guessed."""

import asyncio
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from sanderling.clock import SystemClock
from sanderling.observe.metrics import serve
from sanderling.observe.prometheus import PrometheusError, PrometheusServer, Series
from sanderling.sequence.readings import (
    PeriodReadings,
    PrometheusRules,
    PrometheusSource,
    ReadingError,
    minutes,
    weighted_mean,
)
from sanderling.testing import FakeClock

NAN = math.nan
WALL = 1_800_000_000.0


class FakeServer:
    """Gives each question the values that the test wrote for it, and remembers what it was asked."""

    def __init__(self, **values: list[float] | None) -> None:
        usual: dict[str, list[float] | None] = {
            "lag": [10, 40],
            "missing": [0.1, 0.4],
            "errors": [0, 0.03],
            "rate": [50, 80],
            "missing_count": [30],
            "samples": [1000.4],
        }
        self.values: Mapping[str, list[float] | None] = usual | values
        self.asked: dict[str, tuple[str, float, float, float]] = {}

    async def query(self, expr: str, at: float) -> list[Series]:
        return self._answer("missing_count" if "not_found" in expr else "samples", (expr, at, at, 0))

    async def query_range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        names = {"quantile": "lag", "success": "rate", "not_found": "missing", "bad_format": "errors"}
        (name,) = (name for word, name in names.items() if word in expr)
        return self._answer(name, (expr, start, end, step))

    def _answer(self, name: str, asked: tuple[str, float, float, float]) -> list[Series]:
        self.asked[name] = asked
        values = self.values[name]
        if values is None:
            return []
        first = Series({}, tuple(enumerate(values)))
        return [first, Series({"le": "9"}, ((0, 99.0),))]


def read(server: FakeServer, seconds: float = 300, rules: PrometheusRules | None = None) -> PeriodReadings:
    return asyncio.run(PrometheusSource(server, FakeClock(wall=WALL), rules).read(seconds))


def test_each_number_is_where_it_belongs() -> None:
    found = read(FakeServer())

    assert (found.lag, found.missing, found.errors, found.rate) == pytest.approx((30, 0.3, 0.02, 70))
    assert (found.missing_count, found.samples, found.seconds) == (30, 1000, 240)


@pytest.mark.parametrize(
    ("seconds", "window"), [(0, 1), (1, 1), (59.9, 1), (60, 1), (119, 1), (120, 2), (239, 3), (240, 4), (9999, 4)]
)
def test_the_window_is_the_whole_minutes_of_the_period_but_never_none(seconds: float, window: int) -> None:
    """[0m] is refused by Prometheus, and then a short period would freeze the scaler."""
    server = FakeServer()

    found = read(server, seconds)

    assert found.seconds == window * 60
    assert f"[{window}m]" in server.asked["missing"][0]
    assert "[0m]" not in str(server.asked)


@given(st.floats(0, 1e9), st.integers(1, 60))
def test_the_window_is_never_empty_and_never_longer_than_allowed(seconds: float, most: int) -> None:
    assert 1 <= minutes(seconds, most) <= most


def test_all_is_asked_up_to_the_same_instant_and_minute_by_minute() -> None:
    server = FakeServer()

    read(server, 185)

    ranges = {server.asked[name][1:] for name in ("lag", "missing", "errors", "rate")}
    instants = {server.asked[name][1] for name in ("missing_count", "samples")}
    assert (ranges, instants) == ({(WALL - 180, WALL, 60)}, {WALL})


def test_the_questions_are_these() -> None:
    server = FakeServer()

    read(server, rules=PrometheusRules(match='job="game"'))

    of = 'sum(rate(sanderling_sequence_answers_total{%sjob="game"}[4m]))'
    every = of % ""
    missing, bad, good = (
        "({} or {} * 0)".format(of % f'status=~"{statuses}",', every)
        for statuses in ("not_found", "bad_format|error|rate_limited", "success|skipped")
    )
    lags = 'sum by (le) (rate(sanderling_sequence_lag_seconds_bucket{job="game"}[2m]))'
    assert {name: asked[0] for name, asked in server.asked.items()} == {
        "lag": f"histogram_quantile(0.2, {lags})",
        "missing": f"{missing} / {every}",
        "errors": f"{bad} / {every}",
        "rate": good,
        "missing_count": f"{missing} * 240",
        "samples": f"{every} * 240",
    }


def test_the_newest_sample_weighs_most() -> None:
    assert weighted_mean([Series({}, ((0, 1), (60, 1), (120, 4)))]) == (1 + 2 + 12) / 6


def test_a_sample_that_is_no_number_leaves_the_weights_of_the_others() -> None:
    assert weighted_mean([Series({}, ((0, 1), (60, NAN), (120, 4)))]) == (1 + 12) / 4
    assert weighted_mean([Series({}, ((0, math.inf), (60, 7)))]) == 7


def test_only_the_first_series_counts() -> None:
    assert weighted_mean([Series({}, ((0, 1),)), Series({}, ((0, 9),))]) == 1


@pytest.mark.parametrize("found", [[], [Series({}, ())], [Series({}, ((0, NAN), (60, NAN)))]])
def test_no_number_is_no_mean(found: list[Series]) -> None:
    assert weighted_mean(found) is None


@given(st.lists(st.floats(-1e9, 1e9) | st.just(NAN), max_size=9))
def test_a_mean_lies_between_the_least_and_the_most(values: list[float]) -> None:
    found = weighted_mean([Series({}, tuple(enumerate(values)))])

    numbers = [value for value in values if not math.isnan(value)]
    assert (found is None) == (not numbers)
    if found is not None:
        assert min(numbers) - 1e-3 <= found <= max(numbers) + 1e-3


@pytest.mark.parametrize("lag", [None, [], [NAN, NAN, NAN]])
def test_no_lag_while_requests_were_made_means_that_no_record_was_seen(lag: list[float] | None) -> None:
    found = read(FakeServer(lag=lag))

    assert (found.lag, found.samples) == (None, 1000)


@pytest.mark.parametrize("name", ["missing", "errors", "rate", "missing_count", "samples"])
@pytest.mark.parametrize("values", [None, [], [NAN, NAN]])
def test_anything_else_that_is_not_known_is_no_reading(name: str, values: list[float] | None) -> None:
    with pytest.raises(ReadingError, match="no request"):
        read(FakeServer(**{name: values}))


@pytest.mark.parametrize(
    ("name", "value"), [("missing", 1.5), ("errors", -0.1), ("rate", -1), ("lag", -5), ("samples", -1)]
)
def test_a_number_that_cannot_be_is_no_reading(name: str, value: float) -> None:
    with pytest.raises(ReadingError, match=f"cannot be: {name}"):
        read(FakeServer(**{name: [value]}))


def test_a_server_that_fails_is_no_reading() -> None:
    class Broken(FakeServer):
        async def query(self, expr: str, at: float) -> list[Series]:
            raise PrometheusError(f"status 503, expected 200, for {expr} at {at}")

    with pytest.raises(ReadingError, match="Prometheus: status 503"):
        read(Broken())


@pytest.mark.parametrize("match", ["job", "job=game", '{job="a"}', 'job="a"}[1h]) or vector(1', 'job="a",', 'job="\\"'])
def test_a_match_that_is_none_is_refused(match: str) -> None:
    with pytest.raises(ValueError, match="label matchers"):
        PrometheusRules(match=match)


@pytest.mark.parametrize("match", ["", 'job="game"', 'job=~"a|b",instance!="x:1"'])
def test_label_matchers_are_taken(match: str) -> None:
    assert PrometheusRules(match=match).match == match


def test_a_window_of_no_minutes_is_refused() -> None:
    with pytest.raises(ValueError, match="lag_minutes is 0"):
        PrometheusRules(lag_minutes=0)
    with pytest.raises(ValueError, match="most_minutes is 0"):
        PrometheusRules(most_minutes=0)


class Crawls:
    """Four crawls that one server sees: each scrape finds that they went on."""

    def __init__(self) -> None:
        self.scrapes = 0

    def collect(self) -> Iterator[Metric]:
        self.scrapes += 1
        answers = CounterMetricFamily("sanderling_sequence_answers", "Answers.", labels=("crawl", "status", "attempts"))
        lags = HistogramMetricFamily("sanderling_sequence_lag_seconds", "Lags.", labels=("crawl", "status", "attempts"))
        busy = {"success": 6, "skipped": 2, "not_found": 1, "rate_limited": 1}
        for crawl, counts in {"busy": busy, "gap": {"not_found": 5}, "perfect": {"success": 3}}.items():
            for status, number in counts.items():
                answers.add_metric((crawl, status, "1"), number * self.scrapes)
        answers.add_metric(("idle", "success", "1"), 77)
        for crawl, number in {"busy": 8 * self.scrapes, "gap": 40, "perfect": self.scrapes}.items():
            below = [("10.0", 0), ("15.0", number), ("+Inf", number)]
            lags.add_metric((crawl, "success", "1"), below, 12.0 * number)
        yield from (answers, lags)


@pytest.mark.timeout(90)
def test_a_real_prometheus_gives_the_readings_of_each_crawl(prometheus: Callable[[int], str]) -> None:
    registry = CollectorRegistry()
    crawls = Crawls()
    registry.register(crawls)

    async def take(url: str, crawl: str) -> PeriodReadings | str:
        async with PrometheusServer(url) as server:
            rules = PrometheusRules(match=f'crawl="{crawl}"')
            try:
                return await PrometheusSource(server, SystemClock(), rules).read(30)
            except ReadingError as error:
                return str(error)

    with serve(registry, 0) as exposition:
        url = prometheus(exposition.server_port)
        until = time.monotonic() + 300
        while crawls.scrapes < 6 and time.monotonic() < until:
            time.sleep(0.2)  # a real server, in real time
        found = {crawl: asyncio.run(take(url, crawl)) for crawl in ("busy", "gap", "perfect", "idle", "unknown")}

    busy, gap, perfect = found["busy"], found["gap"], found["perfect"]
    assert isinstance(busy, PeriodReadings)
    assert isinstance(gap, PeriodReadings)
    assert isinstance(perfect, PeriodReadings)
    assert (busy.missing, busy.errors, busy.lag) == pytest.approx((0.1, 0.1, 11))
    assert busy.rate * 60 * 10 / 8 == pytest.approx(busy.samples, rel=0.2)
    assert busy.missing_count == pytest.approx(busy.samples / 10, abs=2)
    assert (gap.missing, gap.errors, gap.rate, gap.lag) == (1, 0, 0, None)
    assert (perfect.missing, perfect.errors, perfect.missing_count) == (0, 0, 0)
    assert all(re.search("no request", str(found[crawl])) for crawl in ("idle", "unknown"))
