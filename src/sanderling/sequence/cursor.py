"""Which id is next, and which have no fate yet."""

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sanderling.apis.numbered import LARGEST_ID

# Ids that may be saved one by one. Where more are open, the first of those that are left out is the next: what was
# settled behind it is asked again after a crash, and stored once all the same.
MOST_OPEN = 10_000


@dataclass(frozen=True, slots=True)
class Position:
    """What must outlive the process: every id below `next` that is not in `open` has its fate."""

    next: int
    open: tuple[int, ...] = ()

    @property
    def low(self) -> int:
        """Every id below this one has its fate."""
        return self.open[0] if self.open else self.next


class IdCursor:
    """Hands out ids in their order; an id is open from then until it is settled."""

    def __init__(self, position: Position, *, stride: int = 1) -> None:
        if not 0 <= position.next <= LARGEST_ID + 1:
            raise ValueError(f"next id is {position.next}; expected 0 to {LARGEST_ID}")
        if stride < 1:
            raise ValueError(f"stride is {stride}; expected 1 or more")
        self.next = position.next
        self.stride = stride
        self._open: set[int] = set()  # handed out
        self._returned = sorted(position.open)  # a heap: handed out once, and to be handed out again

    def __repr__(self) -> str:
        return f"<Cursor at {self.next}, {len(self._open)} open, {len(self._returned)} returned>"

    @property
    def open(self) -> int:
        """How many ids have no fate yet."""
        return len(self._open) + len(self._returned)

    def peek(self) -> int | None:
        """The id that `take` would give; None behind the last of all."""
        if self._returned:
            return self._returned[0]
        return self.next if self.next <= LARGEST_ID else None

    def take(self) -> int:
        """The next id, which is open from now on."""
        number = self.peek()
        if number is None:
            raise ValueError(f"there are no ids above {LARGEST_ID}")
        if self._returned:
            heapq.heappop(self._returned)
        else:
            self.next += self.stride
        self._open.add(number)
        return number

    def settle(self, number: int) -> None:
        """The id has its fate. Ids of other lanes are none of ours, and that is fine."""
        self._open.discard(number)

    def give_back(self, number: int) -> None:
        """Hand the id out again when its turn comes, unless another lane has settled it meanwhile."""
        if number in self._open:
            self._open.remove(number)
            heapq.heappush(self._returned, number)

    def skip_to(self, first: int) -> list[tuple[int, int]]:
        """Go on at `first`. The ranges, both ends included, that nobody will be asked for, which now need a fate."""
        ranges = []
        while self._returned and self._returned[0] < first:
            number = heapq.heappop(self._returned)
            ranges.append((number, number))
        if first > self.next:
            ranges.append((self.next, first - 1))
            self.next = first
        return _merge(ranges)

    def position(self) -> Position:
        """As it is now."""
        waiting = sorted((*self._open, *self._returned))
        if len(waiting) > MOST_OPEN:
            return Position(waiting[MOST_OPEN], tuple(waiting[:MOST_OPEN]))
        return Position(self.next, tuple(waiting))


def _merge(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same ids in as few ranges as can be; they come in ascending order."""
    merged: list[tuple[int, int]] = []
    for low, high in ranges:
        if merged and merged[-1][1] + 1 == low:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return merged


def ranges_of(numbers: Collection[int]) -> list[tuple[int, int]]:
    """These ids in as few ranges as can be, both ends included."""
    return _merge([(number, number) for number in sorted(set(numbers))])
