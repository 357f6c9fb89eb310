"""The metrics of a crawl of repos, under the names that dashboards of such crawls know: `crawler_…`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from sanderling.observe.histogram import Histogram
from sanderling.observe.metrics import cumulative


@dataclass(frozen=True, slots=True)
class RepoReadings:
    """What a crawl of repos says of itself at one moment. Counts are those of the run."""

    results: Mapping[str, int]  # repos that were seen to, by what came of them
    statuses: Mapping[str, int]  # HTTP requests, by the answer's status
    pages: int
    dispatched: int
    waiting: int
    hosts: int
    active: int  # hosts with work left
    blocked: int  # times that one was
    segments: int  # that were finalised
    bytes: int
    durations: Histogram
    records: Histogram
    collections: Histogram
    sizes: Histogram
    latencies: Histogram
    page_dids: Histogram


Read = Callable[[RepoReadings], float]
TakeRepos = Callable[[], RepoReadings]

BY_LABEL: tuple[tuple[str, str, str, Callable[[RepoReadings], Mapping[str, int]]], ...] = (
    ("crawler_repos_processed", "Repos that were seen to, by what came of them.", "result", lambda seen: seen.results),
    ("crawler_http_requests", "HTTP requests, by the answer's status.", "status_code", lambda seen: seen.statuses),
)
COUNTERS: tuple[tuple[str, str, Read], ...] = (
    ("crawler_segments_finalized", "Segments that were finished.", lambda seen: seen.segments),
    ("crawler_bytes_written", "Bytes of repos that are durable.", lambda seen: seen.bytes),
    ("crawler_dids_processed", "DIDs that were seen to.", lambda seen: sum(seen.results.values())),
    ("crawler_pages_fetched", "Pages read from the directory.", lambda seen: seen.pages),
    ("crawler_dispatched", "DIDs that were asked for.", lambda seen: seen.dispatched),
    ("crawler_pds_blocked", "Hosts that were blocked.", lambda seen: seen.blocked),
)
GAUGES: tuple[tuple[str, str, Read], ...] = (
    ("crawler_pds_count", "Hosts that are known.", lambda seen: seen.hosts),
    ("crawler_dispatch_remaining", "DIDs that wait in memory.", lambda seen: seen.waiting),
    ("crawler_active_pds", "Hosts with DIDs that wait.", lambda seen: seen.active),
)
HISTOGRAMS: tuple[tuple[str, str, Callable[[RepoReadings], Histogram]], ...] = (
    ("crawler_repo_duration_seconds", "Fetching and reading of a repo.", lambda seen: seen.durations),
    ("crawler_repo_records", "Records of a repo.", lambda seen: seen.records),
    ("crawler_repo_collections", "Collections of a repo.", lambda seen: seen.collections),
    ("crawler_repo_compressed_bytes", "Bytes of a repo in its segment.", lambda seen: seen.sizes),
    ("crawler_http_request_duration_seconds", "One exchange, its body included.", lambda seen: seen.latencies),
    ("crawler_page_dids", "DIDs of a page that were not complete.", lambda seen: seen.page_dids),
)


class RepoMetrics:
    """Shows Prometheus how a crawl of repos stands at each scrape."""

    def __init__(self, registry: CollectorRegistry, take: TakeRepos) -> None:
        self._take = take
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        """The metrics without their values, from which the registry knows if a name is taken."""
        yield from (CounterMetricFamily(name, meaning, labels=(label,)) for name, meaning, label, _ in BY_LABEL)
        yield from (CounterMetricFamily(name, meaning) for name, meaning, _ in COUNTERS)
        yield from (GaugeMetricFamily(name, meaning) for name, meaning, _ in GAUGES)
        yield from (HistogramMetricFamily(name, meaning) for name, meaning, _ in HISTOGRAMS)

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now; one reading for all, so that they agree with each other."""
        seen = self._take()
        for name, meaning, label, counts in BY_LABEL:
            counted = CounterMetricFamily(name, meaning, labels=(label,))
            for value, number in counts(seen).items():
                counted.add_metric((value,), number)
            yield counted
        yield from (CounterMetricFamily(name, meaning, value=read(seen)) for name, meaning, read in COUNTERS)
        yield from (GaugeMetricFamily(name, meaning, value=read(seen)) for name, meaning, read in GAUGES)
        for name, meaning, histogram in HISTOGRAMS:
            found = histogram(seen)
            yield HistogramMetricFamily(name, meaning, buckets=cumulative(found.buckets), sum_value=found.total)
