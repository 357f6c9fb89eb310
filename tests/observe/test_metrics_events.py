"""Events, as Prometheus sees them, and as the page about metrics says; every metric moves with real batches."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fake_events import READINGS, process_a_little
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sanderling.events.measures import KEYS, MODES, PLATFORMS, RANGES, REASONS, STATUSES, Measures
from sanderling.events.modes import Modes
from sanderling.events.status import Standing, readings_of
from sanderling.observe.metrics_events import (
    BATCH_BUCKETS,
    EVENT_BUCKETS,
    FETCH_BUCKETS,
    WORK_BUCKETS,
    EventsMetrics,
    EventsReadings,
)
from sanderling.stores.queue import Depth
from sanderling.testing import FakeClock

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
PREFIX = "analytics_"

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]

# Exactly these: dashboards ask for the first in one generation of names or the other, and ours for the rest too.
KNOWN = {
    "events_received_total": "counter",
    "events_processed_total": "counter",
    "events_failed_total": "counter",
    "event_processing_duration_seconds": "histogram",
    "batches_fetched_total": "counter",
    "batch_fetch_duration_seconds": "histogram",
    "batch_parse_duration_seconds": "histogram",
    "items_processed_total": "counter",
    "errors_by_code_total": "counter",
    "errors_by_category_total": "counter",
    "success_rate": "gauge",
    "error_rate": "gauge",
    "rabbitmq_connection_status": "gauge",
    "minio_connection_errors_total": "counter",
    "database_connection_pool_size": "gauge",
    "batch_size_mismatch_total": "counter",
    "batch_processing_total": "counter",
    "batch_processing_duration_seconds": "histogram",
    "processing_errors_total": "counter",
    "active_batches": "gauge",
}
OURS = {
    "events_duplicate_total": "counter",
    "events_reused_total": "counter",
    "events_postponed_total": "counter",
    "batches_odd_total": "counter",
    "batches_by_mode_total": "counter",
    "batch_analysis_duration_seconds": "histogram",
    "posts_by_sentiment_total": "counter",
    "posts_skipped_total": "counter",
    "outbox_sent_total": "counter",
    "queue": "gauge",
    "outbox_waiting": "gauge",
    "mode": "gauge",
    "canary_share": "gauge",
    "trouble": "gauge",
}


def scraped(seen: EventsReadings = READINGS) -> str:
    registry = CollectorRegistry()
    EventsMetrics(registry, lambda: seen)
    return generate_latest(registry).decode()


def series(seen: EventsReadings = READINGS) -> Series:
    samples = (each for family in text_string_to_metric_families(scraped(seen)) for each in family.samples)
    return {(each.name.removeprefix(PREFIX), frozenset(each.labels.items())): each.value for each in samples}


def value(name: str, **labels: str) -> float:
    return series()[name, frozenset(labels.items())]


def test_the_names_and_types_are_those_that_dashboards_know() -> None:
    families = text_string_to_metric_families(scraped())

    found = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}
    assert found == {PREFIX + name: kind for name, kind in (KNOWN | OURS).items()}


IDLE = Standing(pid=1, wall=0, started=0, modes=Modes(new=False), queue=None, outbox=None)
BUSY = Standing(
    pid=1, wall=9, started=0, modes=Modes(canary=0.1), queue=Depth(5, 1, 0, 2), outbox=3, pool=20, trouble="no database"
)


@pytest.mark.parametrize("name", [*KNOWN, *OURS])
def test_every_metric_moves_when_batches_are_processed(name: str) -> None:
    clock = FakeClock()
    seen = Measures(clock)

    before = series(readings_of(seen, IDLE))
    process_a_little(seen, clock)
    after = series(readings_of(seen, BUSY))

    names = {name, f"{name}_count"}
    assert [each for each, number in after.items() if each[0] in names and number != before.get(each)]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("events_received_total", 120),
        ("events_failed_total", 2),
        ("events_duplicate_total", 4),
        ("events_reused_total", 3),
        ("events_postponed_total", 5),
        ("batches_fetched_total", 106),
        ("minio_connection_errors_total", 3),
        ("active_batches", 120 - 110 - 2 - 5),
        ("rabbitmq_connection_status", 1),
        ("database_connection_pool_size", 20),
        ("outbox_waiting", 11),
        ("canary_share", 0.1),
        ("trouble", 0),
        ("event_processing_duration_seconds_count", 3),
        ("event_processing_duration_seconds_sum", 12.7),
        ("batch_fetch_duration_seconds_sum", 0.32),
        ("batch_parse_duration_seconds_sum", 0.006),
        ("batch_analysis_duration_seconds_sum", 0.02),
    ],
)
def test_each_number_is_under_its_name(name: str, number: float) -> None:
    assert value(name) == pytest.approx(number)


@pytest.mark.parametrize(
    ("name", "labels", "number"),
    [
        ("events_processed_total", {"platform": "youtube"}, 30),
        ("batches_odd_total", {"platform": "tiktok"}, 8),
        ("batches_by_mode_total", {"mode": "legacy"}, 5),
        ("batch_processing_total", {"platform": "tiktok", "status": "partial"}, 18),
        ("batch_size_mismatch_total", {"platform": "tiktok", "expected_size": "50", "actual_size": "20-49"}, 6),
        ("items_processed_total", {"platform": "tiktok", "status": "error"}, 300),
        ("errors_by_code_total", {"error_code": "PARSE_ERROR", "platform": "tiktok"}, 50),
        ("errors_by_category_total", {"error_category": "parsing", "platform": "tiktok"}, 50),
        ("processing_errors_total", {"error_category": "parsing", "platform": "tiktok"}, 50),
        ("posts_by_sentiment_total", {"sentiment": "NEGATIVE", "platform": "youtube"}, 70),
        ("posts_skipped_total", {"reason": "too short"}, 400),
        ("outbox_sent_total", {"routing_key": "crawl.retry"}, 18),
        ("success_rate", {"platform": "tiktok"}, 92.5),
        ("error_rate", {"platform": "tiktok"}, 7.5),
        ("queue", {"state": "dead"}, 2),
        ("mode", {"mode": "new"}, 1),
        ("mode", {"mode": "inline"}, 0),
        ("batch_processing_duration_seconds_count", {"platform": "tiktok"}, 2),
        ("batch_processing_duration_seconds_sum", {"platform": "youtube"}, 0.4),
    ],
)
def test_what_is_counted_by_something_has_it_as_label(name: str, labels: dict[str, str], number: float) -> None:
    assert value(name, **labels) == number


def test_what_cannot_be_asked_is_not_shown() -> None:
    names = {name for name, _ in series(replace(READINGS, queue=None, outbox=None, pool=None))}

    assert names.isdisjoint({"queue", "outbox_waiting", "database_connection_pool_size"})


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("queue", [READINGS.queue, None], ids=["depth", "no depth"])
def test_the_queue_is_there_if_it_gives_messages_and_says_how_many(
    *, connected: bool, queue: dict[str, int] | None
) -> None:
    """A broker that is away gives none, and that alone is no error."""
    seen = replace(READINGS, counts=replace(READINGS.counts, connected=connected), queue=queue)

    assert series(seen)["rabbitmq_connection_status", frozenset()] == (connected and queue is not None)


def test_trouble_is_a_number() -> None:
    assert series(replace(READINGS, trouble=True))["trouble", frozenset()] == 1


def test_buckets_are_cumulated_and_those_that_dashboards_know() -> None:
    found = [value("event_processing_duration_seconds_bucket", le=le) for le in ("0.1", "0.5", "10.0", "30.0", "+Inf")]

    assert found == [0, 2, 2, 3, 3]
    assert EVENT_BUCKETS == (0.1, 0.5, 1, 2.5, 5, 10, 30)
    assert BATCH_BUCKETS == (0.1, 0.5, 1, 2, 5, 10, 30, 60)


def test_the_goals_are_bounds() -> None:
    """Between bounds, a quantile is a guess."""
    assert {5, 10} <= {*BATCH_BUCKETS}
    assert 1 in FETCH_BUCKETS
    assert 0.1 in WORK_BUCKETS


def test_the_names_are_taken_without_looking() -> None:
    def never() -> EventsReadings:
        raise AssertionError

    registry = CollectorRegistry()
    EventsMetrics(registry, never)

    with pytest.raises(ValueError, match="Duplicated"):
        EventsMetrics(registry, never)


def test_the_page_about_metrics_has_every_one_of_them_with_its_labels() -> None:
    lines = [line.strip("|").split("|") for line in DOCS.read_text().splitlines() if line.startswith(f"| `{PREFIX}")]
    documented = [(name.strip(" `"), kind.strip(), labels.strip(" `")) for name, kind, labels, _ in lines]

    families = list(text_string_to_metric_families(scraped()))
    labels = {family.name: ", ".join(sorted({*family.samples[0].labels} - {"le"})) for family in families}
    assert sorted(documented) == sorted(
        (family.name + ("_total" if family.type == "counter" else ""), family.type, labels[family.name])
        for family in families
    )


def test_the_page_about_metrics_names_every_value_of_the_short_lists() -> None:
    page = DOCS.read_text()
    about = re.search(r"Those of `sanderling events`(.*?)\n\|", page, re.DOTALL)
    lists = {
        "batch_processing_total": STATUSES,
        "batch_size_mismatch_total": RANGES,
        "batches_by_mode_total": MODES,
        "posts_skipped_total": REASONS[:-1],
        "outbox_sent_total": KEYS,
        "queue": READINGS.queue or (),
        "mode": MODES,
    }

    assert about
    assert [name for name in PLATFORMS if name not in about[1]] == []
    for name, values in lists.items():
        (line,) = (line for line in page.splitlines() if f"`{PREFIX}{name}`" in line)
        assert [each for each in values if not re.search(rf"(?<!\w){re.escape(each)}(?!\w)", line.split("|")[-2])] == []
