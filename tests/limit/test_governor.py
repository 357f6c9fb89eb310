"""How the governor grows, probes, cruises and comes back, seen through the limiter."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random

import pytest
from driven import FAST, HOST, Driven, converse
from story import Story

from sanderling.limit import BreakerRules, LimiterRules, PaceRules
from sanderling.limit.governor import Mode
from sanderling.limit.trials import Evidence
from sanderling.worlds.hosts import BucketQuota, FixedWindowQuota, HostAnswer, HostQuota, SimulatedHost, steady, steps

CALM = BreakerRules(consecutive=1000)  # keeps out of what the governor learns from failures

# The start.


def rates(driven: Driven, ask: Callable[[float], HostAnswer], seconds: float) -> list[float]:
    """Each rate it takes, in turn."""
    seen = [driven.limiter.rules.pace.initial_rps]

    def note() -> bool:
        if driven.view().rate != pytest.approx(seen[-1]):
            seen.append(driven.view().rate)
        return False

    converse(driven, ask, seconds, until=note)
    return seen


def test_a_host_that_never_objected_is_asked_twice_as_much_up_to_16_a_second_and_half_as_much_again_above() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=2, max_rps=1000)))

    assert rates(driven, lambda _now: HostAnswer(200, 0.1), 12)[:7] == pytest.approx([2, 4, 8, 16, 24, 36, 54])


def test_eight_answers_are_enough_for_a_leap() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=4, max_rps=1000)))

    for _ in range(8):
        driven.ask(latency=0.01)

    assert driven.view().rate == pytest.approx(8)


def test_at_its_fastest_there_is_nothing_to_leap_to() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=4, max_rps=4)))

    for _ in range(10):
        driven.ask(latency=0.01)

    assert driven.view().usual is None, "no window has closed yet"


@pytest.mark.parametrize("objection", ["refusal", "failures", "outage", "latency", "ceiling"])
def test_after_any_objection_it_leaps_no_further_than_what_held(objection: str) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=2, max_rps=1000)))
    match objection:
        case "refusal":
            driven = Story(driven.limiter.rules.pace).serve(8).refuse().driven
        case "failures":
            driven = Driven(replace(driven.limiter.rules, breaker=CALM))
            converse(driven, lambda now: HostAnswer(500 if now > 5 else 200, 0.1), 15)
        case "outage":
            driven.trip()
            driven.clock.advance(400)
            driven.trip()  # by a probe that fails
        case "latency":
            converse(driven, lambda _now: HostAnswer(200, 0.1), 6)
            converse(driven, lambda _now: HostAnswer(200, 0.5), 2)
        case "ceiling":
            other = Story(driven.limiter.rules.pace).serve(9).refuse().driven
            driven.limiter.restore(other.limiter.save())
    assert driven.clock.now() == 0 or driven.view().rate < 16
    held = driven.view().rate if objection == "refusal" else 0.0
    driven.clock.advance(400)  # so long that it begins anew, gently

    seen = rates(driven, lambda _now: HostAnswer(200, 0.1), 60)[1:]

    assert max(after for _, after in pairwise(seen)) > 1.01 * held
    assert max(after / before for before, after in pairwise(seen) if after > 1.01 * held) < 1.6


def test_a_first_suspicion_stops_the_growth_and_a_second_ends_it() -> None:
    driven, first = Driven(LimiterRules(pace=FAST)), iter([0.1] * 8)

    seen = rates(driven, lambda _now: HostAnswer(200, next(first, 0.15)), 5)

    assert seen[:2] == pytest.approx([5, 10])
    assert max(seen) < 10.1
    assert driven.view().learned == Evidence.QUEUE.value


@pytest.mark.parametrize("capacity", [6, 8, 12, 25, 40])
def test_a_host_that_begins_to_queue_is_noticed_before_the_queue_is_long(capacity: float) -> None:
    """Nothing is known of its latency but what the first answers took."""
    driven = Driven(LimiterRules(pace=FAST))
    host = SimulatedHost(Random(1), network=0.075, service=steady(1 / capacity))

    asked = converse(driven, host.ask, 30, workers=100)

    assert max(each.answer.latency for each in asked) < 1.5
    assert driven.view().learned == Evidence.QUEUE.value
    assert len(asked) > 0.7 * 30 * capacity


def test_a_host_whose_first_answers_happened_to_be_quick_is_not_held_to_them() -> None:
    asked = 0
    for seed in range(5):
        rng, quick = Random(seed), iter([0.075] * 8)
        driven = Driven(LimiterRules(pace=PaceRules(initial_rps=5, max_rps=40)))
        ask = partial(some_latency, rng, quick)
        asked += len(converse(driven, ask, 60))

    assert asked > 0.8 * 5 * 60 * 40


def some_latency(rng: Random, first: Iterator[float], _now: float) -> HostAnswer:
    return HostAnswer(200, next(first, 0.0) or 0.1 * rng.lognormvariate(0, 0.35))


# Drains.


def probes(driven: Driven, count: int) -> list[float]:
    """When the next probes leave, all of them being refused at once."""
    left = []
    for _ in range(count):
        permit = driven.next()
        left.append(driven.clock.now())
        assert driven.limiter.try_acquire(HOST) is None, "a single one at a time"
        driven.report(permit, 429)
    return left


def test_probes_leave_one_at_a_time_and_ever_more_seldom() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    driven.report(driven.take(), 429)

    left = probes(driven, 5)

    gaps = [after - before for before, after in zip([0.0, *left], left, strict=False)]
    assert gaps == pytest.approx([0.25 * 1.8**k for k in range(5)])


@pytest.mark.parametrize("window", [10, 60, 600])
def test_a_probe_leaves_just_when_a_window_that_began_with_us_would_end(window: float) -> None:
    driven = Driven(LimiterRules(pace=FAST))
    driven.report(driven.take(), 429, latency=0)

    left = probes(driven, 30)

    assert min(abs(each - window - 0.02) for each in left) < 1e-6


def test_retry_after_goes_before_the_spacing_of_probes() -> None:
    driven = Driven(LimiterRules(pace=FAST))

    driven.report(driven.take(), 429, retry_after=100)

    assert driven.limiter.ready_at(HOST) == pytest.approx(100)


def test_a_quota_of_a_minute_is_met_when_it_begins_anew() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    host = SimulatedHost(Random(1), FixedWindowQuota(600, 60))

    asked = converse(driven, host.ask, 600)

    served = sum(each.answer.status == 200 for each in asked)
    assert served > 0.9 * 6000
    assert len(asked) - served < 0.01 * len(asked)


# Growing, cruising, testing.


def settled(quota: HostQuota, seconds: float = 300) -> Driven:
    driven = Driven(LimiterRules(pace=FAST))
    converse(driven, SimulatedHost(Random(1), quota).ask, seconds)
    return driven


@pytest.mark.parametrize("rate", [1, 6, 20, 100])
def test_it_finds_the_rate_of_a_silent_quota(rate: float) -> None:
    driven = settled(BucketQuota(steady(rate), max(1.5, rate)))

    assert 0.85 * rate < (driven.view().ceiling or 0) < 1.1 * rate


def test_it_notices_when_a_quota_rises_and_when_it_falls() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    host = SimulatedHost(Random(1), BucketQuota(steps([(0, 20), (200, 6), (500, 20)]), 20))

    rates = []
    for until in (200, 500, 800):
        converse(driven, host.ask, until - driven.clock.now())
        rates.append(driven.view().ceiling or 0)

    assert rates == pytest.approx([20, 6, 20], rel=0.15)


def test_it_grows_no_further_than_the_rules_allow() -> None:
    story = Story(PaceRules(initial_rps=5, max_rps=30)).serve(60)

    assert story.driven.view().rate == pytest.approx(30)


def test_the_ceiling_of_an_earlier_life_is_approached_with_care_and_kept_to() -> None:
    before = settled(BucketQuota(steady(20), 20))
    ceiling = before.view().ceiling or 0

    after = Driven(LimiterRules(pace=FAST))
    after.limiter.restore(before.limiter.save())
    converse(after, lambda _now: HostAnswer(200, 0.1), 14)

    assert after.view().ceiling == pytest.approx(ceiling)
    assert 0.9 * ceiling < after.view().rate <= ceiling
    assert after.view().why.startswith(Mode.CRUISE.value)


# Failures.


def failing(share: float) -> Driven:
    driven = Driven(LimiterRules(pace=FAST))
    converse(driven, SimulatedHost(Random(1), BucketQuota(steady(20), 20), failing=steady(share)).ask, 300)
    return driven


def test_failures_that_asking_less_does_not_cure_do_not_starve_us() -> None:
    """Two in five answers of five hosts fail, whatever is asked; the breakers are kept out of it."""
    rules = LimiterRules(pace=PaceRules(initial_rps=5, max_rps=30), breaker=CALM)

    asked = [
        len(converse(Driven(rules, seed=seed), SimulatedHost(Random(seed), failing=steady(0.4)).ask, 60))
        for seed in range(5)
    ]

    assert sum(asked) > 0.5 * 5 * 60 * 30


def test_a_few_failures_are_no_reason_to_ask_less() -> None:
    assert failing(0.02).view().rate > 15


def test_after_an_outage_it_comes_back_gently() -> None:
    story = Story().serve(5).refuse().serve(until=Mode.TEST)
    ceiling = story.driven.view().ceiling or 0

    story.driven.trip()
    story.driven.clock.advance(400)
    story.driven.trip()  # by a probe that fails

    assert story.driven.view().rate <= max(5.0, ceiling / 2)


def test_an_opening_that_its_first_probe_undoes_has_taught_nothing() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    converse(driven, lambda _now: HostAnswer(200, 0.1), 20)
    before = driven.view().rate

    driven.trip()
    assert driven.limiter.probe_now(HOST)
    driven.ask()
    converse(driven, lambda _now: HostAnswer(200, 0.1), 5)

    assert driven.view().state == "closed"
    assert driven.view().rate >= before > 20


def test_the_failures_of_a_false_alarm_are_no_part_of_the_windows_share() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=5, max_rps=5)))
    driven.trip()
    assert driven.limiter.probe_now(HOST)

    for _ in range(10):
        driven.ask()
    driven.clock.advance(6)  # by then the window counts with what it has
    driven.ask(500)

    assert driven.view().rate == pytest.approx(5)


def test_a_drain_that_ends_in_an_outage_is_given_up_at_once() -> None:
    """Bare 503s: the drain goes on until the circuit opens, and would take the outage for a quota."""
    driven = Driven(LimiterRules(pace=FAST))
    converse(driven, lambda _now: HostAnswer(200, 0.1), 10)
    before = driven.view().rate

    driven.trip(status=503)
    driven.ask()

    assert driven.view().ceiling is None
    assert driven.view().rate <= before / 4
    assert driven.view().why == Mode.GROW.value
