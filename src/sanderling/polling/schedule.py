"""Which target is next? Those in memory, on their grids; those that are due, in the order of their urgency.

Everything here is arithmetic: times are seconds of a clock that only goes forward.
"""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from math import inf
from random import Random

import msgspec

from sanderling.polling.cadence import bucket, jitter, missed_runs, next_point, phase, stretch
from sanderling.stores.polling import Target

# Of every ten runs, each class of targets that has something due gets one, whatever the others weigh. Where there are
# more than five classes, they share half of the runs.
LEAST_SHARE, MOST_SHARED = 0.1, 0.5
# What is live weighs so much more: beside a crowd that is ten intervals late, it is late by a tenth of one.
BOOST = 100
# Seconds between runs, below which a target is live whoever set that: nobody asks so often for what can wait.
LIVE_BELOW = 1.0
LOOKED_AT = 1023  # places of the heap that hold the ten earliest, whatever the order of the rest
SPARE = 1000  # places in the heap for those that have left
# The share of its interval by which a live run may end after the next point, and that one still counts: it begins then,
# late. Or an answer that takes a little longer than the cadence would halve it.
GRACE = 0.25
# Those that fell due are sorted in so many at a time: a hundred thousand at once must not hold up the one that is late.
AT_ONCE = 500

# Whether they are live, about how long their intervals are, and their weight.
ClassKey = tuple[bool, int, int]


class Entry(msgspec.Struct, eq=False, gc=False, kw_only=True):
    """A target in memory: what it is, when it is due, and what to write back."""

    id: int
    kind: str
    source_id: str
    event: str
    only: tuple[str, ...] | None
    base: float  # seconds between runs, as discovery or an admin says
    usual: float  # the same as it is, while it is not accelerated: it may adapt
    weight: int
    fixed: bool  # whether an admin has set the interval
    # On the clock.
    interval: float
    point: float  # the next point of its grid
    at: float  # when it is due: there, or otherwise
    home: float = 0.0  # a point of its usual grid, while it is accelerated
    until: float | None = None  # the end of the acceleration
    promoted: float = -inf  # when it was last made due
    ran: float | None = None  # when it last came to its end, since it is in memory
    late: float = 0.0  # seconds, of its last run
    # Where it is.
    stamp: int = 0  # its place in the heap or in a lane is the one with this number
    running: bool = False
    again: bool = False  # to be run once more as soon as it is back
    dropped: bool = False
    # What came of it.
    runs: int
    missed: int
    failures: int
    asked: float | None
    fetched: float | None
    status: str
    etag: str
    modified: str
    digest: bytes
    raw: bytes = b""  # of the body as it came
    polls: float
    hits: float

    @classmethod
    def of(cls, target: Target) -> "Entry":
        """A target. When it is due is for others to say."""
        interval = target.interval
        return cls(
            id=target.id,
            kind=target.kind,
            source_id=target.source_id,
            event=target.event,
            only=target.only,
            base=interval,
            usual=interval,
            weight=target.weight,
            fixed=target.set_seconds is not None,
            interval=interval,
            point=inf,
            at=inf,
            runs=target.runs,
            missed=target.missed,
            failures=target.failures,
            asked=target.asked,
            fetched=target.fetched,
            status=target.status,
            etag=target.etag,
            modified=target.modified,
            digest=target.digest,
            polls=target.polls,
            hits=target.hits,
        )

    @property
    def live(self) -> bool:
        """Whether its cadence is there to be kept: it is accelerated, or asked for more than once a second anyway."""
        return self.until is not None or self.interval < LIVE_BELOW

    @property
    def group(self) -> ClassKey:
        """Which targets it is like."""
        live = self.live
        return live, bucket(self.interval), self.weight + BOOST if live else self.weight


class _Class:
    """Targets of a lane that are alike; the first is the latest."""

    __slots__ = ("credit", "line")

    def __init__(self) -> None:
        self.line: deque[tuple[int, Entry]] = deque()
        self.credit = 0.0

    def head(self) -> Entry | None:
        while self.line and self.line[0][0] != self.line[0][1].stamp:
            self.line.popleft()
        return self.line[0][1] if self.line else None


class Lane:
    """What is due at one host."""

    def __init__(self) -> None:
        self._classes: dict[ClassKey, _Class] = {}

    def push(self, entry: Entry) -> None:
        """Let it stand in line."""
        self._classes.setdefault(entry.group, _Class()).line.append((entry.stamp, entry))

    def pick(self, now: float, *, live: bool = False) -> Entry | None:
        """The one to run next, taken out; only one that is live, if so asked."""
        heads = self._heads(live=live)
        if not heads:
            return None
        share = min(LEAST_SHARE, MOST_SHARED / len(heads))
        for _, each, _ in heads:
            each.credit += share
        neediest = max(heads, key=lambda found: found[1].credit)
        # A live one that needs no slot takes nobody's share.
        if live or neediest[1].credit < 1.0:
            chosen = max(heads, key=lambda found: stretch(now - found[2].at, found[2].interval, found[0][2]))
        else:
            chosen = neediest
        chosen[1].credit = max(0.0, chosen[1].credit - 1.0)
        chosen[1].line.popleft()
        return chosen[2]

    def waiting(self, *, live: bool = False) -> bool:
        """Whether there is anyone to pick."""
        return bool(self._heads(live=live))

    def __len__(self) -> int:
        """How many stand in line, at most: some may have left."""
        return sum(len(each.line) for each in self._classes.values())

    def _heads(self, *, live: bool) -> list[tuple[ClassKey, _Class, Entry]]:
        """The first of each class; classes without any are forgotten."""
        heads: list[tuple[ClassKey, _Class, Entry]] = []
        for key, each in list(self._classes.items()):
            head = each.head()
            if head is None:
                del self._classes[key]
            elif key[0] or not live:
                heads.append((key, each, head))
        return heads


class Schedule:
    """All targets in memory. `lane_of` says at which host a target is asked."""

    def __init__(self, lane_of: Callable[[Entry], str], rng: Random) -> None:
        self.entries: dict[int, Entry] = {}
        self.accelerated: dict[int, Entry] = {}
        self.lanes: dict[str, Lane] = {}
        self.jitter = 0.0  # seconds at most, by the settings
        self._lane_of = lane_of
        self.rng = rng
        self._heap: list[tuple[float, int, Entry]] = []
        self._stamps = count(1)

    # Who is there.

    def add(self, entry: Entry) -> None:
        """Take it in; it must not be there yet."""
        self.entries[entry.id] = entry
        self._place(entry, entry.at)

    def drop(self, entry: Entry) -> None:
        """Forget it. What is running comes to its end."""
        entry.dropped = True
        entry.stamp = next(self._stamps)
        self.entries.pop(entry.id, None)
        self.accelerated.pop(entry.id, None)

    def upcoming(self) -> list[Entry]:
        """The next ten or so to fall due."""
        placed = [item for item in self._heap[:LOOKED_AT] if item[1] == item[2].stamp]
        return [entry for _, _, entry in heapq.nsmallest(10, placed)]

    # Who is due.

    def next_at(self) -> float | None:
        """When the next one falls due."""
        while self._heap and self._heap[0][1] != self._heap[0][2].stamp:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def wake(self, now: float) -> bool:
        """Put those that fell due in line, some hundred at a time; whether there are more."""
        for _ in range(AT_ONCE):
            at = self.next_at()
            if at is None or at > now:
                return False
            self._line_up(heapq.heappop(self._heap)[2])
        return True

    def _line_up(self, entry: Entry) -> None:
        entry.stamp = next(self._stamps)
        self.lanes.setdefault(self._lane_of(entry), Lane()).push(entry)

    # What becomes of them.

    def started(self, entry: Entry) -> None:
        """It is under way, and nowhere in line."""
        entry.running, entry.again = True, False
        entry.stamp = next(self._stamps)

    def finish(self, entry: Entry, now: float, *, away: float = 0.0, at: float | None = None) -> int:
        """Plan its next run: at the next point of its grid that is `away` seconds from now or more, or `at` that time.

        Says how many runs were missed meanwhile; they are not made up for.
        """
        grace = GRACE * entry.interval if entry.live and not away else 0.0
        missed = missed_runs(entry.point, entry.interval, now - grace) if entry.at >= entry.point else 0
        entry.missed += missed
        entry.running = False
        if entry.until is not None and now >= entry.until:
            self._slow_down(entry, now)
        if not entry.dropped:
            self._plan(entry, now, away - grace, at)
        return missed

    def _plan(self, entry: Entry, now: float, away: float, at: float | None) -> None:
        if entry.point <= now + max(0.0, away):
            entry.point = next_point(entry.point, entry.interval, max(entry.point, now + away))
        if entry.again:
            self._place(entry, now)
        else:
            self._place(entry, entry.point + jitter(entry.interval, self.jitter, self.rng) if at is None else at)

    def promote(self, entry: Entry, now: float, least: float = 0.0) -> bool:
        """Make it due now, unless that was done in the last `least` seconds. Whether it makes a difference."""
        if now - entry.promoted < least or (entry.running and entry.again):
            return False
        if entry.running:
            entry.again = True
        elif entry.at > now:
            entry.at = now
            self._line_up(entry)
        else:
            return False  # it is in line already
        entry.promoted = now
        return True

    def accelerate(self, entry: Entry, interval: float, now: float, until: float) -> bool:
        """Run it now, and so often until then, in step with nobody. Whether that is new; else the lease is longer."""
        if entry.until is not None and entry.interval == interval:
            entry.until = max(entry.until, until)
            return False
        if entry.until is None:
            entry.home = entry.point
            self.accelerated[entry.id] = entry
        entry.until, entry.interval = until, interval
        entry.point = now + phase(entry.kind, entry.source_id) * interval
        self._replace(entry, now)
        return True

    def slow_down(self, entry: Entry, now: float) -> bool:
        """End an acceleration; its usual grid is where it was. Whether there was one."""
        if entry.until is None:
            return False
        self._slow_down(entry, now)
        self._replace(entry, entry.point)
        return True

    def _slow_down(self, entry: Entry, now: float) -> None:
        self.accelerated.pop(entry.id, None)
        entry.until, entry.interval = None, entry.usual
        entry.point = next_point(entry.home, entry.usual, now)

    def set_usual(self, entry: Entry, interval: float, now: float) -> None:
        """Change its usual interval; the phase stays, and so does an acceleration."""
        if interval == entry.usual:
            return
        entry.usual = interval
        if entry.until is None:
            entry.interval = interval
            entry.point = next_point(entry.point, interval, now)
            if entry.at > now:
                self._replace(entry, entry.point)

    def reclass(self, entry: Entry, weight: int, now: float) -> None:
        """Change its weight; one that stands in line stands in another."""
        entry.weight = weight
        if entry.at <= now:
            self._replace(entry, entry.at)

    def _replace(self, entry: Entry, at: float) -> None:
        if not entry.running and not entry.dropped:
            self._place(entry, at)

    def _place(self, entry: Entry, at: float) -> None:
        entry.at = at
        entry.stamp = next(self._stamps)
        heapq.heappush(self._heap, (at, entry.stamp, entry))
        if len(self._heap) > 2 * len(self.entries) + SPARE:
            self._heap = [item for item in self._heap if item[1] == item[2].stamp]
            heapq.heapify(self._heap)
