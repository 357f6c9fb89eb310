from datetime import UTC, datetime, timedelta
from itertools import chain
from math import log2

import msgspec
from analytics_play import batch, comment, error, post
from hypothesis import given
from hypothesis import strategies as st

from sanderling.stores.analytics import CommentRow
from sanderling.stores.analytics_questions import DAY, first_day
from sanderling.stores.analytics_rows import (
    BatchPiece,
    chosen,
    key_of,
    mended_comment,
    mended_error,
    part,
    sift,
    storage_errors,
)

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
ROW = st.builds(comment, st.integers(0, 3), TEXT, text=TEXT, likes=st.integers(-(2**63), 2**63 - 1))


def sifted(count: int, bad: set[int], hopeless: set[int]) -> tuple[dict[int, str], list[BatchPiece], int]:
    """What comes of it where `bad` ones are taken with their comments mended, unless they are hopeless.

    Which are refused, which pieces are taken, and how many were offered.
    """
    offered: list[BatchPiece] = []
    offering = sift(range(count))
    try:
        piece = next(offering)
        while True:
            offered.append(piece)
            faults = {*piece.places} & (hopeless if piece.mended else bad | hopeless)
            piece = offering.send("no" if faults else "")
    except StopIteration as end:
        taken = [each for each in offered if not {*each.places} & (hopeless if each.mended else bad | hopeless)]
        return end.value, taken, len(offered)


@given(st.integers(0, 60), st.sets(st.integers(0, 59)), st.sets(st.integers(0, 59)))
def test_only_those_at_fault_are_left_out_and_all_others_are_taken_once_in_order(
    count: int, bad: set[int], hopeless: set[int]
) -> None:
    refused, taken, _ = sifted(count, bad, hopeless)

    assert refused == dict.fromkeys(sorted(hopeless & {*range(count)}), "no")
    assert [*chain.from_iterable(each.places for each in taken)] == [n for n in range(count) if n not in hopeless]
    assert {place for each in taken if each.mended for place in each.places} == (bad - hopeless) & {*range(count)}


@given(st.integers(2, 200), st.data())
def test_a_single_one_at_fault_is_found_soon(count: int, data: st.DataObject) -> None:
    wrong = data.draw(st.integers(0, count - 1))

    refused, _, asked = sifted(count, set(), {wrong})

    assert [*refused] == [wrong]
    assert asked <= 2 * log2(count) + 5


def test_a_part_has_its_posts_with_their_comments_alone() -> None:
    whole = batch(posts=[post("a"), post("b"), post("c")], comments=[comment(2, "x\0"), comment(1, "y")])

    some = part(whole, BatchPiece([2, 0], mended=True))

    assert [row.post_id for row in some.posts] == ["c", "a"]
    assert [(row.post, row.comment_id) for row in some.comments] == [(0, "x\N{REPLACEMENT CHARACTER}")]
    assert part(whole, BatchPiece([2])).comments == [comment(0, "x\0")]


@given(st.sets(st.integers(0, 12), max_size=6), st.sets(st.integers(0, 4)))
def test_a_post_that_is_refused_has_the_place_of_its_item(taken: set[int], bad: set[int]) -> None:
    places = [n for n in range(20) if n not in taken][:5]
    whole = batch(posts=[post(str(n)) for n in places], errors=[error(n) for n in sorted(taken)])

    found = storage_errors(whole, dict.fromkeys(bad, "why"))

    assert [(row.item_index, row.content_id) for row in found] == [(places[n], str(places[n])) for n in sorted(bad)]


def test_why_a_post_was_refused_is_told_shortly() -> None:
    (found,) = storage_errors(batch(posts=[post("a")]), {0: "y" * 9999})

    assert found.error_message == "cannot be stored: " + "y" * 500


@given(ROW)
def test_a_comment_without_fault_is_mended_into_itself(row: CommentRow) -> None:
    assert mended_comment(row) == row


def test_an_error_without_fault_is_mended_into_itself() -> None:
    row = error(5, error_message="m" * 100_000, error_details={"a": [1, {"b": 10**400}]}, project_id=None)

    assert mended_error(row) == row
    assert mended_error(msgspec.structs.replace(row, created_at=float("nan"))).created_at == 0.0


def test_posts_are_written_in_the_order_of_their_keys() -> None:
    rows = [post("b"), post("a", project_id="z"), post("a", project_id=None), post("a", platform="x"), post("a")]

    keys = [key_of(rows[place]) for place in chosen(batch(posts=rows))]

    assert keys == sorted(keys)
    assert len(keys) == 5


@given(st.integers(-719_162, 2_932_896))
def test_weeks_begin_on_monday_and_months_on_the_first(day: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(day)

    assert first_day(day, "day") == day
    assert timedelta(first_day(day, "week") - day) == timedelta(-moment.weekday())
    assert timedelta(first_day(day, "month") - day) == timedelta(1 - moment.day)
    assert timedelta(seconds=DAY) == timedelta(1)
