"""Inboxes are not looked through from their beginning each time, and no message is missed for that."""

from hypothesis import given
from hypothesis import strategies as st

from sanderling.stores.inbox_floors import WHOLE, InboxFloors
from sanderling.testing import FakeClock

PART, OTHER = 3, 4


class Inbox:
    """Messages that get their ids in order, can be seen in any order, and go when they were read."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.floors = InboxFloors(self.clock.now)
        self.seen: dict[int, int] = {}  # parts, by id
        self.taken: list[int] = []

    def look(self, *parts: int) -> list[int]:
        below = self.floors.below(parts)
        found = sorted(
            (part, number)
            for number, part in self.seen.items()
            for asked, floor in zip(parts, below, strict=True)
            if part == asked and number > floor and number not in self.taken
        )
        self.floors.note(list(zip(parts, below, strict=True)), found, self.taken)
        return [number for _, number in found]


def test_what_was_deleted_is_not_gone_over_again() -> None:
    inbox = Inbox()
    for first in (1, 101, 201):
        inbox.seen = dict.fromkeys(range(first, first + 100), PART)
        assert len(inbox.look(PART, OTHER)) == 100
        inbox.clock.advance(WHOLE)
    inbox.seen.clear()
    assert inbox.look(PART, OTHER) == []
    inbox.clock.advance(1)

    assert inbox.floors.below([PART, OTHER]) == [200, 300]
    assert inbox.floors.below([OTHER, 5]) == [300, 0]
    inbox.clock.advance(WHOLE)
    assert inbox.floors.below([PART]) == [0]


def test_what_was_taken_and_is_not_deleted_stays_above_the_floor() -> None:
    """Whoever had taken it may fail, and take it again."""
    inbox = Inbox()
    inbox.seen = {7: PART, 8: PART}
    inbox.taken = inbox.look(PART)
    for _ in range(3):
        inbox.clock.advance(WHOLE)
        inbox.look(PART)
    inbox.clock.advance(1)
    inbox.taken = []

    assert inbox.look(PART) == [7, 8]


@given(
    st.lists(
        st.tuples(
            st.sampled_from((PART, OTHER)),
            st.floats(0, 3 * WHOLE),  # until it can be seen
            st.floats(0, WHOLE / 4),  # until the next is sent
        ),
        max_size=30,
    )
)
def test_every_message_is_read_at_the_second_whole_look_at_the_latest(sent: list[tuple[int, float, float]]) -> None:
    inbox, hidden, read = Inbox(), list[tuple[float, int, int]](), dict[int, float]()
    for number, (part, delay, pause) in enumerate(sent, 1):
        hidden.append((inbox.clock.now() + delay, number, part))
        until = inbox.clock.now() + pause
        while inbox.clock.now() < until:
            inbox.clock.advance(WHOLE / 20)
            _turn(inbox, hidden, read)
    for _ in range(200):
        inbox.clock.advance(WHOLE / 20)
        _turn(inbox, hidden, read)

    assert set(read) == set(range(1, len(sent) + 1))
    for at, number, _ in hidden:
        assert read[number] <= at + 1.2 * WHOLE


def _turn(inbox: Inbox, hidden: list[tuple[float, int, int]], read: dict[int, float]) -> None:
    now = inbox.clock.now()
    inbox.seen |= {number: part for at, number, part in hidden if at <= now and number not in read}
    for number in inbox.look(PART, OTHER):
        read[number] = now
        del inbox.seen[number]
