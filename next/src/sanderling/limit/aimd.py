# ruff: noqa: ARG002, D102 - Pace says what each method does, and not all look at each argument.
"""Policy `aimd`, seed 003: each fast success adds to the rate; each refusal, failure or slow response halves it."""

from collections.abc import Mapping
from math import inf
from typing import Any

from sanderling.limit.breaker import State
from sanderling.limit.bucket import Bucket
from sanderling.limit.pace import is_failure, is_refusal
from sanderling.limit.rate_headers import Quota
from sanderling.limit.rules import LimitOptions
from sanderling.limit.windows import Latencies
from sanderling.outcome import Outcome

# Seconds. Of a host on the same machine or network, twice the usual latency is a whim of the scheduler.
NEVER_SLOW = 0.02


class Aimd:
    """One host's rate. Its target is the moving average of latencies: a response is compared before it enters it."""

    __slots__ = ("_bucket", "_directed_at", "_options", "_reason", "latencies", "rate")
    probing = False

    def __init__(self, options: LimitOptions, now: float) -> None:
        self.rate = options.initial_rps
        self._options = options
        self._bucket = Bucket(self.rate, options.token_bucket_capacity, now)
        self.latencies = Latencies(options.latency_target)
        self._directed_at = -inf  # when a Retry-After last lowered the rate
        self._reason = ""

    def ready_at(self, now: float) -> float:
        return self._bucket.ready

    def take(self, now: float) -> None:
        self._bucket.take(now)

    def put_back(self, now: float, sent_at: float) -> None:
        self._bucket.put_back()

    def end(self, now: float, sent_at: float) -> None: ...

    def heed(self, now: float, quota: Quota) -> None: ...

    def learn(self, now: float, sent_at: float, outcome: Outcome, latency: float) -> bool:
        options = self._options
        refused, failed = is_refusal(outcome), is_failure(outcome)
        if outcome.retry_after:
            if sent_at >= self._directed_at:  # of requests that were out together, one decrease
                self._directed_at = now
                self._decrease(now, "a Retry-After")
        elif refused:
            self._decrease(now, "a refusal")
        elif failed:
            self._decrease(now, "a failure")
        elif latency > 0 and (200 <= outcome.status < 400 or (outcome.ok and not outcome.status)):
            target = self.latencies.average
            if latency >= max(NEVER_SLOW, options.latency_degrade_factor * target):
                self._decrease(now, "a slow response")
            elif latency < target:
                self._move(self.rate + options.aimd_increase, now)
        if latency and outcome.status:
            self.latencies.add(latency)
        return refused or failed

    def circuit_moved(self, now: float, state: State) -> None: ...

    def tokens(self, now: float) -> float:
        return self._bucket.tokens(now)

    def why(self, now: float, wall: float) -> str:
        if self.rate >= self._options.max_rps:
            return f"limited by --rps {self._options.max_rps:g} (max_rps)"
        began = f"{self._reason} lowered its rate" if self._reason else f"it began at {self._options.initial_rps:g}"
        return f"{began}, and each fast response adds {self._options.aimd_increase:g}"

    def save(self) -> dict[str, Any]:
        return {"rate": self.rate} if self.rate < self._options.initial_rps else {}

    def restore(self, saved: Mapping[str, Any], now: float) -> None:
        rate = saved.get("rate")
        if isinstance(rate, float | int) and 0 < rate < self.rate:
            self._reason = "an earlier run"
            self._move(rate, now)

    def _decrease(self, now: float, reason: str) -> None:
        self._reason = reason
        self._move(self.rate * self._options.aimd_decrease, now)

    def _move(self, rate: float, now: float) -> None:
        self.rate = self._options.clamp(rate)
        self._bucket.set_rate(self.rate, self._options.token_bucket_capacity, now)
