"""Where the head is: a line through what was seen, from an id to the time its record was completed. Pure.

Ids are given out in the order in which records are completed, roughly: neighbours may be a minute apart. A record can
be seen some seconds after it was completed. The upstream pauses, and its ids may jump. So the line is drawn by medians:
its slope is that of most stretches, its height that of the last few points, and a stretch across a pause or a jump does
not count for more than any other. How long after its time on the line an id is asked for is the margin's to learn.

Times are wall times in seconds, since completion times are; nothing here needs them to run evenly. A completion time
comes with the record and does not know our clock, so after a jump of the clock the line is off by the jump. It then
costs one `LONGEST_WAIT`, or some questions that come too early, until the line is shifted.
"""

from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from statistics import median

# The line rests on at most so many points, over so many seconds of completion times, or up to twice as many; on older
# ones only where there are fewer than so many of these. A point is the median of its records, of which about so many
# are evenly chosen.
POINTS = 120
SPAN = 300.0
FEW_POINTS = 30
ENOUGH = 9
FEWEST_POINTS = 10  # for a slope
STRETCH = 6  # slopes are taken over a sixth of the points: two jumps leave most of them untouched
LATEST = 5  # points that say how high the line is now
# The line must rise this many times as much as its points scatter. Neighbours come in any order, and a slope through
# one second of them is noise.
CLEAR = 4.0
SLOWEST, FASTEST = 1e6, 1e-6  # seconds from one id to the next; beyond that it is no sequence of records

MOST_DOUBTED = 4096  # ids that were asked for too early, or will never exist; the oldest are forgotten
# An id that was asked for so many seconds after it was due says nothing about the margin if it was there, and nothing
# either if it was not: that is a backlog.
LATE, STALE = 5.0, 60.0
NEARBY = 32  # a new line that begins so many ids on, or fewer, follows a wait; one further on follows a gap
LONGEST_WAIT = 60.0  # seconds that an id can be held back while it is the next


@dataclass(frozen=True, slots=True)
class HeadLine:
    """`seconds` pass from one id to the next; `number` is due to be completed at `time`."""

    number: int
    time: float
    seconds: float

    def completed(self, number: int) -> float:
        """When the record of an id was or will be completed."""
        return self.time + (number - self.number) * self.seconds


# So many ids in a row that were not there are no holes: the upstream has become slower to show what it has, or shows
# nothing more.
IN_A_ROW = 8


@dataclass(frozen=True, slots=True)
class MarginRules:
    """Seconds, and shares."""

    first: float = 8.0
    least: float = 2.0
    most: float = 120.0
    early: float = 0.003  # the share of first answers that may come too early
    # Of the margin, added by an id that was; the others take off what keeps that share. Above ten ids a second it is
    # less, so that a second's worth of ids never does more: what was early is known only seconds later.
    step: float = 0.015

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.first <= self.most < inf:
            found = f"least {self.least}, first {self.first}, most {self.most}"
            raise ValueError(f"{found}: expected seconds that do not decrease in this order")
        if not (0 < self.early < 1 and 0 < self.step < 1):
            raise ValueError(f"early {self.early}, step {self.step}: expected shares between 0 and 1")


class Margin:
    """Grows by what came later than it was asked for, shrinks by what was there.

    An id that is not there may be a hole, which no margin would fill, so it counts only once its record is seen after
    all. But if the records come so late that all tries are in vain, none ever is: then a row of misses must do, and is
    taken back if it turns out to have been a hole.
    """

    def __init__(self, rules: MarginRules) -> None:
        self._rules = rules
        self.seconds = rules.first
        self._missed = 0  # in a row
        self._proved = False  # whether any of those was seen later
        self._before = rules.first  # that row

    def step(self, apart: float) -> float:
        """Seconds that one id counts for, where ids are `apart` seconds apart."""
        return self._rules.step * self.seconds * min(1.0, 10.0 * apart)

    def there(self, apart: float) -> None:
        """An id was there when it was due."""
        if self._missed >= IN_A_ROW and not self._proved:
            self.seconds = self._before
        self._missed = 0
        share = self._rules.early / (1 - self._rules.early)
        self.seconds = max(self._rules.least, self.seconds - self.step(apart) * share)

    def missed(self, apart: float) -> None:
        """An id was not there when it was due."""
        if self._missed == 0:
            self._before, self._proved = self.seconds, False
        self._missed += 1
        if self._missed > IN_A_ROW:
            self.seconds = min(self._rules.most, self.seconds + self.step(apart))

    def late(self, enough: float, apart: float) -> None:
        """The record of such an id was seen after all; a margin of `enough` would have done."""
        self._proved = True
        self.seconds = max(self.seconds, min(self.seconds + self.step(apart), enough, self._rules.most))

    def forget_misses(self) -> None:
        """They were a gap, and say nothing."""
        if self._missed:
            self.seconds = self._before
        self._missed = 0

    def is_enough(self, lag: float) -> None:
        """A record was seen so many seconds after its completion by someone who had been waiting for it."""
        self._missed = 0
        self.seconds = max(self._rules.least, min(self.seconds, lag))


class SequenceHead:
    """Learns from records where the head is, and says when an id should be asked for."""

    def __init__(self, rules: MarginRules | None = None) -> None:
        self.newest: int | None = None  # the highest id that is known to exist
        self._margin = Margin(rules or MarginRules())
        self._trail = HeadTrail()
        self._line: HeadLine | None = None
        self._apart: float | None = None  # seconds from one id to the next, as far as it was ever known
        # Ids that were not there yet, and the margin they were asked with.
        self._doubted: OrderedDict[int, float] = OrderedDict()
        self._shift = 0.0  # how much earlier than by the line, since the line was proved too late
        self._now: float | None = None
        self._next: tuple[int, float] | None = None  # the id that is held back, and since when
        self._waited = False  # whether the next record was waited for, and asked for as soon as it was there

    def __repr__(self) -> str:
        return f"<Head at {self.newest}, {self.rate} ids/s, margin {self.margin:.1f} s>"

    @property
    def rate(self) -> float | None:
        """Ids a second that the upstream makes; None until it is known."""
        return 1 / self._apart if self._apart else None

    @property
    def margin(self) -> float:
        """Seconds after its completion that an id is asked for."""
        return self._margin.seconds

    def seen(self, number: int, completed: float, now: float) -> None:
        """There is a record of that id, completed at that time."""
        if not (isfinite(completed) and isfinite(now)):
            raise ValueError(f"record {number} was completed at {completed} and seen at {now}; expected seconds")
        self._now = now
        self.newest = number if self.newest is None else max(self.newest, number)
        if self._waited:
            self._waited = False
            self._margin.is_enough(now - completed)
        if number in self._doubted:
            self._was_early(number, now)
        if self._trail.add(number, completed):
            self._apart = self._trail.slope() or self._apart
            self._line = self._trail.line(self._apart) if self._apart else None

    def due(self, number: int, now: float | None = None) -> float | None:
        """The wall time before which an id should not be asked for; None if there is nothing to go by: ask now.

        Without `now` it is taken to be when the last record was seen. The next id is never held back for longer than
        LONGEST_WAIT: if it still was not due by then, the line is wrong and not the world, and is shifted.
        """
        if now is not None:
            self._now = now
        if self._line is None or self._now is None:
            return None
        if self._next is None or self._next[0] != number or self._now < self._next[1]:  # the last if clocks went back
            self._next = (number, self._now)
        due, limit = self._due(self._line, number), self._next[1] + LONGEST_WAIT
        if due > limit and self._now >= limit:
            self._shift += due - self._now
            return self._now
        return min(due, limit)

    def early(self, number: int) -> None:
        """The first answer for an id was that it is not there."""
        if self._line is None or self._late(self._line, number) - self._shift >= STALE:
            return
        self._doubted[number] = self.margin
        if len(self._doubted) > MOST_DOUBTED:
            self._doubted.popitem(last=False)
        if not self._shift:
            self._margin.missed(self._line.seconds)

    def on_time(self, number: int) -> None:
        """The first answer for an id was its record."""
        if self._line is not None and self._late(self._line, number) < LATE:
            self._margin.there(self._line.seconds)

    def estimate(self, now: float) -> int | None:
        """The id that should be due just now, never below the newest that was seen; None if nothing was."""
        if self._line is None:
            return self.newest
        ahead = (now - self._due(self._line, self._line.number)) / self._line.seconds
        return max(self.newest or 0, self._line.number + int(ahead))

    def resume(self, number: int, now: float) -> None:
        """Begin a new line: after a pause or a gap, `number` exists, and is new as far as anyone knows."""
        if self.newest is not None and number > self.newest + NEARBY:
            self._margin.forget_misses()
        else:
            self._waited = True
        self._now = now
        self.newest = number if self.newest is None else max(self.newest, number)
        self._trail = HeadTrail()
        self._doubted.clear()
        self._shift = 0.0
        self._next = None
        self._line = HeadLine(number, now - self.margin, self._apart) if self._apart else None

    def _due(self, line: HeadLine, number: int) -> float:
        return line.completed(number) + self.margin - self._shift

    def _late(self, line: HeadLine, number: int) -> float:
        """Seconds since the id was due."""
        return -inf if self._now is None else self._now - self._due(line, number)

    def _was_early(self, number: int, now: float) -> None:
        """An id that was not there is there now: a larger margin would have helped, but none beyond `now`."""
        used = self._doubted.pop(number)
        if self._line is None:
            return
        enough = max(used, now - self._line.completed(number))
        if self._shift:
            # By large steps if it is far off: the clock may have been set right.
            step = max(self._margin.step(self._line.seconds), (enough - self.margin + self._shift) / 8)
            self._shift = max(0.0, self._shift - step)
        else:
            self._margin.late(enough, self._line.seconds)


class HeadTrail:
    """A bounded number of points, each for some records in a row: where the line comes from."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []
        self._sample: list[tuple[int, float]] = []
        self._in_point = 1  # records
        self._records = 0  # since the last point

    def add(self, number: int, completed: float) -> bool:
        """Whether this made a point. Ids behind the last point are late finds, and do not."""
        if self._points and number <= self._points[-1][0]:
            return False
        self._records += 1
        if self._records % max(1, self._in_point // ENOUGH) == 0:
            self._sample.append((number, completed))
        if self._records < self._in_point:
            return False
        self._end_point()
        return True

    def _end_point(self) -> None:
        numbers, times = sorted(number for number, _ in self._sample), [time for _, time in self._sample]
        self._points.append((numbers[len(numbers) // 2], median(times)))
        self._sample.clear()
        self._records = 0
        self._thin_out()

    def _thin_out(self) -> None:
        points = self._points
        while len(points) > FEW_POINTS and points[-1][1] - points[0][1] > 2 * SPAN:
            del points[0]
        if len(points) == POINTS and points[-1][1] - points[0][1] < SPAN:
            del points[::2]
            self._in_point *= 2
        elif len(points) == POINTS:
            del points[0]
        elif len(points) == FEW_POINTS and self._in_point > 1:
            # A pause among them is no reason to look closer, so the usual distance counts.
            apart = median(later[1] - earlier[1] for earlier, later in pairwise(points))
            self._in_point //= 2 if apart * FEW_POINTS > 2 * SPAN else 1

    def slope(self) -> float | None:
        """Seconds from one id to the next; None if there are too few points, or they scatter too much to tell."""
        points = self._points
        if len(points) < FEWEST_POINTS:
            return None
        apart = max(1, len(points) // STRETCH)
        pairs = list(zip(points, points[apart:], strict=False))
        steps = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairs]
        slope = median(seconds / ids for ids, seconds in steps)
        rise = slope * median(ids for ids, _ in steps) * STRETCH
        scatter = median(abs(seconds - slope * ids) for ids, seconds in steps)
        return slope if FASTEST <= slope <= SLOWEST and rise >= CLEAR * scatter else None

    def line(self, seconds: float) -> HeadLine:
        """Through the last few points."""
        number = self._points[-1][0]
        time = median(time + (number - earlier) * seconds for earlier, time in self._points[-LATEST:])
        return HeadLine(number, time, seconds)
