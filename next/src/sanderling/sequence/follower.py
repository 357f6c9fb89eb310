"""Which id to request next: through a backlog at full speed, at the head in rounds that cost little. Pure.

An id above all that are known to exist is a guess. In a backlog each guess that is right allows one more, so that as
many go out as the host answers. When guesses were wrong and none is out we are at the head: the round is over, and the
next begins when some three ids should have come to be, as far as is known from how fast the head has moved. Nothing
here needs to know when a record came to be.
"""

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from sanderling.sequence.options import LARGEST_ID

PER_ROUND = 3.5  # ids that should have come to be when a round begins: one wasted request for each so many
SHORTEST, LONGEST = 1.0, 14.0  # seconds between rounds
LONGEST_IDLE = 9.4  # the same, while nothing comes: the first new id is there soon after it can be
UNKNOWN = 2.0  # while nothing is known of the rate
SEEN = 120.0  # seconds of looks at the head from which the rate is read
FEW_LOOKS, MOST_LOOKS = 8, 64
FIRST_REACH = 25  # guesses that may be wrong when we come to the head
MOST_REACH = 8  # guesses of an idle round at most, which holes at the head are passed with
SUSPICIOUS = 2  # rounds in a row without anything, after which there may be a gap
LATE_STEP, LATEST = 0.25, 10.0  # seconds by which guesses come later, once one came too early
ON_TIME = 0.0025
CHANCE = 3  # guesses beyond those expected that were right, before several are out at once
MOST_OPEN = 10_000  # ids that are saved one by one


@dataclass(frozen=True, slots=True)
class Position:
    """What outlives the process: every id below `next` that is not in `open` has been decided."""

    next: int
    open: tuple[int, ...] = ()
    newest: int | None = None
    rate: float | None = None
    margin: float = 0.0


@dataclass(slots=True)
class Follower:
    """Hands out ids in their order, and hears what became of them. Times are seconds of one clock."""

    position: Position
    stride: int = 1
    until: int = LARGEST_ID
    workers: int = 25  # guesses that may be out at most
    ceiling: int | None = None  # the newest id, as the API says it: nothing above it is guessed
    next: int = 0
    newest: int = -1
    rate: float | None = None  # ids a second at the head
    margin: float = 0.0
    empty: int = 0  # rounds in a row in which nothing came
    resume_at: float = -inf
    progress_at: float = -inf  # when something was found last
    at_head: bool = False
    _expected: int = 0  # ids that should be there in this round, and were not found yet
    _more: float = inf  # guesses beyond these that may be out
    _reach: int = FIRST_REACH  # guesses that may be wrong before the round is over
    _open: set[int] = field(default_factory=set)  # handed out and not decided
    _returned: list[int] = field(default_factory=list)  # a heap: to be handed out again
    _wrong: set[int] = field(default_factory=set)  # guesses of this round that were wrong
    _guesses: set[int] = field(default_factory=set)  # that are out
    _looks: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=MOST_LOOKS))
    _turn: int = 0

    def __post_init__(self) -> None:
        saved = self.position
        self.next = saved.next
        self.newest = saved.next - self.stride if saved.newest is None else saved.newest
        self.rate, self.margin = saved.rate, saved.margin
        self._returned = sorted(saved.open)

    @property
    def open(self) -> int:
        """How many ids are handed out and not decided."""
        return len(self._open) + len(self._returned) + len(self._wrong)

    @property
    def done(self) -> bool:
        """Whether every id up to the last has been decided."""
        return self.next > self.until and not self.open

    @property
    def suspects_gap(self) -> bool:
        """Whether nothing has come for so long that there may be a gap before us."""
        return self.empty >= SUSPICIOUS

    def peek(self) -> int | None:
        """The id that is next; None behind the last."""
        if self._returned:
            return self._returned[0]
        return None if self.next > self.until else self.next

    def take(self, now: float) -> int | None:
        """The id to request now, if there is one."""
        number = self.peek()
        if number is None:
            return None
        if number > self.newest and self.ceiling is not None and number > self.ceiling:
            return None
        if number > self.newest and (self.ceiling is None or number > self.ceiling):
            # Some more than were expected are chance; as many again are a backlog.
            allowed = min(max(1, self._expected) + max(0, self._more - CHANCE), self.workers)
            if now < self.resume_at or len(self._guesses) >= allowed or len(self._wrong) >= self._reach:
                return None
            if self.empty > MOST_REACH and self._guesses | self._wrong:
                # Long idle: the next id each time, and by turns one of those behind it.
                self._turn = self._turn % MOST_REACH + 1
                number = self._ahead(self._turn)
            self._guesses.add(number)
        if number in self._returned:
            self._returned.remove(number)
            heapq.heapify(self._returned)
        while self.next <= number:
            if self.next < number:
                heapq.heappush(self._returned, self.next)
            self.next += self.stride
        self._open.add(number)
        return number

    def take_in_order(self) -> int | None:
        """The next id, whatever is known of the head: as seed 000 counts."""
        number = self.peek()
        if number is None:
            return None
        if self._returned:
            heapq.heappop(self._returned)
        else:
            self.next += self.stride
        self._open.add(number)
        return number

    def decide(self, number: int, *, exists: bool) -> None:
        """An id that was taken in order has been decided."""
        self._settle(number)
        if exists:
            self.newest = max(self.newest, number)

    def go_back(self, number: int) -> None:
        """Go on behind this id: what was taken since was ahead of the head."""
        self.next = min(self.next, number + self.stride)
        self._returned = [each for each in self._returned if each < self.next]

    def _ahead(self, steps: int) -> int:
        number = self.newest + self.stride * (1 + steps)
        return min(number, self.until)

    def found(self, number: int, now: float) -> list[int]:
        """There is a record of this id. Returns ids that are holes, as far as is known now: they were not there."""
        self._settle(number)
        if number <= self.newest:
            return []
        self.newest = number
        self.progress_at = now
        if self._expected:
            self._expected -= 1
        else:
            self._more += 1
        self._guesses = {guess for guess in self._guesses if guess > number}
        holes = sorted(wrong for wrong in self._wrong if wrong < number)
        self._wrong.difference_update(holes)
        self._end_round(now)
        return holes

    def missing(self, number: int, now: float) -> bool:
        """There is no record of this id. True if it is a hole; else it may not have come to be yet, and waits."""
        self._open.discard(number)
        self._guesses.discard(number)
        if number < self.newest or (self.ceiling is not None and number <= self.ceiling):
            self._end_round(now)
            return True
        self._wrong.add(number)
        self._end_round(now)
        return False

    def undecided(self, number: int) -> None:
        """The answer says nothing: it is handed out again."""
        if number in self._open:
            self._settle(number)
            heapq.heappush(self._returned, number)

    def leave(self, number: int, now: float) -> None:
        """Somebody else decides on this id."""
        self._settle(number)
        self._end_round(now)

    def _settle(self, number: int) -> None:
        self._open.discard(number)
        self._guesses.discard(number)
        self._wrong.discard(number)

    def _end_round(self, now: float) -> None:
        """If all guesses that are out were wrong and no more may go out, wait for the head."""
        if not self._wrong or self._guesses or (len(self._wrong) < self._reach and self.peek() is not None):
            return
        for number in self._wrong:
            heapq.heappush(self._returned, number)
        self._wrong.clear()
        moved = not self._looks or self._looks[-1][1] != self.newest or not self.at_head
        self.at_head = True
        self._look(now)
        self.empty = 0 if moved else self.empty + 1
        pause = self.usual_pause
        if self.empty:
            pause = max(SHORTEST, min(LONGEST_IDLE, pause * 1.5 ** min(self.empty - 1, 20)))
        self.resume_at = now + pause
        self._expected = int((self.rate or 0.0) * max(0.0, pause - self.margin) * 0.5**self.empty)
        self._more = 0
        self._reach = 1 + (self.empty if self.empty <= MOST_REACH else self.empty % 2)

    @property
    def usual_pause(self) -> float:
        """Seconds between rounds while the head moves."""
        pause = UNKNOWN if not self.rate else PER_ROUND / self.rate
        return min(LONGEST, max(SHORTEST, pause)) + min(self.margin, 2.0)

    def _look(self, now: float) -> None:
        """The head is seen: everything that is there by now has been found."""
        looks = self._looks
        looks.append((now, self.newest))
        while len(looks) > FEW_LOOKS and looks[0][0] < now - SEEN:
            looks.popleft()
        moving = [look for look in looks if look[0] <= now]
        if len(moving) >= 3 and moving[-1][0] > moving[0][0]:
            self.rate = (moving[-1][1] - moving[0][1]) / self.stride / (moving[-1][0] - moving[0][0])

    def see_head(self, newest: int, now: float) -> None:
        """The API says what its newest id is."""
        before = self.ceiling
        self.ceiling = newest
        self.at_head = True
        self._looks.append((now, newest))
        first = self._looks[0]
        if now > first[0]:
            self.rate = (newest - first[1]) / self.stride / (now - first[0])
        self.empty = 0 if before is None or newest > before else self.empty + 1

    @property
    def head_pause(self) -> float:
        """Seconds until the API is asked for its newest id again."""
        pause = self.usual_pause
        return max(SHORTEST, min(LONGEST_IDLE, pause * 1.5 ** min(self.empty, 20))) if self.empty else pause

    def was_late(self) -> None:
        """An id that seemed a hole was there moments later: guesses come later from now on."""
        self.margin = min(LATEST, self.margin + LATE_STEP)

    def was_there(self) -> None:
        """A guess was right."""
        self.margin = max(0.0, self.margin - ON_TIME)

    def skip_to(self, first: int, now: float) -> list[tuple[int, int]]:
        """Life goes on at `first`: the ranges, both ends included, that were passed over."""
        passed = sorted({number for number in (*self._returned, *self._wrong) if self.newest < number < first})
        self._returned = [number for number in self._returned if not self.newest < number < first]
        heapq.heapify(self._returned)
        self._wrong.difference_update(passed)
        ranges = ranges_of(passed)
        last = min(first - self.stride, self.until)
        if self.next <= last:
            ranges = merged([*ranges, (self.next, last)])
        if self.next < first:
            self.next += -(-(first - self.next) // self.stride) * self.stride
        self.newest = max(self.newest, first - self.stride)
        self._looks.clear()
        self.empty, self.at_head = 0, False
        self._expected, self._more, self._reach = 0, inf, FIRST_REACH
        self.resume_at = self.progress_at = now
        return ranges

    def saved(self) -> Position:
        """As it is now."""
        waiting = sorted({*self._open, *self._returned, *self._wrong})
        if len(waiting) > MOST_OPEN:
            return Position(waiting[MOST_OPEN], tuple(waiting[:MOST_OPEN]), self.newest, self.rate, self.margin)
        return Position(self.next, tuple(waiting), self.newest, self.rate, self.margin)


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same ids in as few ranges as can be; they come in ascending order."""
    found: list[tuple[int, int]] = []
    for low, high in ranges:
        if found and found[-1][1] + 1 == low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def ranges_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """These ids in as few ranges as can be, both ends included."""
    return merged([(number, number) for number in sorted(set(numbers))])
