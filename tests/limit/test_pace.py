import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit.pace import PaceRules


def test_a_rate_is_brought_within_its_bounds() -> None:
    rules = PaceRules(min_rps=1, initial_rps=2, max_rps=8)

    assert [rules.clamp(rate) for rate in (0, 1, 5, 8, 100)] == [1, 1, 5, 8, 8]


@pytest.mark.parametrize(("rate", "depth"), [(0.25, 1), (20, 1), (40, 2), (80, 4), (1000, 4)])
def test_a_twentieth_of_a_second_may_leave_at_once_and_never_more_than_the_burst(rate: float, depth: float) -> None:
    rules = PaceRules(max_rps=1000, burst=4)

    assert rules.slack(rate) * rate == pytest.approx(depth - 1)


@given(st.floats(1e-6, 1e6), st.floats(1, 1e6))
def test_the_slack_is_never_more_than_a_twentieth_of_a_second(rate: float, burst: float) -> None:
    slack = PaceRules(burst=burst).slack(rate)

    assert 0 <= slack <= 0.05
    assert slack * rate <= burst - 1 + 1e-9


@pytest.mark.parametrize(("allowed", "start"), [(0.1, 0.1), (1, 1), (8, 2), (40, 2), (60, 3), (100, 5), (1e6, 5)])
def test_who_allows_more_starts_a_little_faster(allowed: float, start: float) -> None:
    rules = PaceRules.up_to(allowed)

    assert (rules.initial_rps, rules.max_rps) == (start, allowed)
