"""Which target of a host is next? Those on their grids, and those that are due, in the order of their urgency."""

import heapq
from collections import deque
from dataclasses import dataclass, field
from math import inf

from sanderling.engine.classes import Class
from sanderling.engine.hosts import HostState
from sanderling.polling.cadence import stretch
from sanderling.polling.targets import ClassKey, PollRun, ScheduledTarget

# Of every ten runs, each class of targets that has something due gets one, whatever the others weigh. Where there are
# more than five classes, they share half of the runs.
LEAST_SHARE, MOST_SHARED = 0.1, 0.5
LOOKED_AT = 1023  # places of the heap that hold the ten earliest, whatever the order of the rest
SPARE = 1000  # places in the heap for those that have left
# Those that fell due are sorted in so many at a time: a hundred thousand at once must not hold up the one that is late.
AT_ONCE = 500
HANGS = 1.0  # seconds, at least, after which a request keeps nobody else from being asked for
BURST = 0.2  # seconds in which at most `burst` requests that are not live begin at a host


class _Class:
    """Targets of a line that are alike and due; the first is the latest."""

    __slots__ = ("credit", "queue")

    def __init__(self) -> None:
        self.queue: deque[tuple[int, ScheduledTarget]] = deque()
        self.credit = 0.0

    def head(self) -> ScheduledTarget | None:
        while self.queue and self.queue[0][0] != self.queue[0][1].stamp:
            self.queue.popleft()
        return self.queue[0][1] if self.queue else None


class TargetQueue:
    """Targets of a host, by when they fall due; and those that are due, by how urgent they are."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, ScheduledTarget]] = []
        self._classes: dict[ClassKey, _Class] = {}
        self._spare = SPARE

    def place(self, entry: ScheduledTarget) -> None:
        """Let it fall due when it should."""
        heapq.heappush(self._heap, (entry.at, entry.stamp, entry))
        if len(self._heap) > self._spare:  # most of them may have left
            self._heap = [item for item in self._heap if item[1] == item[2].stamp]
            heapq.heapify(self._heap)
            self._spare = 2 * len(self._heap) + SPARE

    def push(self, entry: ScheduledTarget) -> None:
        """Let it stand among those that are due."""
        self._classes.setdefault(entry.group, _Class()).queue.append((entry.stamp, entry))

    def due(self, now: float) -> float:
        """When one can be picked; infinity if there is none."""
        if self._heap and self._heap[0][0] <= now:
            self._sort_in(now)
        for each in self._classes.values():
            if each.head() is not None:
                return now
        return self._next_at()

    def pick(self, now: float) -> ScheduledTarget | None:
        """The one to run next, taken out."""
        if self._heap and self._heap[0][0] <= now:
            self._sort_in(now)
        heads = self._heads()
        if not heads:
            return None
        share = min(LEAST_SHARE, MOST_SHARED / len(heads))
        for _, each, _ in heads:
            each.credit += share
        chosen = max(heads, key=lambda found: found[1].credit)
        if chosen[1].credit < 1.0:
            chosen = max(heads, key=lambda found: stretch(now - found[2].at, found[2].interval, found[0][1]))
        chosen[1].credit = max(0.0, chosen[1].credit - 1.0)
        chosen[1].queue.popleft()
        return chosen[2]

    def upcoming(self) -> list[tuple[float, int, ScheduledTarget]]:
        """The next ten or so to fall due."""
        return heapq.nsmallest(10, (item for item in self._heap[:LOOKED_AT] if item[1] == item[2].stamp))

    def __len__(self) -> int:
        """How many are due, at most: some may have left."""
        return sum(len(each.queue) for each in self._classes.values())

    def _next_at(self) -> float:
        while self._heap and self._heap[0][1] != self._heap[0][2].stamp:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else inf

    def _sort_in(self, now: float) -> None:
        """Those that fell due, some hundred at a time."""
        for _ in range(AT_ONCE):
            if self._next_at() > now:
                return
            self.push(heapq.heappop(self._heap)[2])

    def _heads(self) -> list[tuple[ClassKey, _Class, ScheduledTarget]]:
        """The first of each class; classes without any are forgotten."""
        heads: list[tuple[ClassKey, _Class, ScheduledTarget]] = []
        for key, each in list(self._classes.items()):
            head = each.head()
            if head is None:
                del self._classes[key]
            else:
                heads.append((key, each, head))
        return heads


@dataclass(slots=True, eq=False)
class PolledHost(HostState):
    """What is to be asked of one host: what is live, and what is not."""

    live: TargetQueue = field(default_factory=TargetQueue)
    usual: TargetQueue = field(default_factory=TargetQueue)
    targets: int = 0  # that are asked for there
    begun: deque[float] = field(default_factory=deque)  # when those that are not live began lately
    served: float = -inf  # when the last run began that brought what it should
    took: float = inf  # seconds, that one; before the first, nobody can say what is long here
    wrong: set[int] = field(default_factory=set)  # targets that were answered since, and not so

    def serve(self, run: PollRun, seconds: float) -> None:
        """A run brought what it should, after so long."""
        run.entry.took = self.took = seconds
        self.served = max(self.served, run.began)
        self.wrong.clear()

    def answers_wrongly(self, entry: ScheduledTarget, since: float) -> bool:
        """Whether it does so for whatever is asked: for several targets in a row, and none was served `since` then."""
        self.wrong.add(entry.id)
        return len(self.wrong) > 1 and self.served < since

    def hangs_after(self, work: PollRun) -> float:
        """Twice as long as the target took last, or another: a document that takes its time is no host that hangs."""
        return max(HANGS, 2 * (work.entry.took or self.took))

    def slotless_due(self, now: float) -> float:
        """When something live is due."""
        return self.live.due(now)

    def usual_due(self, burst: int, now: float) -> float:
        """When something else is, of which only so many begin at about the same time."""
        while self.begun and self.begun[0] <= now - BURST:
            self.begun.popleft()
        free = now if len(self.begun) < burst else self.begun[-burst] + BURST
        return max(self.usual.due(now), free)

    def pick(self, of: Class, now: float) -> ScheduledTarget | None:
        """The next of a class."""
        if of is Class.LIVE:
            return self.live.pick(now)
        found = self.usual.pick(now)
        if found is not None:
            self.begun.append(now)
        return found
