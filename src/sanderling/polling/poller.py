"""Run targets when they are due: as many at once as is allowed, the most urgent first, none twice at a time."""

import asyncio
from collections import defaultdict, deque
from math import inf

from sanderling.clock import Clock, Timer
from sanderling.flow.workers import Workers
from sanderling.limit import Limiter, Permit
from sanderling.outcome import Code, Outcome
from sanderling.polling.adapting import Adapter
from sanderling.polling.asking import NOWHERE, Answer, Asker
from sanderling.polling.books import Books
from sanderling.polling.cadence import pause
from sanderling.polling.keeping import Keeper, Result
from sanderling.polling.measures import Measures
from sanderling.polling.needs import Needs
from sanderling.polling.schedule import Entry, Lane, Schedule
from sanderling.polling.settings import OFF

WINDOW = 0.2  # seconds in which at most `burst` requests begin at a host
RESERVE = 1  # slots, and beginnings in a window, that only accelerated targets have
WAIT = 1.0  # seconds until a target asks again that waits for another
SOON = 0.001  # seconds until a host is asked again that has others in its line
LIVE_PAUSE = 1.0  # seconds that an accelerated target pauses at most, however often it fails
# Seconds that a request may take at a host which is down, if another waits until its timeout; and for how long after
# such a one an accelerated target is spared from being the next.
LOOK, SPARED = 0.8, 15.0
CUT = Outcome(Code.CANCELLED, detail="cut off: the host was down")


class _Traffic:
    """What is under way at one host."""

    __slots__ = ("begun", "limits", "running")

    def __init__(self) -> None:
        self.running = 0
        self.begun: deque[float] = deque()
        self.limits: list[asyncio.Timeout] = []  # of the requests that are out, in the order they began

    def frees_at(self, burst: int, now: float) -> float:
        """When the next may begin, by how many have lately."""
        while self.begun and self.begun[0] <= now - WINDOW:
            self.begun.popleft()
        return now if len(self.begun) < burst else self.begun[-burst] + WINDOW


class Poller:
    """Runs targets. `pump` it whenever something may have become possible."""

    def __init__(
        self, asker: Asker, limiter: Limiter, schedule: Schedule, books: Books, keeper: Keeper, needs: Needs
    ) -> None:
        self.settings = OFF  # nothing runs before there are some
        self.measures: Measures = keeper.measures
        self.adapter = Adapter()
        self.inflight = 0
        self._asker = asker
        self._limiter = limiter
        self._schedule = schedule
        self._books = books
        self._keeper = keeper
        self._needs = needs
        self._clock: Clock = asker.clock
        self._traffic: defaultdict[str, _Traffic] = defaultdict(_Traffic)
        self._waited: dict[str, float] = {}  # when a host that was down was last asked with all patience
        self._answered: dict[str, float] = {}  # when a host last gave an answer that is no failure of its own
        self._asked: defaultdict[int, list[asyncio.Future[Result]]] = defaultdict(list)
        self._group = Workers()
        self._over = asyncio.Event()
        self._stopping = False
        self._timer: Timer | None = None

    async def run(self) -> None:
        """Poll until it is stopped; what is under way comes to its end."""
        try:
            async with self._group:
                self.pump()
                await self._over.wait()
        finally:
            self._stopping = True
            self._disarm()
            for future in (each for asked in self._asked.values() for each in asked):
                future.cancel()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping = True
        self.pump()

    # Giving out work.

    def pump(self) -> None:
        """Begin what can begin now, and look again when more can."""
        now = self._clock.now()
        soonest = self._begin_all(now) if self._may_run else inf
        self._disarm()
        if self._stopping:
            if self.inflight == 0:
                self._over.set()
        elif soonest < inf:
            self._timer = self._clock.call_later(max(0.0, soonest - now), self.pump)

    @property
    def _may_run(self) -> bool:
        return self._group.open and not self._stopping and self.settings.enabled

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin_all(self, now: float) -> float:
        """Begin what can; when to look again."""
        more = self._schedule.wake(now)
        soonest = now if more else inf
        for host, lane in list(self._schedule.lanes.items()):
            soonest = min(soonest, self._begin(host, lane, now))
        following = self._schedule.next_at()
        return soonest if following is None else min(soonest, following)

    def _begin(self, host: str, lane: Lane, now: float) -> float:
        """Begin what can at one host; when to look again, unless something else happens first."""
        while True:
            reserved, may = self._allowed(host, lane, now)
            if may > now:
                break
            permit = None
            if host != NOWHERE:
                permit = self._limiter.try_acquire(host)
                if permit is None:
                    return max(self._limiter.turn_at(host), now + SOON)
            entry = lane.pick(now, accelerated=reserved)
            started = entry is not None and self._start(entry, host, permit, now)
            if permit is not None and not started:
                permit.release()
        if not lane.waiting():
            self._schedule.lanes.pop(host, None)
            if not self._traffic[host].running:
                self._traffic.pop(host)
        return may

    def _allowed(self, host: str, lane: Lane, now: float) -> tuple[bool, float]:
        """Whether only an accelerated target may begin next, and when; inf if that is not a matter of time.

        While a host is down, requests that hang hold no slots: the limiter lets one a second find out if it is back.
        """
        traffic, soonest = self._traffic[host], inf
        running = 0 if self._limiter.is_down(host) else traffic.running
        for reserve in (0, RESERVE):
            if running < self.settings.concurrency + reserve and lane.waiting(accelerated=bool(reserve)):
                may = traffic.frees_at(self.settings.burst + reserve, now)
                if may <= now:
                    return bool(reserve), now
                soonest = min(soonest, may)
        return False, soonest

    def _start(self, entry: Entry, host: str, permit: Permit | None, now: float) -> bool:
        """Begin a run, unless the target has to wait for others."""
        self._schedule.started(entry)
        lacking = self._needs.lacking(entry.id, entry.event, entry.kind, now) if entry.fetched is None else ()
        if lacking and entry.id not in self._asked:
            entry.status = f"waiting for {','.join(lacking)}"
            self._schedule.finish(entry, now, at=now + min(WAIT, entry.interval))
            self._books.note(entry)
            return False
        traffic = self._traffic[host]
        traffic.running += 1
        traffic.begun.append(now)
        self.inflight += 1
        self._group.create_task(self._run(entry, host, permit, now))
        return True

    # One run.

    async def _run(self, entry: Entry, host: str, permit: Permit | None, began: float) -> None:
        asked = self._asked.pop(entry.id, [])
        entry.late = late = max(0.0, began - entry.at)
        accelerated = entry.until is not None
        try:
            answer = await self._ask(entry, host, permit)
            result = await self._keeper.result(entry, answer)
        except BaseException:
            for future in asked:
                future.cancel()
            raise
        finally:
            self.inflight -= 1
            self._traffic[host].running -= 1
        self.measures.ran(entry.kind, answer.outcome.code, late=late, seconds=answer.seconds, accelerated=accelerated)
        self._finish(entry, host, answer, result)
        for future in asked:
            if not future.done():
                future.set_result(result)
        self.pump()

    async def _ask(self, entry: Entry, host: str, permit: Permit | None) -> Answer:
        """Ask. At a host that is down one request waits until its timeout, and others look whether the host is back.

        When it is, those that hang since before are cut off: their targets are asked again in time.
        """
        began, limits = self._clock.now(), self._traffic[host].limits
        was_down = self._limiter.is_down(host)
        limit = asyncio.timeout(self._patience(entry, host, began) if was_down else None)
        limits.append(limit)
        try:
            async with limit:
                answer = await self._asker.ask(entry, permit)
        except TimeoutError:
            return Answer(CUT, self._clock.now() - began)
        else:
            if was_down and answer.outcome.ok:
                for earlier in limits[: limits.index(limit)]:
                    earlier.reschedule(began)
            return answer
        finally:
            limits.remove(limit)

    def _patience(self, entry: Entry, host: str, now: float) -> float | None:
        """Seconds that an answer of a host that is down may take; None for as long as any other."""
        spared = entry.until is not None and now - self._waited.get(host, -inf) < SPARED
        if spared or self._traffic[host].limits:
            return LOOK
        self._waited[host] = now
        return None

    def _finish(self, entry: Entry, host: str, answer: Answer, result: Result) -> None:
        now, wall = self._clock.now(), self._clock.wall()
        since = entry.usual if entry.ran is None else now - entry.ran  # `asked` is on a clock that somebody may set
        own = result.failed and self._blames_target(entry, host, answer, now)
        entry.runs += 1
        entry.ran, entry.asked = now, wall
        entry.status = result.status
        entry.failures = entry.failures + 1 if own else 0 if result.ok else entry.failures
        if result.ok or (answer.outcome.status and not answer.outcome.blames_host):
            self._answered[host] = now
        if result.ok:
            entry.fetched = wall
            if self._needs.had(entry.event, entry.kind):
                self._let_others(entry, now)
        if result.ok:
            self.adapter.ran(entry, since, changed=result.changes > 0)
            self._schedule.set_usual(entry, self.adapter.interval(entry), now)
        missed = self._schedule.finish(
            entry,
            now,
            away=self._pause(entry) if own else self._asked_for(answer, result),
            at=now + min(WAIT, entry.interval) if result.waits else None,
        )
        if missed:
            self.measures.missed(entry.kind, missed)
        self._books.note(entry)

    def _blames_target(self, entry: Entry, host: str, answer: Answer, now: float) -> bool:
        """Whether a failure is the target's own, and no outage: the host has answered others since the last run."""
        if not answer.outcome.blames_host:
            return True
        # It may have been let go from memory meanwhile.
        ran = now - entry.interval if entry.ran is None else entry.ran
        return self._answered.get(host, -inf) > ran

    def _pause(self, entry: Entry) -> float:
        """Seconds to stay away for the target's own failures."""
        seconds = pause(entry.failures, entry.interval, self._schedule.rng)
        return seconds if entry.until is None else min(seconds, LIVE_PAUSE)

    def _asked_for(self, answer: Answer, result: Result) -> float:
        """Seconds to stay away because the host asked for it."""
        return 0.0 if result.ok or answer.outcome.code is Code.OK else answer.outcome.retry_after or 0.0

    def _let_others(self, entry: Entry, now: float) -> None:
        """What waited for this kind may go."""
        for other in self._schedule.entries.values():
            if other.fetched is None and other.event == entry.event and other is not entry:
                self._schedule.promote(other, now)

    # What people ask for.

    async def now(self, entry: Entry) -> Result:
        """Run a target as soon as it can be, and say how it went. It must be in the schedule."""
        now, future = self._clock.now(), asyncio.get_running_loop().create_future()
        self._asked[entry.id].append(future)
        if self._may_run or entry.running:
            self._schedule.promote(entry, now)
            self.pump()
        else:  # nothing is polled now, but this was asked for
            self._start(entry, self._asker.host(entry), None, now)
        result: Result = await future
        return result
