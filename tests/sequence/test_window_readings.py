from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.numbered import Status
from sanderling.sequence.readings import BOUNDS, ReadingsWindow


def counted(*statuses: Status, lag: float | None = 10.0) -> ReadingsWindow:
    window = ReadingsWindow(100.0)
    for status in statuses:
        window.count(status, lag)
    return window


def test_readings_are_shares_of_all_requests_and_a_rate() -> None:
    window = counted(*[Status.SUCCESS] * 4, *[Status.SKIPPED] * 2, *[Status.NOT_FOUND] * 3, Status.ERROR)

    readings = window.close(105.0)

    assert (readings.missing, readings.errors, readings.rate) == (0.3, 0.1, 1.2)
    assert (readings.missing_count, readings.samples, readings.seconds) == (3, 10, 5.0)


@pytest.mark.parametrize("status", Status)
def test_errors_are_what_was_malformed_failed_or_refused(status: Status) -> None:
    errors = {Status.BAD_FORMAT, Status.ERROR, Status.RATE_LIMITED}

    assert counted(status).close(101.0).errors == (status in errors)


@pytest.mark.parametrize("status", Status)
def test_only_records_have_a_lag(status: Status) -> None:
    found = {Status.SUCCESS, Status.SKIPPED}

    assert (counted(status).close(101.0).lag is not None) == (status in found)


def test_an_api_that_is_switched_off_does_not_make_us_look_up_to_date() -> None:
    window = counted(*[Status.SUCCESS] * 10, lag=500.0)
    for _ in range(90):
        window.count(Status.DISABLED, 0.0)

    assert window.close(101.0).lag == pytest.approx(500, rel=0.1)


def test_an_age_below_zero_is_not_observed() -> None:
    window = counted(*[Status.SUCCESS] * 50, lag=-5.0)
    window.count(Status.SUCCESS, 40.0)

    readings = window.close(101.0)

    assert readings.lag == pytest.approx(40, rel=0.1)
    assert readings.samples == 51


def test_the_lag_is_that_of_the_youngest_fifth() -> None:
    window = ReadingsWindow(0.0)
    for second in range(1000):
        window.count(Status.SUCCESS, second / 2)

    assert window.close(1.0).lag == pytest.approx(100, rel=0.02)


@given(st.lists(st.floats(0.6, BOUNDS[-1]), min_size=20, max_size=300))
def test_the_lag_is_right_to_a_tenth_and_a_neighbour(lags: list[float]) -> None:
    window = ReadingsWindow(0.0)
    for lag in lags:
        window.count(Status.SKIPPED, lag)

    found = window.close(1.0).lag

    ordered = sorted(lags)
    rank = len(lags) // 5
    around = ordered[max(0, rank - 2)] / 1.1, ordered[min(len(lags) - 1, rank + 2)] * 1.1
    assert found is not None
    assert around[0] <= found <= around[1], f"{found} is not near {quantiles(lags, n=5)[0]}"


def test_a_lag_of_months_counts_as_the_longest_there_is() -> None:
    assert counted(Status.SUCCESS, lag=1e9).close(101.0).lag == BOUNDS[-1]
    assert BOUNDS[-1] > 3 * 86400


def test_closing_begins_the_next_period() -> None:
    window = counted(*[Status.NOT_FOUND] * 10)
    window.ids += 7

    window.close(130.0)
    second = window.close(131.0)

    assert (second.samples, second.missing, second.lag, second.seconds) == (0, 0.0, None, 1.0)
    assert (window.ids, window.asked) == (0, 0)


def test_a_period_of_no_time_at_all_has_no_rate() -> None:
    readings = counted(Status.SUCCESS).close(100.0)

    assert (readings.seconds, readings.rate, readings.samples) == (0.0, 0.0, 1)


def test_a_clock_that_went_back_makes_no_negative_time() -> None:
    assert counted(Status.SUCCESS).close(90.0).seconds == 0.0


@given(st.lists(st.tuples(st.sampled_from(Status), st.none() | st.floats(-1e9, 1e12)), max_size=200), st.floats(0, 1e6))
def test_readings_can_always_be_made(answers: list[tuple[Status, float | None]], seconds: float) -> None:
    window = ReadingsWindow(0.0)
    for status, lag in answers:
        window.count(status, lag)

    assert window.asked == len(answers)
    assert window.close(seconds).samples == len(answers)
