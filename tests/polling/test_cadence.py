from math import ceil
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.polling.cadence import bucket, jitter, missed_runs, next_point, pause, phase, stretch

INTERVALS = st.floats(0.05, 31_622_400)
TIMES = st.floats(-1e6, 1e9)


@given(TIMES, INTERVALS, TIMES)
def test_the_next_point_is_the_first_one_on_the_grid_after_now(point: float, interval: float, now: float) -> None:
    following = next_point(point, interval, now)

    assert following > now
    assert following - now <= interval * (1 + 1e-9) + 1e-6
    steps = (following - point) / interval
    assert abs(steps - round(steps)) * interval < 1e-5 * max(1.0, abs(steps))


def test_a_fast_grid_is_kept_for_hours_without_drift() -> None:
    point = 0.0
    for _ in range(100_000):
        point = next_point(point, 0.2, point + 0.001)

    assert point == pytest.approx(20_000.0, abs=1e-6)


@pytest.mark.parametrize(("now", "missed"), [(10.0, 0), (10.19, 0), (10.21, 1), (10.59, 2), (9.0, 0)])
def test_missed_runs_are_the_points_that_passed_meanwhile(now: float, missed: int) -> None:
    assert missed_runs(10.0, 0.2, now) == missed


@given(INTERVALS, st.floats(0, 60), st.integers())
def test_jitter_is_small_beside_the_interval_and_none_on_a_fast_cadence(
    interval: float, most: float, seed: int
) -> None:
    moved = jitter(interval, most, Random(seed))

    assert 0 <= moved <= min(most, 0.05 * interval)
    assert interval >= 1 or moved == 0


@given(st.integers(0, 1000), INTERVALS, st.integers())
def test_a_pause_grows_and_ends(failures: int, interval: float, seed: int) -> None:
    seconds = pause(failures, interval, Random(seed))

    assert 0 <= seconds <= max(300.0, interval)
    assert failures >= 2 or seconds == 0
    assert seconds <= interval * 2**failures


def test_a_live_target_that_fails_for_long_is_asked_every_few_seconds_all_the_same() -> None:
    rng = Random(1)

    assert max(pause(50, 0.2, rng) for _ in range(1000)) <= 6.4


def test_phases_are_spread_evenly_and_always_the_same() -> None:
    phases = [phase("race", f"id-{number}") for number in range(10_000)]
    tenths = [sum(1 for each in phases if tenth <= each * 10 < tenth + 1) for tenth in range(10)]

    assert phases[:3] == [phase("race", f"id-{number}") for number in range(3)]
    assert all(900 < count < 1100 for count in tenths)
    assert all(0 <= each < 1 for each in phases)
    assert phase("race", "1") != phase("pilots", "1")
    assert 0 <= phase("\udc80", "\0") < 1


@given(INTERVALS, INTERVALS)
def test_a_bucket_holds_intervals_that_are_about_as_long(one: float, other: float) -> None:
    if bucket(one) == bucket(other):
        assert max(one, other) <= 2 * min(one, other)
    if other > 2 * one:
        assert bucket(other) > bucket(one)


@given(st.floats(0, 1e6), INTERVALS, st.integers(-100, 100))
def test_urgency_grows_with_lateness_and_weight_without_end(late: float, interval: float, weight: int) -> None:
    assert stretch(late + 1, interval, weight) > stretch(late, interval, weight) > 0
    assert stretch(late, interval, weight + 1) > stretch(late, interval, weight)
    # However much another weighs, there is a lateness that outweighs it.
    rival = stretch(0.0, 0.05, 100)
    assert stretch(ceil(rival * interval * 200), interval, -100) > rival


def test_of_two_that_are_just_due_the_faster_comes_first() -> None:
    assert stretch(0.0, 0.2, 0) > stretch(0.0, 10.0, 0)
