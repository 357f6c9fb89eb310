"""A snapshot written by hand, for the tests of what reads one."""

from dataclasses import dataclass
from math import inf


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
