"""What a limiter knows, as facts of a report."""

from sanderling.limit import Snapshot
from sanderling.observe.report import Fact, count, gauge, seconds


def limiter_facts(snapshot: Snapshot) -> tuple[Fact, ...]:
    """The figures of all hosts together; those of each are in the report's table of hosts."""
    return (
        count("permits", snapshot.total_requests, "Requests that the limiter let through.", more=True),
        count("throttled", snapshot.throttled_requests, "Of those, how many had to wait.", more=True),
        seconds("waited_for_permits", snapshot.waited, "Time that requests have waited for the limiter.", more=True),
        count("denied", snapshot.denied, "Requests that found a circuit open.", more=True),
        count("rate_limited", snapshot.refused, "Requests that a host refused, by 429 or in its own words.", more=True),
        count("retries", snapshot.retries, "Retries that were planned by seed 003's rules.", more=True),
        gauge("open_circuits", snapshot.open_circuits, "Hosts that fail and are left alone for now."),
        gauge("half_open_circuits", snapshot.half_open_circuits, "Hosts that are probed.", more=True),
        gauge("limited_hosts", snapshot.hosts_in_memory, "Hosts whose pace is in memory.", more=True),
    )
