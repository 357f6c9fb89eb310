"""Hosts that limit their callers, as arithmetic: ask at an instant, get the response and how long it took.

Deterministic for a seed; no clock and no sockets. A quota says whether one more request is allowed; a host puts a
network, a queue, failures or an outage around it. The benchmark's rows of such hosts are in `bench/limiter_rows.py`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log
from random import Random
from typing import NamedTuple, Protocol

REFUSALS = (429, 503)
Plan = Sequence[tuple[float, float]]  # [(0, 20), (200, 6)]: 20 a second, from second 200 on 6


class Reply(NamedTuple):
    """A response: status, seconds it took, Retry-After in seconds. Without a response: status 0 and the error."""

    status: int
    latency: float
    retry_after: float | None = None
    error: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Quota(Protocol):
    def admits(self, now: float) -> bool:
        """Whether one more request at `now` is allowed; counts it if so."""


class Host(Protocol):
    def request(self, now: float) -> Reply:
        """The response to a request that is sent at `now`; its latency is `inf` if there never is one."""


def at(plan: Plan, now: float) -> float:
    """The value of `plan` at `now`."""
    return next(value for start, value in reversed(plan) if now >= start)


# Quotas.


@dataclass(slots=True)
class Bucket:
    """A token bucket: `plan` requests a second, `depth` saved up at most."""

    plan: Plan
    depth: float
    tokens: float = inf
    asof: float = 0.0

    def admits(self, now: float) -> bool:
        self.tokens = min(self.depth, self.tokens + (now - self.asof) * at(self.plan, now))
        self.asof = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


def bucket(rate: float, depth: float) -> Bucket:
    return Bucket([(0.0, rate)], depth)


@dataclass(slots=True)
class FixedWindow:
    """`limit` requests in each window; a window starts `phase` seconds after a multiple of its length."""

    limit: int
    seconds: float
    phase: float = 0.0
    window: int | None = None
    used: int = 0

    def admits(self, now: float) -> bool:
        window = int((now - self.phase) // self.seconds)
        if window != self.window:
            self.window, self.used = window, 0
        if self.used >= self.limit:
            return False
        self.used += 1
        return True

    def left(self, now: float) -> tuple[int, float]:
        """Requests left in this window, and seconds until the next one starts."""
        into = (now - self.phase) % self.seconds
        return self.limit - self.used, self.seconds - into


@dataclass(slots=True)
class SlidingWindow:
    """`limit` served requests in any `seconds`. With `strict`, refused requests count too."""

    limit: int
    seconds: float
    strict: bool = False
    counted: deque[float] = field(default_factory=deque)

    def admits(self, now: float) -> bool:
        while self.counted and self.counted[0] <= now - self.seconds:
            self.counted.popleft()
        room = len(self.counted) < self.limit
        if room or self.strict:
            self.counted.append(now)
        return room


@dataclass(slots=True)
class SmoothedWindow:
    """A sliding window as gateways count it: this window, and of the last one the share that still reaches in."""

    limit: int
    seconds: float
    window: int = -1
    used: int = 0
    used_before: int = 0

    def admits(self, now: float) -> bool:
        number, into = divmod(now, self.seconds)
        if int(number) != self.window:
            self.used_before = self.used if int(number) == self.window + 1 else 0
            self.window, self.used = int(number), 0
        if self.used_before * (1 - into / self.seconds) + self.used + 1 > self.limit:
            return False
        self.used += 1
        return True


@dataclass(slots=True)
class Layers:
    """Several quotas one behind the other: what an outer one refuses is not counted by the inner ones."""

    quotas: Sequence[Quota]

    def admits(self, now: float) -> bool:
        return all(quota.admits(now) for quota in self.quotas)


@dataclass(slots=True)
class Changing:
    """One quota after the other, each from its instant on."""

    quotas: Sequence[tuple[float, Quota]]

    def admits(self, now: float) -> bool:
        return next(quota for start, quota in reversed(self.quotas) if now >= start).admits(now)


@dataclass(slots=True)
class Shared:
    """A quota that other clients use too: `rate` requests a second at random instants."""

    quota: Quota
    rng: Random
    rate: float
    next_other: float = 0.0

    def admits(self, now: float) -> bool:
        while self.next_other <= now:
            self.quota.admits(self.next_other)
            self.next_other += self.rng.expovariate(self.rate)
        return self.quota.admits(now)


@dataclass(slots=True)
class Shedding:
    """Measures the rate of all requests over about `seconds`; above `rate` it refuses the excess at random."""

    rate: float
    rng: Random
    seconds: float = 1.0
    counted: float = 0.0
    asof: float = 0.0

    def admits(self, now: float) -> bool:
        self.counted = self.counted * exp((self.asof - now) / self.seconds) + 1
        self.asof = now
        return self.rng.random() * self.counted / self.seconds < self.rate


# Hosts.


@dataclass(slots=True)
class Server:
    """A quota, then failures at random, then a queue of one worker; a network of lognormal latency around them."""

    rng: Random
    quota: Quota | None = None
    network: float = 0.1  # the median, there and back
    spread: float = 0.35  # sigma of the lognormal: the 95th percentile is 1.8 times the median
    work: Callable[[float], float] | None = None  # seconds of work a request; None: no queue
    random_work: bool = False  # exponential instead of constant
    retry_after: float | None = None
    refusal: int = 429
    refusal_time: float = 0.25  # of the network's latency: a refusal comes back early, unless it is 1 or more
    failing: Plan = ((0.0, 0.0),)  # the share of requests that fail
    failure: int = 500
    headers: Callable[[float], tuple[tuple[str, str], ...]] = lambda _now: ()
    free_at: float = 0.0

    def request(self, now: float) -> Reply:
        travel = self.network * exp(self.rng.gauss(0, self.spread))
        if self.quota is not None and not self.quota.admits(now):
            return Reply(self.refusal, travel * self.refusal_time, self.retry_after, headers=self.headers(now))
        if self.rng.random() < at(self.failing, now):
            return Reply(self.failure, travel, headers=self.headers(now))
        if self.work is None:
            return Reply(200, travel, headers=self.headers(now))
        work = self.work(now) * (-log(1.0 - self.rng.random()) if self.random_work else 1.0)
        self.free_at = max(self.free_at, now) + work
        return Reply(200, travel + self.free_at - now, headers=self.headers(now))


@dataclass(slots=True)
class BoundedQueue:
    """One worker with room for so many requests; the next one is refused.

    Each request beyond `healthy` adds the share `strain` to the work of the next: a host that thrashes does less the
    more it is asked.
    """

    rng: Random
    work: float
    room: float = inf
    vary: float = 0.0  # the work differs by up to this share
    network: float = 0.075
    healthy: float = inf
    strain: float = 0.0
    done_at: deque[float] = field(default_factory=deque)

    def request(self, now: float) -> Reply:
        travel = self.network * exp(self.rng.gauss(0, 0.35))
        while self.done_at and self.done_at[0] <= now:
            self.done_at.popleft()
        queued = len(self.done_at)
        if queued >= self.room:
            return Reply(503, travel / 4)
        work = self.work * (1 + self.vary * self.rng.uniform(-1, 1))
        done = (self.done_at[-1] if queued else now) + work * (1 + self.strain * max(0.0, queued - self.healthy))
        self.done_at.append(done)
        return Reply(200, travel + done - now)


@dataclass(slots=True)
class Banning:
    """After `refusals` refusals within `within` seconds everything is refused for `ban` seconds."""

    host: Host
    refusals: int = 10
    within: float = 60.0
    ban: float = 60.0
    status: int = 429
    refused: deque[float] = field(default_factory=deque)
    banned_until: float = 0.0

    def request(self, now: float) -> Reply:
        reply = self.host.request(now)
        if now < self.banned_until:
            return Reply(self.status, reply.latency)
        if reply.status in REFUSALS:
            self.refused.append(now)
            while self.refused[0] <= now - self.within:
                self.refused.popleft()
            if len(self.refused) >= self.refusals:
                self.banned_until = now + self.ban
                self.refused.clear()
        return reply


@dataclass(slots=True)
class Lying:
    """After a refusal closed for `closed` seconds, while its Retry-After says `says`."""

    host: Host
    closed: float
    says: float | None
    status: int = 429
    opens_at: float = 0.0

    def request(self, now: float) -> Reply:
        reply = self.host.request(now)
        if now >= self.opens_at:
            if reply.status not in REFUSALS:
                return reply
            self.opens_at = now + self.closed
        return Reply(self.status, reply.latency, self.says)


@dataclass(slots=True)
class RefusesOnce:
    """Refuses its `which`th request and no other."""

    host: Host
    which: int
    retry_after: float
    requests: int = 0

    def request(self, now: float) -> Reply:
        self.requests += 1
        reply = self.host.request(now)
        return Reply(429, reply.latency / 4, self.retry_after) if self.requests == self.which else reply


@dataclass(slots=True)
class Faulty:
    """Of `every` requests one ends with a bare 503, however many are sent: in order, `bunch` of them in a row."""

    host: Host
    every: int
    bunch: int = 1
    requests: int = 0

    def request(self, now: float) -> Reply:
        self.requests += 1
        reply = self.host.request(now)
        bad = self.requests // self.bunch % self.every == self.every - 1
        return Reply(503, reply.latency) if bad else reply


@dataclass(slots=True)
class Outage:
    """From `start` to `end` every request ends alike: 500, 503, "reset" or "silence"."""

    host: Host
    start: float
    end: float
    ending: int | str

    def request(self, now: float) -> Reply:
        if not self.start <= now < self.end:
            return self.host.request(now)
        if self.ending == "silence":
            return Reply(0, inf, error="no response")
        if self.ending == "reset":
            return Reply(0, 0.1, error="connection reset")
        return Reply(int(self.ending), 0.1)
