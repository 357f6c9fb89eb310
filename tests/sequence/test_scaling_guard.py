from dataclasses import replace
from math import nan

import pytest
from guarded_plans import AT_HEAD, BEHIND, KNOWN, OFF, SCALE, UNKNOWN, decide, guard, only, plan
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.numbered import Status
from sanderling.sequence.guard import ScalingGuardRules, UpstreamFacts
from sanderling.sequence.readings import PeriodReadings, ReadingsWindow
from sanderling.sequence.scaling import AtlasPolicy, ScalingStrategy


def test_with_all_rules_off_the_policy_has_its_way() -> None:
    for readings in (AT_HEAD, BEHIND, replace(AT_HEAD, missing=0.9), replace(AT_HEAD, samples=1, lag=None)):
        decision = decide(OFF, readings, plan(), KNOWN, gap=True)

        assert decision.plan == decision.wanted == AtlasPolicy(SCALE).decide(readings, plan())
        assert decision.held == ()


def test_what_was_held_is_said_in_words() -> None:
    decision = decide(only(slew=True), BEHIND, plan(25))

    assert decision.held == ("slew: 246 are more than 2 times 25",)
    assert decision.plan.why == (
        "25 workers become 50: slew: 246 are more than 2 times 25. "
        "Without that: 900 s behind with 0.0 % not found: 25 workers become 246."
    )
    assert decision.wanted.workers == 246


# One window.


def test_a_gap_in_the_period_changes_nothing() -> None:
    with_it = decide(only(one_window=True), BEHIND, plan(40), gap=True)

    assert (with_it.plan.workers, with_it.plan.period, with_it.plan.strategy) == (40, 10_000, ScalingStrategy.NORMAL)
    assert with_it.held == ("one window: a gap, or a wait at the head, was in it",)
    assert decide(OFF, BEHIND, plan(40), gap=True).plan.workers == 250


@pytest.mark.parametrize(("samples", "workers"), [(49, 40), (50, 250)])
def test_fewer_than_50_requests_change_nothing(samples: int, workers: int) -> None:
    few = replace(BEHIND, samples=samples)

    assert decide(only(one_window=True), few, plan(40)).plan.workers == workers
    assert decide(OFF, few, plan(40)).plan.workers == 250


def test_a_period_without_records_changes_nothing_unless_it_was_all_gap() -> None:
    nothing = replace(AT_HEAD, lag=None, missing=0.0, errors=1.0)

    held = decide(ScalingGuardRules(), nothing, plan(40), KNOWN)

    assert held.plan.workers == 40
    assert held.held == ("one window: there was no record in it",)
    assert (
        decide(ScalingGuardRules(), replace(nothing, missing=0.9), plan(40), UNKNOWN).plan.strategy
        is ScalingStrategy.GAP
    )


# Dead zone.


@pytest.mark.parametrize(("missing", "after"), [(0.011, 40), (0.039, 40), (0.009, 43), (0.041, 37)])
def test_close_enough_to_the_right_share_changes_nothing(missing: float, after: int) -> None:
    readings = replace(AT_HEAD, missing=missing)

    assert decide(only(dead_zone=True), readings, plan(40)).plan.workers == after
    assert decide(OFF, readings, plan(40)).plan.workers != 40


def test_close_enough_is_not_enough_when_far_behind() -> None:
    assert decide(only(dead_zone=True), replace(AT_HEAD, missing=0.012, lag=90.0), plan(40)).plan.workers == 43


def test_a_change_below_a_twentieth_is_not_made() -> None:
    readings = replace(AT_HEAD, missing=0.02, lag=90.0)

    decision = decide(only(dead_zone=True), readings, plan(100))

    assert decision.plan.workers == 100
    assert decision.held == ("dead zone: from 100 to 103 workers is hardly a change",)
    assert decide(OFF, readings, plan(100)).plan.workers == 103


def test_with_pacing_a_change_must_be_larger_than_what_there_is_to_spare() -> None:
    facts = UpstreamFacts(head_rate=60.0, latency=0.5, permits=1000.0, backlog=30_000.0)
    behind = replace(AT_HEAD, lag=500.0, rate=70.0, missing=0.0)
    rules = only(dead_zone=True, little=True)

    without = decide(rules, behind, plan(80), facts).plan.workers
    paced = decide(replace(rules, pacing=True), behind, plan(80), facts).plan.workers

    assert 80 < without < 1.15 * 80
    assert paced == 80


@pytest.mark.parametrize(("missing", "strategy"), [(0.31, ScalingStrategy.GAP), (0.29, ScalingStrategy.NORMAL)])
def test_a_gap_is_left_later_than_it_is_entered(missing: float, strategy: ScalingStrategy) -> None:
    readings = replace(AT_HEAD, missing=missing)

    assert decide(only(dead_zone=True), readings, plan(25, ScalingStrategy.GAP)).plan.strategy is strategy
    assert decide(OFF, readings, plan(25, ScalingStrategy.GAP)).plan.strategy is ScalingStrategy.NORMAL


@pytest.mark.parametrize(
    ("before", "lag", "strategy"),
    [
        (ScalingStrategy.NORMAL, 599, ScalingStrategy.NORMAL),
        (ScalingStrategy.NORMAL, 600, ScalingStrategy.CATCH_UP),
        (ScalingStrategy.CATCH_UP, 121, ScalingStrategy.CATCH_UP),
        (ScalingStrategy.CATCH_UP, 119, ScalingStrategy.NORMAL),
    ],
)
def test_catching_up_is_left_later_than_it_is_entered(
    before: ScalingStrategy, lag: float, strategy: ScalingStrategy
) -> None:
    assert decide(only(dead_zone=True), replace(AT_HEAD, lag=lag), plan(25, before)).plan.strategy is strategy


@pytest.mark.parametrize(("lag", "strategy"), [(30, ScalingStrategy.NORMAL), (31, ScalingStrategy.CATCH_UP)])
def test_nothing_missing_is_a_reason_to_catch_up_only_if_there_is_something_to(
    lag: float, strategy: ScalingStrategy
) -> None:
    readings = replace(AT_HEAD, lag=lag, missing=0.0)

    assert decide(only(dead_zone=True), readings, plan()).plan.strategy is strategy
    assert decide(OFF, readings, plan()).plan.strategy is ScalingStrategy.CATCH_UP


# Slew.


def test_workers_at_most_double() -> None:
    assert decide(only(slew=True), BEHIND, plan(25)).plan.workers == 50
    assert decide(OFF, BEHIND, plan(25)).plan.workers == 246


def test_workers_shrink_by_at_most_three_in_ten_and_only_the_second_time() -> None:
    ahead = replace(AT_HEAD, missing=0.3)
    careful, free = guard(only(slew=True)), guard(OFF)

    for rules, steps in ((careful, [70, 49, 35]), (free, [35, 12, 5])):
        seen, now = [], plan(100)
        rules.decide(replace(AT_HEAD, missing=0.025), UNKNOWN, now)
        for _ in range(4):
            now = rules.decide(ahead, UNKNOWN, now).plan
            seen.append(now.workers)
        assert [workers for workers in seen if workers < 100][:3] == steps
        assert seen[0] == (100 if rules is careful else 35)


# Little's law.


def test_no_fewer_workers_than_keep_up() -> None:
    ahead, facts = replace(AT_HEAD, missing=0.3), replace(KNOWN, latency=1.0, permits=None)

    decision = decide(only(little=True), ahead, plan(80), facts)

    assert decision.plan.workers == 66  # 60 x 1.0 x 1.1
    assert decision.held == ("little: 60.0 ids/s and 0 to catch up need 66 workers",)
    assert decide(OFF, ahead, plan(80), facts).plan.workers == 28


def test_no_fewer_than_clear_the_backlog_in_a_quarter_of_an_hour() -> None:
    """Holes look like running ahead, so the policy takes workers away, but the lag says otherwise."""
    behind = replace(AT_HEAD, missing=0.3, lag=300.0)

    assert decide(only(little=True), behind, plan(80), replace(KNOWN, backlog=90_000, permits=None)).plan.workers == 44


def test_no_rise_beyond_what_clears_the_backlog_in_five_minutes() -> None:
    facts = replace(KNOWN, backlog=30_000, permits=None)

    decision = decide(only(little=True), BEHIND, plan(25), facts)

    assert decision.plan.workers == 44  # (60 + 30,000 / 300) x 0.25 x 1.1
    assert decision.held == ("little: 44 workers clear a backlog of 30000 ids soon enough",)
    assert decide(only(little=True), BEHIND, plan(90), facts).plan.workers == 90, "those that there are may stay"
    assert decide(OFF, BEHIND, plan(25), facts).plan.workers == 246


def test_never_more_workers_than_permits() -> None:
    facts = replace(KNOWN, backlog=1e6)

    decision = decide(only(little=True), BEHIND, plan(25), facts)

    assert decision.plan.workers == 47  # 150 x 0.25 x 1.25
    assert decision.held[-1] == "little: 150.0 permits/s keep no more than 47 workers busy"


def test_a_few_too_many_may_stay_and_many_too_many_may_not() -> None:
    facts = replace(KNOWN, backlog=1e6)

    assert decide(only(little=True), BEHIND, plan(55), facts).plan.workers == 55
    assert decide(only(little=True), BEHIND, plan(65), facts).plan.workers == 47


def test_the_limiter_has_the_last_word_over_what_is_needed() -> None:
    assert decide(only(little=True), AT_HEAD, plan(80), replace(KNOWN, permits=20.0)).plan.workers == 7


def test_without_facts_the_law_says_nothing() -> None:
    assert decide(only(little=True), BEHIND, plan(25), UNKNOWN).plan.workers == 246
    assert decide(only(little=True), BEHIND, plan(25), replace(KNOWN, latency=None)).plan.workers == 246


# Pacing.


@pytest.mark.parametrize(("workers", "after"), [(16, 21), (17, 17), (22, 22), (27, 27), (28, 21)])
def test_at_the_head_there_are_as_many_workers_as_keep_up(workers: int, after: int) -> None:
    """60 ids/s that take 0.25 s need 16.5; with some to spare, and not fewer until it is plain that they are idle."""
    decision = decide(only(pacing=True), replace(AT_HEAD, missing=0.0), plan(workers), KNOWN)

    assert decision.plan.workers == after
    assert decision.plan.strategy is ScalingStrategy.NORMAL
    assert decide(OFF, replace(AT_HEAD, missing=0.0), plan(workers), KNOWN).plan.strategy is ScalingStrategy.CATCH_UP


def test_few_that_are_not_found_are_no_reason_to_grow() -> None:
    readings = replace(AT_HEAD, missing=0.002)

    assert decide(only(pacing=True, dead_zone=True), readings, plan(40)).plan.workers == 40
    assert decide(only(dead_zone=True), readings, plan(40)).plan.workers == 45


def test_records_that_are_published_late_are_no_backlog() -> None:
    late = replace(AT_HEAD, lag=1200.0, missing=0.0)

    published_late = decide(ScalingGuardRules(), late, plan(25), KNOWN).plan
    behind = decide(ScalingGuardRules(), late, plan(25), replace(KNOWN, backlog=72_000)).plan

    assert (published_late.workers, published_late.strategy) == (25, ScalingStrategy.NORMAL)
    assert (behind.workers, behind.strategy) == (47, ScalingStrategy.CATCH_UP)


# When a period is over.


def counted(ids: int) -> ReadingsWindow:
    window = ReadingsWindow(0.0)
    window.ids = ids
    for _ in range(ids):
        window.count(Status.SUCCESS, 10.0)
    return window


def test_a_period_ends_with_its_ids_or_after_five_minutes() -> None:
    judge, now = guard(), plan(25)
    judge.decide(AT_HEAD, KNOWN, now)

    assert judge.over(now, counted(10_000), 5.0)
    assert not judge.over(now, counted(9_999), 299.0)
    assert judge.over(now, counted(0), 300.0)


def test_while_workers_are_on_the_rise_20_seconds_are_enough() -> None:
    judge = guard()
    assert judge.over(plan(), counted(200), 20.0), "at the start"
    assert not judge.over(plan(), counted(199), 20.0)
    assert not judge.over(plan(), counted(500), 19.0)

    judge.decide(AT_HEAD, KNOWN, plan(22))
    assert not judge.over(plan(), counted(500), 250.0), "steady"

    judge.decide(BEHIND, replace(KNOWN, backlog=1e6), plan(22))
    assert judge.over(plan(), counted(200), 20.0), "on the rise"


# Whatever comes.

shares = st.floats(0, 1)
readings = st.builds(
    PeriodReadings,
    lag=st.none() | st.floats(0, 1e6),
    missing=shares,
    errors=shares,
    rate=st.floats(0, 1e4),
    missing_count=st.floats(0, 1e6),
    samples=st.integers(0, 10**6),
    seconds=st.floats(0, 300),
)
some = st.none() | st.floats(0, 1e6)
facts = st.builds(UpstreamFacts, some, some, some, some)
switches = st.booleans()
rules = st.builds(ScalingGuardRules, switches, switches, switches, switches, switches, switches)


@given(rules, st.lists(st.tuples(readings, facts, st.booleans()), min_size=1, max_size=20))
def test_workers_and_period_stay_within_bounds_whatever_happens(
    rules: ScalingGuardRules, periods: list[tuple[PeriodReadings, UpstreamFacts, bool]]
) -> None:
    judge, now = guard(rules), SCALE.first_plan()

    for seen, known, gap in periods:
        before = now
        decision = judge.decide(seen, known, before, gap=gap)
        now = decision.plan

        assert SCALE.min_workers <= now.workers <= SCALE.max_workers
        assert SCALE.min_period <= now.period <= SCALE.max_period
        assert now.workers == decision.wanted.workers or decision.held
        assert now.workers <= 2 * before.workers or not rules.slew


@pytest.mark.parametrize("wrong", [{"latency": -1.0}, {"permits": nan}, {"backlog": -5.0}, {"head_rate": nan}])
def test_facts_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
        UpstreamFacts(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"fewest": 0}, "fewest is 0"), ({"slack": 0.5}, "slack is 0.5"), ({"most_down": 1.0}, "most_down is 1.0")],
)
def test_rules_that_cannot_be_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ScalingGuardRules(**wrong)  # type: ignore[arg-type]  # all of these fields are numbers
