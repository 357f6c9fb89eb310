from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from sanderling.apis.numbered import LARGEST_ID
from sanderling.sequence.cursor import MOST_OPEN, IdCursor, Position, ranges_of


def test_ids_come_in_their_order_and_are_open_until_settled() -> None:
    cursor = IdCursor(Position(100))

    assert [cursor.take(), cursor.take(), cursor.take()] == [100, 101, 102]
    cursor.settle(100)
    cursor.settle(102)

    assert cursor.position() == Position(103, (101,))
    assert cursor.position().low == 101


def test_a_restart_hands_out_what_was_open_and_nothing_that_was_settled() -> None:
    cursor = IdCursor(Position(110, (103, 107)))

    assert [cursor.take() for _ in range(4)] == [103, 107, 110, 111]


def test_the_stride_leaves_ids_out() -> None:
    cursor = IdCursor(Position(1000), stride=5)

    assert [cursor.take() for _ in range(3)] == [1000, 1005, 1010]


def test_what_is_given_back_is_handed_out_first() -> None:
    cursor = IdCursor(Position(5))
    for _ in range(3):
        cursor.take()
    cursor.give_back(6)

    assert cursor.peek() == 6
    assert [cursor.take(), cursor.take()] == [6, 8]


def test_a_skip_says_which_ids_nobody_will_be_asked_for_and_the_first_live_one_is_next() -> None:
    cursor = IdCursor(Position(10))
    taken = [cursor.take() for _ in range(5)]
    for number in taken[2:]:
        cursor.give_back(number)

    assert cursor.skip_to(1000) == [(12, 999)]
    assert cursor.take() == 1000
    assert cursor.position().open == (10, 11, 1000)


def test_a_skip_never_goes_back() -> None:
    cursor = IdCursor(Position(10))

    assert cursor.skip_to(7) == []
    assert cursor.peek() == 10


def test_behind_the_largest_id_there_is_none() -> None:
    cursor = IdCursor(Position(LARGEST_ID))

    assert cursor.take() == LARGEST_ID
    assert cursor.peek() is None
    with pytest.raises(ValueError, match="no ids above"):
        cursor.take()


@pytest.mark.parametrize("first", [-1, LARGEST_ID + 2])
def test_a_start_that_is_no_id_is_refused(first: int) -> None:
    with pytest.raises(ValueError, match="next id is"):
        IdCursor(Position(first))


def test_with_too_many_open_the_position_forgets_the_latest_and_no_fateless_id() -> None:
    cursor = IdCursor(Position(0))
    for _ in range(MOST_OPEN + 10):
        cursor.take()

    assert cursor.position() == Position(MOST_OPEN, tuple(range(MOST_OPEN)))


@given(st.sets(st.integers(0, 60)))
def test_ranges_hold_the_same_ids_and_do_not_touch(numbers: set[int]) -> None:
    ranges = ranges_of(numbers)

    assert {number for low, high in ranges for number in range(low, high + 1)} == numbers
    assert all(earlier[1] + 1 < later[0] for earlier, later in pairwise(ranges))


def test_an_id_that_another_lane_has_settled_is_not_handed_out_again() -> None:
    cursor = IdCursor(Position(5))
    cursor.take()
    cursor.settle(5)
    cursor.give_back(5)

    assert cursor.take() == 6


class CursorMachine(RuleBasedStateMachine):
    """Whatever happens: every id is settled, open, skipped, or not handed out yet; and a restart knows which."""

    @initialize(start=st.integers(0, 50), stride=st.integers(1, 3))
    def begin(self, start: int, stride: int) -> None:
        self.cursor = IdCursor(Position(start), stride=stride)
        self.open: set[int] = set()
        self.settled: set[int] = set()

    @rule()
    def take(self) -> None:
        number = self.cursor.take()
        assert number not in self.settled
        assert number not in self.open
        self.open.add(number)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        self.cursor.settle(number)
        self.open.remove(number)
        self.settled.add(number)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        self.cursor.give_back(number)
        self.open.remove(number)

    @rule(ahead=st.integers(0, 20))
    def skip(self, ahead: int) -> None:
        first = self.cursor.next + ahead - 5
        for low, high in self.cursor.skip_to(first):
            skipped = set(range(low, high + 1))
            assert not skipped & self.open
            assert not skipped & self.settled
            self.settled |= skipped

    @rule()
    def restart(self) -> None:
        position = self.cursor.position()
        assert not set(position.open) & self.settled
        assert self.open <= set(position.open)
        self.cursor = IdCursor(position, stride=self.cursor.stride)
        self.open = set()


TestCursorMachine = CursorMachine.TestCase
TestCursorMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
