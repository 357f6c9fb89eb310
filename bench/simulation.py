"""A closed loop without a clock: workers ask a simulated host as soon as a controller lets them.

Deterministic for a seed, and fast: ten minutes of a host take a fraction of a second.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from math import inf
from random import Random
from typing import Protocol

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules, Permit
from sanderling.task import Blame
from sanderling.testing import FakeClock
from sanderling.worlds.hosts import Host, HostAnswer

SECONDS, WORKERS = 600.0, 32
PACE = PaceRules.up_to(500)
PATIENCE, PROBE_PATIENCE = 30.0, 10.0  # seconds until the client gives a request up


class Controller(Protocol):
    """What decides when the next request may leave."""

    def ready_at(self, now: float) -> float:
        """The earliest instant for the next request, as things stand."""

    def send(self, now: float) -> object:
        """A request leaves; a token for its answer."""

    def done(self, token: object, now: float, answer: HostAnswer) -> None:
        """Its answer came."""


class Ours:
    """The real limiter, through its public API, on a clock that the simulation moves."""

    def __init__(self, strategy: str, seed: int, min_rps: float | None = None) -> None:
        pace = PACE if min_rps is None else replace(PACE, min_rps=min_rps)
        rules = LimiterRules(pace=pace, strategy=strategy)  # type: ignore[arg-type]
        self._clock = FakeClock()
        self._limiter = Limiter(rules, clock=self._clock, rng=Random(seed))

    def ready_at(self, now: float) -> float:
        """Ask the limiter."""
        self._clock.advance_to(now)
        return self._limiter.ready_at("host.example")

    def send(self, now: float) -> object:
        """Take the permit that `ready_at` promised."""
        self._clock.advance_to(now)
        permit = self._limiter.try_acquire("host.example")
        assert permit is not None
        return permit

    def done(self, token: object, now: float, answer: HostAnswer) -> None:
        """Report it."""
        assert isinstance(token, Permit)
        self.report(token, now, answer)

    def report(self, permit: Permit, now: float, answer: HostAnswer, blame: Blame | None = None) -> None:
        """Tell the limiter what came of a permit."""
        self._clock.advance_to(now)
        feedback = Feedback(answer.status, answer.latency, answer.error, answer.retry_after, blame=blame)
        self._limiter.feedback(permit, feedback)


class OursNamed(Ours):
    """Ours, told which item each request is for; an item that failed is asked for again before any new one."""

    def __init__(self, strategy: str, seed: int, min_rps: float | None = None) -> None:
        super().__init__(strategy, seed, min_rps)
        self._new = count()
        self._failed = deque[Blame]()

    def send(self, now: float) -> object:
        """Take the permit, for an item."""
        return super().send(now), self._failed.popleft() if self._failed else Blame(next(self._new))

    def done(self, token: object, now: float, answer: HostAnswer) -> None:
        """Report it, and keep the item if it failed."""
        assert isinstance(token, tuple)
        permit, item = token
        if answer.status not in (200, 429):
            self._failed.append(Blame(item.item, item.failures + 1))
        self.report(permit, now, answer, item)


class Together:
    """Several controllers that know nothing of each other, at one host; the work goes to whoever may ask first."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        self._controllers = controllers

    def ready_at(self, now: float) -> float:
        """When the first of them may."""
        return min(each.ready_at(now) for each in self._controllers)

    def send(self, now: float) -> object:
        """It leaves from that one."""
        first = min(self._controllers, key=lambda each: each.ready_at(now))
        return first.send(now), first

    def done(self, token: object, now: float, answer: HostAnswer) -> None:
        """The answer goes to who asked."""
        assert isinstance(token, tuple)
        inner, sender = token
        sender.done(inner, now, answer)


@dataclass(slots=True)
class Result:
    """What came of a run. Instants are those of sending, for `served_at` and `refused_at` those of the answers."""

    failed: int = 0
    violations: int = 0  # requests sent before a Retry-After had passed
    sent_at: list[float] = field(default_factory=list)
    served_at: list[float] = field(default_factory=list)
    refused_at: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    @property
    def served(self) -> int:
        """How many were answered well."""
        return len(self.served_at)

    @property
    def rejects(self) -> float:
        """Refusals per hundred requests."""
        refused = len(self.refused_at)
        return 100 * refused / max(1, self.served + refused + self.failed)

    @property
    def peak(self) -> int:
        """The most requests that left in any second."""
        times = self.sent_at
        return max((bisect_left(times, at + 1, index) - index for index, at in enumerate(times)), default=0)

    def percentile(self, share: float) -> float:
        """Of the latencies of what was served, in seconds."""
        ordered = sorted(self.latencies or [0.0])
        return ordered[int(share * (len(ordered) - 1))]

    def served_between(self, start: float, end: float) -> int:
        """How many good answers came."""
        return bisect_left(self.served_at, end) - bisect_left(self.served_at, start)

    def first_at_rate(self, rate: float) -> float:
        """When so many requests had first left within one second; `inf` if never."""
        need = max(1, round(rate))
        times = self.sent_at
        return next((last for first, last in zip(times, times[need - 1 :], strict=False) if last - first <= 1), inf)

    def longest_gap(self, start: float, end: float) -> float:
        """The longest that no request left between two instants."""
        within = self.sent_at[bisect_left(self.sent_at, start) : bisect_right(self.sent_at, end)]
        return max(later - earlier for earlier, later in pairwise([start, *within, end]))

    def back_after(self, instant: float, rate: float, window: float = 10.0) -> float:
        """Seconds from `instant` until a whole window was served at `rate` a second or more; `inf` if none was."""
        times = self.served_at[bisect_left(self.served_at, instant) :]
        need = max(1, round(rate * window))
        ends = zip(times, times[need - 1 :], strict=False)
        return next((last - instant for first, last in ends if last - first <= window), inf)


def simulate(host: Host, controller: Controller, wanted: Callable[[float], float], seconds: float = SECONDS) -> Result:
    """Let the workers ask for so long. `wanted(now)` is when there is next something to ask: now, or later."""
    result, idle, now, not_before = Result(), WORKERS, 0.0, 0.0
    answers: list[tuple[float, int, object, HostAnswer]] = []
    order = count()
    while True:
        start = wanted(now)
        ready = max(start, controller.ready_at(now)) if idle else inf
        arrives = answers[0][0] if answers else inf
        if ready <= now:
            result.violations += now < not_before
            result.sent_at.append(now)
            token = controller.send(now)
            answer = _in_time(host.ask(now), token)
            heapq.heappush(answers, (now + answer.latency, next(order), token, answer))
            idle -= 1
        elif min(ready, arrives) >= seconds:
            break
        elif ready < arrives:
            now = ready
        else:
            now, _, token, answer = heapq.heappop(answers)
            idle += 1
            not_before = max(not_before, now + (answer.retry_after or 0.0))
            _count(result, now, answer)
            controller.done(token, now, answer)
    return result


def _in_time(answer: HostAnswer, token: object) -> HostAnswer:
    """What the client sees: it does not wait for ever, and least of all for a probe."""
    while isinstance(token, tuple):  # the permit and what else the controller must remember
        token = token[0]
    patience = PROBE_PATIENCE if isinstance(token, Permit) and token.probe else PATIENCE
    return answer if answer.latency <= patience else HostAnswer(0, patience, error="timed out")


def _count(result: Result, now: float, answer: HostAnswer) -> None:
    if answer.status in (429, 503):
        result.refused_at.append(now)
    elif answer.status == 200:
        result.served_at.append(now)
        result.latencies.append(answer.latency)
    else:
        result.failed += 1
