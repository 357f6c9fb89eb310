"""Failures 10 to 12 and 18 of the table in docs/limiter.md: when a circuit opens, lets a probe through and closes."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from driven import BOTH, FAST, HOST, Driven, Strategy, crowd, in_flight, limiter_on, open_seconds

from sanderling.limit import CircuitOpen, Feedback, Limiter, LimiterRules, Permit
from sanderling.task import Blame
from sanderling.testing import LoopClock, run_virtual


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


def test_10_an_item_that_fails_again_and_again_closes_nobody_out() -> None:
    """Whatever it fails with; but different items do, and once they have, any failure of a probe is one."""

    async def main() -> list[bool]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        for failures in range(40):
            limiter.feedback(await limiter.acquire(HOST), Feedback(500, blame=Blame("item", failures)))
        closed = [limiter.is_down(HOST)]
        await clock.sleep(await tripped(limiter) - clock.now())
        limiter.feedback(await limiter.acquire(HOST), Feedback(500, blame=Blame("item", 40)))
        return [*closed, limiter.is_down(HOST), limiter.ready_at(HOST) > clock.now() + 15]

    assert run_virtual(main()) == [False, True, True]


async def tripped(limiter: Limiter) -> float:
    """Fail until the circuit opens; until when."""
    while True:
        try:
            permit = await limiter.acquire(HOST)
        except CircuitOpen as refusal:
            return refusal.until
        limiter.feedback(permit, Feedback(500, 0.1))


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


def test_12_the_failures_are_forgotten_when_the_circuit_closes() -> None:
    driven = Driven(LimiterRules(strategy="aimd"))
    driven.trip(status=503)

    driven.clock.advance(15 * 1.3)
    for _ in range(5):
        driven.ask(200)

    assert driven.view().state == "closed"
    assert driven.view().error_rate == 0
    driven.ask(500)
    assert driven.view().state == "closed"


@pytest.mark.parametrize("every", [7, 14, 60, 3600])
def test_18_a_host_that_is_asked_seldom_trips_too(every: float) -> None:
    """A minimum of ten samples in thirty seconds, which a host asked twice in thirty never gathers."""
    driven = Driven(LimiterRules(idle=10_000))

    for _ in range(5):
        assert driven.limiter.snapshot().open == 0
        driven.clock.advance(every)
        driven.ask(500)

    assert driven.view().state == "open"


@pytest.mark.parametrize("every", [2, 5])
def test_18_what_fails_beside_good_answers_does_not_trip(every: int) -> None:
    driven = Driven(LimiterRules(pace=FAST))

    for number in range(300):
        driven.ask(500 if number % every == 0 else 200)

    assert driven.view().state == "closed"
