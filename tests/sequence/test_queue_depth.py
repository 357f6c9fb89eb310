from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.sequence.store import DepthRules, WorkerCount

EVERY = DepthRules().every


def checked(depths: list[int | None], rules: DepthRules | None = None) -> list[int]:
    """How many workers there are after each check."""
    rules = rules or DepthRules()
    staff = WorkerCount(rules)
    return [staff.check(depth, place * rules.every) for place, depth in enumerate(depths)]


def test_it_begins_with_four() -> None:
    assert WorkerCount(DepthRules()).workers == 4


def test_two_checks_above_the_depth_call_for_one_more() -> None:
    assert checked([1001, 1001]) == [4, 5]
    assert checked([1001, 1000, 1001]) == [4, 4, 4]
    assert checked([1000, 1000, 1000]) == [4, 4, 4], "exactly that many are not too many"


def test_three_checks_below_the_other_depth_let_one_go() -> None:
    assert checked([99, 99, 99]) == [4, 4, 3]
    assert checked([99, 99, 100, 99]) == [4, 4, 4, 4]


def test_after_a_change_the_checks_begin_anew() -> None:
    assert checked([5000] * 7) == [4, 5, 5, 6, 6, 7, 7]


def test_the_last_worker_stays_and_there_are_never_too_many() -> None:
    assert min(checked([0] * 50)) == 1
    assert max(checked([9999] * 50)) == 16


def test_a_step_is_a_share_of_the_workers_up_to_a_limit() -> None:
    rules = DepthRules(most=200, start=100)
    assert checked([9999] * 2, rules) == [100, 110], "a fifth would be twenty, and ten are the limit"
    assert checked([9999] * 2, DepthRules(most=200, start=14)) == [14, 16]
    assert checked([0] * 3, DepthRules(most=200, start=40)) == [40, 40, 36]


def test_after_a_change_it_rests() -> None:
    staff = WorkerCount(DepthRules(every=60.0))

    assert [staff.check(5000, now) for now in (0, 60, 120, 179, 180, 240)] == [4, 5, 5, 5, 6, 6]


def test_a_depth_that_could_not_be_read_is_for_a_while_the_one_before() -> None:
    assert checked([5000, None]) == [4, 5]
    assert checked([5000, 500, None, None]) == [4, 4, 4, 4]


def test_then_nobody_knows_and_nothing_changes() -> None:
    staff = WorkerCount(DepthRules(checks_up=4))
    staff.check(5000, 0)

    assert [staff.check(None, EVERY * each) for each in range(1, 20)] == [4] * 19
    assert [staff.check(5000, EVERY * each) for each in range(20, 24)] == [4, 4, 4, 5], "all four of them anew"


def test_without_any_depth_nothing_changes() -> None:
    assert checked([None] * 10) == [4] * 10


RULES = st.builds(
    DepthRules, most=st.integers(4, 60), below=st.integers(0, 100), above=st.integers(100, 200),
    checks_up=st.integers(1, 3), checks_down=st.integers(1, 3), share_up=st.floats(0, 3), share_down=st.floats(0, 3),
    largest_step=st.integers(1, 12), cooldown=st.floats(0, 900),
)  # fmt: skip


@given(RULES, st.lists(st.tuples(st.none() | st.integers(0, 300), st.floats(0, 600)), max_size=40))
def test_whatever_it_sees_it_keeps_its_rules(rules: DepthRules, seen: list[tuple[int | None, float]]) -> None:
    staff, now = WorkerCount(rules), 0.0
    changes: list[float] = []
    for depth, later in seen:
        now += later
        before, after = staff.workers, staff.check(depth, now)
        assert rules.least <= after <= rules.most
        assert abs(after - before) <= rules.largest_step
        if depth is not None:
            assert not (rules.below <= depth <= rules.above) or after == before
            assert after <= before or depth > rules.above
            assert after >= before or depth < rules.below
        if after != before:
            changes.append(now)
    assert all(second - first >= rules.cooldown for first, second in pairwise(changes))


@pytest.mark.parametrize(
    "wrong",
    [
        {"least": 0}, {"start": 17}, {"least": 5}, {"below": 2000}, {"below": -1}, {"checks_up": 0}, {"checks_down": 0},
        {"largest_step": 0}, {"share_up": -0.1}, {"every": 0}, {"cooldown": -1}, {"every": float("nan")},
    ],
)  # fmt: skip
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        DepthRules(**wrong)  # type: ignore[arg-type]  # on purpose
