"""A closed loop without a clock: workers ask a simulated host as soon as a controller lets them.

Deterministic for a seed, and fast: ten minutes of a host take a fraction of a second.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import inf
from random import Random
from typing import Protocol

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules, Permit
from sanderling.testing import FakeClock
from sanderling.worlds.hosts import Answer, SimulatedHost

SECONDS, WORKERS = 600.0, 32


class Controller(Protocol):
    """What decides when the next request may leave."""

    def ready_at(self, now: float) -> float:
        """The earliest instant for the next request, as things stand."""

    def send(self, now: float) -> object:
        """A request leaves; a token for its answer."""

    def done(self, token: object, now: float, answer: Answer) -> None:
        """Its answer came."""


class Ours:
    """The real limiter, through its public API, on a clock that the simulation moves."""

    def __init__(self, strategy: str, seed: int) -> None:
        pace = PaceRules(initial_rps=5, min_rps=0.25, max_rps=1000)
        rules = LimiterRules(pace=pace, strategy=strategy)  # type: ignore[arg-type]
        self._clock = FakeClock()
        self._limiter = Limiter(rules, clock=self._clock, rng=Random(seed))

    def ready_at(self, now: float) -> float:
        """Ask the limiter."""
        self._clock.advance_to(now)
        return self._limiter.ready_at("host.example")

    def send(self, now: float) -> Permit:
        """Take the permit that `ready_at` promised."""
        self._clock.advance_to(now)
        permit = self._limiter.try_acquire("host.example")
        assert permit is not None
        return permit

    def done(self, token: object, now: float, answer: Answer) -> None:
        """Report it."""
        assert isinstance(token, Permit)
        self._clock.advance_to(now)
        feedback = Feedback(answer.status, answer.latency, retry_after=answer.retry_after)
        self._limiter.feedback(token, feedback)


@dataclass(slots=True)
class Result:
    """What came of ten minutes."""

    served: int = 0
    refused: int = 0
    failed: int = 0
    violations: int = 0  # requests sent before a Retry-After had passed
    latencies: list[float] | None = None

    def percentile(self, share: float) -> float:
        """Of the latencies of what was served, in seconds."""
        ordered = sorted(self.latencies or [0.0])
        return ordered[int(share * (len(ordered) - 1))]

    @property
    def rejects(self) -> float:
        """Refusals per hundred requests."""
        return 100 * self.refused / max(1, self.served + self.refused + self.failed)


def simulate(host: SimulatedHost, controller: Controller, wanted: Callable[[float], float]) -> Result:
    """Let the workers ask for SECONDS. `wanted(now)` is when there is next something to ask: now, or later."""
    result, idle, now, not_before = Result(latencies=[]), WORKERS, 0.0, 0.0
    answers: list[tuple[float, int, object, Answer]] = []
    order = count()
    while now < SECONDS:
        start = wanted(now)
        ready = max(start, controller.ready_at(now)) if idle else inf
        arrives = answers[0][0] if answers else inf
        if ready <= now:
            result.violations += now < not_before
            answer = host.ask(now)
            heapq.heappush(answers, (now + answer.latency, next(order), controller.send(now), answer))
            idle -= 1
        elif ready < arrives:
            now = ready
        else:
            now, _, token, answer = heapq.heappop(answers)
            idle += 1
            not_before = max(not_before, now + (answer.retry_after or 0.0))
            _count(result, answer)
            controller.done(token, now, answer)
    return result


def _count(result: Result, answer: Answer) -> None:
    if answer.status in (429, 503):
        result.refused += 1
    elif answer.status == 200:
        result.served += 1
        if result.latencies is not None:
            result.latencies.append(answer.latency)
    else:
        result.failed += 1
