"""When the parts of a crawl are done: never while something is on its way, and then soon."""

import tempfile
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sanderling.crawls.exchange import EndOfParts
from sanderling.stores.board import Board, BoardField


class Part:
    """Does what it is sent, now and then sends something to others, and looks into its inbox in two steps."""

    def __init__(self, own: int, board: Board, work: int) -> None:
        self.own, self.board, self.work = own, board, work
        self.inbox = 0
        self.sent = self.looked = 0
        self._found: int | None = None

    def step(self, others: list["Part"], chance: Random) -> None:
        if self.work and chance.random() < 0.6:
            self.work -= 1
            if chance.random() < 0.4:
                chance.choice(others).inbox += 1
                self.sent += 1
                self.board.put(self.own, BoardField.SENT, self.sent)
        elif self._found is None:  # it reads
            self._found, self.inbox = self.inbox, 0
        else:  # and takes what it read
            found, self._found = self._found, None
            self.work += found
            idle = not found and not self.work
            self.looked += idle
            self.board.put(self.own, BoardField.LOOKED, self.looked)
            self.board.put(self.own, BoardField.IDLE, idle)

    @property
    def is_done(self) -> bool:
        return not (self.work or self.inbox or self._found)


@given(st.integers(2, 6), st.integers(0, 2**32))
def test_the_end_is_said_when_it_is_reached_and_not_before(number: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        board, chance = Board(Path(place) / "board", number, make=True), Random(seed)
        parts = [Part(own, board, chance.randrange(5)) for own in range(number)]
        end, done_at = EndOfParts(board), None
        for at in range(20_000):
            chance.choice(parts).step(parts, chance)
            if done_at is None and all(part.is_done for part in parts):
                done_at = at
            if chance.random() < 0.2 and end.is_reached():
                assert all(part.is_done for part in parts)
                assert done_at is not None
                return
        raise AssertionError("it never ended")
