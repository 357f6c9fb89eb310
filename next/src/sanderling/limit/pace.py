# ruff: noqa: ARG002, D102 - Pace says what each method does, and not all look at each argument.
"""The policy of one host: how fast it is requested. `aimd` and `governor` learn the rate, `fixed` and `none` do not."""

from collections.abc import Mapping
from math import inf
from typing import Any, Protocol

from sanderling.limit.breaker import State
from sanderling.limit.bucket import Bucket
from sanderling.limit.rate_headers import Quota
from sanderling.limit.rules import LimitOptions
from sanderling.limit.windows import Latencies
from sanderling.outcome import Code, Outcome

# Seconds after which a permit that was neither reported nor released no longer keeps others waiting.
LEASE = 60.0


class Pace(Protocol):
    """What a policy decides for one host. Retry-After, circuit, queue and scopes are the limiter's.

    Each permit is taken once, and then either put back or ended once. Each response is learned once.
    """

    rate: float  # requests a second now
    latencies: Latencies  # of responses, or only of good ones

    @property
    def probing(self) -> bool:
        """Whether only one request may be in flight: one that shows whether the host is open again."""

    def ready_at(self, now: float) -> float:
        """When the next request may leave by this policy alone; at `now` or earlier if it may leave now."""

    def take(self, now: float) -> None:
        """A request leaves."""

    def put_back(self, now: float, sent_at: float) -> None:
        """The last request that was taken, at `sent_at`, did not leave after all; its permit has ended."""

    def end(self, now: float, sent_at: float) -> None:
        """The permit taken at `sent_at` has ended, with or without a response. Comes before `learn`."""

    def learn(self, now: float, sent_at: float, outcome: Outcome, latency: float) -> bool:
        """Take in a response. Returns whether the circuit counts it as a failure.

        `latency` is 0 where it is not known. The limiter has heeded Retry-After by then, and a refusal with one counts
        in no circuit whatever is returned.
        """

    def heed(self, now: float, quota: Quota) -> None:
        """Rate headers say how much is left. Comes before `learn`."""

    def circuit_moved(self, now: float, state: State) -> None:
        """The host's circuit opened, is probed, or closed."""

    def tokens(self, now: float) -> float:
        """Requests that could leave at `now`."""

    def why(self, now: float, wall: float) -> str:
        """What holds the rate where it is, as the end of a sentence; `wall` is `now` in Unix seconds."""

    def save(self) -> dict[str, Any]:
        """What must not be forgotten of the host, as plain values; empty if nothing was learned."""

    def restore(self, saved: Mapping[str, Any], now: float) -> None:
        """Take up what `save` returned in an earlier life. What is not understood is ignored."""


class _Unlearning:
    """What a policy does that learns no rate."""

    __slots__ = ("latencies",)
    probing = False

    def __init__(self) -> None:
        self.latencies = Latencies()

    def end(self, now: float, sent_at: float) -> None: ...

    def heed(self, now: float, quota: Quota) -> None: ...

    def circuit_moved(self, now: float, state: State) -> None: ...

    def save(self) -> dict[str, Any]:
        return {}

    def restore(self, saved: Mapping[str, Any], now: float) -> None: ...


class Unpaced(_Unlearning):
    """Policy `none`: permits at once and no circuit, for hosts of one's own. Retry-After is still heeded."""

    __slots__ = ()
    rate = inf

    def ready_at(self, now: float) -> float:
        return now

    def take(self, now: float) -> None: ...

    def put_back(self, now: float, sent_at: float) -> None: ...

    def learn(self, now: float, sent_at: float, outcome: Outcome, latency: float) -> bool:
        if latency and outcome.status:
            self.latencies.add(latency)
        return False

    def tokens(self, now: float) -> float:
        return inf

    def why(self, now: float, wall: float) -> str:
        return "policy none: requests are not paced"


class Fixed(_Unlearning):
    """A rate that somebody has set, `max_rps`: of a scope, or of hosts that are polled. Only refusals stretch it.

    A refusal without Retry-After halves the rate; each response that is none brings back a twentieth of what was set.
    """

    __slots__ = ("_bucket", "_set", "rate")

    def __init__(self, options: LimitOptions, now: float) -> None:
        super().__init__()
        self._set = self.rate = options.max_rps
        self._bucket = Bucket(self.rate, depth_of(self.rate, options.token_bucket_capacity), now)

    def ready_at(self, now: float) -> float:
        return self._bucket.ready

    def take(self, now: float) -> None:
        self._bucket.take(now)

    def put_back(self, now: float, sent_at: float) -> None:
        self._bucket.put_back()

    def learn(self, now: float, sent_at: float, outcome: Outcome, latency: float) -> bool:
        if latency and outcome.status:
            self.latencies.add(latency)
        if is_refusal(outcome):
            if not outcome.retry_after:
                self._move(max(self.rate / 2, self._set / 64), now)
            return False
        if self.rate < self._set:
            self._move(min(self._set, self.rate + self._set / 20), now)
        return is_failure(outcome)

    def tokens(self, now: float) -> float:
        return self._bucket.tokens(now)

    def why(self, now: float, wall: float) -> str:
        if self.rate < self._set:
            return f"its rate was set to {self._set:g} a second, and it refused some requests"
        return f"its rate was set to {self._set:g} a second"

    def _move(self, rate: float, now: float) -> None:
        self.rate = rate
        self._bucket.set_rate(rate, self._bucket.depth, now)


def depth_of(rate: float, capacity: float) -> float:
    """How many requests may leave at once where nobody has asked for bursts: those of 50 ms, at least one.

    A host that allows 20 a second sees one at a time. How deep a quota is cannot be known.
    """
    return max(1.0, min(capacity, rate * 0.05))


def is_refusal(outcome: Outcome) -> bool:
    """Whether the host said "too many", by a 429 or in its own words."""
    return outcome.status == 429 or outcome.code is Code.RATE_LIMITED


def is_failure(outcome: Outcome) -> bool:
    """Whether the host failed: a 5xx, or no whole response."""
    return outcome.status >= 500 or outcome.blames_host
