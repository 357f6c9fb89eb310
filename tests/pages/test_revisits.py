"""How often a page changes, as its visits tell, and when it is worth another."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.revisits import (
    DAY,
    UNKNOWN,
    ChangeRate,
    VisitPlan,
    VisitRules,
    learn_age,
    learn_visit,
    plan_visits,
)

SECONDS = st.floats(0, 400 * DAY)
KNOWN = st.builds(ChangeRate, st.floats(1, 500), st.floats(DAY, 2000 * DAY))
RATES = st.floats(1e-9, 1e-1)


@given(KNOWN, SECONDS)
def test_a_visit_without_a_change_never_raises_the_rate_above_what_is_usual(known: ChangeRate, elapsed: float) -> None:
    after = learn_visit(known, elapsed, changed=False)

    assert after.rate <= max(known.rate, UNKNOWN.rate) * (1 + 1e-9)


@given(KNOWN, SECONDS)
def test_a_change_is_worth_more_than_none(known: ChangeRate, elapsed: float) -> None:
    changed, same = (learn_visit(known, elapsed, changed=each) for each in (True, False))

    assert changed.rate > same.rate
    assert all(math.isfinite(number) and number > 0 for number in changed)


@given(KNOWN, SECONDS, st.floats(-DAY, 400 * DAY))
def test_no_date_breaks_the_estimate(known: ChangeRate, elapsed: float, age: float) -> None:
    for changed in (True, False):
        after = learn_visit(known, elapsed, changed=changed, age=age)

        assert all(math.isfinite(number) and number > 0 for number in after)


@given(KNOWN, st.floats(1, 400 * DAY))
def test_what_is_matched_has_the_mean_of_the_exact_posterior(known: ChangeRate, elapsed: float) -> None:
    """Nothing fades here: the distribution is the usual one times 1 - exp(-r t), summed up by hand."""
    known = UNKNOWN
    after = learn_visit(known, elapsed, changed=True)

    steps = [known.rate * 12 * (at + 0.5) / 4000 for at in range(4000)]
    weights = [
        rate ** (known.shape - 1) * math.exp(-known.exposure * rate) * -math.expm1(-rate * elapsed) for rate in steps
    ]
    mean = sum(rate * weight for rate, weight in zip(steps, weights, strict=True)) / sum(weights)
    assert after.rate == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("rate", [1 / (40 * DAY), 1 / (5 * DAY), 1 / DAY])
@pytest.mark.parametrize("dated", [True, False])
def test_the_estimate_comes_near_a_known_rate(rate: float, dated: bool) -> None:  # noqa: FBT001
    random, known, changes, at = Random(7), UNKNOWN, 0.0, 0.0
    last = next_change = random.expovariate(rate)
    for _ in range(400):
        elapsed = random.uniform(0.2, 1.8) / rate
        at += elapsed
        changed = False
        while next_change < at:
            last, changed, changes = next_change, True, changes + 1
            next_change += random.expovariate(rate)
        known = learn_visit(known, elapsed, changed=changed, age=at - last if dated else None)

    # What fades leaves some hundred days of it; of slow pages that is few changes, and much of what is usual.
    assert 0.4 * rate < known.rate < 2.5 * rate


def test_a_page_that_has_been_the_same_for_a_year_is_taken_for_a_slow_one_at_once() -> None:
    assert learn_age(UNKNOWN, 365 * DAY).rate < UNKNOWN.rate / 15


@given(RATES, st.floats(0, 1e13))
def test_intervals_keep_to_their_bounds(rate: float, price: float) -> None:
    rules = VisitRules(3600, 30 * DAY)

    assert 3600 * 0.999 <= VisitPlan(rules, price).interval(rate) <= 30 * DAY * 1.001


@given(RATES, RATES, st.floats(1e6, 1e12))
def test_what_changes_more_often_is_visited_no_more_rarely(one: float, other: float, price: float) -> None:
    plan = VisitPlan(VisitRules(3600, 30 * DAY), price)

    slow, fast = sorted((one, other))
    assert plan.interval(fast) <= plan.interval(slow) * (1 + 1e-6)


@given(st.lists(st.tuples(RATES, st.integers(1, 1000)), min_size=1, max_size=20), st.floats(0.05, 20))
def test_a_budget_is_spent_and_not_exceeded(rates: list[tuple[float, int]], each: float) -> None:
    pages = sum(number for _, number in rates)
    rules = VisitRules(3600, 30 * DAY, a_day=pages * each)

    plan = plan_visits(rules, rates)

    spent = sum(number * DAY / plan.interval(rate) for rate, number in rates)
    assert spent <= pages * max(each, 1 / 30) * 1.01
    assert spent >= pages * min(each, 24) * 0.95


def test_one_interval_is_that_interval() -> None:
    plan = plan_visits(VisitRules(DAY, DAY), [(1e-3, 5), (1e-9, 5)])

    assert plan.interval(1e-3) == plan.interval(1e-9) == DAY


def test_rules_that_make_no_sense_cannot_be() -> None:
    for wrong in ((2.0, 1.0, None), (0.0, 1.0, None), (1.0, 2.0, 0.0), (1.0, math.inf, None)):
        with pytest.raises(ValueError, match="expected"):
            VisitRules(*wrong)


def simulate(rates: list[float], rules: VisitRules, days: int, seed: int, *, learned: bool) -> tuple[float, float, int]:
    """Visit pages that change at these rates for so many days, after as many to learn in.

    The share of time for which copies were out of date, for how long on average, and the visits that were made.
    Without `learned`, all are visited equally often, as the budget allows.
    """
    random = Random(seed)
    uniform = len(rates) * DAY / (rules.a_day or 1)
    stale = aged = 0.0
    visits = 0
    known = [UNKNOWN] * len(rates)
    plan = plan_visits(rules, [(each.rate, 1) for each in known])
    seen = [0.0] * len(rates)
    due = [random.uniform(0, uniform) for _ in rates]
    # The first change that a copy lacks, if there is one before its next visit.
    change = [random.expovariate(rate) for rate in rates]
    step, end = DAY / 24, 2 * days * DAY
    at = 0.0
    while at < end:
        at += step
        for page, rate in enumerate(rates):
            if due[page] > at:
                continue
            changed = change[page] < at
            if at > end / 2:
                visits += 1
                if changed:
                    out = at - max(change[page], end / 2)
                    stale += out
                    aged += out * (out / 2 + max(0.0, end / 2 - change[page]))
            known[page] = learn_visit(known[page], at - seen[page], changed=changed)
            seen[page] = at
            if changed:
                change[page] = at + random.expovariate(rate)
            due[page] = at + (plan.interval(known[page].rate) if learned else uniform)
        if learned and round(at / step) % 24 == 0:
            plan = plan_visits(rules, [(each.rate, 1) for each in known])
    time = len(rates) * days * DAY
    return stale / time, aged / time, visits


def test_learned_visits_keep_pages_fresher_than_equal_ones_with_as_many_requests() -> None:
    rates = [each / DAY for each in [12.0] * 5 + [1.0] * 20 + [1 / 7] * 25 + [1 / 60] * 50]
    rules = VisitRules(3600, 30 * DAY, a_day=float(len(rates)))

    equal = simulate(rates, rules, 60, seed=3, learned=False)
    learned = simulate(rates, rules, 60, seed=3, learned=True)

    assert learned[2] <= equal[2] * 1.05  # requests
    assert learned[0] < equal[0] * 0.9  # the share of copies that are out of date
    assert learned[1] < equal[1] * 0.65  # and for how long they are
