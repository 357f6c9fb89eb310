"""Who is next at a host: first come, first served within a job, turn by turn between jobs."""

from asyncio import Future
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sanderling.limit.gate import Gate
    from sanderling.limit.lane import Permit


@dataclass(slots=True, eq=False, repr=False)
class Waiter:
    """Someone who waits for leave from one or several gates, which are passed in order."""

    gates: "tuple[Gate, ...]"
    costs: tuple[float, ...]
    job: str
    since: float
    at: int = 0  # the gate whose line it has come to; it keeps its place at the head of those before
    gone: bool = False
    future: "Future[Permit] | None" = None


class Line:
    """The waiters of one gate.

    Between jobs by start-time fair queueing: each job has a tag that grows by the cost of what it was given, and the
    lowest tag is next. A job that asks for much cannot keep out one that asks for little.
    """

    __slots__ = ("_count", "_head", "_jobs", "_tags", "_time", "_waiting")

    def __init__(self) -> None:
        self._jobs: dict[str, deque[Waiter]] = {}  # with those who have left from the middle
        self._waiting: dict[str, int] = {}  # without them
        self._tags: dict[str, float] = {}
        self._time = 0.0
        self._head: Waiter | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(self, waiter: Waiter) -> None:
        """Stand at the end of the waiter's job."""
        queue = self._jobs.get(waiter.job)
        if queue is None or not self._waiting[waiter.job]:
            queue = self._jobs[waiter.job] = deque()
            self._waiting[waiter.job] = 0
            # A job that was away has not saved up turns.
            self._tags[waiter.job] = max(self._tags.get(waiter.job, 0.0), self._time)
        queue.append(waiter)
        self._waiting[waiter.job] += 1
        self._count += 1

    @property
    def head(self) -> Waiter | None:
        """Who is next; the same one until it leaves."""
        while self._head is None and self._jobs:
            job = min(self._jobs, key=self._tags.__getitem__)
            queue = self._jobs[job]
            while queue and queue[0].gone:
                queue.popleft()
            if queue:
                self._head = queue.popleft()
                self._waiting[job] -= 1
            if not queue:
                del self._jobs[job], self._waiting[job]
        return self._head

    def serve(self, cost: float) -> None:
        """The head got what it waited for."""
        if self._head is not None:
            job = self._head.job
            self._time = self._tags[job]
            self._tags[job] += cost
            self.leave(self._head)
            if not self._count:
                # Nobody is left to be fair to.
                for each in (self._jobs, self._waiting, self._tags):
                    each.clear()
                self._time = 0.0

    def leave(self, waiter: Waiter) -> None:
        """Take the waiter out, wherever it stands; one in the middle is skipped when its turn comes."""
        self._count -= 1
        if waiter is self._head:
            self._head = None
        else:
            waiter.gone = True
            self._waiting[waiter.job] -= 1
