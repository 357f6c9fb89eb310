from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.sequence.readings import PeriodReadings
from sanderling.sequence.scaling import AtlasPolicy, ScalePlan, ScaleRules, ScalingStrategy, round_half_up

RULES = ScaleRules()
POLICY = AtlasPolicy(RULES)
SEEN = PeriodReadings(lag=15.0, missing=0.025, errors=0.0, rate=60.0, missing_count=500, samples=20_000, seconds=300.0)


def seen(lag: float | None = 15.0, missing: float = 0.025, rate: float = 60.0) -> PeriodReadings:
    return replace(SEEN, lag=lag, missing=missing, rate=rate)


def plan(workers: int = 25, strategy: ScalingStrategy = ScalingStrategy.NORMAL) -> ScalePlan:
    return ScalePlan(workers, 10_000, strategy, "")


readings = st.builds(
    PeriodReadings,
    lag=st.none() | st.floats(0, 1e308),
    missing=st.floats(0, 1) | st.just(0.025),
    errors=st.floats(0, 1),
    rate=st.floats(0, 1e308),
    missing_count=st.floats(0, 1e9),
    samples=st.integers(0, 10**9),
    seconds=st.floats(0, 1e9),
)
plans = st.builds(
    ScalePlan, st.integers(1, 10**6), st.integers(1, 10**9), st.sampled_from(ScalingStrategy), st.just("")
)
rules = st.builds(
    lambda low, mid, high: ScaleRules(
        min_workers=low, workers=low + mid, max_workers=low + mid + high, min_period=low, max_period=10_000 + high
    ),
    st.integers(1, 50),
    st.integers(0, 300),
    st.integers(0, 300),
)


@pytest.mark.parametrize(
    ("missing", "lag", "strategy"),
    [
        (0.51, 15, ScalingStrategy.GAP),
        (0.51, 900, ScalingStrategy.GAP),
        (0.5, 15, ScalingStrategy.NORMAL),
        (0.5, 600, ScalingStrategy.CATCH_UP),
        (0.1, 599.9, ScalingStrategy.NORMAL),
        (0.001, 15, ScalingStrategy.NORMAL),
        (0.00099, 15, ScalingStrategy.CATCH_UP),
    ],
)
def test_what_is_not_found_and_the_lag_choose_the_strategy(
    missing: float, lag: float, strategy: ScalingStrategy
) -> None:
    assert POLICY.decide(seen(lag, missing), plan()).strategy is strategy


@pytest.mark.parametrize("workers", [5, 25, 250])
def test_in_a_gap_25_workers_look_around_in_a_short_period(workers: int) -> None:
    found = POLICY.decide(seen(missing=0.9), plan(workers))

    assert (found.workers, found.period) == (25, 2500)
    assert found.why == "90.0 % not found: 25 workers look around for 2500 ids."


@pytest.mark.parametrize(
    ("workers", "lag", "more", "period"),
    [
        (25, 10, 25, 10_000),  # a lag below 20 s is as good as none
        (25, 20, 25, 10_000),
        (25, 120, 50, 10_000),  # one percent more for each second
        (25, 120.5, 51, 10_000),
        (10, 900, 98, 10_000),
        (100, 900, 250, 11_865),  # the power: (100 x 880) to the 0.824
        (100, 900.5, 250, 11_876),  # from a lag that is rounded up
        (250, 86_400, 250, 200_000),
    ],
)
def test_catching_up_grows_with_the_lag(workers: int, lag: float, more: int, period: int) -> None:
    found = POLICY.decide(seen(lag, missing=0.0), plan(workers))

    assert (found.workers, found.period) == (more, period)


def test_catching_up_takes_the_workers_as_they_are_and_the_period_from_at_least_the_fewest() -> None:
    found = AtlasPolicy(ScaleRules(min_workers=100, workers=100)).decide(seen(900.0), plan(40))

    assert found.workers == 250  # 40 x 9.8, and not 100 x 9.8
    assert found.period == 11_865  # 100 x 880, and not 40 x 880


@pytest.mark.parametrize(
    ("workers", "missing", "after"),
    [
        (100, 0.025, 100),
        (100, 0.001, 112),  # the most it ever grows
        (100, 0.0235, 101),
        (100, 0.035, 95),
        (100, 0.075, 78),
        (100, 0.19, 36),
        (100, 0.2, 35),
        (100, 0.5, 35),  # the most it is ever cut
        (10, 0.5, 5),  # never below the fewest; 3.5 would be
    ],
)
def test_at_the_head_the_share_not_found_moves_the_workers(workers: int, missing: float, after: int) -> None:
    assert POLICY.decide(seen(missing=missing), plan(workers)).workers == after


def test_the_steepness_is_the_whole_number_687() -> None:
    """With 5500 / 8 = 687.5 the cut would be 2,964 of 100,000 workers."""
    policy = AtlasPolicy(ScaleRules(max_workers=1_000_000))

    assert policy.decide(seen(missing=0.03), plan(100_000)).workers == 100_000 - 2962


def test_exactly_the_right_share_changes_nothing() -> None:
    found = POLICY.decide(seen(missing=0.025), plan(33))

    assert found.workers == 33
    assert found.why == "2.5 % not found, 2.5 % is right: 33 workers stay."


@pytest.mark.parametrize(
    ("rate", "missing", "period"),
    [
        (60.0, 0.025, 18_000),  # five minutes
        (60.0, 0.075, 6_000),  # running ahead: look again sooner
        (60.0, 0.0749, 18_000),
        (0.0, 0.025, 15_000),  # 600 for each worker
        (0.01, 0.025, 100),  # and not 3
        (0.01, 0.2, 100),
        (1e9, 0.025, 200_000),
    ],
)
def test_a_normal_period_is_five_minutes_of_ids_within_bounds(rate: float, missing: float, period: int) -> None:
    assert POLICY.decide(seen(missing=missing, rate=rate), plan()).period == period


@pytest.mark.parametrize("strategy", ScalingStrategy)
def test_no_record_at_all_keeps_the_plan(strategy: ScalingStrategy) -> None:
    found = POLICY.decide(replace(seen(lag=None, missing=0.0), errors=1.0), plan(40, strategy))

    if strategy is not ScalingStrategy.GAP:  # which is acted on without records
        assert (found.workers, found.period, found.strategy) == (40, 10_000, strategy)
        assert found.why == "No record in 300 s, so 40 workers stay."


def test_no_record_and_nothing_found_is_a_gap() -> None:
    assert POLICY.decide(seen(lag=None, missing=0.9), plan()).strategy is ScalingStrategy.GAP


@given(readings, plans, rules)
def test_a_plan_is_within_bounds_whatever_was_read(
    readings: PeriodReadings, plan: ScalePlan, rules: ScaleRules
) -> None:
    found = AtlasPolicy(rules).decide(readings, plan)

    kept = (found.workers, found.period) == (plan.workers, plan.period)
    assert rules.min_workers <= found.workers <= rules.max_workers or (kept and readings.lag is None)
    assert rules.min_period <= found.period <= rules.max_period or (kept and readings.lag is None)
    assert found.why


@given(readings, plans)
def test_the_same_readings_give_the_same_plan(readings: PeriodReadings, plan: ScalePlan) -> None:
    assert POLICY.decide(readings, plan) == POLICY.decide(readings, plan)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 250))
def test_more_lag_never_means_fewer_workers_or_a_shorter_period(one: float, other: float, workers: int) -> None:
    less, more = (POLICY.follow(ScalingStrategy.CATCH_UP, seen(lag), plan(workers)) for lag in sorted((one, other)))

    assert less.workers <= more.workers
    assert less.period <= more.period
    assert less.workers >= min(workers, 250)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 250))
def test_more_that_is_not_found_never_means_more_workers(one: float, other: float, workers: int) -> None:
    less, more = (
        POLICY.follow(ScalingStrategy.NORMAL, seen(missing=missing), plan(workers)) for missing in sorted((one, other))
    )

    assert less.workers >= more.workers


@given(st.floats(0.001, 1e6), st.floats(0.001, 1e6))
def test_a_higher_rate_never_means_a_shorter_period(one: float, other: float) -> None:
    less, more = (POLICY.follow(ScalingStrategy.NORMAL, seen(rate=rate), plan()) for rate in sorted((one, other)))

    assert less.period <= more.period


@pytest.mark.parametrize(("number", "whole"), [(0.5, 1), (1.5, 2), (2.5, 3), (2.4, 2), (-0.5, -1), (-2.5, -3), (0, 0)])
def test_halves_are_rounded_away_from_zero(number: float, whole: int) -> None:
    assert round_half_up(number) == whole


@pytest.mark.parametrize("value", [-1.0, nan, inf])
@pytest.mark.parametrize("name", ["lag", "missing", "errors", "rate", "missing_count", "seconds"])
def test_a_reading_that_cannot_be_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        replace(SEEN, **{name: value})  # type: ignore[arg-type]  # the values of all these fields are floats


def test_a_share_above_one_is_refused_but_for_rounding() -> None:
    assert replace(SEEN, missing=1.0000000000000002)
    with pytest.raises(ValueError, match=r"errors is 1\.5; expected a share"):
        replace(SEEN, errors=1.5)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"min_workers": 0}, "min_workers 0, workers 25, max_workers 250"),
        ({"workers": 300}, "min_workers 5, workers 300, max_workers 250"),
        ({"max_workers": 3}, "must be 1 or more, and not decrease"),
        ({"min_period": 20_000}, "min_period 20000, period 10000"),
    ],
)
def test_rules_that_contradict_themselves_are_refused(wrong: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ScaleRules(**wrong)


def test_the_first_plan_is_that_of_the_rules() -> None:
    first = ScaleRules(workers=40, period=500).first_plan()

    assert (first.workers, first.period, first.strategy) == (40, 500, ScalingStrategy.NORMAL)
