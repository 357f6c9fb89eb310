"""What a limiter knows, as plain data: for reports, metrics and logs."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from math import inf

from sanderling.limit.breaker import State
from sanderling.limit.scope import Scope


@dataclass(frozen=True, slots=True)
class HostFigures:
    """One host, or one scope that hosts share. The first ten are seed 003's."""

    host: str
    fill_rate: float  # requests a second that are allowed now
    tokens: float  # requests that could leave at once
    avg_latency: float | None  # seconds
    p95_latency: float | None
    error_rate: float  # of the responses of the window
    state: str  # of the circuit: closed, open or half-open
    consecutive_fails: int
    next_earliest_ms: float  # until a Retry-After or an open circuit is over
    last_activity: float  # seconds since the last request

    requests: int
    refused: int
    in_flight: int
    waiting: int
    cap: float | None  # requests a second that somebody asked us not to exceed
    why: str  # what holds the rate where it is


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All hosts together, and the most recently active of them."""

    total_requests: int
    throttled_requests: int  # that waited for longer than `throttled_after`
    denied: int  # because a circuit was open
    retries: int
    refused: int
    open_circuits: int
    half_open_circuits: int
    hosts_in_memory: int
    waited: float  # seconds that callers have waited for permits
    hosts: tuple[HostFigures, ...]


def figures_of(scope: Scope, now: float, wall: float) -> HostFigures:
    """One host as it stands."""
    breaker = scope.breaker
    breaker.window.expire(now)
    silent = max(scope.not_before, breaker.until if breaker.state is State.OPEN else -inf)
    latencies = scope.pace.latencies
    known = latencies.p95 > 0
    return HostFigures(
        scope.name,
        scope.rate,
        scope.pace.tokens(now),
        latencies.average if known else None,
        latencies.p95 if known else None,
        breaker.window.error_rate,
        breaker.state.value,
        breaker.failures,
        1000 * max(0.0, silent - now),
        now - scope.used_at,
        scope.requests,
        scope.refused,
        scope.inflight,
        scope.wanted,
        None if scope.cap is None else scope.cap[0].rate,
        _why(scope, now, wall),
    )


def most_active(scopes: Iterable[Scope], top: int, now: float, wall: float) -> tuple[HostFigures, ...]:
    """Those that were requested most recently."""
    return tuple(figures_of(each, now, wall) for each in nlargest(top, scopes, key=lambda scope: scope.used_at))


def _why(scope: Scope, now: float, wall: float) -> str:
    state = scope.breaker.state
    if state is State.OPEN:
        return f"its circuit is open for another {max(0.0, scope.breaker.until - now):.1f} s, after failures"
    if state is State.HALF_OPEN:
        return "its circuit is half open: probes show whether it is well again"
    if scope.not_before > now:
        return f"it told us to wait for another {scope.not_before - now:.1f} s"
    if scope.cap is not None and scope.rate == scope.cap[0].rate:
        return scope.cap[1]
    return scope.pace.why(now, wall)
