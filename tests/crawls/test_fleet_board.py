"""What a worker knows of the budget that all parts share."""

from sanderling.crawls.fleet_mail import FleetBoard
from sanderling.stores.board import BoardField
from sanderling.stores.fleet import Beat, PartFigures

SUMS = {BoardField.RECORDS: 100, BoardField.FETCHED: 100, BoardField.REQUESTS: 300}


def heard(*own: PartFigures) -> FleetBoard:
    """A board of one who was told that all parts have 100 records of 300 requests."""
    board = FleetBoard(8)
    board.hear(Beat((), 1, False, False, False, 100, 0.0, 300), own)  # noqa: FBT003 - in their order
    return board


def test_what_others_have_is_what_is_not_ours() -> None:
    board = heard(PartFigures(3, 40, 0, 90))
    board.put(3, BoardField.RECORDS, 41)
    board.put(3, BoardField.REQUESTS, 95)

    assert (board.total(BoardField.RECORDS), board.total(BoardField.REQUESTS)) == (101, 305)
    assert board.total(BoardField.SENT) == 0


def test_a_part_that_is_taken_over_is_not_counted_twice_until_the_next_beat() -> None:
    """Else a budget would seem spent, and the part would end with it."""
    board = heard()
    assert {field: board.total(field) for field in SUMS} == SUMS

    board.take_over(PartFigures(3, 40, 0, 90))
    board.put(3, BoardField.RECORDS, 40)
    board.put(3, BoardField.REQUESTS, 90)
    assert (board.total(BoardField.RECORDS), board.total(BoardField.REQUESTS)) == (100, 300)


def test_one_that_has_more_than_was_told_takes_nothing_from_the_others() -> None:
    board = heard()
    board.take_over(PartFigures(3, 140, 0, 390))

    assert board.total(BoardField.RECORDS) == 0
