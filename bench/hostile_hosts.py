"""Hosts that make it hard to learn what they allow: quotas in layers, neighbours, bans, lies, outages, bounded queues.

Arithmetic like `worlds/hosts.py`, and made from it: quotas go into its `SimulatedHost`, hosts go around another host.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, exp, inf
from random import Random
from typing import Literal

from sanderling.worlds.hosts import Host, HostAnswer, HostQuota

REFUSALS = (429, 503)
Outcome = Literal[500, 503, "reset", "silence"]


@dataclass(slots=True)
class LayeredQuota:
    """Several quotas, one behind the other: what an outer one refuses does not count for those behind it."""

    layers: Sequence[HostQuota]

    def admits(self, now: float) -> bool:
        """Whether all of them have room."""
        return all(layer.admits(now) for layer in self.layers)


@dataclass(slots=True)
class ChangingQuota:
    """One quota after the other, each from its instant on: [(0, quota), (200, other), ...]."""

    plan: Sequence[tuple[float, HostQuota]]

    def admits(self, now: float) -> bool:
        """Whether the one that holds now has room."""
        return next(quota for start, quota in reversed(self.plan) if now >= start).admits(now)


@dataclass(slots=True)
class SharedQuota:
    """A quota that others draw on as well: `rate` requests a second, at random instants."""

    quota: HostQuota
    rng: Random
    rate: float
    next_other: float = 0.0

    def admits(self, now: float) -> bool:
        """Whether there is room after what the others have taken until now."""
        while self.next_other <= now:
            self.quota.admits(self.next_other)
            self.next_other += self.rng.expovariate(self.rate)
        return self.quota.admits(now)


@dataclass(slots=True)
class SmoothedWindowQuota:
    """A sliding window as large gateways count it: this window, and the last one by the share that still reaches in."""

    limit: int
    seconds: float
    window: int = -1
    used: int = 0
    used_before: int = 0

    def admits(self, now: float) -> bool:
        """Whether the two together leave room."""
        window, into = divmod(now, self.seconds)
        if (number := int(window)) != self.window:
            self.used_before = self.used if number == self.window + 1 else 0
            self.window, self.used = number, 0
        if self.used_before * (1 - into / self.seconds) + self.used + 1 > self.limit:
            return False
        self.used += 1
        return True


@dataclass(slots=True)
class StrictWindowQuota:
    """`limit` requests in any `seconds`, the refused ones counted too: whoever goes on asking stays outside."""

    limit: int
    seconds: float
    asked: deque[float] = field(default_factory=deque)

    def admits(self, now: float) -> bool:
        """Whether fewer than `limit` were asked in the last `seconds`."""
        while self.asked and self.asked[0] <= now - self.seconds:
            self.asked.popleft()
        self.asked.append(now)
        return len(self.asked) <= self.limit


def draw_plan(rng: Random, bounds: tuple[float, float], every: float, until: float) -> list[tuple[float, float]]:
    """A plan for `steps`: a value between two bounds, drawn anew each `every` seconds."""
    return [(number * every, rng.uniform(*bounds)) for number in range(ceil(until / every))]


@dataclass(slots=True)
class QueueHost:
    """A server that does one thing at a time, with room for so many: the next one is turned away without a word.

    `strain` is what each request beyond `healthy` adds to the work of the next, as a share: a host that thrashes gets
    less done the more is asked of it.
    """

    rng: Random
    work: float  # seconds for each request
    room: float = inf  # requests in the queue, the one at work among them
    vary: float = 0.0  # the work differs by up to this share
    network: float = 0.075
    spread: float = 0.35
    refusal: int = 503
    healthy: float = inf
    strain: float = 0.0
    done_at: deque[float] = field(default_factory=deque)

    def ask(self, now: float) -> HostAnswer:
        """What a request that is sent at `now` gets."""
        travel = self.network * exp(self.rng.gauss(0, self.spread))
        while self.done_at and self.done_at[0] <= now:
            self.done_at.popleft()
        queued = len(self.done_at)
        if queued >= self.room:
            return HostAnswer(self.refusal, travel / 4)
        work = (
            self.work * (1 + self.vary * self.rng.uniform(-1, 1)) * (1 + self.strain * max(0.0, queued - self.healthy))
        )
        done = (self.done_at[-1] if queued else now) + work
        self.done_at.append(done)
        return HostAnswer(200, travel + done - now)


@dataclass(slots=True)
class BanningHost:
    """Whoever is refused `refusals` times in `within` seconds is turned away for `ban` seconds, whatever the quota."""

    host: Host
    refusals: int = 10
    within: float = 60.0
    ban: float = 60.0
    status: int = 429
    refused: deque[float] = field(default_factory=deque)
    banned_until: float = 0.0

    def ask(self, now: float) -> HostAnswer:
        """What a request that is sent at `now` gets."""
        answer = self.host.ask(now)
        if now < self.banned_until:
            return HostAnswer(self.status, answer.latency)
        if answer.status in REFUSALS:
            self.refused.append(now)
            while self.refused[0] <= now - self.within:
                self.refused.popleft()
            if len(self.refused) >= self.refusals:
                self.banned_until = now + self.ban
                self.refused.clear()
        return answer


@dataclass(slots=True)
class LyingHost:
    """After a refusal it stays closed for `closed` seconds, and says something else in its Retry-After."""

    host: Host
    closed: float
    says: float | None
    opens_at: float = 0.0

    def ask(self, now: float) -> HostAnswer:
        """What a request that is sent at `now` gets."""
        answer = self.host.ask(now)
        if now >= self.opens_at:
            if answer.status not in REFUSALS:
                return answer
            self.opens_at = now + self.closed
        return HostAnswer(429, answer.latency, self.says)


@dataclass(slots=True)
class OnceRefusingHost:
    """Refuses one request, the `which`th, and no other: a deployment, somebody else's burst."""

    host: Host
    which: int = 1
    retry_after: float | None = 1.0
    asked: int = 0

    def ask(self, now: float) -> HostAnswer:
        """What a request that is sent at `now` gets."""
        self.asked += 1
        answer = self.host.ask(now)
        return HostAnswer(429, answer.latency / 4, self.retry_after) if self.asked == self.which else answer


@dataclass(slots=True)
class OutageHost:
    """Well until `start` and again from `end` on; between them every request has the same outcome."""

    host: Host
    start: float
    end: float
    outcome: Outcome = 503
    latency: float = 0.1  # of what is answered meanwhile

    def ask(self, now: float) -> HostAnswer:
        """What a request that is sent at `now` gets."""
        if not self.start <= now < self.end:
            return self.host.ask(now)
        if self.outcome == "silence":
            return HostAnswer(0, inf, error="no answer")
        if self.outcome == "reset":
            return HostAnswer(0, self.latency, error="connection reset")
        return HostAnswer(self.outcome, self.latency)
