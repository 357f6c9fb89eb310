"""How late runs of polling were, all in all, and how that is said."""

from hypothesis import given
from hypothesis import strategies as st

from sanderling.cli.polling.poll import overall
from sanderling.cli.polling.summary import punctuality
from sanderling.observe.histogram import Histogram
from sanderling.polling.measures import USUAL, Late


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200))
def test_the_lateness_of_all_runs_is_never_told_too_low(late: list[float]) -> None:
    histogram = Histogram((0.001, 0.01, 0.1, 1, 10))
    for each in late:
        histogram.add(each)

    found = overall(histogram)

    ordered = sorted(late)
    assert found.runs == len(late)
    assert found.p50 >= ordered[-(-len(late) // 2) - 1]
    assert found.p99 >= ordered[-(-len(late) * 99 // 100) - 1]


def test_lateness_beyond_all_measure_is_said_so() -> None:
    assert list(punctuality({USUAL: Late(0.001, float("inf"), 9)})) == [
        "Of 9 other runs half began within 1 ms of their time, 99 of 100 at any time."
    ]
