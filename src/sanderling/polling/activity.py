"""Run what is live more often: the source says what that is, by the rows that are stored."""

import asyncio
from collections.abc import AsyncIterator

from sanderling.apis.polled import Activity, PolledSource, TargetName
from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.polling.books import Books
from sanderling.polling.measures import Measures
from sanderling.polling.schedule import Entry
from sanderling.polling.settings import OFF, PollingSettings
from sanderling.stores.documents import MOST_ROWS, Row
from sanderling.stores.polling import PollingStoreError

PAGE = 1000  # rows
RENEWALS = 3  # of a lease, before it would end

log = logs.get(__name__)


class ActivityWatch:
    """Accelerates what is active, and nothing else: what is current may be over, or not have begun."""

    def __init__(self, source: PolledSource, books: Books, clock: Clock, measures: Measures) -> None:
        self.event: str | None = None  # the one that is on, once that is known
        self.settings = OFF  # until there are some
        self.activity = Activity()
        self._source = source
        self._books = books
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
            try:
                if self.event is not None:
                    await self._apply(self.event, self.settings)
            except PollingStoreError as error:  # the leases hold for a while, and then things slow down by themselves
                log.warning("activity_unknown", why=str(error))
            timer = self._clock.call_later(self.settings.lease / RENEWALS, self._dirty.set)
            try:
                await self._dirty.wait()
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
            interval = settings.active.get(name.kind, 0.0)
            if interval > 0:
                await self._accelerate(name, interval, settings.lease)
            else:
                self._slow_down(name)

    async def _rows(self, event: str) -> AsyncIterator[Row]:
        for table in self._source.watched:
            after, seen = "", 0
            while seen < MOST_ROWS:
                page = await self._books.store.rows(table, event=event, after=after, most=PAGE)
                for row in page:
                    yield row
                seen += len(page)
                if len(page) < PAGE:
                    break
                after = page[-1].key

    async def _accelerate(self, name: TargetName, interval: float, lease: float) -> None:
        entry = await self._entry(name)
        if entry is None:
            return
        now = self._clock.now()
        self._ours[name] = entry.id
        if self._books.schedule.accelerate(entry, interval, now, now + lease):
            self._measures.promoted("active")
            log.info("target_accelerated", kind=name.kind, target=name.source_id, seconds=interval)
            self._books.woken()
        self._books.note(entry)

    def _slow_down(self, name: TargetName) -> None:
        number = self._ours.pop(name, None)
        entry = None if number is None else self._books.schedule.entries.get(number)
        if entry is not None and self._books.schedule.slow_down(entry, self._clock.now()):
            log.info("target_slowed_down", kind=name.kind, target=name.source_id, seconds=entry.usual)
            self._books.note(entry)

    async def _entry(self, name: TargetName) -> Entry | None:
        """The target in memory, taken in if it was not; None if it is not to be polled."""
        known = self._books.schedule.entries.get(self._ours.get(name, -1))
        if known is not None:
            return known
        target = await self._books.store.find(name.kind, name.source_id)
        if target is None or not target.wanted:
            return None
        return self._books.schedule.entries.get(target.id) or self._books.enter(target)
