"""Between memory and database: what is due soon is in memory, what ran is written back, what others edit is heard.

All of it happens in one turn after another, so that none overtakes another: write back, let go of what is not due for
long, take edits, load what is due soon. What holds after each turn: a target that is due up to the *horizon* is in
memory.

Tricky bits:

- A turn that fails changes nothing that matters: what was to be written back stays to be written.
- Due times in memory are on a clock that nobody sets. The wall clock that goes with it is the one of the start; if
  somebody sets the wall clock, the stored times are moved along.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.polling.adaptive import Adapter
from sanderling.polling.cadence import next_point, phase
from sanderling.polling.measures import PollingMeasures
from sanderling.polling.schedule import Schedule
from sanderling.polling.targets import ScheduledTarget
from sanderling.stores.polling import LONGEST_PAUSE, PollingStoreError, PollingTarget, TargetRun
from sanderling.stores.polling_store import PollingStore

EVERY = 0.2  # seconds between turns
SLOW = 5.0  # that a turn may take before people are told
AFTER_TROUBLE = 1.0  # the same while the database is not to be had
HORIZON, REFILL = 10.0, 5.0  # seconds ahead that are loaded, and that must be
AT_A_TIME = 5000  # targets that are loaded, heard of or written in one go
JUMP = 2.0  # seconds that the wall clock may be off; more is not drift, but somebody who set it
LAST = 2**63 - 1  # no id is higher
NOT_OFTENER = 0.2  # seconds between two promotions of one target

log = logs.get(__name__)


class TargetSync:
    """Keeps a schedule and its database in step. `turn` it often; `woken` is called when more may be due."""

    def __init__(
        self,
        store: PollingStore,
        schedule: Schedule,
        adapter: Adapter,
        measures: PollingMeasures,
        clock: Clock,
        woken: Callable[[], object],
    ) -> None:
        self.store = store
        self.schedule = schedule
        self._trouble = ""
        self._turning: float | None = None  # since when a turn is under way
        self._clock = clock
        self._adapter = adapter
        self._measures = measures
        self.woken = woken
        self._began = clock.now()
        self._offset = clock.wall() - clock.now()
        self._horizon = (float("-inf"), -1)
        self._pending: OrderedDict[int, ScheduledTarget] = OrderedDict()
        self._poked = asyncio.Event()

    @property
    def trouble(self) -> str:
        """Why the database is not to be had, while it is not."""
        waits = 0.0 if self._turning is None else self._clock.now() - self._turning
        return self._trouble or (f"the database has not answered for {waits:.0f} s" if waits > SLOW else "")

    @property
    def pending(self) -> int:
        """Targets that are to be written back."""
        return len(self._pending)

    def wall(self, at: float) -> float:
        """The time of day at which the clock says `at`."""
        return at + self._offset

    def note(self, entry: ScheduledTarget) -> None:
        """Write this one back in the next turn."""
        self._pending[entry.id] = entry

    def poke(self) -> None:
        """Take a turn soon: there is news."""
        self._poked.set()

    async def run(self) -> None:
        """Take turns until cancelled."""
        while True:
            self._poked.clear()
            await self.turn()
            timer = self._clock.call_later(AFTER_TROUBLE if self.trouble else EVERY, self._poked.set)
            try:
                await self._poked.wait()
            finally:
                timer.cancel()

    async def turn(self) -> None:
        """Write back, let go, hear, load. A database that is not to be had is noted, and asked again."""
        self._turning = self._clock.now()
        try:
            await self._follow_wall()
            await self._write()
            await self._hear()
            await self._load()
        except PollingStoreError as error:
            if not error.transient:
                raise
            if not self._trouble:
                log.warning("polling_store_fails", why=str(error))
            self._trouble = str(error)
        else:
            if self._trouble:
                log.info("polling_store_works_again")
            self._trouble = ""
        finally:
            self._turning = None

    async def _follow_wall(self) -> None:
        moved = self._clock.wall() - self.wall(self._clock.now())
        if abs(moved) > JUMP:
            await self.store.shift(moved)
            self._offset += moved
            self._horizon = (self._horizon[0] + moved, self._horizon[1])
            log.warning("clock_was_set", seconds=round(moved, 3))

    # Writing back.

    async def flush(self) -> None:
        """Write everything back. Raises PollingStoreError."""
        while self._pending:
            await self._write()

    async def _write(self) -> None:
        some = min(AT_A_TIME, len(self._pending))
        entries = [self._pending.popitem(last=False)[1] for _ in range(some)]
        if not entries:
            return
        try:
            await self.store.write([self._ran(entry) for entry in entries])
        except BaseException:
            for entry in entries:
                self._pending.setdefault(entry.id, entry)
            raise
        self._measures.wrote(len(entries))
        for entry in entries:
            if self._is_far(entry):
                self.schedule.drop(entry)

    def _ran(self, entry: ScheduledTarget) -> TargetRun:
        return TargetRun(
            entry.id,
            self.wall(entry.at),
            None if entry.until is None else self.wall(entry.until),
            entry.runs,
            entry.missed,
            entry.failures,
            entry.asked,
            entry.fetched,
            entry.status,
            entry.polls,
            entry.hits,
        )

    def _is_far(self, entry: ScheduledTarget) -> bool:
        """Whether it can be let go: what is stored of it is all there is, and a later load will find it."""
        busy = entry.running or entry.until is not None or entry.id in self._pending
        return not busy and self.wall(entry.at) > self._horizon[0]

    # Hearing of edits.

    async def _hear(self) -> None:
        while any(edits := await self.store.take_edits(self.wall(self._clock.now()))):
            for target in edits.targets:
                self._take(target)
            for gone in edits.deleted:
                self._let_go(gone, "target_deleted")
            self.woken()

    def _take(self, target: PollingTarget) -> None:
        entry = self.schedule.entries.get(target.id)
        if not target.wanted:
            self._let_go(target.id, "target_gone" if target.gone is not None else "target_paused")
            return
        if entry is None:
            if target.runs == 0:
                log.info("target_created", kind=target.kind, target=target.source_id, seconds=target.interval)
            if target.promote is not None or self._is_near(target):
                entry = self.enter(target, anew=True)
                self.note(entry)  # it may be due at another time now
        else:
            self._update(entry, target)
        if entry is not None and target.promote is not None:
            self._promote(entry, target.promote)

    def _is_near(self, target: PollingTarget) -> bool:
        """Whether it belongs into memory: it is due soon, or would be by the interval it has now."""
        return target.next_due <= self._horizon[0] or self._overshoots(target, target.interval)

    def _overshoots(self, target: PollingTarget, interval: float) -> bool:
        """Whether it is due later than its interval allows, and not because it fails."""
        return not target.failures and target.next_due - self.wall(self._clock.now()) > interval

    def _update(self, entry: ScheduledTarget, target: PollingTarget) -> None:
        now, at = self._clock.now(), entry.at
        if (entry.event, entry.only) != (target.event, target.only):
            entry.event, entry.only = target.event, target.only
            entry.forget()
            self.schedule.move(entry, now)
        if not (target.digest or target.etag or target.modified):
            entry.forget()  # rows of its document went along with another's
        entry.fixed = target.set_seconds is not None
        entry.base = target.interval
        self.schedule.set_usual(entry, self._adapter.interval(entry), now)
        if entry.weight != target.weight:
            self.schedule.reclass(entry, target.weight, now)
        if entry.at != at:
            self.note(entry)

    def _promote(self, entry: ScheduledTarget, seconds: float) -> None:
        now = self._clock.now()
        made = self.schedule.promote(entry, now, NOT_OFTENER)
        if seconds > 0 and (interval := self.schedule.active_seconds(entry)) > 0:
            made |= self.schedule.accelerate(entry, interval, now, now + seconds)
            self.note(entry)
        if made:
            self._measures.promoted("admin")
            log.info("target_promoted", kind=entry.kind, target=entry.source_id, seconds=seconds)

    def _let_go(self, number: int, event: str) -> None:
        self._adapter.forget(number)
        entry = self.schedule.entries.get(number)
        if entry is not None:
            log.info(event, kind=entry.kind, target=entry.source_id)
            self.schedule.drop(entry)

    # Loading.

    async def _load(self) -> None:
        """Make sure that what is due soon is in memory."""
        wall = self.wall(self._clock.now())
        while self._horizon[0] < wall + REFILL:
            found = await self.store.due(self._horizon, wall + HORIZON, AT_A_TIME)
            for target in found:
                if target.id not in self.schedule.entries:
                    self.enter(target)
            full = len(found) == AT_A_TIME
            self._horizon = (found[-1].next_due, found[-1].id) if full else (wall + HORIZON, LAST)
            if found:
                self.woken()

    def enter(self, target: PollingTarget, *, anew: bool = False) -> ScheduledTarget:
        """Take a target in; one that was not wanted until now is due now, and is not late."""
        now, wall = self._clock.now(), self.wall(self._clock.now())
        entry = ScheduledTarget.of(target)
        entry.usual = entry.interval = usual = self._adapter.interval(entry)
        # One that is due in ages was written under another clock.
        point = now + min(target.next_due - wall, max(usual, LONGEST_PAUSE))
        if self._overshoots(target, usual):
            point = next_point(point, usual, now)
        at = max(point, self._began)  # that nobody polled before is nobody's lateness
        if anew and point < now:
            at, point = now, next_point(point, usual, now)
        if target.runs == 0:  # due at once, and then in step with nobody
            point = at + phase(target.kind, target.source_id) * usual
        entry.at, entry.point = at, point
        self.schedule.add(entry)
        if target.until is not None and target.until > wall and (interval := self.schedule.active_seconds(entry)) > 0:
            self.schedule.accelerate(entry, interval, now, now + target.until - wall)
        return entry
