"""Run targets when they are due: as many at once as is allowed, the most urgent first, none twice at a time.

What is live has its cadence from whoever set it, and nothing that is made for crawls bounds it: it needs no slot, a
request that hangs does not hold up the next, nor does a database that takes its time with what came.
"""

import asyncio
from collections import defaultdict
from math import inf

from sanderling.clock import Clock, Timer
from sanderling.engine.workers import Workers
from sanderling.limit import Limiter, Permit
from sanderling.outcome import Code, Outcome
from sanderling.polling.adapting import Adapter
from sanderling.polling.asking import NOWHERE, Answer, Asker
from sanderling.polling.books import Books
from sanderling.polling.cadence import pause
from sanderling.polling.keeping import Keeper, Result
from sanderling.polling.measures import Measures
from sanderling.polling.needs import Needs
from sanderling.polling.runs import MOST_HANGING, Run, Traffic
from sanderling.polling.schedule import Entry, Lane, Schedule
from sanderling.polling.settings import OFF

WAIT = 1.0  # seconds until a target asks again that waits for another
SOON = 0.001  # seconds until a host is asked again that has others in its line
HANGS = 1.0  # seconds after which a live target is asked for again, though it has not answered
# A live target that fails so often in a row while its host answers others is asked about once a second: as often as a
# host that is down.
FAILING, LIVE_PAUSE = 10, 1.0
CUT = Outcome(Code.CANCELLED, detail="cut off: a later request was answered, or hangs too")


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
        self._traffic: defaultdict[str, Traffic] = defaultdict(Traffic)
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
            only_live, may = self._allowed(host, lane, now)
            if may > now:
                break
            permit = None
            if host != NOWHERE:
                permit = self._limiter.try_acquire(host)
                if permit is None:
                    return max(self._limiter.turn_at(host), now + SOON)
            entry = lane.pick(now, live=only_live)
            started = entry is not None and self._start(entry, host, permit, now)
            if permit is not None and not started:
                permit.release()
        if not lane.waiting():
            self._schedule.lanes.pop(host, None)
            if self._traffic[host].idle:
                self._traffic.pop(host)
        return may

    def _allowed(self, host: str, lane: Lane, now: float) -> tuple[bool, float]:
        """Whether only what is live may begin next, and when; inf if that is not a matter of time.

        While a host is down, requests that hang hold no slots: the limiter lets one a second find out if it is back.
        """
        traffic, may = self._traffic[host], inf
        if lane.waiting() and (traffic.slots < self.settings.concurrency or self._limiter.is_down(host)):
            may = traffic.frees_at(self.settings.burst, now)
        if may > now and lane.waiting(live=True):
            return True, now
        return False, may

    def _start(self, entry: Entry, host: str, permit: Permit | None, now: float) -> bool:
        """Begin a run, unless the target has to wait for others."""
        self._schedule.started(entry)
        lacking = self._needs.lacking(entry.id, entry.event, entry.kind, now) if entry.fetched is None else ()
        if lacking and entry.id not in self._asked:
            entry.status = f"waiting for {','.join(lacking)}"
            self._schedule.finish(entry, now, at=now + min(WAIT, entry.interval))
            self._books.note(entry)
            return False
        run = Run(entry, now, was_down=self._limiter.is_down(host))
        self._traffic[host].begin(run)
        self.inflight += 1
        self._group.create_task(self._run(run, host, permit))
        return True

    # One run.

    async def _run(self, run: Run, host: str, permit: Permit | None) -> None:
        entry, traffic = run.entry, self._traffic[host]
        asked = self._asked.pop(entry.id, [])
        entry.late = late = max(0.0, run.began - entry.at)
        timer = self._clock.call_later(HANGS, lambda: self._hangs(run, traffic)) if run.live else None
        try:
            answer = await self._ask(run, traffic, permit)
            result = await self._keep(run, traffic, answer)
        except BaseException:
            for future in asked:
                future.cancel()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self.inflight -= 1
            traffic.end(run)
        self.measures.ran(entry.kind, answer.outcome.code, late=late, seconds=answer.seconds, accelerated=run.live)
        self._finish(run, host, answer, result)
        for future in asked:
            if not future.done():
                future.set_result(result)
        self.pump()

    async def _ask(self, run: Run, traffic: Traffic, permit: Permit | None) -> Answer:
        """Ask, until there is an answer or nobody waits for it any more."""
        try:
            async with run.limit:
                answer = await self._asker.ask(run.entry, permit)
        except TimeoutError:
            return Answer(CUT, self._clock.now() - run.began)
        if answer.outcome.ok:
            traffic.answered(run)
        return answer

    async def _keep(self, run: Run, traffic: Traffic, answer: Answer) -> Result:
        """Keep what it said. What is live is not held up by that, unless what it said before is still being kept."""
        if answer.document is not None:
            storing = traffic.storing(run.entry)
            if storing > MOST_HANGING:
                return Result("not stored: the database does not answer", ok=False)
            if run.live and not run.over and not storing:
                self._let_go(run)
        run.storing = True
        return await self._keeper.result(run.entry, answer)

    def _hangs(self, run: Run, traffic: Traffic) -> None:
        """A second is over: what is live is asked for again, and what comes of this run counts if it comes first."""
        if run.over:
            return
        if not run.storing and traffic.hanging(run.entry) >= MOST_HANGING:
            run.cut()
        else:
            run.entry.status = "not now: not stored yet" if run.storing else "not now: no answer yet"
            self._let_go(run)

    def _let_go(self, run: Run) -> None:
        """Plan the next run of the target though this one has not come to its end."""
        run.over = True
        self._plan(run.entry)
        self.pump()

    def _plan(self, entry: Entry, away: float = 0.0, at: float | None = None) -> None:
        missed = self._schedule.finish(entry, self._clock.now(), away=away, at=at)
        if missed:
            self.measures.missed(entry.kind, missed)
        self._books.note(entry)

    def _finish(self, run: Run, host: str, answer: Answer, result: Result) -> None:
        entry, now, wall = run.entry, self._clock.now(), self._clock.wall()
        if run.over and answer.outcome is CUT:
            return  # a later run says how it went
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
        if run.over:
            if not entry.dropped:  # or what is stored of it by now would be undone
                self._books.note(entry)
        else:
            away = self._pause(entry) if own else self._asked_for(answer, result)
            self._plan(entry, away, now + min(WAIT, entry.interval) if result.waits else None)

    def _blames_target(self, entry: Entry, host: str, answer: Answer, now: float) -> bool:
        """Whether a failure is the target's own, and no outage: the host has answered others since the last run."""
        if not answer.outcome.blames_host:
            return True
        # It may have been let go from memory meanwhile.
        ran = now - entry.interval if entry.ran is None else entry.ran
        return self._answered.get(host, -inf) > ran

    def _pause(self, entry: Entry) -> float:
        """Seconds to stay away for the target's own failures."""
        if entry.live:
            return 0.0 if entry.failures < FAILING else LIVE_PAUSE
        return pause(entry.failures, entry.interval, self._schedule.rng)

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
