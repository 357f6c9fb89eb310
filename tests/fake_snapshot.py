"""A snapshot and the readings of a crawl written by hand, for the tests of what reads them."""

from dataclasses import dataclass
from math import inf

from sanderling.observe.histogram import Histogram
from sanderling.observe.metrics_repos import RepoReadings


@dataclass(frozen=True, slots=True)
class Seen:
    """One host."""

    host: str = "a.example"
    rate: float = 2.5
    ceiling: float | None = 8.0
    tokens: float = -1.5
    latency: float | None = 0.25
    p95: float | None = 0.75
    error_rate: float = 0.125
    state: str = "closed"
    failures: int = 3
    not_before: float = 30.0
    inflight: int = 4
    waiting: int = 5


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A limiter with ten hosts, of which it shows some."""

    requests: int = 100
    throttled: int = 40
    denied: int = 7
    retries: int = 6
    rejected: int = 5
    hosts: int = 10
    open: int = 2
    half_open: int = 1
    waits: tuple[tuple[float, int], ...] = ((0.005, 60), (0.5, 30), (inf, 10))
    waited: float = 12.5
    top: tuple[Seen, ...] = (Seen(),)


def _histogram(*values: float) -> Histogram:
    made = Histogram((1, 10))
    for value in values:
        made.add(value)
    return made


READINGS = RepoReadings(
    results={"success": 40, "not_found": 2},
    statuses={"200": 41, "none": 1},
    pages=3,
    dispatched=43,
    waiting=7,
    hosts=5,
    active=4,
    blocked=1,
    segments=2,
    bytes=1234,
    durations=_histogram(0.5, 5),
    records=_histogram(2),
    collections=_histogram(3),
    sizes=_histogram(4),
    latencies=_histogram(0.25),
    page_dids=_histogram(100),
)
