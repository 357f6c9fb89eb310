import pytest

from sanderling.limit.window import ErrorWindow, WindowRules, wilson


def test_answers_count_for_as_long_as_the_span() -> None:
    window = ErrorWindow(WindowRules(span=30, bucket=2), 0)
    window.record(0, failures=1)
    window.record(1)

    assert window.totals(29.9) == (2, 1)
    assert window.totals(30) == (0, 0)


def test_answers_leave_bucket_by_bucket() -> None:
    window = ErrorWindow(WindowRules(span=10, bucket=2), 0)
    for now in range(10):
        window.record(now, failures=now % 2)

    assert [window.totals(now)[0] for now in (9, 10, 12, 14, 16, 18)] == [10, 8, 6, 4, 2, 0]


def test_many_answers_may_be_recorded_at_once() -> None:
    window = ErrorWindow(WindowRules(), 0)

    window.record(0, answers=60, failures=30)

    assert window.totals(0) == (60, 30)


def test_a_clean_slate_is_clean() -> None:
    window = ErrorWindow(WindowRules(), 0)
    window.record(0, answers=60, failures=30)

    window.clear()
    window.record(1)

    assert window.totals(1) == (1, 0)


def test_a_clock_that_goes_back_forgets_nothing() -> None:
    window = ErrorWindow(WindowRules(), 1000)
    window.record(1000, failures=1)

    window.record(900)

    assert window.totals(900) == (2, 1)
    assert window.totals(1000) == (2, 1)


def test_a_long_silence_forgets_everything_in_no_time() -> None:
    window = ErrorWindow(WindowRules(), 0)
    window.record(0, failures=1)

    assert window.totals(1e12) == (0, 0)


@pytest.mark.parametrize(("span", "bucket"), [(0.3, 0.1), (0.7, 0.1), (30, 0.1), (6, 0.6)])
def test_rounding_does_not_cost_a_bucket(span: float, bucket: float) -> None:
    """0.3 / 0.1 is a hair less than three."""
    window = ErrorWindow(WindowRules(span, bucket), 0)
    window.record(0)

    assert window.totals(span - 0.6 * bucket) == (1, 0)
    assert window.totals(span + 0.5 * bucket) == (0, 0)


def test_counts_prove_less_than_they_show() -> None:
    assert wilson(3, 3) == pytest.approx(0.44, abs=0.005)
    assert wilson(30, 60) == pytest.approx(0.38, abs=0.005)
    assert wilson(300, 600) == pytest.approx(0.46, abs=0.005)
    assert wilson(0, 100) == 0
    assert wilson(0, 0) == 0


def test_more_failures_of_as_many_prove_more() -> None:
    shares = [wilson(failures, 20) for failures in range(21)]

    assert shares == sorted(shares)
    assert all(0 <= share <= failures / 20 for failures, share in enumerate(shares))
