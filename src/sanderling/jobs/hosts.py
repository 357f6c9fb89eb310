"""What waits for each host, by priority: a few requests in memory, the rest in the frontier."""

import heapq
from dataclasses import dataclass, field

from sanderling.engine.backlog import FEW, MOST_HELD, BacklogHost
from sanderling.pages.hosts import RobotsHost
from sanderling.stores.frontier_requests import QueuedRequest


@dataclass(slots=True, eq=False)
class JobHost(RobotsHost[QueuedRequest]):
    """What waits for one host: the highest priority first, and the first that was found of each."""

    on_disk_of: dict[int, int] = field(default_factory=dict)  # requests in the frontier, by priority; none are left out
    after_of: dict[int, int] = field(default_factory=dict)  # the last id that was taken, by priority
    wanted: int = 0  # the priority that is being loaded
    in_line: list[tuple[int, int, QueuedRequest]] = field(default_factory=list)  # a heap by priority, then id

    def wait_on_disk(self, priority: int, number: int) -> None:
        """So many more requests of a priority wait in the frontier."""
        self.on_disk_of[priority] = self.on_disk_of.get(priority, 0) + number

    def want(self, most: int) -> tuple[str, int, int, int]:
        """What to take from the frontier next: the highest priority that is there."""
        self.wanted = max(self.on_disk_of, default=0)
        number = min(most, self.on_disk_of.get(self.wanted, 0))
        return self.name, self.wanted, self.after_of.get(self.wanted, 0), number

    def took_all(self, number: int) -> None:
        """All of the priority that waits on disk is these so many, which come next."""
        self.on_disk_of[self.wanted] = number

    def put(self, items: list[QueuedRequest], now: float, wall: float, longest: float) -> None:
        """Take in what came from the frontier."""
        BacklogHost.put(self, items, now, wall, longest)
        if items:
            self.after_of[self.wanted] = items[-1].id
        left = self.on_disk_of.pop(self.wanted, 0) - len(items)
        if left > 0:
            self.on_disk_of[self.wanted] = left

    def line_up(self, queued: QueuedRequest) -> None:
        """In line behind those of its priority that were found earlier."""
        heapq.heappush(self.in_line, (-queued.priority, queued.id, queued))

    def put_back(self, queued: QueuedRequest) -> None:
        """In line where it was; what has failed stays behind what has not."""
        if self.failures(queued.id):
            self.put_off(queued, 0.0)
        else:
            self.line_up(queued)

    def pop_new(self) -> QueuedRequest | None:
        """The next that was never put off."""
        return heapq.heappop(self.in_line)[2] if self.in_line else None

    def pop_last(self) -> QueuedRequest | None:
        """One that was never put off, far away from what may be broken."""
        return self.in_line.pop()[2] if self.in_line else None  # the last leaf of a heap: it stays one

    @property
    def has_new(self) -> bool:
        """Whether something that was never put off is in memory."""
        return bool(self.in_line)

    @property
    def held(self) -> int:
        """How many requests are in memory, without those in flight."""
        return len(self.in_line) + len(self._later or ())

    def drop(self) -> None:
        """Forget what is in memory, and leave it to the next run."""
        BacklogHost.drop(self)
        self.in_line.clear()

    @property
    def is_short(self) -> bool:
        """Whether little is in memory, or less urgent than what is on disk."""
        if not self.on_disk_of:
            return False
        if self.in_line and -self.in_line[0][0] < max(self.on_disk_of):
            return True
        return len(self.in_line) < FEW and len(self.in_line) + len(self._later or ()) < MOST_HELD
