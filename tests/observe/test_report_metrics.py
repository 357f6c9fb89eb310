"""A report, as Prometheus sees it: the names that dashboards, alarms and the page about metrics know."""

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_reports import ALL, EVENTS_FACTS, SNAPSHOT, events, polling, registry_of, sequence, standing
from measured_reports import idle_worker, measured
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from sanderling.cli.fleet.metrics import fleet_metrics
from sanderling.engine.limiter_metrics import limiter_metrics
from sanderling.events import measures as events_measures
from sanderling.observe.histogram import Histogram
from sanderling.observe.metric import Metric, counter, gauge, histogram
from sanderling.observe.metrics import report_metrics
from sanderling.observe.report import AnyReport, Severity
from sanderling.polling import measures as polling_measures
from sanderling.sequence import measures as sequence_measures
from sanderling.stores.fleet import CrawlView
from sanderling.web.house import KINDS

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"

# Dashboards that are not ours ask for these.
KNOWN = [
    "crawler_repos_processed_total",
    "crawler_repo_duration_seconds",
    "crawler_repo_records",
    "crawler_repo_collections",
    "crawler_repo_compressed_bytes",
    "crawler_http_requests_total",
    "crawler_http_request_duration_seconds",
    "crawler_segments_finalized_total",
    "crawler_bytes_written_total",
    "crawler_dids_processed_total",
    "crawler_pages_fetched_total",
    "crawler_page_dids",
    "crawler_pds_count",
    "crawler_dispatched_total",
    "crawler_dispatch_remaining",
    "crawler_pds_blocked_total",
    "crawler_active_pds",
    "analytics_events_received_total",
    "analytics_events_processed_total",
    "analytics_events_failed_total",
    "analytics_event_processing_duration_seconds",
    "analytics_batches_fetched_total",
    "analytics_batch_fetch_duration_seconds",
    "analytics_batch_parse_duration_seconds",
    "analytics_items_processed_total",
    "analytics_errors_by_code_total",
    "analytics_errors_by_category_total",
    "analytics_success_rate",
    "analytics_error_rate",
    "analytics_rabbitmq_connection_status",
    "analytics_minio_connection_errors_total",
    "analytics_database_connection_pool_size",
    "analytics_batch_size_mismatch_total",
    "analytics_batch_processing_total",
    "analytics_batch_processing_duration_seconds",
    "analytics_processing_errors_total",
    "analytics_active_batches",
]


def families(registry: CollectorRegistry) -> dict[str, Family]:
    found = text_string_to_metric_families(generate_latest(registry).decode())
    return {each.name + ("_total" if each.type == "counter" else ""): each for each in found}


def scraped(report: AnyReport) -> dict[str, Family]:
    return families(registry_of(lambda: report_metrics(report)))


def value(report: AnyReport, name: str, **labels: str) -> float | None:
    family = scraped(report).get(re.sub(r"_(sum|count|bucket)$", "", name) if name not in scraped(report) else name)
    samples = family.samples if family else []
    return next((each.value for each in samples if each.name == name and each.labels == labels), None)


def test_dashboards_of_others_find_the_names_they_know() -> None:
    there = {name for report in measured().values() for name in scraped(report)}

    assert set(KNOWN) - there == set()


def test_the_page_about_metrics_has_every_one_of_them_with_its_type_and_labels() -> None:
    rows = [line.strip("|").split("|") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    documented = [(row[0].strip(" `"), row[1].strip(), row[2].strip(" `")) for row in rows]

    found = families(registry_of(lambda: limiter_metrics(SNAPSHOT)))
    for report in measured().values():
        found |= {name: each for name, each in scraped(report).items() if each.samples}
    found |= families(registry_of(lambda: fleet_metrics(idle_worker(), CrawlView(3, 0, 10, 500, 700))))
    labels = {name: ", ".join(sorted({*each.samples[0].labels} - {"le"})) for name, each in found.items()}
    assert sorted(documented) == sorted((name, each.type, labels[name]) for name, each in found.items())


def test_every_system_has_what_all_have() -> None:
    common = {re.sub("^sanderling_", "", name) for name in scraped(ALL["jobs"]) if "_job_" not in name}

    for name, report in ALL.items():
        assert value(report, "sanderling_asked_total", system=name) == report.work.asked
        assert value(report, "sanderling_waiting", system=name) == report.work.waiting
        assert value(report, "sanderling_troubles", system=name, severity="error") == len(report.texts(Severity.ERROR))
        assert {f"sanderling_{each}" for each in common} <= {*scraped(report)}


@pytest.mark.parametrize(
    ("system", "name", "labels", "number"),
    [
        ("pages", "sanderling_pages_urls_total", {"end": "failed"}, 4),
        ("jobs", "sanderling_job_records_total", {}, 480),
        ("repos", "crawler_repos_processed_total", {"result": "success"}, 40),
        ("repos", "crawler_dids_processed_total", {}, 42),
        ("repos", "crawler_http_requests_total", {"status_code": "none"}, 1),
        ("repos", "crawler_repo_duration_seconds_bucket", {"le": "1.0"}, 1),
        ("sequence", "sanderling_sequence_answers_total", {"status": "not_found", "attempts": "more"}, 1),
        ("sequence", "sanderling_sequence_lag_seconds_count", {"status": "success", "attempts": "more"}, 2),
        (
            "sequence",
            "sanderling_sequence_lag_seconds_bucket",
            {"status": "success", "attempts": "more", "le": "45.0"},
            1,
        ),
        ("sequence", "sanderling_sequence_decisions_total", {"changed": "true"}, 2),
        ("sequence", "sanderling_sequence_queue", {"state": "dead"}, 1),
        ("sequence", "sanderling_sequence_stored_total", {"result": "new"}, 70),
        ("sequence", "sanderling_sequence_strategy", {"strategy": "catch_up"}, 1),
        ("polling", "sanderling_polling_runs_total", {"kind": "results", "code": "TIMEOUT"}, 1),
        ("polling", "sanderling_polling_subscriber_behind", {"subscriber": "webhook"}, 8),
        ("polling", "sanderling_polling_lateness_seconds_bucket", {"pace": "accelerated", "le": "0.25"}, 2),
        ("events", "analytics_active_batches", {}, 1),
        ("events", "analytics_items_processed_total", {"platform": "tiktok", "status": "error"}, 3),
        ("events", "analytics_mode", {"mode": "inline"}, 0),
        ("events", "analytics_canary_share", {}, 0.1),
    ],
)
def test_each_number_is_under_its_name_and_labels(
    system: str, name: str, labels: dict[str, str], number: float
) -> None:
    assert value(measured()[system], name, **labels) == number


def test_what_is_not_known_is_absent_and_trouble_is_a_number() -> None:
    unknown = scraped(events(queue=None, outbox=None, pool=None, trouble="no database", connected=False))
    assert not any(unknown[f"analytics_{name}"].samples for name in ("queue", "outbox_waiting"))
    assert [unknown[f"analytics_{name}"].samples[0].value for name in ("trouble", "rabbitmq_connection_status")] == [
        1,
        0,
    ]
    assert not scraped(sequence(head=None, newest=None))["sanderling_sequence_head"].samples
    off = polling(standing(process={"paused": True}), store_trouble="no disk")
    assert [value(off, f"sanderling_polling_{name}") for name in ("enabled", "store_trouble")] == [0, 1]


def test_the_goals_and_alarms_are_bounds() -> None:
    """Between bounds, a quantile is a guess."""
    assert {5, 10} <= {*events_measures.BATCH_BUCKETS}
    assert 1 in events_measures.FETCH_BUCKETS
    assert 0.1 in events_measures.WORK_BUCKETS
    assert 0.25 in polling_measures.LATE_BUCKETS
    assert (polling_measures.LATE_BUCKETS[0], polling_measures.LATE_BUCKETS[-1]) == (0.001, 60)
    assert sequence_measures.LAG_BUCKETS[:11] == (5, 10, 15, 20, 25, 30, 35, 40, 45, 60, 90)
    assert sequence_measures.LAG_BUCKETS[-1] == 3 * 86_400


def test_the_page_about_metrics_names_every_value_of_the_short_lists() -> None:
    page = DOCS.read_text()
    lists = {
        "analytics_batch_processing_total": events_measures.STATUSES,
        "analytics_batch_size_mismatch_total": events_measures.RANGES,
        "analytics_batches_by_mode_total": events_measures.MODES,
        "analytics_posts_skipped_total": events_measures.REASONS[:-1],
        "analytics_outbox_sent_total": events_measures.KEYS,
        "analytics_queue": EVENTS_FACTS.queue or (),
        "sanderling_polling_targets": polling().facts.targets,
        "sanderling_polling_promotions_total": polling_measures.REASONS,
        "sanderling_polling_lateness_seconds": (polling_measures.ACCELERATED, polling_measures.USUAL),
    }

    for name, values in lists.items():
        (line,) = (line for line in page.splitlines() if f"`{name}`" in line)
        assert [each for each in values if not re.search(rf"(?<!\w){re.escape(each)}(?!\w)", line.split("|")[-2])] == []


LABELS = st.text(max_size=5)
METRICS = st.one_of(
    st.builds(counter, st.just("one"), st.text(max_size=5), st.integers(0, 10**9)),
    st.builds(gauge, st.just("two"), st.text(max_size=5), st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(
        lambda values: counter("three", "", values, "a", "b"),
        st.dictionaries(st.tuples(LABELS, LABELS), st.integers(0, 9)),
    ),
)


@given(METRICS, st.lists(st.floats(0, 100)))
def test_whatever_is_counted_is_served_and_comes_back_from_json(metric: Metric, values: list[float]) -> None:
    spread = Histogram((1, 10))
    for each in values:
        spread.add(each)
    report = msgspec.structs.replace(ALL["pages"], metrics=(metric, histogram("spread", "", spread)))

    assert msgspec.json.decode(msgspec.json.encode(report), type=KINDS["pages"]) == report
    assert len(scraped(report)[next(name for name in scraped(report) if metric.name in name)].samples) == len(
        metric.samples
    )
    assert value(report, "sanderling_pages_spread_bucket", le="+Inf") == len(values)
