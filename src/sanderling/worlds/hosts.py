"""Hosts that exist only as arithmetic: asked at a time, they say what would be answered and how long it would take.

Deterministic for a given `random.Random`; no clock, no sockets. The limiter's simulation, its tests and the demo ask
the same hosts, so what the benchmark proves is what a person sees.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log
from random import Random
from typing import NamedTuple, Protocol


class HostAnswer(NamedTuple):
    """What came back: status, seconds it took, and the Retry-After it carried. Without an answer: 0, and the error."""

    status: int
    latency: float
    retry_after: float | None = None
    error: str | None = None


class Host(Protocol):
    """Whatever can be asked at a time."""

    def ask(self, now: float) -> HostAnswer:
        """What a request that is sent at `now` gets; a latency of `inf` if nothing ever comes."""


class HostQuota(Protocol):
    """Says whether one more request at `now` is within the allowance, and counts it if so."""

    def admits(self, now: float) -> bool:
        """Whether the request is served."""


@dataclass(slots=True)
class BucketQuota:
    """`rate(now)` requests a second, with `depth` saved up at most."""

    rate: Callable[[float], float]
    depth: float
    tokens: float = inf
    asof: float = 0.0

    def admits(self, now: float) -> bool:
        """Whether a token is there."""
        self.tokens = min(self.depth, self.tokens + (now - self.asof) * self.rate(now))
        self.asof = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass(slots=True)
class FixedWindowQuota:
    """`limit` requests in each window of `seconds`; all of it comes back at the window's start."""

    limit: int
    seconds: float
    phase: float = 0.0  # a window starts at this instant: other people's minutes are not ours
    window: int | None = None
    used: int = 0

    def admits(self, now: float) -> bool:
        """Whether this window still has room."""
        if (window := int((now - self.phase) // self.seconds)) != self.window:
            self.window, self.used = window, 0
        if self.used >= self.limit:
            return False
        self.used += 1
        return True


@dataclass(slots=True)
class SlidingWindowQuota:
    """`limit` served requests in any `seconds`."""

    limit: int
    seconds: float
    served: deque[float] = field(default_factory=deque)

    def admits(self, now: float) -> bool:
        """Whether fewer than `limit` were served in the last `seconds`."""
        while self.served and self.served[0] <= now - self.seconds:
            self.served.popleft()
        if len(self.served) >= self.limit:
            return False
        self.served.append(now)
        return True


class OpenQuota:
    """No limit at all."""

    def admits(self, now: float) -> bool:  # noqa: ARG002 - the protocol's argument; this one does not care
        """Always."""
        return True


def steady(value: float) -> Callable[[float], float]:
    """The same value at all times."""
    return lambda _now: value


def steps(plan: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """A value that changes at given times: [(0, 20), (200, 6), (400, 20)]."""

    def at(now: float) -> float:
        return next(value for start, value in reversed(plan) if now >= start)

    return at


@dataclass(slots=True)
class SimulatedHost:
    """A host: a quota in front, a single queue behind it, a network with lognormal latency between us and both."""

    rng: Random
    quota: HostQuota = field(default_factory=OpenQuota)
    network: float = 0.1  # median seconds there and back, without the queue
    spread: float = 0.35  # sigma of the network's lognormal: the 95th percentile is 1.8 times the median
    service: Callable[[float], float] | None = None  # seconds of work per request; None: no queue
    random_service: bool = False  # exponential instead of constant work
    retry_after: float | None = None
    refusal: int = 429
    failing: Callable[[float], float] = field(default_factory=lambda: steady(0.0))  # share of requests that fail
    failure: int = 500
    free_at: float = 0.0

    def ask(self, now: float) -> HostAnswer:
        """What a request that is sent at `now` gets."""
        travel = self.network * exp(self.rng.gauss(0, self.spread))
        if not self.quota.admits(now):
            return HostAnswer(self.refusal, travel / 4, self.retry_after)
        if self.rng.random() < self.failing(now):
            return HostAnswer(self.failure, travel)
        return HostAnswer(200, travel + self._queued(now))

    def _queued(self, now: float) -> float:
        if self.service is None:
            return 0.0
        work = self.service(now)
        if self.random_service:
            work *= -log(1.0 - self.rng.random())
        self.free_at = max(self.free_at, now) + work
        return self.free_at - now
