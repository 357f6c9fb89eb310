"""A limiter on a clock moved by hand or by the loop, and hosts asked in a closed loop: for the tests beside it."""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from itertools import count
from math import inf, nextafter
from random import Random
from typing import Literal, NamedTuple

import pytest

from sanderling.limit import CircuitOpen, Feedback, HostView, Limiter, LimiterRules, PaceRules, Permit, Scope
from sanderling.testing import FakeClock, LoopClock
from sanderling.worlds.hosts import HostAnswer

Strategy = Literal["governor", "aimd"]
BOTH = pytest.mark.parametrize("strategy", ["governor", "aimd"])
HOST = "host.example"
# The default of 8 a second at most would hide what a host allows.
FAST = PaceRules(initial_rps=5.0, max_rps=1000.0)


class Asked(NamedTuple):
    """One request: when it left, and what came of it."""

    at: float
    answer: HostAnswer


class Driven:
    """A limiter, its clock, and short words for what a caller does with both."""

    def __init__(self, rules: LimiterRules | None = None, *, now: float = 0.0, seed: int = 1) -> None:
        self.clock = FakeClock(now)
        self.limiter = Limiter(rules, clock=self.clock, rng=Random(seed))

    def wait_until(self, instant: float) -> None:
        self.clock.advance(instant - self.clock.now())
        while self.clock.now() < instant:  # by rounding
            self.clock.advance(nextafter(self.clock.now(), inf) - self.clock.now())

    def take(self, host: str = HOST) -> Permit:
        """A permit that is due this instant."""
        permit = self.limiter.try_acquire(host)
        assert permit is not None
        return permit

    def next(self, host: str = HOST) -> Permit:
        """The next permit, and the clock moved to when it is due."""
        self.wait_until(self.limiter.ready_at(host))
        return self.take(host)

    def take_all(self, host: str = HOST) -> list[Permit]:
        """Every permit that is due this instant."""
        return list(iter(lambda: self.limiter.try_acquire(host), None))

    def report(self, permit: Permit, status: int = 200, latency: float = 0.1, retry_after: float | None = None) -> None:
        self.limiter.feedback(permit, Feedback(status, latency, retry_after=retry_after))

    def ask(self, status: int = 200, latency: float = 0.1, retry_after: float | None = None, host: str = HOST) -> None:
        """One request from leave to answer; nobody else asks meanwhile."""
        permit = self.next(host)
        self.clock.advance(latency)
        self.report(permit, status, latency, retry_after)

    def trip(self, host: str = HOST, status: int = 500) -> None:
        """Failures until the circuit opens."""
        self.ask(status, host=host)
        for _ in range(4):
            if self.view(host).state != "open":
                self.ask(status, host=host)
        assert self.view(host).state == "open"

    def view(self, host: str = HOST) -> HostView:
        """What the snapshot shows of a host."""
        snapshot = self.limiter.snapshot(top=10_000)
        return next(view for view in snapshot.top if view.host == host)


def views(limiter: Limiter) -> list[HostView]:
    """What the snapshot shows of all hosts, and of all that they share."""
    snapshot = limiter.snapshot(top=10_000)
    return [*snapshot.top, *snapshot.shared]


def in_flight(driven: Driven, requests: int) -> list[Permit]:
    return [driven.next() for _ in range(requests)]


def open_seconds(driven: Driven, host: str = HOST) -> float:
    """Fail the probe, or as many requests as it takes; for how long the circuit then opens."""
    driven.trip(host)
    return driven.view(host).not_before


def prepared(driven: Driven, state: str) -> None:
    """Bring the host into a state."""
    match state:
        case "paced":
            driven.take()
        case "penalised":
            driven.ask(429, retry_after=77)
        case "open" | "half-open" | "probed":
            driven.trip()
            driven.clock.advance(0 if state == "open" else 400)
            if state == "probed":
                driven.take()
                driven.clock.advance(30.9)
        case "drained":
            driven.ask(429)
            driven.next()


def converse(
    driven: Driven,
    ask: Callable[[float], HostAnswer],
    seconds: float,
    workers: int = 32,
    until: Callable[[], bool] = lambda: False,
) -> list[Asked]:
    """Let workers ask the host as soon as the limiter lets them, for so long; everything that was asked."""
    asked, answers, order, idle = list[Asked](), list[tuple[float, int, Permit, HostAnswer]](), count(), workers
    clock, end = driven.clock, driven.clock.now() + seconds
    while clock.now() < end:
        ready = driven.limiter.ready_at(HOST) if idle else inf
        arrives = answers[0][0] if answers else inf
        if ready <= clock.now():
            answer = ask(clock.now())
            asked.append(Asked(clock.now(), answer))
            heapq.heappush(answers, (clock.now() + answer.latency, next(order), driven.take(), answer))
            idle -= 1
        elif ready < arrives:
            driven.wait_until(min(ready, end))
        else:
            arrives, _, permit, answer = heapq.heappop(answers)
            driven.wait_until(arrives)
            driven.report(permit, answer.status, answer.latency, answer.retry_after)
            idle += 1
            if until():
                break
    for _, _, permit, _ in answers:
        permit.release(sent=True)
    return asked


def limiter_on(clock: LoopClock, rules: LimiterRules | None = None) -> Limiter:
    return Limiter(rules, clock=clock, rng=Random(1))


async def crowd(limiter: Limiter, callers: int, scopes: Sequence[Scope] = ()) -> tuple[list[Permit], list[CircuitOpen]]:
    """Let so many ask at once; who got leave, and who was turned away."""
    passed, refused = list[Permit](), list[CircuitOpen]()

    async def call() -> None:
        try:
            passed.append(await limiter.acquire(HOST, scopes))
        except CircuitOpen as refusal:
            refused.append(refusal)

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(call())
    return passed, refused
