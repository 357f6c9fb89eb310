"""Workers that are not equally fast: who is late has fewer parts, and nobody moves parts for ever."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.crawls.fleet_pace import FULL, LEAST, WorkerLateness
from sanderling.stores.fleet import WorkerPace
from sanderling.stores.leases import fair_share

PARTS = 64
BEAT = 5.0
MINUTE = 12  # beats


class Workers:
    """Workers of which each keeps up with so many parts; with more it is late."""

    def __init__(self, keeps_up_with: Sequence[float]) -> None:
        self.fast = keeps_up_with
        self.has = [0] * len(keeps_up_with)
        self.moved = 0
        self._lateness = [WorkerLateness() for _ in keeps_up_with]
        self._said = [WorkerPace() for _ in keeps_up_with]

    def beat(self) -> None:
        """Each beats once, in turn."""
        for each in range(len(self.has)):
            free = PARTS - sum(self.has)
            change = max(-self.has[each], min(self._want(each) - self.has[each], free))
            self.has[each] += change
            self.moved += abs(change)

    def _want(self, each: int) -> int:
        lateness, has = self._lateness[each], self.has[each]
        late = max(0.0, 1 - self.fast[each] / has) if has else 0.0
        lateness.ran(BEAT * (1 - late), BEAT)
        pace = self._said[each] = lateness.measure()
        weights = sum(one.weight for one in self._said)
        lacking = any(has < PARTS * one.weight // weights for has, one in zip(self.has, self._said, strict=True))
        others = [one.late for number, one in enumerate(self._said) if number != each]
        weight = lateness.compare(sum(others) / max(1, len(others)), lacking=lacking)
        return fair_share(PARTS, weight, weights - pace.weight + weight, lacking=lacking)


def after(beats: int, keeps_up_with: Sequence[float]) -> Workers:
    workers = Workers(keeps_up_with)
    for _ in range(beats):
        workers.beat()
    return workers


@pytest.mark.parametrize("fast", [100.0, 20.0, 10.0])
def test_one_that_is_ten_times_as_slow_has_few_parts_within_a_minute(fast: float) -> None:
    """Also where all have more than they keep up with."""
    workers = after(MINUTE, (fast, fast, fast / 10))

    assert workers.has[2] <= max(fast / 10 * 1.4, PARTS / 8)
    assert min(workers.has[:2]) >= 24


@given(st.floats(1.0, 200.0), st.integers(1, 20))
def test_those_that_are_equally_fast_have_as_many_parts_as_each_other(fast: float, number: int) -> None:
    workers = after(MINUTE, [fast] * number)

    assert sum(workers.has) == PARTS
    assert max(workers.has) - min(workers.has) <= 1
    assert workers.moved <= 2 * PARTS


@given(st.lists(st.floats(0.5, 200.0), min_size=1, max_size=12))
def test_all_parts_are_somebodys_and_hardly_any_move_in_the_end(keeps_up_with: list[float]) -> None:
    workers = after(4 * MINUTE, keeps_up_with)
    moved, owned = workers.moved, 0
    for _ in range(10 * MINUTE):
        workers.beat()
        owned += sum(workers.has)

    assert owned >= 10 * MINUTE * PARTS * 0.97
    assert workers.moved - moved <= 10 * len(keeps_up_with) * PARTS / 16


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 1.0))))
def test_a_weight_stays_within_its_bounds_whatever_is_measured(beats: list[tuple[float, float]]) -> None:
    lateness = WorkerLateness()
    for took, others in beats:
        lateness.ran(0.1, took)
        assert 0.0 <= lateness.measure().late <= 1.0
        assert LEAST <= lateness.compare(others, lacking=False) <= FULL


def test_a_single_pause_changes_nothing() -> None:
    lateness = WorkerLateness()
    lateness.ran(5.0, 7.0)
    lateness.measure()

    assert lateness.compare(0.0, lacking=False) == FULL
