"""What a limiter shows Prometheus."""

from collections.abc import Iterator

from sanderling.limit.snapshot import Snapshot
from sanderling.observe.histogram import Histogram
from sanderling.observe.metric import Metric, counter, gauge, histogram
from sanderling.observe.metrics import prefixed

# Only the busiest hosts have series of their own, 13 each: a label with a value for every host would cost Prometheus
# memory for each name a stranger ever put into a directory.
TOP_HOSTS = 20
STATES = ("closed", "open", "half-open")
PER_HOST = (
    ("rate", "rate", "Permits a second the host gets now."),
    ("ceiling", "ceiling", "Permits a second the host gets at most, if known."),
    ("tokens", "tokens", "Permits in hand; below 0 if some are promised."),
    ("latency_seconds", "latency", "Mean latency of recent answers."),
    ("latency_p95_seconds", "p95", "95th percentile of recent latencies."),
    ("error_ratio", "error_rate", "Errors among recent answers, from 0 to 1."),
    ("failures", "failures", "Failures in a row."),
    ("not_before_seconds", "not_before", "Seconds until the host may be called at all."),
    ("inflight", "inflight", "Requests under way."),
    ("waiting", "waiting", "Callers waiting for a permit."),
)


def limiter_metrics(snapshot: Snapshot) -> Iterator[Metric]:
    """The totals, and the busiest hosts one by one."""
    return (prefixed(each, "sanderling_limiter_") for each in _metrics(snapshot))


def _metrics(seen: Snapshot) -> Iterator[Metric]:
    yield counter("permits", "Permits given to call a host.", seen.requests)
    yield counter("throttled", "Permits that had to be waited for.", seen.throttled)
    yield counter("denied", "Callers turned away by an open circuit.", seen.denied)
    yield counter("rejected", "Answers that refused: 429, 503 and the like.", seen.rejected)
    yield counter("retries", "Attempts after the first.", seen.retries)
    yield gauge("hosts", "Hosts the limiter keeps in mind.", seen.hosts)
    circuits = zip(STATES, (seen.hosts - seen.open - seen.half_open, seen.open, seen.half_open), strict=True)
    yield gauge("circuits", "Hosts by the state of their circuit.", dict(circuits), "state")
    hosts = seen.top[:TOP_HOSTS]
    for name, field, meaning in PER_HOST:
        known = {each.host: float(value) for each in hosts if (value := getattr(each, field)) is not None}
        yield gauge(f"host_{name}", meaning, known, "host")
    states = {(each.host, state): each.state == state for each in hosts for state in STATES}
    yield gauge("host_circuit", "1 for the circuit's state.", states, "host", "state")
    waits = Histogram([bound for bound, _ in seen.waits[:-1]])
    waits.counts, waits.total = [number for _, number in seen.waits], seen.waited
    yield histogram("wait_seconds", "How long permits were waited for.", waits)
