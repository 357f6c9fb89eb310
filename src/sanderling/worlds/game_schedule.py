"""Which ids a simulated game has, and when each appears: arithmetic, exact in both directions, without a table of ids.

Terms. An id is *born* when its activity ends, and *visible* once it can be fetched: some seconds later, and a little
out of order. The *head* is the newest that is born. A *piece* is a stretch of time in which ids are born at one rate;
where there is no piece nothing is born. A *hold* keeps back what would become visible while it lasts, until it ends. A
*hole* is a block of ids that never exist; single ones are missing besides.

Times are Unix seconds, except in the rules: there they count from when the game began.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from math import inf
from random import Random
from sys import maxsize
from typing import NamedTuple, Self

from sanderling.worlds.chance import scatter

MOST_RATE = 100_000.0  # ids per second; with far more, two would be born at the same time as far as a float can tell
ROUNDING = 1e-6  # seconds; less than half of the time between two births at the highest rate
SLACK = 0.001  # seconds; more than the rounding errors of a few additions, see `_edge`


class TimeSpan(NamedTuple):
    """A stretch of time, without its end."""

    start: float
    seconds: float

    @property
    def end(self) -> float:
        """The first instant after it."""
        return self.start + self.seconds

    def faster(self, speed: float) -> "TimeSpan":
        """The same on a clock that is so many times as fast."""
        return TimeSpan(self.start / speed, self.seconds / speed)


class Piece(NamedTuple):
    """A stretch of time in which ids are born at one rate; the last may be endless."""

    start: float
    seconds: float
    rate: float  # ids per second

    def faster(self, speed: float) -> "Piece":
        """As many ids in a fraction of the time."""
        return Piece(self.start / speed, self.seconds / speed, self.rate * speed)


class Hole(NamedTuple):
    """A block of ids that never exist."""

    first: int
    size: int
    jumped: bool = True  # over by the counter, which takes no time; else the activities took place and were lost

    @property
    def end(self) -> int:
        """The first id after it."""
        return self.first + self.size


@dataclass(frozen=True, slots=True)
class ScheduleRules:
    """What a schedule is made of. The defaults are an hour of history, and then 60 ids a second for ever."""

    first: int = 16_000_000_000  # the lowest id
    pieces: tuple[Piece, ...] = (Piece(-3600.0, inf, 60.0),)
    holds: tuple[TimeSpan, ...] = ()
    holes: tuple[Hole, ...] = ()
    hole_every: int = 0  # of each so many ids a single one never exists; 0: all do
    delay: float = 5.0  # seconds from birth to being visible, at least
    spread: float = 6.0  # and at most so many more, by chance: this is what puts them out of order

    def __post_init__(self) -> None:
        if self.first < 0 or self.hole_every < 0 or not (0 <= self.delay < inf and 0 <= self.spread < inf):
            raise ValueError(
                f"first {self.first}, hole_every {self.hole_every}, delay {self.delay}, spread {self.spread}; "
                "expected none below 0"
            )
        for piece in self.pieces:
            if not (piece.seconds > 0 and 0 < piece.rate <= MOST_RATE):
                raise ValueError(f"{piece}: expected seconds above 0, and a rate above 0 and up to {MOST_RATE:g}")
        if not self.pieces:
            raise ValueError("pieces is empty, expected at least one")
        # Times that were computed may overlap by a rounding error.
        _check_order("pieces", [(piece.start, piece.start + piece.seconds - ROUNDING) for piece in self.pieces])
        _check_order("holds", [(hold.start, hold.end - ROUNDING) for hold in self.holds])
        # A block that begins where another ends is one block, and is to be written so.
        _check_order("holes", [(hole.first, hole.end + 1) for hole in self.holes])
        if any(hold.seconds <= 0 or hold.end == inf for hold in self.holds):
            raise ValueError(f"holds are {self.holds}, expected each to last, and to end")
        if any(hole.size < 1 or hole.first < self.first for hole in self.holes):
            raise ValueError(f"holes are {self.holes}, expected each to have ids, and none below {self.first}")

    def faster(self, speed: float) -> Self:
        """The same ids, in a fraction of the time."""
        return replace(
            self,
            pieces=tuple(piece.faster(speed) for piece in self.pieces),
            holds=tuple(hold.faster(speed) for hold in self.holds),
            delay=self.delay / speed,
            spread=self.spread / speed,
        )


def _check_order(name: str, ranges: Sequence[tuple[float, float]]) -> None:
    for (_, end), (start, _) in pairwise(ranges):
        if start < end:
            raise ValueError(f"{name}: one begins at {start:,} before the last is over; expected one after the other")


class _Stretch(NamedTuple):
    """A piece, laid out: its ids are born in the middles of `births` equal steps, so never on its borders."""

    start: float
    step: float
    first: int  # how many are born before
    births: int


def _laid_out(pieces: Sequence[Piece], began: float) -> Iterator[_Stretch]:
    total, first = 0.0, 0
    for piece in pieces:
        total += piece.seconds * piece.rate
        # Rounded in total and not piece by piece: many short ones would lose a fraction of an id each.
        births = maxsize if total == inf else int(total) - first
        if births:
            step = 1 / piece.rate if total == inf else piece.seconds / births
            yield _Stretch(began + piece.start, step, first, births)
            first += births


class GameSchedule:
    """The ids. `order` is an id's place among those that are born; ids that the counter jumped have none."""

    def __init__(self, rules: ScheduleRules, seed: int, began: float) -> None:
        self.first = rules.first
        self.began = began
        self._rules = rules
        chance = Random(f"schedule {seed}")
        self._salt, self._hole_salt = chance.getrandbits(64), chance.getrandbits(64)
        self._stretches = tuple(_laid_out(rules.pieces, began))
        self._starts = [stretch.start for stretch in self._stretches]
        self._orders = [stretch.first for stretch in self._stretches]
        self._born_in_all = self._stretches[-1].first + self._stretches[-1].births if self._stretches else 0
        self._hold_starts = [began + hold.start for hold in rules.holds]
        ends = zip_longest((began + hold.end for hold in rules.holds), self._hold_starts[1:], fillvalue=inf)
        self._hold_ends = [min(pair) for pair in ends]
        self._hole_firsts = [hole.first for hole in rules.holes]
        jumps = [hole for hole in rules.holes if hole.jumped]
        self._jumps = tuple(jumps)
        self._jump_firsts = [hole.first for hole in jumps]
        self._jumped = [sum(hole.size for hole in jumps[:at]) for at in range(len(jumps) + 1)]
        self._jump_orders = [self._order(hole.first) for hole in jumps]

    def born(self, number: int) -> float:
        """When its activity ended; of one that was jumped, when the next one's did. Never is infinity."""
        return self._time(self._order(number))

    def head(self, now: float) -> int:
        """The newest id that is born; the one below the first if none is."""
        at = bisect_right(self._starts, now) - 1
        if at < 0:
            return self.first - 1
        start, step, first, births = self._stretches[at]
        order = first + min(births, int((now - start) / step + 0.5))
        # By a rounding error this can be off by one; `born` has the last word.
        while self._time(order) <= now:
            order += 1
        while order > 0 and self._time(order - 1) > now:
            order -= 1
        return self._number(order - 1) if order else self.first - 1

    def visible(self, number: int) -> float:
        """When it can be fetched, if it exists."""
        luck = (scatter(number, self._salt) >> 40) / 2**24
        when = self.born(number) + self._rules.delay + self._rules.spread * luck
        at = bisect_right(self._hold_starts, when) - 1
        return self._hold_ends[at] if at >= 0 and when < self._hold_ends[at] else when

    def exists(self, number: int) -> bool:
        """Whether it is there some time or other: born, in no hole, and no single one that is missing."""
        if number < self.first or self._order(number) >= self._born_in_all:
            return False
        at = bisect_right(self._hole_firsts, number) - 1
        if at >= 0 and number < self._rules.holes[at].end:
            return False
        every = self._rules.hole_every
        return not every or number % every != self._missing_in(number // every)

    def existing(self, low: int, high: int) -> int:
        """How many ids from `low` to below `high` exist, some time or other."""
        low, high = max(low, self.first), min(high, self._number(self._born_in_all))
        if low >= high:
            return 0
        holes = [(max(low, hole.first), min(high, hole.end)) for hole in self._rules.holes]
        return self._dense(low, high) - sum(self._dense(start, end) for start, end in holes if start < end)

    def live(self, low: int, high: int, now: float) -> int:
        """How many ids from `low` to below `high` can be fetched at `now`."""
        sure, none = self._edge(now)
        return self.existing(low, min(high, sure)) + sum(1 for _ in self._near(max(low, sure), min(high, none), now))

    def ids(self, low: int, high: int, now: float = inf) -> Iterator[int]:
        """The ids from `low` to below `high` that can be fetched at `now`; without a time, all that ever exist."""
        sure, none = self._edge(now) if now < inf else (high, high)
        for start, end in self._blocks(low, min(high, sure)):
            yield from filter(self.exists, range(start, end))
        yield from self._near(max(low, sure), min(high, none), now)

    def newest(self, now: float) -> int | None:
        """The highest id that can be fetched; None if there is none yet."""
        sure, none = self._edge(now)
        near = max(self._near(sure, none, now), default=None)
        number = sure - 1 if near is None else near
        while number >= self.first and not self.exists(number):
            at = bisect_right(self._hole_firsts, number) - 1
            inside = at >= 0 and number < self._rules.holes[at].end
            number = self._hole_firsts[at] - 1 if inside else number - 1
        return number if number >= self.first else None

    def _edge(self, now: float) -> tuple[int, int]:
        """All that exist below the first are visible, and none from the second on is; between, each is to be asked."""
        at = bisect_right(self._hold_starts, now) - 1
        if at >= 0 and now < self._hold_ends[at]:
            now = self._hold_starts[at]
        delay, spread = self._rules.delay, self._rules.spread
        return self.head(now - delay - spread - SLACK) + 1, self.head(now - delay + SLACK) + 1

    def _near(self, low: int, high: int, now: float) -> Iterator[int]:
        for start, end in self._blocks(low, high):
            yield from (number for number in range(start, end) if self.exists(number) and self.visible(number) <= now)

    def _blocks(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """What lies between the holes."""
        low = max(low, self.first)
        for hole in self._rules.holes:
            if hole.end > low:
                yield low, min(high, hole.first)
                low = hole.end
        yield low, high

    def _dense(self, low: int, high: int) -> int:
        """How many there would be if there were no blocks missing."""
        every = self._rules.hole_every
        return high - low - (self._missing_below(high) - self._missing_below(low) if every else 0)

    def _missing_below(self, number: int) -> int:
        block, place = divmod(number, self._rules.hole_every)
        return block + (self._missing_in(block) < place)

    def _missing_in(self, block: int) -> int:
        """The place of the one that is missing among `hole_every` ids: one in each, so that they can be counted."""
        return scatter(block, self._hole_salt) % self._rules.hole_every

    def _time(self, order: int) -> float:
        if order < 0:
            return -inf
        if order >= self._born_in_all:
            return inf
        stretch = self._stretches[bisect_right(self._orders, order) - 1]
        return stretch.start + (order - stretch.first + 0.5) * stretch.step

    def _order(self, number: int) -> int:
        at = bisect_right(self._jump_firsts, number)
        if at:
            number = max(number, self._jumps[at - 1].end)
        return number - self.first - self._jumped[at]

    def _number(self, order: int) -> int:
        return self.first + order + self._jumped[bisect_right(self._jump_orders, order)]
