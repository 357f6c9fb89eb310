"""A crawl of ids, as Prometheus sees it."""

from dataclasses import replace

import pytest
from fake_sequence import READINGS, histogram
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sanderling.observe.metrics_sequence import (
    LAG_BUCKETS,
    REQUEST_BUCKETS,
    SequenceMetrics,
    SequenceReadings,
    attempts_label,
)

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]

# Exactly these: the dashboard, the alarms and the scaler's queries are written against them.
TYPES = {
    "answers_total": "counter",
    "lag_seconds": "histogram",
    "request_seconds": "histogram",
    "workers": "gauge",
    "in_flight": "gauge",
    "waiting": "gauge",
    "cursor": "gauge",
    "head": "gauge",
    "newest": "gauge",
    "available": "gauge",
    "missed": "gauge",
    "period_ids": "gauge",
    "strategy": "gauge",
    "probes_total": "counter",
    "gaps_total": "counter",
    "skipped_ids_total": "counter",
    "rechecks_total": "counter",
    "decisions_total": "counter",
    "published_total": "counter",
    "publish_failures_total": "counter",
    "queue": "gauge",
    "stored_total": "counter",
    "store_workers": "gauge",
}


def scraped(seen: SequenceReadings = READINGS) -> str:
    registry = CollectorRegistry()
    SequenceMetrics(registry, lambda: seen)
    return generate_latest(registry).decode()


def series(seen: SequenceReadings = READINGS) -> Series:
    samples = (each for family in text_string_to_metric_families(scraped(seen)) for each in family.samples)
    return {
        (each.name.removeprefix("sanderling_sequence_"), frozenset(each.labels.items())): each.value for each in samples
    }


def value(name: str, **labels: str) -> float:
    return series()[name, frozenset(labels.items())]


def test_the_names_and_types_are_those_that_dashboards_know() -> None:
    families = text_string_to_metric_families(scraped())

    found = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}
    assert found == {f"sanderling_sequence_{name}": kind for name, kind in TYPES.items()}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("workers", 25),
        ("in_flight", 20),
        ("waiting", 3),
        ("cursor", 1_000_000),
        ("head", 1_000_500),
        ("newest", 1_000_400),
        ("available", 1),
        ("period_ids", 10_000),
        ("gaps_total", 1),
        ("skipped_ids_total", 1140),
        ("published_total", 95),
        ("publish_failures_total", 1),
        ("store_workers", 4),
    ],
)
def test_each_number_is_under_its_name(name: str, number: float) -> None:
    assert value(name) == number


@pytest.mark.parametrize(
    ("name", "label", "number"),
    [
        ("missed", ("reason", "gap"), 1140),
        ("strategy", ("strategy", "catch_up"), 1),
        ("probes_total", ("result", "missing"), 7),
        ("rechecks_total", ("result", "success"), 8),
        ("decisions_total", ("changed", "true"), 2),
        ("decisions_total", ("changed", "false"), 11),
        ("queue", ("state", "dead"), 1),
        ("stored_total", ("result", "new"), 70),
    ],
)
def test_what_is_counted_by_kind_has_the_kind_as_label(name: str, label: tuple[str, str], number: float) -> None:
    assert value(name, **dict([label])) == number


def test_answers_are_counted_by_status_and_attempt() -> None:
    assert value("answers_total", status="success", attempts="1") == 90
    assert value("answers_total", status="success", attempts="2") == 5


def test_many_attempts_share_a_label_and_their_counts_are_added() -> None:
    assert value("answers_total", status="not_found", attempts="more") == 3
    assert value("lag_seconds_count", status="success", attempts="more") == 3
    assert value("lag_seconds_sum", status="success", attempts="more") == 400_090


def test_buckets_are_cumulated_also_where_histograms_are_added() -> None:
    bounds = ("35.0", "40.0", "45.0", "60.0", "259200.0", "+Inf")

    found = [value("lag_seconds_bucket", status="success", attempts="more", le=bound) for bound in bounds]

    assert found == [0, 1, 1, 2, 2, 3]


def test_the_bounds_of_lags_are_fine_at_the_head_and_reach_three_days() -> None:
    assert LAG_BUCKETS[:11] == (5, 10, 15, 20, 25, 30, 35, 40, 45, 60, 90)
    assert (len(LAG_BUCKETS), LAG_BUCKETS[-1]) == (24, 3 * 86_400)
    assert (REQUEST_BUCKETS[0], REQUEST_BUCKETS[-1], len(REQUEST_BUCKETS)) == (0.01, 5, 14)


def test_requests_are_timed_by_what_the_api_calls_the_answer() -> None:
    assert value("request_seconds_count", error="success") == 2
    assert value("request_seconds_sum", error="DestinyPGCRNotFound") == 0.06


def test_what_is_not_known_is_absent_and_not_zero() -> None:
    found = series(replace(READINGS, head=None, newest=None, available=False))

    assert ("head", frozenset[tuple[str, str]]()) not in found
    assert ("newest", frozenset[tuple[str, str]]()) not in found
    assert found["available", frozenset()] == 0


def test_only_the_current_strategy_has_a_series() -> None:
    found = series(replace(READINGS, strategy="gap"))

    assert [labels for name, labels in found if name == "strategy"] == [frozenset({("strategy", "gap")})]


def test_the_names_are_taken_without_looking() -> None:
    def never() -> SequenceReadings:
        raise AssertionError

    registry = CollectorRegistry()
    SequenceMetrics(registry, never)

    with pytest.raises(ValueError, match="Duplicated"):
        SequenceMetrics(registry, never)


@given(st.dictionaries(st.tuples(st.sampled_from(["success", "skipped"]), st.integers(1, 12)), st.integers(1, 9)))
def test_no_answer_and_no_lag_is_lost_whatever_the_attempts(counts: dict[tuple[str, int], int]) -> None:
    lags = {key: histogram(LAG_BUCKETS, *range(0, 30 * number, 30)) for key, number in counts.items()}

    found = series(replace(READINGS, answers=counts, lags=lags))

    for name in ("answers_total", "lag_seconds_count"):
        for status in ("success", "skipped"):
            shown = sum(n for (each, labels), n in found.items() if each == name and ("status", status) in labels)
            assert shown == sum(number for (each, _), number in counts.items() if each == status)
    shown_labels = {dict(labels)["attempts"] for name, labels in found if name == "answers_total"}
    assert shown_labels == {attempts_label(attempts) for _, attempts in counts} <= {"1", "2", "3", "4", "5", "more"}
