"""Polling, as Prometheus sees it, and as the page about metrics says."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_polling import READINGS
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sanderling.observe.metrics_polling import (
    BATCH_BUCKETS,
    LATE_BUCKETS,
    RUN_BUCKETS,
    PollingMetrics,
    PollingReadings,
)

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
PREFIX = "sanderling_polling_"

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]

# Exactly these: the dashboard and the alarms are written against them.
TYPES = {
    "runs_total": "counter",
    "errors_total": "counter",
    "changes_total": "counter",
    "missed_total": "counter",
    "promotions_total": "counter",
    "discoveries_total": "counter",
    "enabled": "gauge",
    "in_flight": "gauge",
    "slots": "gauge",
    "ready": "gauge",
    "loaded": "gauge",
    "write_pending": "gauge",
    "targets": "gauge",
    "discovery_age_seconds": "gauge",
    "newest_change": "gauge",
    "followers": "gauge",
    "subscriber_position": "gauge",
    "subscriber_behind": "gauge",
    "store_trouble": "gauge",
    "settings_problems": "gauge",
    "lateness_seconds": "histogram",
    "run_seconds": "histogram",
    "write_batch_targets": "histogram",
}


def scraped(seen: PollingReadings = READINGS) -> str:
    registry = CollectorRegistry()
    PollingMetrics(registry, lambda: seen)
    return generate_latest(registry).decode()


def series(seen: PollingReadings = READINGS) -> Series:
    samples = (each for family in text_string_to_metric_families(scraped(seen)) for each in family.samples)
    return {(each.name.removeprefix(PREFIX), frozenset(each.labels.items())): each.value for each in samples}


def value(name: str, **labels: str) -> float:
    return series()[name, frozenset(labels.items())]


def test_the_names_and_types_are_those_that_dashboards_know() -> None:
    families = text_string_to_metric_families(scraped())

    found = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}
    assert found == {PREFIX + name: kind for name, kind in TYPES.items()}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("enabled", 1),
        ("in_flight", 1),
        ("slots", 2),
        ("ready", 8),
        ("loaded", 40),
        ("write_pending", 5),
        ("discovery_age_seconds", 7.5),
        ("newest_change", 1068),
        ("followers", 3),
        ("store_trouble", 0),
        ("settings_problems", 0),
        ("write_batch_targets_count", 2),
        ("write_batch_targets_sum", 253),
    ],
)
def test_each_number_is_under_its_name(name: str, number: float) -> None:
    assert value(name) == number


@pytest.mark.parametrize(
    ("name", "labels", "number"),
    [
        ("runs_total", {"kind": "race", "code": "NOT_MODIFIED"}, 400),
        ("errors_total", {"kind": "results", "category": "network"}, 2),
        ("changes_total", {"table": "laps", "op": "insert"}, 60),
        ("missed_total", {"kind": "race"}, 3),
        ("promotions_total", {"reason": "parent"}, 5),
        ("discoveries_total", {"result": "ok"}, 12),
        ("discoveries_total", {"result": "failed"}, 1),
        ("targets", {"state": "paused"}, 4),
        ("targets", {"state": "gone"}, 6),
        ("lateness_seconds_count", {"pace": "accelerated"}, 3),
        ("lateness_seconds_sum", {"pace": "usual"}, 90.04),
        ("run_seconds_count", {"kind": "race"}, 2),
        ("run_seconds_sum", {"kind": "results"}, 1.5),
    ],
)
def test_what_is_counted_by_kind_has_the_kind_as_label(name: str, labels: dict[str, str], number: float) -> None:
    assert value(name, **labels) == number


@pytest.mark.parametrize(("subscriber", "position", "behind"), [("webhook", 1060, 8), ("queue", 1068, 0)])
def test_a_subscriber_is_behind_by_what_it_does_not_have(subscriber: str, position: int, behind: int) -> None:
    assert value("subscriber_position", subscriber=subscriber) == position
    assert value("subscriber_behind", subscriber=subscriber) == behind


def test_nobody_is_behind_by_less_than_nothing() -> None:
    found = series(replace(READINGS, positions={"early": 2000}))

    assert found["subscriber_behind", frozenset({("subscriber", "early")})] == 0


def test_trouble_and_being_switched_off_are_numbers() -> None:
    found = series(replace(READINGS, enabled=False, store_trouble=True, problems=2))

    assert [found[name, frozenset()] for name in ("enabled", "store_trouble", "settings_problems")] == [0, 1, 2]


def test_buckets_are_cumulated() -> None:
    bounds = ("0.001", "0.002", "0.005", "0.25", "0.3", "60.0", "+Inf")

    found = {
        pace: [value("lateness_seconds_bucket", pace=pace, le=bound) for bound in bounds]
        for pace in ("accelerated", "usual")
    }

    assert found == {"accelerated": [1, 1, 2, 2, 3, 3, 3], "usual": [0, 0, 0, 1, 1, 1, 2]}


def test_the_bounds_reach_from_a_millisecond_to_a_minute_and_have_the_alarms_among_them() -> None:
    assert (LATE_BUCKETS[0], LATE_BUCKETS[-1]) == (0.001, 60)
    assert 0.25 in LATE_BUCKETS
    assert (RUN_BUCKETS[0], RUN_BUCKETS[-1]) == (0.005, 30)
    assert (BATCH_BUCKETS[0], BATCH_BUCKETS[-1]) == (1, 5000)


def test_the_names_are_taken_without_looking() -> None:
    def never() -> PollingReadings:
        raise AssertionError

    registry = CollectorRegistry()
    PollingMetrics(registry, never)

    with pytest.raises(ValueError, match="Duplicated"):
        PollingMetrics(registry, never)


def test_the_page_about_metrics_has_every_one_of_them_with_its_labels() -> None:
    lines = [line.strip("|").split("|") for line in DOCS.read_text().splitlines() if f"`{PREFIX}" in line]
    documented = [(name.strip(" `"), kind.strip(), labels.strip(" `")) for name, kind, labels, _ in lines]

    families = list(text_string_to_metric_families(scraped()))
    labels = {family.name: ", ".join(sorted({*family.samples[0].labels} - {"le"})) for family in families}
    assert sorted(documented) == sorted(
        (family.name + ("_total" if family.type == "counter" else ""), family.type, labels[family.name])
        for family in families
    )


def test_the_page_about_metrics_names_every_value_of_the_short_lists() -> None:
    page = DOCS.read_text()
    lists = {
        "targets": READINGS.targets,
        "promotions_total": READINGS.counts.promotions,
        "discoveries_total": READINGS.counts.discoveries,
        "lateness_seconds": READINGS.counts.lateness,
    }

    for name, values in lists.items():
        (line,) = (line for line in page.splitlines() if f"`{PREFIX}{name}`" in line)
        assert [each for each in values if not re.search(rf"\b{each}\b", line.split("|")[-2])] == []
