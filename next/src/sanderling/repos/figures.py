"""What a crawl counts on its way, for the metrics of seed 001 and the report. Nothing here decides anything."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sanderling.observe.report import Fact, count, gauge, histogram

# The bounds of the original, and one more where repos go beyond it.
_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_RECORDS = (0, 10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000)
_COLLECTIONS = (0, 1, 2, 5, 10, 20, 50)
_BYTES = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
_LATENCY = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_DIDS = (0, 100, 500, 1_000, 5_000, 10_000, 25_000, 50_000)


class Buckets:
    """Values, counted by the smallest bound that they do not exceed."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def table(self) -> dict[str, float]:
        """How many lie at or below each bound, and the sum of all."""
        found, below = dict[str, float](), 0
        for bound, number in zip([*(f"{each:g}" for each in self._bounds), "+Inf"], self._counts, strict=True):
            below += number
            found[bound] = below
        return found | {"sum": round(self._sum, 6)}


@dataclass(slots=True)
class RepoFigures:
    """What this process has seen."""

    results: Counter[str] = field(default_factory=Counter)  # "success", or a category
    statuses: Counter[str] = field(default_factory=Counter)  # of responses; "none" without one
    repo_seconds: Buckets = field(default_factory=lambda: Buckets(_SECONDS))
    records: Buckets = field(default_factory=lambda: Buckets(_RECORDS))
    collections: Buckets = field(default_factory=lambda: Buckets(_COLLECTIONS))
    compressed: Buckets = field(default_factory=lambda: Buckets(_BYTES))
    latency: Buckets = field(default_factory=lambda: Buckets(_LATENCY))
    page_dids: Buckets = field(default_factory=lambda: Buckets(_DIDS))
    segments: int = 0  # that were finished
    bytes: int = 0  # written
    pages: int = 0  # of the directory
    dids: int = 0  # that were seen to
    blocked: int = 0  # hosts, or set aside
    refused: int = 0  # DIDs whose host is none that may be requested
    left_out: int = 0  # DIDs that a list names
    dropped: int = 0  # records that nobody can read
    stored_records: int = 0

    def facts(self, *, hosts: int, active: int, dispatched: int, waiting: int) -> Iterator[Fact]:
        """The 17 metrics of seed 001 by name and label."""
        results, statuses = dict(self.results) or {"success": 0}, dict(self.statuses) or {"200": 0}
        yield count(
            "repos_processed", results, "Repos by result.", by="result", metric="crawler_repos_processed", more=True
        )
        yield histogram(
            "repo_duration", self.repo_seconds.table(), "Seconds to fetch and parse a repo.",
            metric="crawler_repo_duration_seconds", more=True,
        )  # fmt: skip
        for name, values, help_ in (
            ("repo_records", self.records, "Records of a repo."),
            ("repo_collections", self.collections, "Collections of a repo."),
            ("repo_compressed_bytes", self.compressed, "Bytes of a repo in its segment."),
            ("http_request_duration_seconds", self.latency, "Seconds to a response."),
            ("page_dids", self.page_dids, "DIDs of a page that are not known yet."),
        ):
            yield histogram(name, values.table(), help_, metric=f"crawler_{name}", more=True)
        yield count(
            "http_requests",
            statuses,
            "Requests by status.",
            by="status_code",
            metric="crawler_http_requests",
            more=True,
        )
        for name, number, help_ in (
            ("segments_finalized", self.segments, "Segments that were finished."),
            ("bytes_written", self.bytes, "Bytes of repos written."),
            ("dids_processed", self.dids, "DIDs that were seen to."),
            ("pages_fetched", self.pages, "Pages read from the directory."),
            ("dispatched", dispatched, "DIDs that were requested."),
            ("pds_blocked", self.blocked, "Hosts that were set aside, or blocked after ten failures in a row."),
        ):
            yield count(name, number, help_, metric=f"crawler_{name}", more=True)
        for name, number, help_ in (
            ("pds_count", hosts, "Hosts that were met."),
            ("dispatch_remaining", waiting, "DIDs that wait."),
            ("active_pds", active, "Hosts with work."),
        ):
            yield gauge(name, number, help_, metric=f"crawler_{name}", more=True)
