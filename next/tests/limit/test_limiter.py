"""Permits: who gets one and when, over hosts and over what hosts share."""

import asyncio

import pytest

from sanderling.clock import FakeClock, LoopClock, run_virtual
from sanderling.limit import CircuitOpen, Limiter
from sanderling.limit.rules import LimitOptions
from sanderling.outcome import Code, Outcome

HOST = "host.example"
OK = Outcome(Code.OK, 200)


def limiter(clock: FakeClock | LoopClock, **fields: object) -> Limiter:
    return Limiter(LimitOptions(**fields), clock=clock, policy="aimd")


def test_callers_are_served_in_the_order_they_came_and_none_is_early() -> None:
    async def play() -> list[tuple[int, float]]:
        clock = LoopClock()
        limits = limiter(clock, initial_rps=2, max_rps=2, token_bucket_capacity=1)
        served = []

        async def call(number: int) -> None:
            permit = await limits.acquire(HOST)
            served.append((number, clock.now()))
            permit.report(OK, latency=0.1)

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(call(number))
        return served

    assert run_virtual(play()) == [(number, number / 2) for number in range(5)]


def test_who_waits_is_told_when_the_circuit_opens() -> None:
    async def play() -> CircuitOpen:
        limits = limiter(LoopClock(), token_bucket_capacity=5, initial_rps=0.25)
        permits = [await limits.acquire(HOST) for _ in range(5)]
        waiting = asyncio.create_task(limits.acquire(HOST))
        await asyncio.sleep(1)
        for permit in permits:
            permit.report(Outcome(Code.HOST_UNAVAILABLE, 503))
        with pytest.raises(CircuitOpen) as caught:
            await waiting
        assert limits.is_open(HOST)
        assert limits.snapshot().denied == 1
        return caught.value

    error = run_virtual(play())

    assert (error.host, error.until) == (HOST, 16.0)


@pytest.mark.parametrize("spelling", ["Example.ORG", "example.org.", "example.org:443", "example.org:80"])
def test_spellings_of_one_host_share_its_pace(spelling: str) -> None:
    limits = limiter(FakeClock(), token_bucket_capacity=1)

    assert limits.try_acquire("example.org") is not None
    assert limits.try_acquire(spelling) is None


def test_a_circuit_that_may_be_probed_is_ready_before_who_asks_looked_at_the_clock() -> None:
    class Moving(FakeClock):
        """Each look takes time, as on every machine."""

        def now(self) -> float:
            self.advance(1e-6)
            return super().now()

    clock = Moving()
    limiter = Limiter(clock=clock, max_rps=8)
    for item in range(5):
        permit = limiter.try_acquire("a.example")
        if permit is not None:
            permit.report(Outcome(Code.HOST_UNAVAILABLE, 500), latency=0.1, item=item)
        clock.advance(5)
    while not limiter.is_open("a.example"):
        permit = limiter.try_acquire("a.example")
        assert permit is not None
        permit.report(Outcome(Code.HOST_UNAVAILABLE, 500), latency=0.1, item=clock.now())
        clock.advance(5)
    clock.advance(60)

    before = clock.now()

    assert limiter.ready_at("a.example") <= before
