"""The loop: take the next id when there is a worker and leave to ask, read the answer, settle or come back later.

`_pump` gives out work whenever something has changed, and never waits: first what is due again, then a few of what was
missed, then the next id. An id that waits holds no worker: it is in a heap, with its time. The others of this folder
are told what happens: the window counts, the head is estimated, the lookout decides whether there is anything ahead.
"""

import asyncio
import heapq
from collections.abc import Awaitable
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Protocol

from sanderling.apis.numbered import Answer, Status
from sanderling.clock import Clock, Timer
from sanderling.limit import Permit
from sanderling.sequence.asking import Asker
from sanderling.sequence.availability import Availability
from sanderling.sequence.books import Books
from sanderling.sequence.cursor import Cursor
from sanderling.sequence.missed import Missed
from sanderling.sequence.recheck import Check, Recheck
from sanderling.sequence.retries import Again, Reason, RetryRules, Tries, after, check_in

SOON = 0.01  # seconds; to look again at a host that is just about to be due
SHARE = 5  # of this many workers one may ask for what was missed
# Ids that may wait for their next try. Each waits for half a minute at most; were there more, the upstream is in
# trouble, and taking on new ones would only fill the memory.
MOST_WAITING = 20_000


class Watcher(Protocol):
    """Who learns from the main lane: window, head and lookout in one."""

    holding: bool  # whether no new ids should be taken

    def due(self, number: int) -> float:
        """Seconds until an id should be asked for the first time; 0 or less for now."""

    def answered(self, number: int, answer: Answer, *, first: bool) -> None:
        """An answer of the main lane; `first` if the id was asked for the first time."""

    def given_back(self, number: int) -> bool:
        """Whether an id that was not found should wait at the head instead of using up its tries."""


@dataclass(order=True, slots=True)
class Pending:
    """An id that is due again."""

    due: float
    number: int
    tries: Tries = field(compare=False)


@dataclass(frozen=True, slots=True)
class Lanes:
    """What feeds the loop, and where it ends."""

    cursor: Cursor
    books: Books
    recheck: Recheck
    availability: Availability


class SequenceCrawl:
    """One crawl. `run` it once; `stop` lets it finish what is in flight."""

    def __init__(
        self, asker: Asker, lanes: Lanes, watcher: Watcher, *, rules: RetryRules, clock: Clock, rng: Random
    ) -> None:
        self.workers = 1  # requests in flight at most; the scaler sets it
        self.inflight = 0
        self.asker = asker
        self.lanes = lanes
        self.rules = rules
        self._clock = clock
        self._rng = rng
        self._host = asker.host
        self._waiting: list[Pending] = []  # a heap
        self._timer: Timer | None = None
        self._stopping = False
        self._over = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._watcher = watcher

    @property
    def waiting(self) -> int:
        """Ids that are due again at some time."""
        return len(self._waiting)

    async def run(self, *others: Awaitable[object]) -> None:
        """Crawl until it is stopped; `others` run beside it, and end with it."""
        async with asyncio.TaskGroup() as keeping:
            keeping.create_task(self.lanes.books.write(self.pump))
            async with self._group:
                always = (self.lanes.recheck.run(self.pump), self.lanes.availability.run(self.pump))
                beside = [self._group.create_task(_all_of(other)) for other in (*always, *others)]
                self.pump()
                await self._over.wait()
                for task in beside:
                    task.cancel()
            self.lanes.books.close()

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self._stopping = True
        self.pump()

    # Giving out work.

    def pump(self) -> None:
        """Give out what can be given out."""
        now = self._clock.now()
        while self._has_room and self._has_work(now):
            permit = self.asker.limiter.try_acquire(self._host)
            if permit is None:
                break
            self._start(now, permit)
        self._arm(now)
        if self._stopping and self.inflight == 0:
            self._over.set()

    @property
    def _has_room(self) -> bool:
        busy = self._stopping or self.inflight >= self.workers or self.lanes.books.crowded
        return not busy and self.lanes.availability.open

    def _has_work(self, now: float) -> bool:
        return self._has_retry(now) or self._has_check or self._new_in() <= 0

    def _has_retry(self, now: float) -> bool:
        return bool(self._waiting) and self._waiting[0].due <= now

    @property
    def _has_check(self) -> bool:
        recheck = self.lanes.recheck
        return bool(recheck.ready) and recheck.inflight < max(1, self.workers // SHARE)

    def _new_in(self) -> float:
        """Seconds until a new id may be taken; inf if that is not a matter of time."""
        number = self.lanes.cursor.peek()
        if number is None or self._watcher.holding or len(self._waiting) >= MOST_WAITING:
            return inf
        return self._watcher.due(number)

    def _start(self, now: float, permit: Permit) -> None:
        self.inflight += 1
        if self._has_retry(now):
            waiting = heapq.heappop(self._waiting)
            self._group.create_task(self._ask(waiting.number, waiting.tries, permit))
        elif self._has_check:
            self._group.create_task(self._check(self.lanes.recheck.take(), permit))
        else:
            self._group.create_task(self._ask(self.lanes.cursor.take(), Tries(), permit))

    def _arm(self, now: float) -> None:
        """Look again when something may be given out that may not now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._has_room:
            return  # whoever makes room pumps
        if self._has_work(now):  # and no leave
            wait = max(SOON, self.asker.limiter.ready_at(self._host) - now)
        else:
            wait = min(self._waiting[0].due - now if self._waiting else inf, self._new_in())
        if wait < inf:
            self._timer = self._clock.call_later(max(0.0, wait), self.pump)

    # Asking.

    async def _ask(self, number: int, tries: Tries, permit: Permit) -> None:
        answer = await self.asker.ask(number, tries.malformed, permit)
        self.inflight -= 1
        self._settle(number, tries, answer)
        self.pump()

    async def _check(self, check: Check, permit: Permit) -> None:
        answer = await self.asker.ask(check.number, check.missed.tries, permit)
        self.inflight -= 1
        if answer.status is Status.DISABLED:
            self.lanes.availability.shut(check.number)
        self.lanes.recheck.settle(check, answer)
        self.pump()

    def _settle(self, number: int, tries: Tries, answer: Answer) -> None:
        status = answer.status
        self.asker.measures.answer(status, tries.asked + 1, answer.outcome.lag)
        self._watcher.answered(number, answer, first=tries.asked == 0)
        if status is Status.DISABLED:
            self.lanes.availability.shut(number)
        if status is Status.NOT_FOUND and self._watcher.given_back(number):
            self.lanes.cursor.give_back(number)
            return
        match after(status, tries, self.rules, self._rng):
            case Again(seconds):
                self._wait(number, tries, status, seconds)
            case Reason() as reason:
                self._miss(number, reason)
            case None if status is Status.SUCCESS:
                self.lanes.books.keep(number, answer.message)
            case None:
                self.lanes.books.skip(number)

    def _wait(self, number: int, tries: Tries, status: Status, seconds: float) -> None:
        due = self._clock.now() + seconds
        if status is Status.RATE_LIMITED:
            due = max(due, self.asker.limiter.ready_at(self._host))
        heapq.heappush(self._waiting, Pending(due, number, tries))

    def _miss(self, number: int, reason: Reason) -> None:
        wall = self._clock.wall()
        check = wall + check_in(reason, 0, self._rng)
        self.lanes.books.miss([Missed(number, number, reason, wall, wall, 0, check)])

    # What the lookout does to it.

    def skip_to(self, first: int) -> int:
        """Go on at `first`; all between is missed. How many ids that were."""
        wall = self._clock.wall()
        check = wall + check_in(Reason.GAP, 0, self._rng)
        ranges = self.lanes.cursor.skip_to(first)
        self.lanes.books.miss([Missed(low, high, Reason.GAP, wall, wall, 0, check) for low, high in ranges])
        return sum(high - low + 1 for low, high in ranges)

    def withdraw(self, above: int) -> None:
        """Let ids above this one that wait for another try wait for their turn instead, as if never asked."""
        stay = [each for each in self._waiting if each.number <= above]
        for each in self._waiting:
            if each.number > above:
                self.lanes.cursor.give_back(each.number)
        heapq.heapify(stay)
        self._waiting = stay


async def _all_of(other: Awaitable[object]) -> None:
    await other
