"""Asking for leave to call, and what comes of reporting how the call went."""

import asyncio
from math import inf, nan
from typing import Literal

import pytest
from driven import HOST, Driven, converse, in_flight, prepared

from sanderling.limit import CircuitOpen, Feedback, Limiter, LimiterRules, PaceRules, Permit, Scope
from sanderling.testing import FakeClock, LoopClock, run_virtual
from sanderling.worlds.hosts import HostAnswer

# Leave to call.


def test_the_first_request_leaves_at_once_and_the_next_at_the_hosts_pace() -> None:
    async def main() -> list[float]:
        clock = LoopClock()
        limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=4)), clock=clock)
        left = []
        for _ in range(5):
            await limiter.acquire(HOST)
            left.append(clock.now())
        return left

    assert run_virtual(main()) == pytest.approx([0, 0.25, 0.5, 0.75, 1.0])


def test_hosts_do_not_hold_each_other_up() -> None:
    driven = Driven()
    driven.ask(429, retry_after=600)

    assert driven.limiter.try_acquire(HOST) is None
    assert driven.limiter.try_acquire("other.example") is not None


@pytest.mark.parametrize("prepare", ["idle", "paced", "penalised", "open", "half-open", "probed", "drained"])
def test_ready_at_says_when_try_acquire_succeeds(prepare: str) -> None:
    driven = Driven()
    prepared(driven, prepare)
    ready = driven.limiter.ready_at(HOST)

    if ready > driven.clock.now():
        assert driven.limiter.try_acquire(HOST) is None
        driven.wait_until(ready - 1e-3)
        assert driven.limiter.try_acquire(HOST) is None
        driven.wait_until(driven.limiter.ready_at(HOST))

    driven.take()


def test_who_may_not_go_now_takes_nothing() -> None:
    driven = Driven()
    driven.take()
    before = driven.limiter.snapshot()

    for _ in range(100):
        assert driven.limiter.try_acquire(HOST) is None

    assert driven.limiter.snapshot() == before


def test_nobody_overtakes_a_waiter_by_trying() -> None:
    async def main() -> tuple[bool, bool]:
        driven = Driven()
        driven.take()
        waiter = asyncio.create_task(driven.limiter.acquire(HOST))
        await asyncio.sleep(0)
        driven.clock.advance(0.499)
        early = driven.limiter.try_acquire(HOST) is None
        driven.clock.advance(0.001)
        late = driven.limiter.try_acquire(HOST) is None
        await waiter
        return early, late

    assert run_virtual(main()) == (True, True)


def test_nobody_overtakes_a_waiter_that_is_held_up_elsewhere() -> None:
    async def main() -> tuple[Permit | None, float]:
        clock = LoopClock()
        limiter = Limiter(clock=clock)
        key = Scope("credential", "key")
        limiter.feedback(await limiter.acquire(HOST, [key]), Feedback(429, 0.1, retry_after=9, scope="credential"))
        waiter = asyncio.create_task(limiter.acquire(HOST, [key]))
        await clock.sleep(5)
        barger = limiter.try_acquire(HOST)
        await waiter
        return barger, clock.now()

    assert run_virtual(main()) == (None, 9)


def test_a_closed_circuit_says_which_host_and_until_when() -> None:
    async def main(driven: Driven) -> CircuitOpen:
        with pytest.raises(CircuitOpen, match=r"host\.example: circuit open until") as refusal:
            await driven.limiter.acquire(HOST)
        return refusal.value

    driven = Driven()
    driven.trip()

    refusal = run_virtual(main(driven))

    assert refusal.host == HOST
    assert refusal.until == driven.limiter.ready_at(HOST)
    assert 15 <= refusal.until - driven.clock.now() <= 15 * 1.3


def test_waiters_are_turned_away_when_the_circuit_opens() -> None:
    async def main() -> list[BaseException | None]:
        driven = Driven()
        permits = [driven.next() for _ in range(5)]
        waiters = [asyncio.create_task(driven.limiter.acquire(HOST)) for _ in range(3)]
        await asyncio.sleep(0)
        for permit in permits:
            driven.report(permit, 500)
        await asyncio.wait(waiters)
        return [waiter.exception() for waiter in waiters]

    refusals = run_virtual(main())

    assert [type(refusal) for refusal in refusals] == [CircuitOpen] * 3


def test_costs_are_paid_in_time() -> None:
    async def main() -> list[float]:
        clock = LoopClock()
        limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=4)), clock=clock)
        left = []
        for cost in (0.5, 3.0, 1.0):
            await limiter.acquire(HOST, cost=cost)
            left.append(clock.now())
        return left

    assert run_virtual(main()) == pytest.approx([0, 0.125, 0.875])


def test_a_kind_of_scope_may_have_a_pace_of_its_own() -> None:
    async def main() -> float:
        clock = LoopClock()
        rules = LimiterRules(scopes={"credential": PaceRules(initial_rps=0.5)})
        limiter = Limiter(rules, clock=clock)
        for number in range(5):
            await limiter.acquire(f"h{number}.example", [Scope("credential", "key")])
        return clock.now()

    assert run_virtual(main()) == pytest.approx(4 / 0.5)


def test_scopes_may_be_any_iterable() -> None:
    async def main() -> tuple[str, ...]:
        permit = await Limiter(clock=LoopClock()).acquire(HOST, (Scope("ip", name) for name in "ab"))
        return tuple(part.host for part in permit.also)

    assert run_virtual(main()) == ("ip/a", "ip/b")


# What comes of it.


def test_a_permit_counts_once() -> None:
    driven = Driven()
    permit = driven.take()
    driven.report(permit, 200)
    before = driven.view()

    for status in (200, 404, 500):
        driven.report(permit, status)
    driven.report(permit, 429, retry_after=600)
    permit.release()
    permit.release(sent=True)

    assert driven.view() == before
    assert before.inflight == 0


@pytest.mark.parametrize("sent", [True, False])
def test_a_permit_that_was_given_back_teaches_nothing_any_more(*, sent: bool) -> None:
    driven = Driven()
    permit = driven.take()
    permit.release(sent=sent)
    before = driven.view()

    permit.release(sent=not sent)
    driven.report(permit, 429, retry_after=600)

    assert driven.view() == before
    assert before.inflight == 0
    assert "spent" in repr(permit)


def test_a_permit_given_back_unsent_may_be_taken_again_at_once() -> None:
    driven = Driven()

    driven.take().release()

    driven.take().release(sent=True)
    assert driven.limiter.try_acquire(HOST) is None


def test_permits_given_back_late_do_not_add_up_to_a_burst() -> None:
    """Their time is over: workers that are cancelled together must not let as many others go in one instant."""
    driven = Driven()
    held = [driven.next() for _ in range(20)]
    driven.clock.advance(0.5)

    sent = 0
    for permit in held:
        sent += len(driven.take_all())
        permit.release()

    assert sent + len(driven.take_all()) == 1


def test_who_is_given_a_permit_and_cancelled_before_waking_gives_it_back() -> None:
    async def main() -> tuple[int, bool]:
        driven = Driven()
        driven.take().release(sent=True)
        waiter = asyncio.create_task(driven.limiter.acquire(HOST))
        await asyncio.sleep(0)
        driven.clock.advance(0.5)
        waiter.cancel()
        await asyncio.wait([waiter])
        return driven.view().inflight, driven.limiter.try_acquire(HOST) is not None

    assert run_virtual(main()) == (0, True)


def test_a_status_of_zero_without_an_error_teaches_nothing() -> None:
    driven = Driven()
    permit = driven.take()
    before = driven.view()

    driven.limiter.feedback(permit, Feedback())

    assert driven.view().why == before.why == "not asked yet"
    assert driven.view().inflight == 0


@pytest.mark.parametrize("status", [200, 204, 301, 304])
def test_a_success_is_a_success(status: int) -> None:
    driven = Driven()

    converse(driven, lambda _now: HostAnswer(status, 0.1), 20)

    assert driven.view().rate == pytest.approx(8)
    assert driven.view().latency == pytest.approx(0.1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_an_answer_that_is_neither_success_nor_trouble_leaves_the_rate(status: int) -> None:
    driven = Driven()

    converse(driven, lambda _now: HostAnswer(status, 0.1), 20)

    assert driven.view().rate == pytest.approx(2)
    assert driven.view().state == "closed"
    assert driven.view().error_rate == 0


@pytest.mark.parametrize(
    "feedback", [Feedback(500), Feedback(502, 3.0), Feedback(error="reset"), Feedback(200, error="x")]
)
def test_failures_open_the_circuit(feedback: Feedback) -> None:
    driven = Driven()

    for _ in range(5):
        if driven.limiter.snapshot().open == 0:
            driven.limiter.feedback(driven.next(), feedback)

    assert driven.view().state == "open"
    assert driven.view().error_rate == 1


def test_any_served_answer_ends_a_drain() -> None:
    """Even a 404, or a success whose latency nobody measured: the host serves us again."""
    for served in (Feedback(404, 0.1), Feedback(200)):
        driven = Driven()
        driven.ask(429)

        driven.limiter.feedback(driven.next(), served)

        assert not driven.view().why.startswith("refused")
        began = driven.clock.now()
        in_flight(driven, 2)
        assert driven.clock.now() - began < 2, "not one probe at a time"


@pytest.mark.parametrize("latency", [0.0, -1.0, nan, inf])
def test_a_latency_that_is_none_is_not_taken_for_one(latency: float) -> None:
    driven = Driven()

    driven.limiter.feedback(driven.take(), Feedback(200, latency))

    assert driven.view().latency is None
    assert driven.view().p95 is None
    assert driven.view().state == "closed"


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
def test_who_does_not_measure_latency_may_still_go_faster(strategy: Literal["governor", "aimd"]) -> None:
    clock = FakeClock()
    limiter = Limiter(LimiterRules(strategy=strategy), clock=clock)

    for _ in range(400):
        clock.advance(0.1)
        if (permit := limiter.try_acquire(HOST)) is not None:
            limiter.feedback(permit, Feedback(status=200))

    assert limiter.snapshot().top[0].rate > 2.5
