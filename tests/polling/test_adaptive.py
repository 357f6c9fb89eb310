import heapq
import random
from collections.abc import Callable
from math import exp, inf, log, nan, sqrt
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.polling.adaptive import DECAY, IntervalShares, averaged, counted, rate

FASTEST, SLOWEST = 1.0, 3600.0


def seen(pattern: str) -> tuple[float, float]:
    """The counts after runs that found a change (x) or none (.)."""
    polls, hits = 0.0, 0.0
    for each in pattern:
        polls, hits = counted(polls, hits, changed=each == "x")
    return polls, hits


def test_a_run_counts_less_with_every_run_after_it() -> None:
    assert seen("x") == (1.0, 1.0)
    assert seen("x.") == (1 + DECAY, DECAY)
    assert seen("." * 1000 + "x") == pytest.approx((1 / (1 - DECAY), 1.0))


def test_the_mean_gap_weighs_a_run_as_the_counts_do() -> None:
    polls, mean = 0.0, 50.0
    gaps = [10.0, 20.0, 40.0, 10.0]
    for gap in gaps:
        polls, _ = counted(polls, 0.0, changed=False)
        mean = averaged(mean, gap, polls)

    weights = [DECAY**3, DECAY**2, DECAY, 1.0]
    assert mean == pytest.approx(sum(map(float.__mul__, gaps, weights)) / sum(weights))
    assert averaged(50.0, 10.0, 0.0) == 10.0


def test_a_target_without_history_is_taken_to_change_about_once_in_its_interval() -> None:
    assert rate(0.0, 0.0, 10.0) == pytest.approx(log(2) / 10)
    assert rate(0.0, 0.0, 1000.0) == pytest.approx(log(2) / 1000)


def test_the_rate_is_finite_if_every_run_found_a_change_and_not_zero_if_none_did() -> None:
    assert rate(*seen("x" * 500), 10.0) == pytest.approx(log(2 / (1 - DECAY) + 2) / 10)
    assert 0 < rate(*seen("." * 500), 10.0) < 0.02 / 10


def test_more_than_one_change_between_two_runs_is_accounted_for() -> None:
    """Of changes at random, twice in a gap on average, 86 % of the runs see one or more."""
    rng = random.Random(5)
    estimates = []
    for _ in range(300):
        pattern = "".join("x" if rng.random() < 1 - exp(-2) else "." for _ in range(200))
        estimates.append(rate(*seen(pattern), 10.0))

    assert sum(estimates) / len(estimates) == pytest.approx(2 / 10, rel=0.05)


counts = st.floats(0, 40) | st.sampled_from([nan, inf, -inf, -1.0, 1e308])


@given(counts, counts, st.floats(0, 1e8) | st.sampled_from([nan, inf, -1.0]))
def test_whatever_the_counts_say_the_shares_can_be_asked(polls: float, hits: float, gap: float) -> None:
    """The counts are columns of a database, which anyone may have written."""
    found = rate(polls, hits, gap)
    shares = IntervalShares(1.0, FASTEST, SLOWEST)

    shares.add(sqrt(found))

    assert FASTEST <= shares.interval(sqrt(found)) <= SLOWEST


@given(st.floats(0, 40), st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1e5))
def test_more_hits_are_more_changes(polls: float, some: float, more: float, gap: float) -> None:
    low, high = sorted((polls * some, polls * more))

    assert 0 < rate(polls, low, gap) <= rate(polls, high, gap) < inf


roots = st.floats(1e-6, 100) | st.sampled_from([0.0, nan, inf, 1e-300, 1e300])
budgets = st.sampled_from([0.0, 1e-9, 0.5, 3.0, 1e9]) | st.floats(0, 50)
bounds = st.tuples(st.floats(0.05, 1e6), st.floats(0.05, 1e6)).map(sorted)
moves = st.lists(st.tuples(st.integers(0, 50), roots | st.none(), st.booleans()), max_size=60)


@given(st.lists(roots, max_size=50), moves, budgets, bounds)
def test_all_together_keep_to_the_budget_and_use_it(
    start: list[float], moves: list[tuple[int, float | None, bool]], budget: float, bounds: list[float]
) -> None:
    fastest, slowest = bounds
    shares, targets = IntervalShares(budget, fastest, slowest), list(start)
    for root in start:
        shares.add(root)
    for number, to, ask in moves:
        play(shares, targets, number, to)
        if ask:
            shares.interval(1.0)  # from here on the shares are cut, and only drift

    intervals = [shares.interval(root) for root in targets]

    total = sum(1 / each for each in intervals)
    assert total == pytest.approx(shares.frequency)
    assert total <= budget * 1.05 or intervals == pytest.approx([slowest] * len(targets))
    assert total >= budget * 0.95 or intervals == pytest.approx([fastest] * len(targets))
    for each in intervals:
        assert fastest * (1 - 1e-9) <= each <= slowest * (1 + 1e-9)


def play(shares: IntervalShares, targets: list[float], number: int, root: float | None) -> None:
    """Move a target, add one if there is none of that number, or remove it if there is no root to move it to."""
    if number >= len(targets):
        if root is not None:
            shares.add(root)
            targets.append(root)
    elif root is None:
        shares.remove(targets.pop(number))
    else:
        shares.move(targets[number], root)
        targets[number] = root


@given(st.lists(roots, max_size=20), budgets, st.floats(0, 100), st.floats(0, 100))
def test_what_changes_more_never_has_a_longer_interval(
    others: list[float], budget: float, one: float, other: float
) -> None:
    shares = IntervalShares(budget, FASTEST, SLOWEST)
    for root in (*others, one, other):
        shares.add(root)

    assert shares.interval(max(one, other)) <= shares.interval(min(one, other))


def test_an_interval_goes_with_the_square_root_of_the_rate() -> None:
    shares = IntervalShares(1.0, FASTEST, SLOWEST)
    for each in (0.01, 0.0001, 0.01, 0.0001):
        shares.add(sqrt(each))

    often, rarely = shares.interval(0.1), shares.interval(0.01)

    assert rarely / often == pytest.approx(10, rel=0.06)
    assert 2 / often + 2 / rarely == pytest.approx(1.0, rel=0.01)


def test_what_the_bounds_leave_over_is_shared_by_the_others() -> None:
    shares = IntervalShares(3.0, FASTEST, 10.0)
    for root in (1e-5, 1e-5, 0.1, 0.1, 30.0):
        shares.add(root)

    assert shares.interval(30.0) == FASTEST
    assert shares.interval(1e-5) == 10.0
    assert shares.interval(0.1) == pytest.approx(1 / 0.9, rel=0.01)


def test_targets_that_are_all_alike_share_alike() -> None:
    shares = IntervalShares(4.0, FASTEST, SLOWEST)
    for _ in range(1000):
        shares.add(0.3)

    assert shares.interval(0.3) == pytest.approx(250, rel=0.01)


def test_one_alone_has_all_of_the_budget() -> None:
    shares = IntervalShares(0.1, FASTEST, SLOWEST)
    shares.add(0.0)

    assert shares.interval(0.0) == pytest.approx(10, rel=0.01)


def test_without_a_budget_all_are_as_slow_as_can_be() -> None:
    shares = IntervalShares(0.0, FASTEST, SLOWEST)
    assert shares.interval(1.0) == SLOWEST

    shares.add(1.0)

    assert shares.interval(1.0) == SLOWEST


def test_another_budget_and_other_bounds_hold_at_once() -> None:
    shares = IntervalShares(0.1, FASTEST, SLOWEST)
    shares.add(1.0)
    shares.interval(1.0)

    shares.tune(0.5, FASTEST, SLOWEST)
    assert shares.interval(1.0) == pytest.approx(2, rel=0.01)
    shares.tune(0.5, 5.0, SLOWEST)
    assert shares.interval(1.0) == 5.0


@pytest.mark.parametrize(
    ("budget", "fastest", "slowest"),
    [(-1.0, 1.0, 2.0), (nan, 1.0, 2.0), (inf, 1.0, 2.0), (1.0, 0.0, 2.0), (1.0, 3.0, 2.0), (1.0, 1.0, inf)],
)
def test_shares_that_cannot_be_are_refused(budget: float, fastest: float, slowest: float) -> None:
    with pytest.raises(ValueError, match="expected a budget from 0 up"):
        IntervalShares(budget, fastest, slowest)


def test_a_target_that_was_never_there_cannot_go() -> None:
    shares = IntervalShares(1.0, FASTEST, SLOWEST)
    shares.add(0.5)

    with pytest.raises(ValueError, match=r"no target has a root near 0\.1"):
        shares.remove(0.1)
    with pytest.raises(ValueError, match="no target"):
        shares.move(0.1, 0.5)
    assert repr(shares) == "<IntervalShares: 1 targets, 1 of 1 requests a second>"


class Staleness(NamedTuple):
    """Means, in seconds: how long a change waits to be seen, and how long a target is out of date already."""

    wait: float
    age: float
    requests: int


TARGETS, BUDGET = 200, 2.0
Policy = Callable[[int, float], float]  # the next interval of a target, by its estimated rate


def simulated(policy: Policy, spread: float, seconds: float = 30_000.0, learning: float = 10_000.0) -> Staleness:
    """Targets that change at random, about once in ten minutes or much more or less often, asked for by a policy."""
    rng = random.Random(11)
    rates = [min(0.2, exp(rng.gauss(log(1 / 600), spread))) for _ in range(TARGETS)]
    histories = [(0.0, 0.0, TARGETS / BUDGET)] * TARGETS
    wait, age, changes, requests = 0.0, 0.0, 0, 0
    due = [(rng.uniform(0, TARGETS / BUDGET), number, 0.0) for number in range(TARGETS)]
    heapq.heapify(due)
    while due[0][0] < seconds:
        now, number, last = due[0]
        waits = []
        change = last + rng.expovariate(rates[number])
        while change < now:
            waits.append(now - change)
            change += rng.expovariate(rates[number])
        if now > learning:
            requests += 1
            changes += len(waits)
            wait += sum(waits)
            age += max(waits, default=0.0) ** 2 / 2
        polls, hits, gap = histories[number]
        polls, hits = counted(polls, hits, changed=bool(waits))
        histories[number] = polls, hits, averaged(gap, now - last, polls)
        heapq.heapreplace(due, (now + policy(number, rate(*histories[number])), number, now))
    return Staleness(wait / changes, age / TARGETS / (seconds - learning), requests)


def equally(_number: int, _rate: float) -> float:
    return TARGETS / BUDGET


def in_proportion() -> Policy:
    rates = [rate(0.0, 0.0, TARGETS / BUDGET)] * TARGETS

    def interval(number: int, estimate: float) -> float:
        rates[number] = estimate
        return min(SLOWEST, max(FASTEST, sum(rates) / estimate / BUDGET))

    return interval


def by_shares() -> Policy:
    shares = IntervalShares(BUDGET, FASTEST, SLOWEST)
    roots = [sqrt(rate(0.0, 0.0, TARGETS / BUDGET))] * TARGETS
    for root in roots:
        shares.add(root)

    def interval(number: int, estimate: float) -> float:
        shares.move(roots[number], sqrt(estimate))
        roots[number] = sqrt(estimate)
        return shares.interval(roots[number])

    return interval


@pytest.mark.parametrize(("spread", "age"), [(1.5, 1.0), (3.0, 1.25)])
def test_changes_are_seen_sooner_than_with_equal_intervals_or_ones_in_proportion(spread: float, age: float) -> None:
    """How long targets are out of date is another matter: where rates differ by decades, equal intervals do as well."""
    uniform, proportional, shared = (simulated(each, spread) for each in (equally, in_proportion(), by_shares()))

    assert shared.requests == pytest.approx(uniform.requests, rel=0.02)
    assert proportional.requests == pytest.approx(uniform.requests, rel=0.02)
    assert shared.wait < 0.7 * min(uniform.wait, proportional.wait)
    assert shared.age < age * uniform.age
    assert proportional.age > 5 * uniform.age, "which is why it is not done"
