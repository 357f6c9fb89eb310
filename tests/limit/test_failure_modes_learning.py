"""Failures 03 to 09 of the table in docs/limiter.md: what answers and their latencies teach about the rate."""

import asyncio
from collections import Counter
from random import Random
from statistics import median

import pytest
from driven import BOTH, FAST, HOST, Driven, Strategy, converse, in_flight, limiter_on

from sanderling.limit import BreakerRules, Limiter, LimiterRules, PaceRules
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.hosts import BucketQuota, HostAnswer, SimulatedHost, steady


def test_03_a_window_of_successes_raises_the_rate_once() -> None:
    pace = PaceRules(initial_rps=200, max_rps=1000, increase=0.25)
    driven = Driven(LimiterRules(pace=pace, strategy="aimd"))

    asked = converse(driven, lambda _now: HostAnswer(200, 0.001), 0.99)
    assert len(asked) > 100
    assert driven.view().rate == pytest.approx(200)

    converse(driven, lambda _now: HostAnswer(200, 0.001), 0.5)
    assert driven.view().rate == pytest.approx(200.25)


@pytest.mark.parametrize(("rate", "more"), [(30, 1.5), (100, 1.22)])
def test_03_the_governor_grows_once_a_window_too(rate: float, more: float) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=rate, max_rps=1000)))

    asked = converse(driven, lambda _now: HostAnswer(200, 0.001), 0.99)
    assert len(asked) > 0.9 * rate
    assert driven.view().rate == pytest.approx(rate)

    converse(driven, lambda _now: HostAnswer(200, 0.001), 0.1)
    assert driven.view().rate == pytest.approx(more * rate)


@pytest.mark.parametrize("status", [429, 503, 500])
def test_04_one_blip_with_32_in_flight_is_one_decrease(status: int) -> None:
    calm = BreakerRules(consecutive=1000)
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=8), breaker=calm, strategy="aimd"))

    for permit in in_flight(driven, 32):
        driven.report(permit, status)

    assert driven.view().rate == pytest.approx(4)


@pytest.mark.parametrize("status", [429, 503])
def test_04_one_blip_is_one_drain_for_the_governor(status: int) -> None:
    driven, other = Driven(LimiterRules(pace=FAST)), Driven(LimiterRules(pace=FAST))

    for each, refused in ((driven, 32), (other, 1)):
        permits = in_flight(each, 32)
        for permit in permits[:refused]:
            each.report(permit, status, retry_after=0.0)
        for permit in permits[refused:]:
            permit.release(sent=True)

    assert driven.view().rate == other.view().rate
    assert driven.limiter.ready_at(HOST) == pytest.approx(other.limiter.ready_at(HOST))


def test_04_a_request_sent_after_the_decrease_may_decrease_again() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=8), strategy="aimd"))
    driven.ask(429, retry_after=0.0)

    driven.ask(429, retry_after=0.0)

    assert driven.view().rate == pytest.approx(2)


def test_05_latency_is_judged_by_the_hosts_best_and_does_not_follow_the_overload() -> None:
    """Forty requests a second of work; a base that follows the queue lets the median latency grow eightfold."""
    driven = Driven(LimiterRules(pace=FAST))
    host = SimulatedHost(Random(1), network=0.075, service=steady(0.025))

    asked = converse(driven, host.ask, 300)

    half = [each.answer.latency for each in asked if each.at > 150]
    assert median(half) < 1.5 * 0.1
    assert len(half) > 0.7 * 40 * 150


def test_06_a_fast_refusal_never_enters_the_latency() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    for _ in range(10):
        driven.ask(200, latency=0.2)
    before = driven.view()

    for status in (429, 503, 500, 404):
        driven.ask(status, latency=0.001)

    assert (driven.view().latency, driven.view().p95) == (before.latency, before.p95)


@BOTH
def test_06_healthy_answers_are_not_judged_slow_by_the_speed_of_refusals(strategy: Strategy) -> None:
    calm = BreakerRules(consecutive=1000)
    rules = LimiterRules(pace=PaceRules(initial_rps=8), breaker=calm, strategy=strategy)
    driven = Driven(rules)
    for number in range(200):
        driven.ask(*((429, 0.001) if number % 8 == 0 else (200, 0.1)), retry_after=0.0)

    refused = driven.view().rate
    converse(driven, lambda _now: HostAnswer(200, 0.1), 30)

    assert driven.view().rate >= refused


@BOTH
def test_07_slowness_that_is_not_our_doing_does_not_starve_us(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=20, max_rps=40, min_rps=0.1), strategy=strategy))
    slow = Random(1)
    converse(driven, lambda _now: HostAnswer(200, 0.1 * slow.uniform(0.9, 1.1)), 120, workers=100)
    before, rates = driven.view().rate, list[float]()

    def note() -> bool:
        rates.append(driven.view().rate)
        return False

    converse(driven, lambda _now: HostAnswer(200, 1.5 * slow.uniform(0.9, 1.1)), 120, workers=100, until=note)

    assert before > 19
    assert min(rates) < 0.8 * before, "it was put to the test"
    assert rates[-1] > 0.9 * before
    lowest = max(index for index, rate in enumerate(rates) if rate == min(rates))
    assert rates[lowest + 1] > 0.9 * before, "given back at once, not earned anew"


@BOTH
def test_07_slowness_that_is_our_doing_makes_us_ask_less(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=20, max_rps=40, min_rps=0.1), strategy=strategy))
    host = SimulatedHost(Random(1), service=steady(0.1), network=0.1)

    asked = converse(driven, host.ask, 300, workers=100)

    assert driven.view().rate < 12
    assert median(each.answer.latency for each in asked if each.at > 200) < 2.5


@BOTH
def test_08_a_rate_that_is_not_used_does_not_grow(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=4), strategy=strategy))

    for _ in range(400):
        driven.ask()
        driven.clock.advance(0.9)

    assert driven.view().rate == pytest.approx(4)


@BOTH
def test_08_a_rate_that_is_used_does_grow(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=4), strategy=strategy))

    converse(driven, lambda _now: HostAnswer(200, 0.1), 60)

    assert driven.view().rate == pytest.approx(8)


def test_09_it_settles_on_a_quota_that_nobody_tells_it() -> None:
    host = SimulatedHost(Random(1), BucketQuota(steady(20), 20))
    answers: list[tuple[float, int]] = []

    async def work(limiter: Limiter, clock: LoopClock) -> None:
        while clock.now() < 600:
            async with limiter.attempt(HOST) as attempt:
                answer = host.ask(clock.now())
                answers.append((clock.now(), answer.status))
                await clock.sleep(answer.latency)
                attempt.report(answer.status)

    async def main() -> None:
        clock = LoopClock()
        limiter = limiter_on(clock, LimiterRules(pace=FAST))
        async with asyncio.TaskGroup() as group:
            for _ in range(32):
                group.create_task(work(limiter, clock))

    run_virtual(main())

    half = Counter(status for at, status in answers if 300 <= at < 600)
    assert half[429] <= 0.003 * half.total()
    assert half[200] >= 0.93 * 300 * 20
