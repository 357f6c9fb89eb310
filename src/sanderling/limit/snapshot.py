"""What the limiter can tell about itself: totals, and the hosts that are asked most."""

from collections.abc import Sequence
from dataclasses import dataclass

from sanderling.limit.breaker import State
from sanderling.limit.contract import DRAINING, Contract
from sanderling.limit.gate import Gate
from sanderling.limit.strategy import Strategy

LEAST_SHOWN = 0.005  # of answers that fail; less would be shown as 0 %
ROUNDING = 1 - 1e-9  # a rate is kept as an interval, and does not always come back from it as it was
# What a host is asked for decides by which policy, and this is what each means. docs/limiter.md prints them; a test
# compares the two.
POLICIES = {
    "crawl": "its pace is learned from refusals, latency and failures",
    "contract": (
        "the operator's cadence stands; only refusals, Retry-After and rate headers stretch it, "
        "and a failed host is asked about once a second"
    ),
}


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
    learned: str | None  # what the ceiling was learned from
    usual: float | None  # the latency that answers are judged by
    cap: float | None  # requests a second that somebody has asked us not to exceed
    cap_why: str | None
    policy: str = "crawl"  # one of POLICIES
    shares: tuple[str, ...] = ()  # what it draws on together with other hosts: "credential/key 1"


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
    shared: tuple[HostView, ...] = ()  # what hosts share, each like a host

    @property
    def permitted(self) -> float:
        """Requests a second that the host asked most may have: no more than all that it shares together."""
        if not self.top:
            return 0.0
        busiest = self.top[0]
        return min([busiest.rate, *(each.rate for each in self.shared if each.host in busiest.shares)])


def view(gate: Gate, now: float, shared: Sequence[Gate] = ()) -> HostView:
    """One gate, and what it shares with others, as people and machines may look at it."""
    strategy, breaker = gate.strategy, gate.breaker
    latencies = gate.kept()
    return HostView(
        host=gate.host,
        requests=gate.serial,
        rejected=gate.rejected,
        rate=gate.rate,
        ceiling=None if strategy is None else strategy.ceiling,
        tokens=gate.tokens(now),
        latency=gate.mean or None,
        p95=latencies[int(0.95 * len(latencies))] if latencies else None,
        error_rate=0.0 if breaker is None else breaker.error_rate,
        state=gate.state.value,
        failures=0 if breaker is None else breaker.failures,
        not_before=max(0.0, _closed_until(gate) - now),
        inflight=gate.inflight,
        waiting=len(gate.line or ()),
        why=_why(gate, now, shared),
        learned=None if strategy is None else strategy.learned,
        usual=None if strategy is None else strategy.usual,
        cap=None if gate.cap is None else gate.cap.rps,
        cap_why=None if gate.cap is None else gate.cap.why,
        # Known before the first answer, with which a strategy is made.
        policy="contract" if gate._rules.strategy is Contract else "crawl",  # noqa: SLF001 - to look at, as all here
        shares=tuple(each.host for each in shared),
    )


def explain(view: HostView) -> str:
    """Why the host is as slow as it is right now, in three to five short sentences."""
    policy = f"policy {view.policy}: {POLICIES[view.policy]}" if view.policy in POLICIES else f"policy {view.policy}"
    sentences = (f"{_held(view)}: {view.why}", policy, _bounds(view), _demand(view), _health(view))
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences if sentence)


def _held(view: HostView) -> str:
    """How fast it may be called now."""
    if view.not_before > 0 or view.state == "open":
        return "not called now"
    if view.why.startswith(DRAINING):
        return "one request at a time"
    return f"up to {_pace(view.rate)}" if view.policy == "contract" else f"{_pace(view.rate)} now"


def _bounds(view: HostView) -> str:
    """What is believed to be allowed, and why."""
    parts = []
    if view.ceiling is not None:
        learned = f", learned from {view.learned}" if view.learned and view.learned not in view.why else ""
        parts.append(f"its ceiling is {_pace(view.ceiling)}{learned}")
    if view.cap is not None and view.cap_why is not None and view.cap_why not in view.why:
        parts.append(f"at most {_pace(view.cap)}: {view.cap_why}")
    if shared := [scope_words(each) for each in view.shares if scope_words(each) not in view.why]:
        parts.append(f"it shares {' and '.join(shared)}")
    if view.rejected:
        parts.append(f"it refused {view.rejected} of {view.requests} request{'s' * (view.requests > 1)}")
    return "; ".join(parts)


def _demand(view: HostView) -> str:
    """Who wants to ask it: a host that nobody asks is slow for no fault of its own."""
    if not view.waiting and not view.inflight:
        return "nobody waits, and nothing is in flight"
    return f"{view.waiting or 'nobody'} waiting, {view.inflight or 'nothing'} in flight"


def _health(view: HostView) -> str:
    """How long its answers take against what is usual for it, and how many fail."""
    parts = []
    if view.latency is not None:
        usual = "" if view.usual is None else f", usually {view.usual:.3g} s"
        parts.append(f"its answers take {view.latency:.3g} s{usual}")
    if view.error_rate >= LEAST_SHOWN:
        parts.append(f"{view.error_rate:.0%} of its last answers failed")
    return "; ".join(parts)


def scope_words(scope: str) -> str:
    """A scope as people speak of it: `credential/maps` is the credential maps."""
    return f"the {'address' if scope.startswith('ip/') else scope.partition('/')[0]} {scope.partition('/')[2]}"


def _pace(rate: float) -> str:
    return f"{rate:.1f} requests a second" if rate >= 1 else f"one request in {1 / rate:.3g} s"


def _closed_until(gate: Gate) -> float:
    if gate.breaker is not None and gate.breaker.state is State.OPEN:
        return max(gate.not_before, gate.breaker.until)
    return gate.not_before


def _why(gate: Gate, now: float, shared: Sequence[Gate] = ()) -> str:
    """In words, what most holds the host back."""
    return _shut(gate, now) or _held_by(shared, max(now, gate.ready), now) or _paced(gate, now)


def _shut(gate: Gate, now: float) -> str:
    """Why nothing, or hardly anything, may be asked; nothing if that is not so."""
    if gate.state is State.OPEN:
        left = _closed_until(gate) - now
        return (
            f"circuit open for another {left:.1f} s after failures" if left > 0 else "circuit open until a probe passes"
        )
    if gate.state is State.HALF_OPEN:
        wait = f", the next in {gate.not_before - now:.1f} s" if gate.not_before > now else ""
        return f"circuit half open: one probe at a time{wait}"
    return f"told to wait another {gate.not_before - now:.1f} s" if gate.not_before > now else ""


def _held_by(shared: Sequence[Gate], ready: float, now: float) -> str:
    """Which of what it shares lets a host wait that is `ready` then, and why; nothing if none does."""
    most = max(shared, key=lambda each: max(each.ready, _closed_until(each)), default=None)
    if most is None or max(most.ready, _closed_until(most)) <= ready:
        return ""
    return f"waiting for {scope_words(most.host)}: {_shut(most, now) or f'{_pace(most.rate)} for all that share it'}"


def _paced(gate: Gate, now: float) -> str:
    if gate.cap is not None and gate.rate >= gate.cap.rps * ROUNDING and not (gate.strategy and gate.strategy.single):
        return gate.cap.why
    if gate.allowance is not None and now < gate.allowance[1]:
        return "its rate headers say how much is left"
    if "/" in gate.host and (gate.strategy is None or gate.strategy.ceiling is None):
        return "as fast as was set for all that share it"
    return _doing(gate.strategy)


def _doing(strategy: Strategy | None) -> str:
    if strategy is None:
        return "not asked yet"
    return f"{strategy.doing} (learned from {strategy.learned})" if strategy.learned else strategy.doing
