"""What becomes of a rise that did not pay, seen through the guard."""

from dataclasses import replace

import pytest
from guarded_plans import AT_HEAD, BEHIND, guard, only, plan

from sanderling.apis.numbered import Status
from sanderling.sequence.guard import Decision, Guard, ScalingGuardRules, UpstreamFacts
from sanderling.sequence.readings import PeriodReadings, ReadingsWindow
from sanderling.sequence.scaling import ScalingStrategy

FAR = replace(BEHIND, samples=15_000, rate=50.0)
OPEN = UpstreamFacts(head_rate=60.0, latency=0.5, permits=500.0, backlog=200_000.0)


def after_a_rise(
    readings: PeriodReadings, facts: UpstreamFacts = OPEN, rules: ScalingGuardRules | None = None
) -> tuple[Guard, Decision]:
    """From 25 workers and 50 records a second to 50 workers, and then those readings."""
    rules = rules or only(slew=True, knee=True)
    judge = guard(rules)
    risen = judge.decide(FAR, facts, plan(25, ScalingStrategy.CATCH_UP))
    assert risen.plan.workers == 50
    return judge, judge.decide(readings, facts, risen.plan)


def test_a_rise_that_brought_little_is_taken_back() -> None:
    _, decision = after_a_rise(replace(FAR, rate=60.0))

    assert decision.plan.workers == 25
    assert "knee: 50 workers instead of 25 brought +20% records a second" in decision.held
    assert after_a_rise(replace(FAR, rate=60.0), rules=only(slew=True))[1].plan.workers == 100


def test_a_rise_that_paid_is_followed_by_the_next() -> None:
    assert after_a_rise(replace(FAR, rate=63.0))[1].plan.workers == 100


@pytest.mark.parametrize(("before", "after", "workers"), [(0.0, 0.011, 25), (0.0, 0.009, 100), (0.02, 0.03, 100)])
def test_a_rise_that_brought_errors_is_taken_back(before: float, after: float, workers: int) -> None:
    """But not for errors that were there before."""
    judge = guard(only(slew=True, knee=True))
    risen = judge.decide(replace(FAR, errors=before), OPEN, plan(25, ScalingStrategy.CATCH_UP)).plan

    assert judge.decide(replace(FAR, rate=100.0, errors=after), OPEN, risen).plan.workers == workers


def test_what_was_taken_back_is_not_tried_again_for_three_periods() -> None:
    judge, decision = after_a_rise(replace(FAR, rate=52.0))

    seen = []
    for _ in range(5):
        decision = judge.decide(FAR, OPEN, decision.plan)
        seen.append(decision.plan.workers)

    assert seen[:4] == [25, 25, 25, 50]


def test_after_a_verdict_20_seconds_are_enough_to_see_whether_it_was_right() -> None:
    judge, decision = after_a_rise(replace(FAR, rate=52.0))
    window = ReadingsWindow(0.0)
    for _ in range(200):
        window.count(Status.SUCCESS, 900.0)

    assert judge.over(decision.plan, window, 20.0)
    decision = judge.decide(FAR, OPEN, decision.plan)
    assert not judge.over(decision.plan, window, 20.0), "it was; now there is time"


def test_at_the_head_a_rise_need_not_pay() -> None:
    """There is no more to be had than the upstream makes, so the rate says nothing about the workers."""
    for readings, facts in ((replace(AT_HEAD, missing=0.02), OPEN), (replace(FAR), replace(OPEN, backlog=600.0))):
        _, decision = after_a_rise(readings, facts)

        assert decision.plan.workers >= 50
        assert not any("knee" in word for word in decision.held)


def test_where_the_limiter_sets_the_pace_a_rise_need_not_pay() -> None:
    _, decision = after_a_rise(replace(FAR, rate=50.0, errors=0.02), replace(OPEN, permits=60.0))

    assert decision.plan.workers == 100


def test_a_gap_in_between_leaves_a_rise_unjudged() -> None:
    judge = guard(only(slew=True, knee=True, one_window=True))
    risen = judge.decide(FAR, OPEN, plan(25, ScalingStrategy.CATCH_UP)).plan

    judge.decide(replace(FAR, rate=1.0), OPEN, risen, gap=True)

    assert judge.decide(FAR, OPEN, risen).plan.workers == 100


def test_if_stepping_back_costs_as_much_it_was_not_the_knee() -> None:
    """The host became twice as slow just when we doubled: with the old number of workers it is half as fast."""
    judge, decision = after_a_rise(replace(FAR, rate=50.0))
    assert decision.plan.workers == 25

    decision = judge.decide(replace(FAR, rate=25.0), OPEN, decision.plan)

    assert decision.plan.workers == 50


def test_errors_that_stay_after_stepping_back_were_not_our_doing() -> None:
    judge, decision = after_a_rise(replace(FAR, rate=100.0, errors=0.2))
    assert decision.plan.workers == 25

    assert judge.decide(replace(FAR, errors=0.2), OPEN, decision.plan).plan.workers == 50
