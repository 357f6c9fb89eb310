"""A bound that somebody has asked for: at once, for everyone, and for as long as the process lives."""

import asyncio
from itertools import pairwise
from math import inf, nan

import pytest
from driven import BOTH, FAST, HOST, Driven, Strategy, converse, limiter_on
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plays import ACTIONS, HOSTS, QUICK, SLOW, Action, Play, long_play, rules_for

from sanderling.ids import HostError
from sanderling.limit import Feedback, LimiterRules, PaceRules, Quota
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.hosts import HostAnswer

ROBOTS = "robots.txt asks for 10 s between requests"


def gaps(driven: Driven, requests: int, status: int = 200) -> list[float]:
    """Seconds between requests that are asked for as soon as may be."""
    left = []
    for _ in range(requests):
        permit = driven.next()
        left.append(driven.clock.now())
        driven.report(permit, status)
    return [after - before for before, after in pairwise(left)]


# From when, and for whom.


@BOTH
def test_a_cap_holds_before_the_first_answer_and_below_the_slowest_rate(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(strategy=strategy, pace=PaceRules(min_rps=0.25)))

    driven.limiter.cap(HOST, 1 / 60, "robots.txt asks for a minute")

    assert gaps(driven, 5) == pytest.approx([60] * 4)


def test_a_cap_counts_from_the_request_before_it() -> None:
    """Also from one that left ahead of its pace, as may happen above 20 a second."""
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=100, max_rps=100)))
    driven.limiter.ready_at(HOST)
    driven.clock.advance(1)
    driven.take()

    driven.limiter.cap(HOST, 0.1, ROBOTS)

    assert driven.limiter.try_acquire(HOST) is None
    assert 11 <= driven.limiter.ready_at(HOST) <= 11.05


@pytest.mark.parametrize("rps", [0.1, 30.0])
def test_a_cap_counts_from_the_request_before_it_also_where_the_rate_fell_in_between(rps: float) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=100, max_rps=100)))
    driven.limiter.ready_at(HOST)
    driven.clock.advance(1)
    driven.limiter.feedback(driven.take(), Feedback(200, 0.1, quota=Quota(200, 10.0)))

    driven.limiter.cap(HOST, rps, ROBOTS)

    assert driven.limiter.ready_at(HOST) >= 1 + 1 / min(rps, 20)


def test_a_permit_from_before_the_cap_that_comes_back_unused_does_not_make_room_for_another() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    driven.take()
    unused = driven.next()

    driven.limiter.cap(HOST, 0.1, ROBOTS)
    unused.release()

    assert driven.limiter.ready_at(HOST) >= 10


def test_who_waits_already_waits_by_the_cap_and_goes_on_when_it_is_lifted() -> None:
    async def main() -> list[float]:
        clock, left = LoopClock(), list[float]()
        limiter = limiter_on(clock)

        async def ask() -> None:
            permit = await limiter.acquire(HOST)
            left.append(clock.now())
            permit.release(sent=True)

        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(ask())
            await clock.sleep(0.1)
            limiter.cap(HOST, 0.1, ROBOTS)
            await clock.sleep(22)
            limiter.cap(HOST, None, "")
        return left

    assert run_virtual(main()) == pytest.approx([0, 10, 20, 22.1, 22.6])


def test_a_cap_is_that_of_the_host_however_it_is_spelled() -> None:
    driven = Driven()

    driven.limiter.cap("HOST.example.", 0.1, ROBOTS)

    driven.take()
    assert driven.view().rate == pytest.approx(0.1)
    with pytest.raises(HostError):
        driven.limiter.cap("no host", 1, "")


def test_a_cap_counts_requests_whatever_they_cost() -> None:
    async def main() -> float:
        clock = LoopClock()
        limiter = limiter_on(clock)
        limiter.cap(HOST, 0.1, ROBOTS)
        for _ in range(3):
            await limiter.acquire(HOST, cost=0.1)
        return clock.now()

    assert run_virtual(main()) == pytest.approx(20)


def test_other_hosts_and_the_probes_of_a_drain_go_by_it_as_they_should() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    driven.limiter.cap(HOST, 0.1, ROBOTS)
    driven.ask(429, latency=0.01)

    assert min(gaps(driven, 4, status=429)) >= 10
    driven.take("other.example")
    assert driven.view("other.example").rate == 5


def test_headers_may_ask_for_less_than_the_cap() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    driven.limiter.cap(HOST, 2, ROBOTS)

    driven.limiter.feedback(driven.take(), Feedback(200, 0.1, quota=Quota(10, 19.0)))

    assert driven.view().rate == pytest.approx(0.5)
    assert driven.view().why == "its rate headers say how much is left"


@pytest.mark.parametrize("rps", [0, -1.0, nan, inf, -inf])
def test_a_cap_is_a_positive_number(rps: float) -> None:
    driven = Driven()

    with pytest.raises(ValueError, match="a cap of"):
        driven.limiter.cap(HOST, rps, ROBOTS)

    driven.take()
    assert driven.view().cap is None


def test_a_cap_of_next_to_nothing_keeps_its_arithmetic() -> None:
    driven = Driven()
    driven.limiter.cap(HOST, 1e-300, ROBOTS)
    driven.take()

    assert driven.limiter.ready_at(HOST) == pytest.approx(366 * 86400)
    driven.limiter.cap(HOST, None, "")
    assert driven.limiter.ready_at(HOST) == pytest.approx(0.5)


# What is learned under it.


@BOTH
def test_nothing_is_learned_that_the_cap_does_not_let_us_verify(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(strategy=strategy, pace=FAST))
    driven.limiter.cap(HOST, 8, ROBOTS)
    converse(driven, lambda _now: HostAnswer(200, 0.1), 120)
    assert driven.view().rate == pytest.approx(8)

    driven.limiter.cap(HOST, None, "")

    assert driven.view().rate == pytest.approx(8), "it grows from where it was, and does not leap"
    converse(driven, lambda _now: HostAnswer(200, 0.1), 30)
    assert driven.view().rate > 8


@BOTH
def test_a_rate_that_was_learned_before_comes_down_to_the_cap_and_stays_there(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(strategy=strategy, pace=FAST))
    converse(driven, lambda _now: HostAnswer(200, 0.1), 60)
    driven.ask(429)
    converse(driven, lambda _now: HostAnswer(200, 0.1), 60)
    assert driven.view().rate > 10

    driven.limiter.cap(HOST, 3, ROBOTS)
    assert (driven.view().ceiling or 0) <= 3
    asked = converse(driven, lambda _now: HostAnswer(200, 0.1), 300)

    assert len(asked) == pytest.approx(900, abs=2)
    assert (driven.view().ceiling or 0) <= 3


@BOTH
def test_a_rate_that_comes_back_because_asking_less_did_not_help_comes_back_to_the_cap(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(strategy=strategy, pace=PaceRules(initial_rps=20, max_rps=40, min_rps=0.1)))
    converse(driven, lambda _now: HostAnswer(200, 0.1), 60, workers=100)
    before = driven.view().rate
    converse(driven, lambda _now: HostAnswer(200, 1.5), 60, workers=100, until=lambda: driven.view().rate < before)

    driven.limiter.cap(HOST, 3, ROBOTS)
    asked = converse(driven, lambda _now: HostAnswer(200, 1.5), 300, workers=100)

    assert len(asked) <= 901


# For how long.


@BOTH
@pytest.mark.parametrize("way", ["forgotten", "crowded out", "restored"])
def test_a_cap_outlives_the_hosts_turn_in_memory(strategy: Strategy, way: str) -> None:
    driven = Driven(LimiterRules(strategy=strategy, hosts=2))
    driven.limiter.cap(HOST, 1 / 600, "robots.txt asks for ten minutes")
    driven.ask()
    saved = driven.limiter.save()
    driven.clock.advance(130)

    if way == "forgotten":
        assert driven.limiter.forget_idle() == 1
    elif way == "crowded out":
        for number in range(5):
            driven.ask(host=f"h{number}.example")
    else:
        driven.limiter.restore(saved)

    assert 599 < driven.limiter.ready_at(HOST) < 602
    assert gaps(driven, 3) == pytest.approx([600, 600])


def test_a_circuit_that_opened_does_not_shorten_it_when_its_host_is_let_go() -> None:
    driven = Driven(LimiterRules(hosts=1))
    driven.trip()
    driven.clock.advance(400)
    driven.limiter.cap(HOST, 1 / 600, "robots.txt asks for ten minutes")
    driven.ask(500)  # the probe: open again, for less than the cap asks for
    asked = driven.clock.now()

    driven.ask(host="other.example")

    assert driven.limiter.ready_at(HOST) > asked + 599


def test_a_cap_is_forgotten_only_when_ten_times_as_many_hosts_as_may_be_known_were_capped_since() -> None:
    driven = Driven(LimiterRules(hosts=2))
    for number in range(21):
        driven.limiter.cap(f"h{number}.example", 0.1, ROBOTS)

    rates = []
    for number in range(21):
        driven.take(f"h{number}.example")
        rates.append(driven.view(f"h{number}.example").rate)

    assert rates == pytest.approx([2] + 20 * [0.1])


# What people are told.


@BOTH
def test_why_says_who_asked_for_it_as_long_as_it_is_what_holds_us(strategy: Strategy) -> None:
    driven = Driven(LimiterRules(strategy=strategy, pace=FAST))
    driven.limiter.cap(HOST, 8, ROBOTS)
    driven.ask()
    assert (driven.view().cap, driven.view().cap_why) == (8, ROBOTS)
    assert driven.view().why != ROBOTS, "it starts below"

    converse(driven, lambda _now: HostAnswer(200, 0.1), 60)
    assert driven.view().why == ROBOTS

    driven.limiter.cap(HOST, None, "")
    assert (driven.view().cap, driven.view().cap_why) == (None, None)
    assert driven.view().why != ROBOTS


def test_what_stops_us_altogether_goes_before_the_cap() -> None:
    driven = Driven()
    driven.limiter.cap(HOST, 0.1, ROBOTS)
    driven.take()
    assert driven.view().why == ROBOTS

    driven.clock.advance(10)
    driven.report(driven.take(), 429)
    assert driven.view().why.startswith("refused")

    driven.ask(429, retry_after=100)
    assert driven.view().why.startswith("told to wait")


# Whatever happens.


async def play_capped(rules: LimiterRules, rps: float, before: list[Action], after: list[Action]) -> None:
    """Anything at all, then a cap on one host, then anything; and what was saved on the way is restored in the end."""
    scene, host = Play(rules), HOSTS[0]
    for action in before:
        await scene.act(action)
    saved, known = scene.limiter.save(), any(view.host == host for view in scene.limiter.snapshot(top=10).top)
    scene.limiter.cap(host, rps, ROBOTS)
    earlier = len(scene.grants[host])
    await scene.settle()  # whom the cap lets through at once wakes before the clock may jump, and notes when that was
    for number, action in enumerate(after):
        await scene.act(action)
        if number % 7 == 6:
            scene.limiter.restore(saved)
    await scene.finish()
    check_cap(scene, rps, max(0, earlier - known))


def check_cap(scene: Play, rps: float, first: int) -> None:
    """No window holds more than the cap allows, and of what may leave at once there is nothing below 20 a second."""
    pace = scene.rules.pace
    depth = min(pace.burst, max(1.0, rps / 20))
    grants = scene.grants[HOSTS[0]][first:]
    times = [grant.at for grant in grants if id(grant.permit) not in scene.unsent]
    for index, start in enumerate(times):
        for count, end in enumerate(times[index:], start=1):
            assert count <= rps * (end - start) + depth + 1e-6


@settings(max_examples=2 * settings().max_examples)
@given(
    st.sampled_from(["governor", "aimd"]),
    st.sampled_from([SLOW, QUICK]),
    st.sampled_from([2, 100]),
    st.sampled_from([1 / 600, 1 / 10, 0.9, 3.0, 30.0, 100.0]),
    st.lists(ACTIONS, max_size=20),
    st.lists(ACTIONS, max_size=50),
)
def test_whatever_happens_a_cap_is_kept_to(
    strategy: Strategy, pace: PaceRules, hosts: int, rps: float, before: list[Action], after: list[Action]
) -> None:
    run_virtual(play_capped(rules_for(strategy, pace, hosts), rps, before, after))


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
@pytest.mark.parametrize("rps", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_cap_is_kept_to_in_a_long_play(strategy: Strategy, rps: float, seed: int) -> None:
    actions = long_play(seed)

    run_virtual(play_capped(rules_for(strategy, QUICK, hosts=2 + 98 * (seed % 2)), rps, actions[:100], actions[100:]))
