"""What processes of a crawl show each other."""

from pathlib import Path

from sanderling.stores.board import Board, BoardField


def test_what_one_process_says_the_others_see(tmp_path: Path) -> None:
    made = Board(tmp_path / "board", 3, make=True)
    opened = Board(tmp_path / "board", 3)
    opened.put(2, BoardField.SENT, 5)
    opened.put(0, BoardField.SENT, 2**40)
    made.over = True

    assert [made.get(part, BoardField.SENT) for part in range(3)] == [2**40, 0, 5]
    assert made.total(BoardField.SENT) == 2**40 + 5
    assert [made.total(field) for field in BoardField if field is not BoardField.SENT] == [0] * (len(BoardField) - 1)
    assert opened.over


def test_a_board_is_made_anew(tmp_path: Path) -> None:
    Board(tmp_path / "board", 2, make=True).put(1, BoardField.IDLE, 1)

    assert Board(tmp_path / "board", 2, make=True).total(BoardField.IDLE) == 0
