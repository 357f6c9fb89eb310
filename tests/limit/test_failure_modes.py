"""The eighteen ways in which the seed's limiter fails (control.md, table 1.2), one test or a few for each."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from statistics import median
from typing import Literal, NamedTuple

import msgspec
import pytest
from driven import FAST, HOST, Driven, converse

from sanderling.clock import Timer
from sanderling.limit import (
    BackoffRules,
    BreakerRules,
    BudgetRules,
    CircuitOpen,
    Feedback,
    Limiter,
    LimiterRules,
    PaceRules,
    Permit,
    Quota,
    Scope,
)
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.hosts import Answer, BucketQuota, SimulatedHost, steady

Strategy = Literal["governor", "aimd"]
BOTH = pytest.mark.parametrize("strategy", ["governor", "aimd"])
KEY = Scope("credential", "key 1")


def limiter_on(clock: LoopClock, rules: LimiterRules | None = None) -> Limiter:
    return Limiter(rules, clock=clock, rng=Random(1))


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
            await clock.sleep(0.1)
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

    assert driven.view().rate == pytest.approx((before.ceiling or 0) / 2)
    assert driven.view().ceiling == before.ceiling


def test_03_a_window_of_successes_raises_the_rate_once() -> None:
    pace = PaceRules(initial_rps=200, max_rps=1000, increase=0.25)
    driven = Driven(LimiterRules(pace=pace, strategy="aimd"))

    asked = converse(driven, lambda _now: Answer(200, 0.001), 0.99)
    assert len(asked) > 100
    assert driven.view().rate == pytest.approx(200)

    converse(driven, lambda _now: Answer(200, 0.001), 0.5)
    assert driven.view().rate == pytest.approx(200.25)


def test_03_the_governor_grows_once_a_window_too() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=100, max_rps=1000)))

    asked = converse(driven, lambda _now: Answer(200, 0.001), 0.99)
    assert len(asked) > 90
    assert driven.view().rate == pytest.approx(100)

    converse(driven, lambda _now: Answer(200, 0.001), 0.1)
    assert driven.view().rate == pytest.approx(150)


def in_flight(driven: Driven, requests: int) -> list[Permit]:
    return [driven.next() for _ in range(requests)]


@pytest.mark.parametrize("status", [429, 503, 500])
def test_04_one_blip_with_32_in_flight_is_one_decrease(status: int) -> None:
    calm = BreakerRules(consecutive=1000, error_share=0.999)
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=8), breaker=calm, strategy="aimd"))

    for permit in in_flight(driven, 32):
        driven.report(permit, status)

    assert driven.view().rate == pytest.approx(4)


@pytest.mark.parametrize("status", [429, 503])
def test_04_one_blip_is_one_drain_for_the_governor(status: int) -> None:
    driven, other = Driven(LimiterRules(pace=FAST)), Driven(LimiterRules(pace=FAST))

    for each, refused in ((driven, 32), (other, 1)):
        for permit in in_flight(each, 32)[:refused]:
            each.report(permit, status, retry_after=0.0)

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
    calm = BreakerRules(consecutive=1000, error_share=0.999)
    rules = LimiterRules(pace=PaceRules(initial_rps=8), breaker=calm, strategy=strategy)
    driven = Driven(rules)
    for number in range(200):
        driven.ask(*((429, 0.001) if number % 8 == 0 else (200, 0.1)), retry_after=0.0)

    refused = driven.view().rate
    converse(driven, lambda _now: Answer(200, 0.1), 30)

    assert driven.view().rate >= refused


@BOTH
def test_07_slowness_that_is_not_our_doing_does_not_starve_us(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=20, max_rps=40, min_rps=0.1), strategy=strategy))
    slow = Random(1)
    converse(driven, lambda _now: Answer(200, 0.1 * slow.uniform(0.9, 1.1)), 120, workers=100)
    before, rates = driven.view().rate, list[float]()

    def note() -> bool:
        rates.append(driven.view().rate)
        return False

    converse(driven, lambda _now: Answer(200, 1.5 * slow.uniform(0.9, 1.1)), 120, workers=100, until=note)

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

    converse(driven, lambda _now: Answer(200, 0.1), 60)

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


def test_10_a_half_open_circuit_lets_one_of_a_hundred_through() -> None:
    async def main() -> tuple[list[Permit], list[CircuitOpen]]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        until = await tripped(limiter)
        await clock.sleep(until - clock.now())
        return await crowd(limiter, 100)

    passed, refused = run_virtual(main())

    assert len(passed) == 1
    assert len(refused) == 99
    assert all(error.until > 0 for error in refused)


async def tripped(limiter: Limiter) -> float:
    """Fail until the circuit opens; until when."""
    while True:
        try:
            permit = await limiter.acquire(HOST)
        except CircuitOpen as refusal:
            return refusal.until
        limiter.feedback(permit, Feedback(500, 0.1))


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


def open_seconds(driven: Driven, host: str = HOST) -> float:
    """Fail the probe, or as many requests as it takes; for how long the circuit then opens."""
    driven.trip(host)
    return driven.view(host).not_before


def test_10_the_circuit_stays_open_longer_each_time_up_to_five_minutes() -> None:
    driven = Driven()

    seconds = []
    for _ in range(8):
        seconds.append(open_seconds(driven))
        driven.clock.advance(400)

    bases = [15, 30, 60, 120, 240, 300, 300, 300]
    assert all(base <= each <= 1.3 * base for base, each in zip(bases, seconds, strict=True))
    assert len({each / base for base, each in zip(bases, seconds, strict=True)}) == 8, "every time is jittered anew"


def test_10_hosts_behind_one_cause_are_not_probed_in_the_same_instant() -> None:
    driven = Driven()

    seconds = sorted(open_seconds(driven, f"h{number}.example") for number in range(50))

    assert max(Counter(int(each * 4) for each in seconds).values()) < 10, "at most a few in a quarter of a second"


def heal(driven: Driven) -> None:
    """Three good probes close the circuit."""
    driven.clock.advance(400)
    for _ in range(3):
        driven.ask()
    assert driven.view().state == "closed"


def test_10_one_opening_is_forgiven_for_each_healthy_minute() -> None:
    driven = Driven(LimiterRules(breaker=BreakerRules(jitter=0)))
    for _ in range(4):
        driven.clock.advance(400)
        last = open_seconds(driven)
    assert last == pytest.approx(120)
    heal(driven)

    for _ in range(125):
        driven.clock.advance(1)
        driven.ask()

    assert open_seconds(driven) == pytest.approx(60), "of four openings two were forgiven"


def test_10_the_time_a_circuit_was_open_is_no_healthy_minute() -> None:
    """A host that answers one probe and fails the next is not well, however long it was left alone."""
    driven = Driven(LimiterRules(breaker=BreakerRules(jitter=0)))
    driven.clock.advance(1000)

    seconds = []
    for _ in range(5):
        seconds.append(open_seconds(driven))
        driven.clock.advance(400)
        driven.ask(200)

    assert seconds == pytest.approx([15, 30, 60, 120, 240])


@BOTH
@pytest.mark.parametrize("late", [200, 429, 503, 500, 404])
def test_11_a_late_answer_from_before_the_circuit_opened_changes_nothing(strategy: Strategy, late: int) -> None:
    driven = Driven(LimiterRules(strategy=strategy))
    permit = driven.next()
    driven.trip()
    before = driven.view()
    assert before.inflight == 1

    driven.report(permit, late)

    assert driven.view() == replace(before, inflight=0)


def test_11_a_late_answer_changes_nothing_while_the_circuit_is_half_open() -> None:
    driven = Driven()
    permits = [driven.next() for _ in range(3)]
    driven.trip()
    driven.clock.advance(400)
    driven.take()
    before = driven.view()
    assert before.state == "half-open"

    for permit in permits:
        driven.report(permit, 200)

    assert driven.view() == replace(before, inflight=1)
    assert driven.limiter.try_acquire(HOST) is None


def test_11_a_late_answer_still_says_when_to_come_back() -> None:
    driven = Driven()
    permit = driven.next()
    driven.trip()

    driven.report(permit, 429, retry_after=1000)

    assert driven.limiter.ready_at(HOST) == pytest.approx(driven.clock.now() + 1000)


@pytest.mark.parametrize("sent", [True, False])
def test_11_a_cancelled_probe_gives_its_place_back(*, sent: bool) -> None:
    driven = Driven()
    driven.trip()
    driven.clock.advance(400)
    probe = driven.take()
    assert driven.limiter.try_acquire(HOST) is None

    probe.release(sent=sent)
    driven.clock.advance(1)

    driven.take()
    assert driven.limiter.try_acquire(HOST) is None


def test_11_a_probe_that_never_reports_loses_its_place_when_its_lease_runs_out() -> None:
    driven = Driven(LimiterRules(lease=31))
    driven.trip()
    driven.clock.advance(400)
    driven.take()

    driven.clock.advance(30.9)
    assert driven.limiter.try_acquire(HOST) is None

    driven.clock.advance(0.2)
    driven.take()


def test_11_the_same_lease_holds_while_the_governor_drains() -> None:
    driven = Driven(LimiterRules(lease=31))
    driven.ask(429)
    driven.next()

    assert driven.limiter.ready_at(HOST) == pytest.approx(driven.clock.now() + 31)
    driven.clock.advance(31)
    driven.take()


def test_11_a_waiter_that_was_cancelled_but_has_not_yet_woken_is_passed_over() -> None:
    """A permit for it would be set on a cancelled future, and raise in whoever moved the clock."""

    async def main() -> int:
        driven = Driven()
        driven.take()
        waiters = [asyncio.create_task(driven.limiter.acquire(HOST)) for _ in range(3)]
        await asyncio.sleep(0)

        waiters[0].cancel()
        driven.clock.advance(10)
        await asyncio.sleep(0)
        driven.clock.advance(10)
        await asyncio.wait(waiters)
        return sum(not waiter.cancelled() for waiter in waiters)

    assert run_virtual(main()) == 2


@BOTH
@pytest.mark.parametrize("status", [429, 503])
def test_12_a_directed_refusal_does_not_trip_the_breaker(strategy: Strategy, status: int) -> None:
    driven = Driven(LimiterRules(strategy=strategy))

    for _ in range(20):
        driven.ask(status, retry_after=1.0)

    assert driven.view().state == "closed"
    assert driven.view().failures == 0
    assert driven.view().error_rate == 0


def test_12_the_circuit_stays_open_at_least_as_long_as_retry_after_says() -> None:
    driven = Driven()
    permits = in_flight(driven, 6)
    driven.report(permits[0], 429, retry_after=200)

    for permit in permits[1:]:
        driven.report(permit, 500)

    assert driven.view().state == "open"
    assert driven.limiter.ready_at(HOST) == pytest.approx(driven.clock.now() + 200)


def test_12_a_deferral_is_not_an_attempt() -> None:
    async def main() -> tuple[object, object, int]:
        limiter = limiter_on(LoopClock())
        await tripped(limiter)
        before = limiter.snapshot()
        _, refused = await crowd(limiter, 50)
        after = limiter.snapshot()
        return replace(before, denied=before.denied + 50), after, len(refused)

    expected, after, refused = run_virtual(main())

    assert refused == 50
    assert after == expected, "nothing is charged and nothing learned; it is only counted as denied"


def test_12_the_window_of_errors_is_cleared_when_the_circuit_closes() -> None:
    """Five 503s, a pause, three good probes and two more successes opened the seed's circuit again."""
    driven = Driven(LimiterRules(strategy="aimd"))
    driven.trip(status=503)

    driven.clock.advance(15 * 1.3)
    for _ in range(5):
        driven.ask(200)

    assert driven.view().state == "closed"
    assert driven.view().error_rate == 0
    driven.ask(500)
    assert driven.view().state == "closed"


def evict(driven: Driven, others: int = 20) -> None:
    """Meet so many other hosts that those before are let go."""
    for number in range(others):
        driven.take(f"other{number}.example").release(sent=True)


def few(hosts: int = 3) -> LimiterRules:
    return LimiterRules(hosts=hosts, breaker=BreakerRules(jitter=0))


def known(driven: Driven, host: str = HOST) -> bool:
    return any(view.host == host for view in driven.limiter.snapshot(top=100).top)


def test_13_a_host_with_a_penalty_goes_last() -> None:
    driven = Driven(few())
    driven.ask(429, retry_after=600)

    evict(driven)

    assert known(driven)


def test_13_a_penalty_outlives_its_host() -> None:
    driven = Driven(few(1))
    driven.ask(429, retry_after=600)

    evict(driven)

    assert not known(driven)
    assert driven.limiter.ready_at(HOST) == pytest.approx(600.1)
    driven.clock.advance(599)
    evict(driven)
    assert driven.limiter.try_acquire(HOST) is None


def test_13_an_open_circuit_outlives_its_host_and_so_does_how_often_it_opened() -> None:
    driven = Driven(few(1))
    driven.trip()
    driven.clock.advance(400)
    driven.ask(500)
    until = driven.limiter.ready_at(HOST)

    evict(driven)

    assert not known(driven)
    assert driven.limiter.ready_at(HOST) == until
    assert driven.view().state == "open"
    driven.clock.advance(400)
    assert open_seconds(driven) == pytest.approx(60), "the third time, four times as long as the first"


def test_13_a_host_that_is_let_go_is_not_asked_faster_for_it() -> None:
    driven = Driven(few(1))

    sent = 0
    for _ in range(100):
        for host in (HOST, "other.example"):
            if (permit := driven.limiter.try_acquire(host)) is not None:
                permit.release(sent=True)
                sent += host == HOST
        driven.clock.advance(0.1)

    assert sent <= 21, "two a second for ten seconds, and the first"


def test_13_a_ceiling_outlives_its_host_which_starts_at_half_of_it() -> None:
    driven = Driven(LimiterRules(pace=FAST, hosts=2))
    converse(driven, SimulatedHost(Random(1), BucketQuota(steady(6), 6)).ask, 120)
    ceiling = driven.view().ceiling
    driven.clock.advance(30)

    evict(driven)
    driven.next()

    assert driven.view().ceiling == ceiling
    assert driven.view().rate == pytest.approx((ceiling or 0) / 2)


def test_13_nobody_in_use_is_let_go() -> None:
    async def main() -> None:
        driven = Driven(few(1))
        driven.take("asked.example")
        driven.take("waited-for.example").release(sent=True)
        waiter = asyncio.create_task(driven.limiter.acquire("waited-for.example"))
        await asyncio.sleep(0)

        evict(driven)

        assert known(driven, "asked.example")
        assert driven.view("waited-for.example").waiting == 1
        driven.clock.advance(1)
        await waiter

    run_virtual(main())


def test_13_a_circuit_on_probation_is_not_let_go() -> None:
    """Its stone would bring it back closed."""
    driven = Driven(few())
    driven.trip()
    driven.clock.advance(400)
    driven.ask(200)
    assert driven.view().state == "half-open"

    evict(driven)

    assert driven.view().state == "half-open"


def test_13_an_idle_host_goes_but_not_while_it_is_owed_silence() -> None:
    driven = Driven()
    driven.ask(host="idle.example")
    driven.ask(429, retry_after=1000, host="penalised.example")
    driven.trip("open.example")
    driven.take("asked.example")

    driven.clock.advance(200)

    assert driven.limiter.forget_idle() == 1
    assert not known(driven, "idle.example")


def test_13_a_penalty_that_comes_after_its_host_was_let_go_is_heeded_all_the_same() -> None:
    driven = Driven()
    permit = driven.take()
    driven.clock.advance(1000)
    driven.limiter.forget_idle()
    assert not known(driven)

    driven.report(permit, 429, retry_after=60)

    assert driven.limiter.ready_at(HOST) == pytest.approx(1060)


def test_13_penalties_outlive_the_process() -> None:
    before = Driven(few(100), now=5000)
    before.ask(429, retry_after=600)
    before.trip("open.example")
    left = {host: before.limiter.ready_at(host) - before.clock.now() for host in (HOST, "open.example")}
    saved = before.limiter.save()

    after = Driven(few(100), now=7)
    after.clock.set_wall(before.clock.wall() + 5)
    after.limiter.restore(saved)

    for host, wait in left.items():
        assert after.limiter.ready_at(host) == pytest.approx(7 + wait - 5)
    assert after.view("open.example").state == "open"
    assert after.view(HOST).state == "closed"


def test_13_a_wall_clock_that_was_set_back_neither_shortens_nor_lengthens_a_penalty() -> None:
    before = Driven()
    before.ask(429, retry_after=600, latency=0.5)
    saved = before.limiter.save()

    after = Driven()
    after.clock.set_wall(before.clock.wall() - 86_400)
    after.limiter.restore(saved)

    assert after.limiter.ready_at(HOST) == pytest.approx(600)


def test_13_restoring_never_shortens_what_is_known() -> None:
    shorter = Driven()
    shorter.ask(429, retry_after=10)
    longer = Driven()
    longer.ask(429, retry_after=1000)

    again, live = Driven(), Driven()
    live.ask(429, retry_after=1000)
    for driven, saved in ((again, longer), (again, shorter), (live, shorter)):
        driven.limiter.restore(saved.limiter.save())

    assert again.limiter.ready_at(HOST) == pytest.approx(1000)
    assert live.limiter.ready_at(HOST) == pytest.approx(1000, abs=1)


def test_14_a_retry_is_planned_and_not_slept() -> None:
    """The seed slept in the worker; here a number comes back at once, and nobody has set a timer."""

    class SleeplessClock(LoopClock):
        async def sleep(self, seconds: float) -> None:
            raise AssertionError(f"slept {seconds} s")

        def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
            raise AssertionError(f"set a timer of {seconds} s for {callback}")

    async def main() -> tuple[float | None, float]:
        clock = SleeplessClock()
        limiter = limiter_on(clock, LimiterRules(backoff=BackoffRules(base=100, longest=100)))
        return limiter.plan_retry(HOST, 1), clock.now()

    wait, now = run_virtual(main())

    assert wait is not None
    assert 0 < wait <= 100
    assert now == 0


DOWN = LimiterRules(
    pace=PaceRules(initial_rps=100, max_rps=100, min_rps=10),
    breaker=BreakerRules(consecutive=10**9, error_share=0.999),
    backoff=BackoffRules(attempts=4),
    budget=BudgetRules(share=0.1, reserve=10, most=100),
)


def attempts_for_one_item(driven: Driven) -> int:
    attempt = 1
    driven.ask(500, latency=0.001)
    while driven.limiter.plan_retry(HOST, attempt) is not None:
        attempt += 1
        driven.ask(500, latency=0.001)
    return attempt


def test_15_a_host_that_is_down_is_asked_a_tenth_more_often_and_no_more() -> None:
    driven = Driven(DOWN)

    attempts = sum(attempts_for_one_item(driven) for _ in range(2000))

    assert (attempts - 10) / 2000 <= 1.1
    assert attempts / 2000 > 1.09
    assert driven.limiter.snapshot().retries == attempts - 2000


def test_15_retries_are_charged_when_they_are_scheduled() -> None:
    """Envoy #30205: a budget that does not count retries in back-off lets a thousand of them out at once."""
    driven = Driven(DOWN)
    for _ in range(100):
        driven.ask(500)

    planned = [driven.limiter.plan_retry(HOST, 1) for _ in range(1000)]

    assert sum(wait is not None for wait in planned) == 20, "the reserve, and a tenth of a hundred"


def test_15_all_hosts_together_have_a_budget_too() -> None:
    driven = Driven(DOWN)

    planned = [driven.limiter.plan_retry(f"h{number}.example", 1) for number in range(100)]

    assert sum(wait is not None for wait in planned) == 10
    assert driven.limiter.plan_retry(HOST, 1) is None


def test_15_a_retry_that_succeeded_comes_back() -> None:
    driven = Driven(DOWN)
    for _ in range(10):
        assert driven.limiter.plan_retry(HOST, 1) is not None
    assert driven.limiter.plan_retry(HOST, 1) is None

    driven.limiter.refund_retry(HOST)

    assert driven.limiter.plan_retry(HOST, 1) is not None
    assert driven.limiter.plan_retry(HOST, 1) is None


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


def both_scopes(name: str = "key 1", cost: float = 1.0) -> list[Scope]:
    return [Scope("credential", name, cost), Scope("domain", "example")]


def test_17_one_permit_draws_on_all_its_scopes() -> None:
    async def main() -> dict[str, tuple[int, float]]:
        limiter = limiter_on(LoopClock())
        await limiter.acquire(HOST, both_scopes(cost=3))
        return {view.host: (view.inflight, view.tokens) for view in limiter.snapshot().top}

    views = run_virtual(main())

    assert views == {HOST: (1, 0.0), "domain/example": (1, 0.0), "credential/key 1": (1, -2.0)}


def test_17_a_permit_over_several_scopes_is_one_request() -> None:
    async def main() -> int:
        limiter = limiter_on(LoopClock())
        await limiter.acquire(HOST, both_scopes())
        return limiter.snapshot().requests

    assert run_virtual(main()) == 1


def test_17_scopes_are_passed_in_one_order_whichever_way_they_are_named() -> None:
    """Two callers that name them in opposite order would otherwise wait for each other for ever."""

    async def main() -> float:
        clock = LoopClock()
        limiter = limiter_on(clock)
        scopes = [Scope("ip", "10.0.0.1"), Scope("domain", "example"), KEY, Scope("credential", "key 2")]
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(limiter.acquire(f"h{number % 3}.example", scopes[:: 1 if number % 2 else -1]))
        return clock.now()

    assert run_virtual(main()) == pytest.approx(19 / 2)


def test_17_what_is_given_back_goes_back_to_every_scope() -> None:
    async def main() -> tuple[bool, set[int], set[float]]:
        limiter = limiter_on(LoopClock())
        (await limiter.acquire(HOST, both_scopes(cost=3))).release()
        views = limiter.snapshot().top
        inflight, tokens = {view.inflight for view in views}, {view.tokens for view in views}
        async with asyncio.timeout(0.001):
            await limiter.acquire(HOST, both_scopes())
        return True, inflight, tokens

    assert run_virtual(main()) == (True, {0}, {1.0})


def test_17_who_waits_for_one_scope_holds_no_token_of_another() -> None:
    async def main() -> tuple[float, float, int]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        limiter.feedback(await limiter.acquire(HOST, [KEY]), Feedback(429, 0.1, retry_after=60, scope="credential"))
        waiter = asyncio.create_task(limiter.acquire(HOST, [Scope("domain", "example"), KEY]))
        await clock.sleep(30)
        seen = {view.host: view for view in limiter.snapshot().top}
        waiter.cancel()
        return seen[HOST].tokens, seen["domain/example"].tokens, seen["credential/key 1"].waiting

    assert run_virtual(main()) == (1.0, 1.0, 1)


def test_17_a_closed_host_does_not_hold_up_a_shared_scope() -> None:
    async def main() -> float:
        clock = LoopClock()
        limiter = limiter_on(clock)
        limiter.feedback(await limiter.acquire("closed.example", [KEY]), Feedback(429, 0.1, retry_after=600))
        waiter = asyncio.create_task(limiter.acquire("closed.example", [KEY]))
        for number in range(20):
            await limiter.acquire(f"h{number}.example", [KEY])
        waiter.cancel()
        return clock.now()

    assert run_virtual(main()) == pytest.approx(20 / 2), "at the full pace of the scope"


def test_17_no_burst_when_the_last_scope_opens() -> None:
    async def main() -> list[float]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        limiter.feedback(await limiter.acquire(HOST, [KEY]), Feedback(429, 0.1, retry_after=60, scope="credential"))
        left: list[float] = []

        async def call(host: str) -> None:
            permit = await limiter.acquire(host, [KEY])
            left.append(clock.now())
            limiter.feedback(permit, Feedback(200, 0.1))

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(call(f"h{number % 4}.example"))
        return left

    left = run_virtual(main())

    assert left[0] >= 60
    assert min(after - before for before, after in pairwise(left)) >= 0.1


def test_17_a_refusal_is_heeded_by_the_scope_it_speaks_of() -> None:
    async def main() -> dict[str, float]:
        limiter = limiter_on(LoopClock())
        permit = await limiter.acquire(HOST, both_scopes())
        limiter.feedback(permit, Feedback(429, 0.1, retry_after=60, scope="credential"))
        return {view.host: view.not_before for view in limiter.snapshot().top}

    assert run_virtual(main()) == {HOST: 0, "domain/example": 0, "credential/key 1": 60}


@pytest.mark.parametrize("scope", [None, "ip"])
def test_17_a_refusal_that_speaks_of_no_scope_of_the_permit_is_heeded_by_the_host(scope: str | None) -> None:
    async def main() -> dict[str, float]:
        limiter = limiter_on(LoopClock())
        permit = await limiter.acquire(HOST, [KEY])
        limiter.feedback(permit, Feedback(429, 0.1, retry_after=60, scope=scope))
        return {view.host: view.not_before for view in limiter.snapshot().top}

    assert run_virtual(main()) == {HOST: 60, "credential/key 1": 0}


@pytest.mark.parametrize(("scope", "told"), [(None, HOST), ("credential", "credential/key 1")])
@pytest.mark.parametrize(
    "feedback",
    [Feedback(200, 0.1, retry_after=60), Feedback(301, 0.1, retry_after=60), Feedback(200, quota=Quota(0, 60))],
)
def test_17_what_a_good_answer_asks_for_it_asks_of_whom_it_speaks(
    feedback: Feedback, scope: str | None, told: str
) -> None:
    async def main() -> dict[str, float]:
        limiter = limiter_on(LoopClock())
        permit = await limiter.acquire(HOST, [KEY])
        limiter.feedback(permit, msgspec.structs.replace(feedback, scope=scope))
        return {view.host: view.not_before for view in limiter.snapshot().top}

    waits = run_virtual(main())

    assert waits == {HOST: 0, "credential/key 1": 0, told: 60}


def test_17_every_scope_learns_from_a_good_answer() -> None:
    async def main() -> list[float | None]:
        limiter = limiter_on(LoopClock())
        limiter.feedback(await limiter.acquire(HOST, both_scopes()), Feedback(200, 0.25, scope="credential"))
        return [view.latency for view in limiter.snapshot().top]

    assert run_virtual(main()) == [0.25] * 3


@pytest.mark.parametrize("feedback", [Feedback(error="timed out"), Feedback()])
def test_17_no_answer_proves_nothing_about_a_scope(feedback: Feedback) -> None:
    async def main() -> str:
        clock = LoopClock()
        limiter = limiter_on(clock)
        for number in range(3):
            permit = await limiter.acquire(f"h{number}.example", [KEY])
            limiter.feedback(permit, Feedback(500, 0.1, scope="credential"))
        for number in range(3):
            await clock.sleep(40)
            limiter.feedback(await limiter.acquire(f"g{number}.example", [KEY]), feedback)
        return next(view.state for view in limiter.snapshot().top if "/" in view.host)

    assert run_virtual(main()) == "half-open"


def test_17_a_thousand_waiters_are_turned_away_together_when_a_scope_closes() -> None:
    """Not each inside the call that turned away the one before, a thousand deep."""

    async def main() -> tuple[int, int]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        permits = [await limiter.acquire(f"h{number}.example", [KEY]) for number in range(3)]
        waiting = asyncio.create_task(crowd(limiter, 1000, [KEY]))
        await clock.sleep(0.1)
        for permit in permits:
            limiter.feedback(permit, Feedback(500, 0.1, scope="credential"))
        passed, refused = await waiting
        return len(passed), len(refused)

    assert run_virtual(main()) == (0, 1000)


def test_17_a_host_is_not_let_go_while_its_scope_is_met_for_the_first_time() -> None:
    """The permit would be for a host that nobody knows, and the next caller would meet a second one."""

    async def main() -> bool:
        clock = LoopClock()
        limiter = limiter_on(clock)
        (await limiter.acquire(HOST)).release(sent=True)
        await clock.sleep(1000)
        await limiter.acquire(HOST, [KEY])
        return limiter.try_acquire(HOST) is None

    assert run_virtual(main())


def test_17_a_scope_that_someone_is_on_the_way_to_is_not_let_go() -> None:
    """They wait at the host first; the scope has no line yet and must not get a second self meanwhile."""

    async def main() -> list[float]:
        clock, left = LoopClock(), list[float]()
        limiter = limiter_on(clock, LimiterRules(hosts=1))

        async def call(host: str) -> None:
            await limiter.acquire(host, [KEY])
            left.append(clock.now())

        for host in ("a.example", "b.example"):
            await limiter.acquire(host)
        async with asyncio.TaskGroup() as group:
            for host in ("a.example", "b.example"):
                group.create_task(call(host))
                await asyncio.sleep(0.01)
                (await limiter.acquire(f"new.{host}")).release(sent=True)
        return left

    first, second = run_virtual(main())

    assert second - first >= 0.5


def test_17_a_waiter_that_gives_up_leaves_every_line() -> None:
    async def main() -> int:
        clock = LoopClock()
        limiter = limiter_on(clock)
        limiter.feedback(await limiter.acquire(HOST, [KEY]), Feedback(429, 0.1, retry_after=9, scope="credential"))
        waiters = [asyncio.create_task(limiter.acquire(HOST, [KEY])) for _ in range(100)]
        await clock.sleep(5)
        for waiter in waiters:
            waiter.cancel()
        await clock.sleep(0)
        waiting = sum(view.waiting for view in limiter.snapshot().top)
        await clock.sleep(10)
        async with asyncio.timeout(0.001):
            await limiter.acquire(HOST, [KEY])
        return waiting

    assert run_virtual(main()) == 0


@pytest.mark.parametrize(("every", "failures"), [(7, 3), (14, 3), (60, 5), (3600, 5)])
def test_18_a_host_that_is_asked_seldom_trips_too(every: float, failures: int) -> None:
    """The seed wants ten samples in thirty seconds, which a host asked twice in thirty never gathers."""
    driven = Driven(LimiterRules(idle=10_000))

    for _ in range(failures):
        assert driven.limiter.snapshot().open == 0
        driven.clock.advance(every)
        driven.ask(500)

    assert driven.view().state == "open"


def test_18_a_few_failures_among_many_successes_do_not_trip() -> None:
    driven = Driven(LimiterRules(pace=FAST))

    for number in range(300):
        driven.ask(500 if number % 5 == 0 else 200)

    assert driven.view().state == "closed"


def test_18_half_of_the_answers_failing_does_trip() -> None:
    driven = Driven(LimiterRules(pace=FAST))

    for number in range(40):
        if driven.limiter.snapshot().open == 0:
            driven.ask(500 if number % 2 == 0 else 200)

    assert driven.view().state == "open"
