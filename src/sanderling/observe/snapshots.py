"""The limiter's snapshot as one log line every few seconds, for those who watch logs and not Prometheus."""

from typing import Protocol

from sanderling.clock import Clock
from sanderling.observe.metrics import SnapshotLike, Take

BUSIEST = 3  # what fits on one line


class Log(Protocol):
    """Where the lines go."""

    def info(self, event: str, **fields: object) -> object:
        """Write one line."""


def snapshot_fields(snapshot: SnapshotLike) -> dict[str, int | float | str]:
    """The snapshot's totals, and the busiest hosts with the rate of each."""
    return {
        "requests": snapshot.requests,
        "throttled": snapshot.throttled,
        "denied": snapshot.denied,
        "rejected": snapshot.rejected,
        "retries": snapshot.retries,
        "waited": round(snapshot.waited, 3),
        "hosts": snapshot.hosts,
        "open": snapshot.open,
        "half_open": snapshot.half_open,
        # One text, not a field per host: a host may be called `event` or `level`.
        "busiest": " ".join(f"{host.host}={host.rate:.2f}" for host in snapshot.top[:BUSIEST]),
    }


async def log_snapshots(take: Take, log: Log, clock: Clock, every: float = 10.0) -> None:
    """Log a line at each multiple of `every` seconds from now, until cancelled."""
    start, tick = clock.now(), 0
    while True:
        # One on from the last, even if the sleep ended a hair early; past those that were overslept.
        tick = max(tick, int((clock.now() - start) // every)) + 1
        await clock.sleep(start + tick * every - clock.now())
        log.info("limiter_snapshot", **snapshot_fields(take()))
