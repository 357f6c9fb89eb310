"""Run what is live more often: the source says what that is, by the rows that are stored."""

import asyncio
from collections.abc import AsyncIterator

from sanderling.apis.polled import PolledSource, TargetActivity, TargetName
from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.polling.measures import PollingMeasures
from sanderling.polling.settings import OFF, PollingSettings
from sanderling.polling.target_sync import TargetSync
from sanderling.polling.targets import ScheduledTarget
from sanderling.stores.documents import MOST_ROWS, SourceRow
from sanderling.stores.polling import PollingStoreError

PAGE = 1000  # rows
RENEWALS = 3  # of a lease, before it would end

log = logs.get(__name__)


class ActivityWatch:
    """Accelerates what is active, and nothing else: what is current may be over, or not have begun."""

    def __init__(self, source: PolledSource, sync: TargetSync, clock: Clock, measures: PollingMeasures) -> None:
        self.event: str | None = None  # the one that is on, once that is known
        self.settings = OFF  # until there are some
        self.activity = TargetActivity()
        self._source = source
        self._sync = sync
        self._clock = clock
        self._measures = measures
        self._ours: dict[TargetName, int] = {}  # what we accelerated, and its id
        self._dirty = asyncio.Event()

    def look(self) -> None:
        """Look again soon: what is stored has changed, or the settings have."""
        self._dirty.set()

    async def run(self) -> None:
        """Look whenever something has changed, and often enough to renew the leases, until cancelled."""
        while True:
            self._dirty.clear()
            if self.event is not None:
                await self._look(self.event, self.settings)
            timer = self._clock.call_later(self.settings.lease / RENEWALS, self._dirty.set)
            try:
                await self._dirty.wait()
            finally:
                timer.cancel()

    async def _look(self, event: str, settings: PollingSettings) -> None:
        """Accelerate what is active.

        While the database is not to be had that is what it was: nothing was stored since that could say otherwise.
        """
        limit = asyncio.timeout(None)
        timer = self._clock.call_later(settings.lease / RENEWALS, lambda: limit.reschedule(0.0))
        try:
            async with limit:
                await self._apply(event, settings)
        except (PollingStoreError, TimeoutError) as error:
            log.warning("activity_unknown", why=str(error) or "the database does not answer")
            for name, number in self._ours.items():
                entry = self._sync.schedule.entries.get(number)
                if entry is not None:
                    self._renew(entry, name, settings)
        finally:
            timer.cancel()

    async def _apply(self, event: str, settings: PollingSettings) -> None:
        rows = [row async for row in self._rows(event)]
        found = self._source.activity(event, rows)
        if found.current != self.activity.current:
            current = found.current
            log.info("current_changed", kind=current and current.kind, target=current and current.source_id)
        self.activity = found
        for name in [name for name in self._ours if name not in found.active]:
            self._slow_down(name)
        for name in found.active:
            if settings.active.get(name.kind, 0.0) > 0:
                await self._accelerate(name, settings)
            else:
                self._slow_down(name)

    async def _rows(self, event: str) -> AsyncIterator[SourceRow]:
        for table in self._source.watched:
            after, seen = "", 0
            while seen < MOST_ROWS:
                page = await self._sync.store.rows(table, event=event, after=after, most=PAGE)
                for row in page:
                    yield row
                seen += len(page)
                if len(page) < PAGE:
                    break
                after = page[-1].key

    async def _accelerate(self, name: TargetName, settings: PollingSettings) -> None:
        entry = await self._entry(name)
        if entry is not None:
            self._ours[name] = entry.id
            self._renew(entry, name, settings)

    def _renew(self, entry: ScheduledTarget, name: TargetName, settings: PollingSettings) -> None:
        now, interval = self._clock.now(), settings.active.get(name.kind, 0.0)
        if interval > 0 and self._sync.schedule.accelerate(entry, interval, now, now + settings.lease):
            self._measures.promoted("active")
            log.info("target_accelerated", kind=name.kind, target=name.source_id, seconds=interval)
            self._sync.woken()
        self._sync.note(entry)

    def _slow_down(self, name: TargetName) -> None:
        number = self._ours.pop(name, None)
        entry = None if number is None else self._sync.schedule.entries.get(number)
        if entry is not None and self._sync.schedule.slow_down(entry, self._clock.now()):
            log.info("target_slowed_down", kind=name.kind, target=name.source_id, seconds=entry.usual)
            self._sync.note(entry)

    async def _entry(self, name: TargetName) -> ScheduledTarget | None:
        """The target in memory, taken in if it was not; None if it is not to be polled."""
        known = self._sync.schedule.entries.get(self._ours.get(name, -1))
        if known is not None:
            return known
        target = await self._sync.store.find(name.kind, name.source_id)
        if target is None or not target.wanted:
            return None
        return self._sync.schedule.entries.get(target.id) or self._sync.enter(target)
