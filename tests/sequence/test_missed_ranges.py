"""Ranges of missed ids as values: what is left of one, and which two are one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.sequence.retries import OFFLOAD, Missed, Reason

AT = 1_800_000_000.0
OLD = OFFLOAD + 1


def missed(low: int, high: int, reason: Reason = Reason.NOT_FOUND, tries: int = OLD) -> Missed:
    return Missed(low, high, reason, AT, AT + 1, tries, AT + 2)


IDS = st.integers(0, 60)
RANGES = st.tuples(IDS, IDS).map(lambda ends: (min(ends), max(ends)))


def ids(ranges: list[Missed]) -> list[int]:
    return [number for each in ranges for number in range(each.low, each.high + 1)]


@pytest.mark.parametrize(("low", "high"), [(-1, 5), (6, 5)])
def test_ids_that_do_not_ascend_from_0_are_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match=f"from {low} to {high}; expected them to ascend from 0"):
        missed(low, high)


@given(of=RANGES, out=RANGES)
def test_what_is_left_are_the_other_ids_in_their_order(of: tuple[int, int], out: tuple[int, int]) -> None:
    overlaps = out[0] <= of[1] and of[0] <= out[1]
    if not overlaps:
        return
    left = missed(*of).without(*out)

    assert ids(left) == [number for number in range(of[0], of[1] + 1) if not out[0] <= number <= out[1]]
    assert {(each.reason, each.tries, each.next_check) for each in left} <= {(Reason.NOT_FOUND, OLD, AT + 2)}


@given(of=RANGES)
def test_a_range_is_as_long_as_it_has_ids(of: tuple[int, int]) -> None:
    assert len(missed(*of)) == len(ids([missed(*of)]))


def test_old_neighbours_of_one_reason_are_one() -> None:
    assert missed(1, 5).joins(missed(6, 9))


@pytest.mark.parametrize(
    "behind",
    [missed(7, 9), missed(6, 9, Reason.ERROR), missed(6, 9, tries=OFFLOAD), missed(6, 6, tries=0)],
    ids=["apart", "another reason", "still asked one by one", "new"],
)
def test_others_are_not(behind: Missed) -> None:
    assert not missed(1, 5).joins(behind)


def test_a_skipped_range_is_old_from_the_first() -> None:
    assert missed(1, 5, Reason.GAP, tries=0).joins(missed(6, 9, Reason.GAP, tries=3))


def test_both_as_one_are_asked_when_the_earlier_would_be_and_as_rarely_as_the_rarer() -> None:
    one = Missed(1, 5, Reason.GAP, AT, AT + 10, 2, AT + 500)
    two = Missed(6, 9, Reason.GAP, AT - 5, AT + 20, 7, AT + 400)

    assert one.join(two) == Missed(1, 9, Reason.GAP, AT - 5, AT + 20, 7, AT + 400)
    assert replace(two, low=10, high=12).join(replace(one, low=13, high=14)).tries == 7
