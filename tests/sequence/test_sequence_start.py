"""Where a crawl begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.numbered import LARGEST_ID
from sanderling.sequence.cursor import Cursor, Position
from sanderling.sequence.retries import Reason
from sanderling.sequence.start import BUFFER, StartError, begin_at, left_open
from sanderling.sequence.state import Saved

SAVED = Saved("bungie", Position(5000, (4990, 4995)), 4999)
IDS = st.integers(0, LARGEST_ID)


def test_a_crawl_goes_on_where_it_was_with_all_that_was_open() -> None:
    assert begin_at("bungie", SAVED, latest=99_999, target=None, buffer=BUFFER) == SAVED.position


def test_without_one_it_begins_before_the_latest_that_is_stored() -> None:
    assert begin_at("bungie", None, latest=50_000, target=None, buffer=BUFFER) == Position(40_000)


def test_a_target_comes_before_both() -> None:
    assert begin_at("bungie", SAVED, latest=50_000, target=80_000, buffer=100) == Position(79_900)
    assert begin_at("bungie", None, latest=50_000, target=80_000, buffer=0) == Position(80_000)


def test_no_buffer_reaches_below_the_first_id() -> None:
    assert begin_at("bungie", None, latest=7, target=None, buffer=BUFFER) == Position(0)
    assert begin_at("bungie", None, latest=None, target=7, buffer=BUFFER) == Position(0)


def test_with_nothing_to_go_by_it_says_what_to_do() -> None:
    with pytest.raises(StartError, match="name one with --target"):
        begin_at("bungie", None, latest=None, target=None, buffer=BUFFER)


def test_the_folder_of_another_api_is_left_alone_whatever_the_target() -> None:
    with pytest.raises(StartError, match="this folder follows bungie, not json; choose another folder"):
        begin_at("json", SAVED, latest=None, target=5, buffer=0)


@pytest.mark.parametrize("target", [-1, LARGEST_ID + 1])
def test_a_target_that_is_no_id_is_refused(target: int) -> None:
    with pytest.raises(StartError, match=f"the target is {target}; expected an id from 0"):
        begin_at("bungie", None, latest=None, target=target, buffer=0)


@given(latest=st.none() | IDS, target=st.none() | IDS, buffer=st.integers(0, 10**6))
def test_wherever_it_begins_a_cursor_can(latest: int | None, target: int | None, buffer: int) -> None:
    if latest is None and target is None:
        return

    position = begin_at("bungie", None, latest, target=target, buffer=buffer)

    wanted = target if target is not None else latest
    assert wanted is not None
    assert Cursor(position).peek() == max(0, wanted - buffer)


def test_what_had_no_fate_before_a_leap_ahead_is_missed() -> None:
    saved = Saved("numbers", Position(110, (100, 101, 105)), 109)

    left = left_open(saved, Position(5000), 7.0)

    assert [(each.low, each.high, each.reason, each.next_check) for each in left] == [
        (100, 101, Reason.IMPORTED, 7.0),
        (105, 105, Reason.IMPORTED, 7.0),
    ]


def test_what_a_step_back_passes_again_is_not() -> None:
    saved = Saved("numbers", Position(110, (100, 101, 105)), 109)

    assert left_open(saved, Position(50), 7.0) == []
