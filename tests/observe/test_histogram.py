from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.observe.histogram import Histogram


@given(st.lists(st.floats(-1e6, 1e6)), st.lists(st.integers(-1000, 1000), unique=True).map(sorted))
def test_each_value_is_counted_once_at_the_first_bound_that_is_not_below_it(
    values: list[float], bounds: list[int]
) -> None:
    histogram = Histogram(bounds)
    for value in values:
        histogram.add(value)

    edges = [*map(float, bounds), inf]
    expected = dict.fromkeys(edges, 0)
    for value in values:
        expected[min(edge for edge in edges if value <= edge)] += 1
    assert dict(histogram.buckets) == expected
    assert histogram.total == pytest.approx(sum(values))


def test_bounds_ascend() -> None:
    with pytest.raises(ValueError, match="expected them to ascend"):
        Histogram([1, 1])
