"""What is under way at a host: how many requests, which of them hang, and which need not be waited for any more.

Terms. A run *holds up* its target, which is not asked for a second time meanwhile, until it is *over*: it has come to
its end, or it is let go. What is live is let go after a second, so that a request that hangs hides nothing: the next
one leaves in its time, beside it, and whichever is answered first counts.
"""

import asyncio
from collections import deque

from sanderling.polling.schedule import Entry

WINDOW = 0.2  # seconds in which at most `burst` requests begin at a host
# Runs of one target that are waited for after they were let go. One more that gets no answer is cut off, and what one
# more is told is not stored.
MOST_HANGING = 4


class Run:
    """One request for a target, and what comes of it."""

    __slots__ = ("began", "entry", "limit", "live", "over", "storing", "was_down")

    def __init__(self, entry: Entry, began: float, *, was_down: bool) -> None:
        self.entry = entry
        self.began = began
        self.live = entry.live
        self.was_down = was_down  # the host, when it began
        self.over = False
        self.storing = False  # the answer is there, and is being kept
        self.limit = asyncio.timeout(None)

    def cut(self) -> None:
        """Wait no longer for an answer; harmless if there is one."""
        if not self.storing and self.limit.when() is None:
            self.limit.reschedule(0.0)  # which is past on any clock


class Traffic:
    """The runs at one host, in the order they began."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._begun: deque[float] = deque()

    def begin(self, run: Run) -> None:
        """Take it in. What is live is as much as was set, so it takes up neither slots nor a burst."""
        self._runs.append(run)
        if not run.live:
            self._begun.append(run.began)

    def end(self, run: Run) -> None:
        """It has come to its end."""
        self._runs.remove(run)

    @property
    def slots(self) -> int:
        """How many are taken."""
        return sum(not run.live for run in self._runs)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to remember."""
        return not self._runs

    def frees_at(self, burst: int, now: float) -> float:
        """When the next that is not live may begin, by how many have lately."""
        while self._begun and self._begun[0] <= now - WINDOW:
            self._begun.popleft()
        return now if len(self._begun) < burst else self._begun[-burst] + WINDOW

    def hanging(self, entry: Entry) -> int:
        """How many of the target were let go and have not come to their end."""
        return sum(each.entry is entry and each.over for each in self._runs)

    def storing(self, entry: Entry) -> int:
        """How many answers of the target are being kept."""
        return sum(each.entry is entry and each.storing for each in self._runs)

    def answered(self, run: Run) -> None:
        """Cut off those that hang since before: what they would say is old.

        Those of the same target; and at a host that was down, those of all targets, which are asked again in time.
        """
        for each in self._runs[: self._runs.index(run)]:
            if run.was_down or each.entry is run.entry:
                each.cut()
