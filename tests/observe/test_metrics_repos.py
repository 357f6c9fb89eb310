"""A crawl of repos, as Prometheus sees it: the names that dashboards know, and what they count."""

import pytest
from fake_snapshot import READINGS
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sanderling.observe.metrics_repos import RepoMetrics, RepoReadings

# Exactly these: dashboards and alarms are written against them.
TYPES = {
    "crawler_repos_processed_total": "counter",
    "crawler_repo_duration_seconds": "histogram",
    "crawler_repo_records": "histogram",
    "crawler_repo_collections": "histogram",
    "crawler_repo_compressed_bytes": "histogram",
    "crawler_http_requests_total": "counter",
    "crawler_http_request_duration_seconds": "histogram",
    "crawler_segments_finalized_total": "counter",
    "crawler_bytes_written_total": "counter",
    "crawler_dids_processed_total": "counter",
    "crawler_pages_fetched_total": "counter",
    "crawler_page_dids": "histogram",
    "crawler_pds_count": "gauge",
    "crawler_dispatched_total": "counter",
    "crawler_dispatch_remaining": "gauge",
    "crawler_pds_blocked_total": "counter",
    "crawler_active_pds": "gauge",
}


def scraped() -> str:
    registry = CollectorRegistry()
    RepoMetrics(registry, lambda: READINGS)
    return generate_latest(registry).decode()


def value(name: str, **labels: str) -> float:
    samples = (each for family in text_string_to_metric_families(scraped()) for each in family.samples)
    (found,) = (each.value for each in samples if each.name == name and each.labels == labels)
    return found


def test_the_names_and_types_are_those_that_dashboards_know() -> None:
    families = text_string_to_metric_families(scraped())

    found = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}
    assert found == TYPES


def test_repos_and_requests_are_counted_by_how_they_ended() -> None:
    assert value("crawler_repos_processed_total", result="success") == 40
    assert value("crawler_repos_processed_total", result="not_found") == 2
    assert value("crawler_dids_processed_total") == 42
    assert value("crawler_http_requests_total", status_code="none") == 1


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("segments_finalized_total", 2),
        ("bytes_written_total", 1234),
        ("pages_fetched_total", 3),
        ("dispatched_total", 43),
        ("pds_blocked_total", 1),
        ("pds_count", 5),
        ("dispatch_remaining", 7),
        ("active_pds", 4),
    ],
)
def test_each_number_is_under_its_name(name: str, number: float) -> None:
    assert value(f"crawler_{name}") == number


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("repo_duration_seconds", 5.5),
        ("repo_records", 2),
        ("repo_collections", 3),
        ("repo_compressed_bytes", 4),
        ("http_request_duration_seconds", 0.25),
        ("page_dids", 100),
    ],
)
def test_each_histogram_is_under_its_name(name: str, total: float) -> None:
    assert value(f"crawler_{name}_sum") == total


def test_buckets_are_cumulated() -> None:
    buckets = [value("crawler_repo_duration_seconds_bucket", le=le) for le in ("1.0", "10.0", "+Inf")]

    assert buckets == [1, 2, 2]


def test_the_names_are_taken_without_looking() -> None:
    def never() -> RepoReadings:
        raise AssertionError

    registry = CollectorRegistry()
    RepoMetrics(registry, never)

    with pytest.raises(ValueError, match="Duplicated"):
        RepoMetrics(registry, never)
