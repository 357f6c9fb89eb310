"""Where a crawl begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.numbered import LARGEST_ID
from sanderling.sequence.cursor import IdCursor, Position
from sanderling.sequence.retries import Reason
from sanderling.sequence.state import SavedCrawl, StartError, begin_at, left_open

SAVED = SavedCrawl("bungie", Position(5000, (4990, 4995)), 4999)
IDS = st.integers(0, LARGEST_ID)


def test_a_crawl_goes_on_where_it_was_with_all_that_was_open() -> None:
    assert begin_at("bungie", SAVED, latest=99_999) == SAVED.position


def test_without_one_it_begins_before_the_latest_that_is_stored() -> None:
    assert begin_at("bungie", None, latest=50_000) == Position(40_000)


def test_a_target_comes_before_both() -> None:
    assert begin_at("bungie", SAVED, latest=50_000, target=80_000, buffer=100) == Position(79_900)
    assert begin_at("bungie", None, latest=50_000, target=80_000, buffer=0) == Position(80_000)


def test_no_buffer_reaches_below_the_first_id() -> None:
    assert begin_at("bungie", None, latest=7) == Position(0)
    assert begin_at("bungie", None, latest=None, target=7) == Position(0)


def test_with_nothing_to_go_by_it_says_what_to_do() -> None:
    with pytest.raises(StartError, match="name the first with --begin"):
        begin_at("bungie", None, latest=None)


def test_the_folder_of_another_api_is_left_alone_whatever_the_target() -> None:
    with pytest.raises(StartError, match="this folder follows bungie, not json; choose another folder"):
        begin_at("json", SAVED, latest=None, target=5, buffer=0)


def test_the_first_id_is_for_when_there_is_nothing_else() -> None:
    assert begin_at("bungie", None, latest=None, begin=30_000) == Position(30_000)
    assert begin_at("bungie", None, latest=50_000, begin=30_000) == Position(40_000)
    assert begin_at("bungie", SAVED, latest=50_000, begin=30_000) == SAVED.position


@pytest.mark.parametrize("number", [-1, LARGEST_ID + 1])
def test_what_is_no_id_is_refused(number: int) -> None:
    with pytest.raises(StartError, match=f"the first id is {number}; expected one from 0"):
        begin_at("bungie", None, latest=None, target=number)
    with pytest.raises(StartError, match=f"the first id is {number}; expected one from 0"):
        begin_at("bungie", None, latest=None, begin=number)


@given(latest=st.none() | IDS, target=st.none() | IDS, buffer=st.integers(0, 10**6))
def test_wherever_it_begins_a_cursor_can(latest: int | None, target: int | None, buffer: int) -> None:
    if latest is None and target is None:
        return

    position = begin_at("bungie", None, latest, target=target, buffer=buffer)

    wanted = target if target is not None else latest
    assert wanted is not None
    assert IdCursor(position).peek() == max(0, wanted - buffer)


def test_what_had_no_fate_before_a_leap_ahead_is_missed() -> None:
    saved = SavedCrawl("numbers", Position(110, (100, 101, 105)), 109)

    left = left_open(saved, Position(5000), 7.0)

    assert [(each.low, each.high, each.reason, each.next_check) for each in left] == [
        (100, 101, Reason.IMPORTED, 7.0),
        (105, 105, Reason.IMPORTED, 7.0),
    ]


def test_what_a_step_back_passes_again_is_not() -> None:
    saved = SavedCrawl("numbers", Position(110, (100, 101, 105)), 109)

    assert left_open(saved, Position(50), 7.0) == []
