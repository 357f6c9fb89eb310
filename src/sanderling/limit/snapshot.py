"""What the limiter can tell about itself: totals, and the hosts that are asked most."""

from dataclasses import dataclass

from sanderling.limit.breaker import State
from sanderling.limit.gate import Gate


@dataclass(frozen=True, slots=True)
class HostView:
    """One host as it stands. Times in seconds; `not_before` counts from now."""

    host: str
    requests: int
    rejected: int
    rate: float
    ceiling: float | None
    tokens: float
    latency: float | None
    p95: float | None
    error_rate: float
    state: str
    failures: int
    not_before: float
    inflight: int
    waiting: int
    why: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The limiter as it stands. `waits` holds how many permits waited up to each bound, not cumulated."""

    requests: int
    throttled: int
    denied: int
    retries: int
    rejected: int
    hosts: int
    open: int
    half_open: int
    waits: tuple[tuple[float, int], ...]
    waited: float
    top: tuple[HostView, ...]


def view(gate: Gate, now: float) -> HostView:
    """One gate, as people and machines may look at it."""
    strategy, breaker = gate.strategy, gate.breaker
    latencies = gate.kept()
    answers, failed = (0, 0) if breaker is None else breaker.window.totals(now)
    return HostView(
        host=gate.host,
        requests=gate.serial,
        rejected=gate.rejected,
        rate=gate.rate,
        ceiling=None if strategy is None else strategy.ceiling,
        tokens=gate.tokens(now),
        latency=gate.mean or None,
        p95=latencies[int(0.95 * len(latencies))] if latencies else None,
        error_rate=failed / answers if answers else 0.0,
        state=gate.state.value,
        failures=0 if breaker is None else breaker.failures,
        not_before=max(0.0, _closed_until(gate) - now),
        inflight=gate.inflight,
        waiting=len(gate.line or ()),
        why=_why(gate, now),
    )


def _closed_until(gate: Gate) -> float:
    if gate.breaker is not None and gate.breaker.state is State.OPEN:
        return max(gate.not_before, gate.breaker.until)
    return gate.not_before


def _why(gate: Gate, now: float) -> str:
    """In words, what most holds the host back."""
    if gate.state is State.OPEN:
        return f"circuit open for another {_closed_until(gate) - now:.1f} s after failures"
    if gate.state is State.HALF_OPEN:
        return "circuit half open: one probe at a time"
    if gate.not_before > now:
        return f"told to wait another {gate.not_before - now:.1f} s"
    if gate.allowance is not None and now < gate.allowance[1]:
        return "its rate headers say how much is left"
    return "not asked yet" if gate.strategy is None else gate.strategy.why()
