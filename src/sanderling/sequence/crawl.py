"""The loop: take the next id when there is a worker and leave to ask, read the answer, settle or come back later.

`pump` gives out work whenever something has changed, and never waits: first what is due again, then the next id. What
was missed has one permit in ten, and all that are left over. An id that waits holds no worker: it is in a heap, with
its time. The others of this folder are told what happens: the window counts, the head is estimated, the lookout decides
whether there is anything ahead.

Some ids fail again and again while their neighbours are fine. Asked in a row, or as the one question by which the
limiter finds out whether a host is well again, they would shut the host for all. So after each of them come some good
answers first; and those of the main lane whose turn does not come are missed, lest the cursor wait for them.
"""

import asyncio
import heapq
from collections.abc import Coroutine
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any, Protocol

from sanderling.apis.numbered import Answer, Status
from sanderling.clock import Clock, Timer
from sanderling.flow.workers import Workers
from sanderling.limit import Permit
from sanderling.sequence.asking import Asker
from sanderling.sequence.availability import Availability
from sanderling.sequence.books import Books
from sanderling.sequence.cursor import Cursor
from sanderling.sequence.missed import Missed
from sanderling.sequence.recheck import Check, Recheck
from sanderling.sequence.retries import Again, Reason, RetryRules, Tries, after, check_in
from sanderling.stores.control_file import NOTHING, Control

SOON = 0.01  # seconds; to look again at a host that is just about to be due
SHARE = 5  # of this many workers one may ask for what was missed
# Permits that new ids, and second tries of them, are given before one goes to what was missed. However much that is, it
# must not hold up what is new; and it must not wait for ever behind a backlog.
NEW_FIRST = 9
# Good answers between two questions for what has failed before, or seconds, where there are none.
OWED, REST = 5, 10.0
PATIENCE = 30.0  # seconds that an id may be overdue for such a question
SHUT = 1.0  # seconds; a host that is not to be asked for longer is shut
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
    missed: Recheck
    failed: Recheck  # what is missed since it failed
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
        self._failed: list[Pending] = []  # another, of ids whose last answer was an error
        self._owed = 0  # good answers, until one of them may be asked
        self._rested = 0.0  # or until then
        self._from_disk = False  # where the last one of them came from
        self._since_missed = 0  # permits of the main lane, since what was missed had one
        self._last_lane = lanes.failed  # of what was missed, which had the last one
        self._timer: Timer | None = None
        self._stopping = False
        self.wanted = NOTHING
        self._over = asyncio.Event()
        self._group = Workers()
        self._watcher = watcher

    @property
    def waiting(self) -> int:
        """Ids that are due again at some time."""
        return len(self._waiting) + len(self._failed)

    async def run(self, *others: Coroutine[Any, Any, object]) -> None:
        """Crawl until it is stopped; `others` run beside it, and end with it."""
        async with asyncio.TaskGroup() as keeping:
            keeping.create_task(self.lanes.books.write(self.pump))
            async with self._group:
                lanes = (self.lanes.missed, self.lanes.failed, self.lanes.availability)
                await self._crawl(*(lane.run(self.pump) for lane in lanes), *others)
            self.lanes.books.close()

    async def _crawl(self, *beside: Coroutine[Any, Any, object]) -> None:
        tasks = [self._group.create_task(each) for each in beside]
        try:
            self.pump()
            await self._over.wait()
        finally:
            self._stopping = True  # also of one that is cancelled: nothing may begin while the group ends
            for task in tasks:
                task.cancel()

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self._stopping = True
        self.pump()

    def control(self, wanted: Control) -> None:
        """Pause, or go on: there is one host, so that leaving it alone is the same."""
        self.wanted = wanted
        self.pump()

    # Giving out work.

    def pump(self) -> None:
        """Give out what can be given out."""
        now = self._clock.now()
        self._give_up_overdue(now)
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
        paused = self.wanted.paused or str(self._host) in self.wanted.hosts
        return self._group.open and not busy and not paused and self.lanes.availability.open

    def _has_work(self, now: float) -> bool:
        return self._has_main(now) or bool(self._lanes_ready(now))

    def _has_main(self, now: float) -> bool:
        return self._has_failed_retry(now) or self._has_retry(now) or self._new_in() <= 0

    def _has_failed_retry(self, now: float) -> bool:
        """Whether one of the main lane that failed may be asked: in turn with those from disk, if there are any."""
        due = bool(self._failed) and self._failed[0].due <= now
        return due and self._may_fail(now) and (self._from_disk or not self.lanes.failed.ready)

    def _has_retry(self, now: float) -> bool:
        return bool(self._waiting) and self._waiting[0].due <= now

    def _lanes_ready(self, now: float) -> list[Recheck]:
        """The lanes of what was missed that have something to ask, and may."""
        missed, failed = self.lanes.missed, self.lanes.failed
        has_missed = bool(missed.ready) and missed.inflight < max(1, self.workers // SHARE)
        has_failed = bool(failed.ready) and self._may_fail(now)
        return [lane for lane, has in ((missed, has_missed), (failed, has_failed)) if has]

    def _may_fail(self, now: float) -> bool:
        return self._owed <= 0 or now >= self._rested

    def _new_in(self) -> float:
        """Seconds until a new id may be taken; inf if that is not a matter of time."""
        number = self.lanes.cursor.peek()
        if number is None or self._watcher.holding or self.waiting >= MOST_WAITING:
            return inf
        return self._watcher.due(number)

    def _start(self, now: float, permit: Permit) -> None:
        self.inflight += 1
        lane = self._lane(now)
        self._since_missed = 0 if lane is not None else self._since_missed + 1
        self._group.create_task(self._ask_main(now, permit) if lane is None else self._ask_missed(lane, now, permit))

    def _lane(self, now: float) -> Recheck | None:
        """The lane of what was missed whose turn it is; None if it is that of the main lane."""
        if self._since_missed < NEW_FIRST and self._has_main(now):
            return None
        ready = self._lanes_ready(now)
        return next((lane for lane in ready if lane is not self._last_lane), ready[0] if ready else None)

    def _ask_missed(self, lane: Recheck, now: float, permit: Permit) -> Coroutine[Any, Any, None]:
        self._last_lane = lane
        if lane.failed:
            self._from_disk = True
            self._doubt(now)
        return self._check(lane, lane.take(), permit)

    def _ask_main(self, now: float, permit: Permit) -> Coroutine[Any, Any, None]:
        if self._has_failed_retry(now):
            self._from_disk = False
            self._doubt(now)
            pending = heapq.heappop(self._failed)
            return self._ask(pending.number, pending.tries, permit, failed=True)
        if self._has_retry(now):
            pending = heapq.heappop(self._waiting)
            return self._ask(pending.number, pending.tries, permit)
        return self._ask(self.lanes.cursor.take(), Tries(), permit)

    def _give_up_overdue(self, now: float) -> None:
        """The turn of some that failed has not come: on disk, others need not wait for them."""
        while self._failed and self._failed[0].due + PATIENCE < now:
            self._miss(heapq.heappop(self._failed).number, Reason.ERROR)

    def _doubt(self, now: float) -> None:
        """Good answers first, before anything is asked that has failed."""
        self._owed = OWED
        self._rested = now + REST

    def _trust(self, status: Status, *, failed: bool) -> None:
        if status is not Status.ERROR:
            self._owed = 0 if failed else self._owed - 1

    def _arm(self, now: float) -> None:
        """Look again when something may be given out that may not now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._has_room:
            return  # whoever makes room pumps
        if self._has_work(now):  # and no leave
            wait = max(SOON, self.asker.limiter.ready_at(self._host) - now)
            if wait > SHUT:
                self._doubt(now + wait)
        else:
            wait = min(self._again_in(now), self._new_in())
        if wait < inf:
            self._timer = self._clock.call_later(max(0.0, wait), self.pump)

    def _again_in(self, now: float) -> float:
        """Seconds until something may be asked that was asked before; inf if there is nothing."""
        due = self._waiting[0].due if self._waiting else inf
        failed = now if self.lanes.failed.ready else self._failed[0].due if self._failed else inf
        return min(due, failed if self._owed <= 0 else max(failed, self._rested)) - now

    # Asking.

    async def _ask(self, number: int, tries: Tries, permit: Permit, *, failed: bool = False) -> None:
        answer = await self.asker.ask(number, tries.malformed, permit)
        self.inflight -= 1
        self._trust(answer.status, failed=failed)
        self._settle(number, tries, answer)
        self.pump()

    async def _check(self, lane: Recheck, check: Check, permit: Permit) -> None:
        answer = await self.asker.ask(check.number, check.missed.tries, permit)
        self.inflight -= 1
        self._trust(answer.status, failed=lane.failed)
        if answer.status is Status.DISABLED:
            self.lanes.availability.shut(check.number)
        lane.settle(check, answer)
        self.pump()

    def _settle(self, number: int, tries: Tries, answer: Answer) -> None:
        status = answer.status
        self.asker.measures.answer(status, tries.asked + 1, answer.outcome.lag)
        self._watcher.answered(number, answer, first=not tries.answered)
        tries.answered = True
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
        heapq.heappush(self._failed if status is Status.ERROR else self._waiting, Pending(due, number, tries))

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

    def hurry(self, first: int) -> None:
        """Ask soon for what was given up from `first` on: it may be there by now."""
        self.lanes.missed.hurry(first, self.lanes.cursor.next - 1)

    def withdraw(self, above: int) -> None:
        """Let ids above this one that wait for another try wait for their turn instead, as if never asked."""
        for waiting in (self._waiting, self._failed):
            for each in waiting:
                if each.number > above:
                    self.lanes.cursor.give_back(each.number)
            waiting[:] = [each for each in waiting if each.number <= above]
            heapq.heapify(waiting)
