"""One host, or one key, domain or address that hosts share: all that decides when a request may leave.

It reads no clock.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec

from sanderling.clock import Timer
from sanderling.limit.breaker import Breaker, State
from sanderling.limit.bucket import Bucket
from sanderling.limit.pace import LEASE, Pace, is_failure, is_refusal
from sanderling.limit.rules import LONGEST_WAIT, LimitOptions
from sanderling.outcome import Code, Outcome

if TYPE_CHECKING:
    from sanderling.limit.queue import Waiter

KINDS = ("key", "domain", "address")  # of what hosts share: `key/maps`, `domain/example.org`; no host has a slash
# Outcomes of requests that were not sent, or that we ended ourselves: they teach nothing about the host.
NOT_SENT = frozenset({Code.DEFERRED, Code.REFUSED})
NOTHING_LEARNED = NOT_SENT | {Code.CANCELLED}


FAILING = 1000  # items that are known to fail
BUSY = (503, 529)  # a new item that ends so may have met a limit


class Saved(msgspec.Struct, omit_defaults=True, array_like=True):
    """What must not be forgotten of a scope that is evicted, or when the program ends. Instants are the limiter's."""

    not_before: float = -inf
    open_until: float = -inf
    openings: int = 0  # of its circuit in a row; 0 if it is closed
    answered: bool = False
    cap: tuple[float, str] | None = None
    pace: dict[str, Any] = {}

    @property
    def silent_until(self) -> float:
        """When it may be requested again."""
        return max(self.not_before, self.open_until)


class Scope:
    """The state of one host, or of what hosts share. What is taken here is ended once, by `put_back` or by `end`."""

    __slots__ = (
        "breaker",
        "cap",
        "failing",
        "inflight",
        "name",
        "not_before",
        "options",
        "pace",
        "queue",
        "refused",
        "requests",
        "timer",
        "used_at",
        "wanted",
    )

    def __init__(self, name: str, options: LimitOptions, pace: Pace, breaker: Breaker) -> None:
        self.name = name
        self.options = options
        self.pace = pace
        self.breaker = breaker
        self.not_before = -inf  # by Retry-After
        self.cap: tuple[Bucket, str] | None = None  # a rate that somebody asked us not to exceed, and who
        self.requests = 0
        self.refused = 0
        self.inflight = 0
        self.used_at = -inf
        self.failing: set[int] = set()  # hashes of items that failed last
        self.queue: deque[Waiter[Any]] | None = None
        self.wanted = 0  # callers who wait here, or on their way to here
        self.timer: tuple[Timer, float] | None = None  # and when it fires

    def __repr__(self) -> str:
        return f"<Scope {self.name}, {self.rate:g} a second, {self.breaker.state}>"

    def ready_at(self, now: float) -> float:
        """When the next request may leave; at `now` or earlier if it may leave now."""
        ready = self.pace.ready_at(now)
        ready = max(ready, self.not_before)
        if self.cap is not None:
            ready = max(ready, self.cap[0].ready)
        breaker = self.breaker
        if breaker.state is not State.CLOSED:
            if breaker.rest(now):
                self.pace.circuit_moved(now, State.HALF_OPEN)
                ready = max(ready, self.pace.ready_at(now))
            ready = max(ready, breaker.ready_at(now))
        return ready

    @property
    def rate(self) -> float:
        """Requests a second that are allowed now."""
        return self.pace.rate if self.cap is None else min(self.pace.rate, self.cap[0].rate)

    def take(self, now: float) -> bool:
        """A request leaves; whether it is a probe."""
        self.used_at = now
        self.requests += 1
        self.inflight += 1
        probing = self.pace.probing
        self.pace.take(now)
        if self.cap is not None:
            self.cap[0].take(now)
        return self.breaker.take(now, LEASE) or probing

    def put_back(self, now: float, sent_at: float, generation: int, number: int) -> None:
        """The `number`th request did not leave: the next may leave in its place.

        Only if it was the last one. The time of an earlier one is over, and giving it again would make a burst.
        """
        if number != self.requests:
            self.end(now, sent_at, generation)
            return
        self.requests -= 1
        self.inflight -= 1
        self.breaker.end_probe(sent_at, LEASE, generation)
        self.pace.put_back(now, sent_at)
        if self.cap is not None:
            self.cap[0].put_back()

    def end(self, now: float, sent_at: float, generation: int) -> None:
        """A permit has ended, with or without a response."""
        self.inflight -= 1
        if self.breaker.state is State.HALF_OPEN:
            self.breaker.end_probe(sent_at, LEASE, generation)
        self.pace.end(now, sent_at)

    def learn(
        self,
        now: float,
        sent_at: float,
        generation: int,
        outcome: Outcome,
        latency: float,
        item: Hashable | None,
        *,
        of_host: bool,
    ) -> None:
        """Take in a response to a request that left in that generation of the circuit."""
        if not (0 < latency < inf):
            latency = 0.0
        refused, failure = is_refusal(outcome), is_failure(outcome)
        self.refused += refused
        wait = outcome.retry_after or 0.0
        if wait:
            self.wait_until(now + min(wait, LONGEST_WAIT))
        if failure and self.breaker.careful and self._fails_again(item) and outcome.status in BUSY and not wait:
            outcome = replace(outcome, status=500)  # an item's own fault, and no word on our rate
        failed = self.pace.learn(now, sent_at, outcome, latency)
        if wait and (refused or failure):
            return  # the host steers us, which is neither a success nor a failure
        if failed:
            moved = self.breaker.fail(now, generation, item, of_host=of_host or not outcome.sent)
        else:
            moved = self.breaker.succeed(now, generation)
        if moved:
            self.breaker.hold(self.not_before)
            self.pace.circuit_moved(now, self.breaker.state)

    def _fails_again(self, item: Hashable | None) -> bool:
        """Whether this item has failed before, as far as is remembered."""
        if item is None:
            return False
        fails_again = hash(item) in self.failing
        if len(self.failing) >= FAILING:
            self.failing.clear()
        self.failing.add(hash(item))
        return fails_again

    def wait_until(self, instant: float) -> None:
        """Send nothing before that; an earlier order is never shortened."""
        self.not_before = max(self.not_before, instant)
        self.breaker.hold(self.not_before)

    def set_cap(self, rps: float | None, why: str, now: float) -> None:
        """Never exceed `rps`; None lifts it."""
        if rps is None:
            self.cap = None
        elif self.cap is None:
            self.cap = Bucket(rps, 1.0, now), why
            self.cap[0].ready = max(now, self.used_at + 1 / rps)
        else:
            self.cap[0].set_rate(rps, 1.0, now)
            self.cap = self.cap[0], why

    def is_idle(self, now: float, seconds: float) -> bool:
        """Whether nobody has requested it for so long, or waits for it. A permit that was lost counts for a while."""
        idle = now - self.used_at
        if idle < seconds or self.wanted or (self.inflight and idle < max(seconds, 10 * LEASE)):
            return False
        # Else it would be requested earlier for having been evicted: its new bucket is full.
        return idle * self.rate >= self.options.token_bucket_capacity and self.pace.ready_at(now) <= now

    def save(self, now: float) -> Saved | None:
        """What must not be forgotten, for `restore`. None if nothing."""
        is_open = self.breaker.state is not State.CLOSED
        cap, pace = None if self.cap is None else (self.cap[0].rate, self.cap[1]), self.pace.save()
        if self.not_before <= now and not (is_open or cap or pace):
            return None
        return Saved(
            self.not_before,
            self.breaker.until if is_open else -inf,
            max(1, self.breaker.openings) if is_open else 0,
            is_open and self.breaker.answered,
            cap,
            pace,
        )

    def restore(self, saved: Saved, now: float) -> None:
        """Take up an earlier life."""
        self.wait_until(saved.not_before)
        if saved.openings:
            self.breaker.reopen(saved.open_until, saved.openings, answered=saved.answered)
            self.pace.circuit_moved(now, State.OPEN)
        if saved.cap is not None:
            self.set_cap(*saved.cap, now)
        if saved.pace:
            self.pace.restore(saved.pace, now)
