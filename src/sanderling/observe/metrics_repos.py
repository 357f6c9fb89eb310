"""The metrics of a crawl of repos, under the names that dashboards of such crawls know: `crawler_…`."""

from collections.abc import Mapping
from dataclasses import dataclass

from sanderling.observe.histogram import Histogram
from sanderling.observe.series import Shown, Table, by, one, spread


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


CRAWL: Table[RepoReadings] = Table(
    "crawler_",
    counters=(
        by("result", "repos_processed", "Repos that were seen to, by what came of them.", lambda seen: seen.results),
        by("status_code", "http_requests", "HTTP requests, by the answer's status.", lambda seen: seen.statuses),
        one("segments_finalized", "Segments that were finished.", lambda seen: seen.segments),
        one("bytes_written", "Bytes of repos that are durable.", lambda seen: seen.bytes),
        one("dids_processed", "DIDs that were seen to.", lambda seen: sum(seen.results.values())),
        one("pages_fetched", "Pages read from the directory.", lambda seen: seen.pages),
        one("dispatched", "DIDs that were asked for.", lambda seen: seen.dispatched),
        one("pds_blocked", "Hosts that were blocked.", lambda seen: seen.blocked),
    ),
    gauges=(
        one("pds_count", "Hosts that are known.", lambda seen: seen.hosts),
        one("dispatch_remaining", "DIDs that wait in memory.", lambda seen: seen.waiting),
        one("active_pds", "Hosts with DIDs that wait.", lambda seen: seen.active),
    ),
    spreads=(
        spread("repo_duration_seconds", "Fetching and reading of a repo.", lambda seen: seen.durations),
        spread("repo_records", "Records of a repo.", lambda seen: seen.records),
        spread("repo_collections", "Collections of a repo.", lambda seen: seen.collections),
        spread("repo_compressed_bytes", "Bytes of a repo in its segment.", lambda seen: seen.sizes),
        spread("http_request_duration_seconds", "One exchange, its body included.", lambda seen: seen.latencies),
        spread("page_dids", "DIDs of a page that were not complete.", lambda seen: seen.page_dids),
    ),
)


class RepoMetrics(Shown[RepoReadings]):
    """Shows Prometheus how a crawl of repos stands at each scrape."""

    table = CRAWL
