"""Failures 01, 02 and 16 of the table in docs/limiter.md: waiters are served in turn, and no wait saves up a burst."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest
from driven import BOTH, FAST, HOST, Driven, Strategy, converse, limiter_on

from sanderling.clock import Timer
from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.hosts import BucketQuota, SimulatedHost, steady


class CountingClock(LoopClock):
    """Counts the calls it was asked to make, and those it made."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = self.fired = 0

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        def fire() -> None:
            self.fired += 1
            callback()

        self.armed += 1
        return super().call_later(seconds, fire)


async def served_in_order(limiter: Limiter, waiters: int) -> list[int]:
    served: list[int] = []

    async def wait(number: int) -> None:
        await limiter.acquire(HOST)
        served.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(waiters):
            group.create_task(wait(number))
    return served


def test_01_waiters_are_served_in_order_without_a_herd() -> None:
    async def main() -> tuple[list[int], CountingClock]:
        clock = CountingClock()
        return await served_in_order(limiter_on(clock), 200), clock

    served, clock = run_virtual(main())

    assert served == list(range(200))
    assert clock.armed == clock.fired == 199, "one timer and one wake-up for each but the first, who need not wait"


def test_01_answers_that_move_the_rate_wake_nobody_needlessly() -> None:
    async def ask(limiter: Limiter, clock: LoopClock) -> None:
        async with limiter.attempt(HOST) as attempt:
            await clock.sleep(0.03)  # no multiple of an interval: of two that fall due at once, rounding decides
            attempt.report(200)

    async def main() -> CountingClock:
        clock = CountingClock()
        limiter = limiter_on(clock, LimiterRules(pace=FAST))
        async with asyncio.TaskGroup() as group:
            for _ in range(200):
                group.create_task(ask(limiter, clock))
        return clock

    clock = run_virtual(main())

    assert clock.fired <= 200


def test_01_a_penalty_that_comes_while_they_wait_keeps_the_order() -> None:
    async def main() -> list[int]:
        limiter = limiter_on(LoopClock())
        permit = await limiter.acquire(HOST)
        asyncio.get_running_loop().call_later(1.0, limiter.feedback, permit, Feedback(429, 0.1, retry_after=30))
        return await served_in_order(limiter, 20)

    served = run_virtual(main())

    assert served == list(range(20))


@BOTH
@pytest.mark.parametrize(("rate", "at_once"), [(0.25, 1), (2, 1), (20, 1), (100, 5), (1000, 10)])
def test_02_no_burst_after_idle(strategy: Strategy, rate: float, at_once: int) -> None:
    """Never more than a twentieth of a second's worth, and never more than `burst`."""
    pace = PaceRules(initial_rps=rate, max_rps=1000, burst=10)
    driven = Driven(LimiterRules(pace=pace, strategy=strategy))
    driven.take_all()

    driven.clock.advance(10_000)

    assert at_once - (at_once > 5) <= len(driven.take_all()) <= at_once, "up to rounding"


@BOTH
def test_02_no_burst_after_an_open_circuit(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=8), strategy=strategy))
    driven.trip()

    driven.clock.advance(driven.view().not_before + 1000)

    for _ in range(3):
        (probe,) = driven.take_all()
        driven.report(probe)
        driven.clock.advance(100)
    assert driven.view().state == "closed"
    assert len(driven.take_all()) == 1


@BOTH
def test_02_no_burst_after_retry_after(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=100, max_rps=100), strategy=strategy))

    driven.ask(429, retry_after=600)
    driven.wait_until(driven.limiter.ready_at(HOST))

    assert 600.1 <= driven.clock.now() < 600.2
    assert len(driven.take_all()) == 1


def test_02_after_a_long_silence_the_governor_knocks_gently_and_remembers_the_ceiling() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    host = SimulatedHost(Random(1), BucketQuota(steady(40), 40))
    converse(driven, host.ask, 120)
    before = driven.view()
    assert before.rate > 30

    driven.clock.advance(600)
    driven.ask()

    assert driven.view().rate == pytest.approx(before.rate / 4, rel=0.05)
    assert driven.view().ceiling == before.ceiling


class Want(NamedTuple):
    """Someone who stands in line."""

    name: str
    job: str = ""
    cost: float = 1.0


async def order_of(limiter: Limiter, wanted: list[Want]) -> list[str]:
    """Let them stand in line one after the other; their names in the order they were served."""
    served: list[str] = []

    async def wait(want: Want) -> None:
        await limiter.acquire(HOST, job=want.job, cost=want.cost)
        served.append(want.name)

    async with asyncio.TaskGroup() as group:
        for want in wanted:
            group.create_task(wait(want))
    return served


def test_16_a_waiter_that_wants_much_is_not_starved_by_those_who_want_little() -> None:
    async def barge(limiter: Limiter) -> None:
        while True:
            await asyncio.sleep(0.01)
            assert limiter.try_acquire(HOST) is None

    async def main() -> tuple[list[str], float]:
        limiter = limiter_on(LoopClock(), LimiterRules(pace=PaceRules(initial_rps=8)))
        barger = asyncio.create_task(barge(limiter))
        served = await order_of(limiter, [*[Want("small")] * 5, Want("large", cost=5), *[Want("small")] * 50])
        barger.cancel()
        return served, asyncio.get_running_loop().time()

    served, seconds = run_virtual(main())

    assert served.index("large") == 5
    assert seconds == pytest.approx((5 + 5 + 50 - 1) / 8), "it pays for five, after it has left"


def test_16_two_jobs_share_a_host_turn_by_turn() -> None:
    async def main() -> list[str]:
        limiter = limiter_on(LoopClock())
        return await order_of(limiter, [*[Want("a", job="a")] * 10, *[Want("b", job="b")] * 4])

    served = run_virtual(main())

    assert "".join(served) in ("aabababab" + "a" * 5, "abababab" + "a" * 6)


def test_16_a_job_that_wants_much_gets_no_more_than_one_that_wants_little() -> None:
    async def main() -> list[str]:
        limiter = limiter_on(LoopClock())
        return await order_of(limiter, [*[Want("A", "large", 4.0)] * 10, *[Want("b", "small")] * 40])

    served = run_virtual(main())

    halfway = Counter(served[: len(served) // 2])
    assert halfway["b"] == pytest.approx(4 * halfway["A"], abs=5)
