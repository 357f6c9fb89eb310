"""All parts of polling, put together and run."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from sanderling.apis.polled import Discovered, PolledSource
from sanderling.clock import Clock
from sanderling.engine.loop import Engine
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.polling.activity import ActivityWatch
from sanderling.polling.books import NOT_OFTENER, Books, Heard
from sanderling.polling.discovery import DiscoveryLoop
from sanderling.polling.entries import Entry
from sanderling.polling.feed import Feed
from sanderling.polling.handler import Answer, PollingHandler
from sanderling.polling.hosts import PolledHost
from sanderling.polling.keeping import Keeper
from sanderling.polling.live import LiveSettings
from sanderling.polling.measures import Measures
from sanderling.polling.needs import Needs
from sanderling.polling.runs import Run
from sanderling.polling.schedule import Schedule
from sanderling.polling.settings import PollingSettings
from sanderling.polling.sink import DocumentWriter
from sanderling.polling.source import ENGINE, PollingSource
from sanderling.polling.subscribers import Subscriber
from sanderling.stores.control_file import NOTHING, Control
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_store import PollingStore

# A kind that is never active by itself is run so many times as often while somebody has it accelerated.
HASTE, FASTEST = 10, 0.2


@dataclass(frozen=True, slots=True)
class Tools:
    """What polling asks with and writes to."""

    source: PolledSource
    fetcher: Fetcher  # which does not try again by itself: what is polled is asked again anyway
    limiter: Limiter
    memory: Memory
    store: PollingStore
    desk: Executor
    folder: Path | None = None  # where control.json says whether anything is polled; without one, the database does


class PollingSystem:
    """Polls one source into one database. `run` it once; `stop` lets what is under way come to its end."""

    def __init__(self, tools: Tools, *, clock: Clock, rng: Random, keep: int = 100_000) -> None:
        source, store = tools.source, tools.store
        self.tools = tools
        self.clock = clock
        kinds, tables = source.kinds, source.schema.tables
        self.measures = Measures((kind.name for kind in kinds), (table.name for table in tables), clock)
        self.feed = Feed(store, clock, keep=keep)
        self.live = LiveSettings(store, source.kinds, clock, tools.folder)
        handler = PollingHandler(source, tools.fetcher, tools.memory, clock, tools.desk)
        self.schedule = Schedule(handler.host, rng)
        self.keeper = Keeper(source, store, self.feed, self.schedule, clock, self.measures)
        heard = Heard(
            self._usual_seconds,
            self._active_seconds,
            self._dropped,
            self.measures.promoted,
            self.measures.wrote,
            self._look,
        )
        self.books = Books(store, self.schedule, clock, heard)
        self.needs = Needs(source.kinds)
        self.writer = DocumentWriter(self.keeper, clock)
        self.source = PollingSource(handler, self.books, self.keeper, self.needs, self.writer)
        self.engine: Engine[PolledHost, Run, Answer] = Engine(
            self.source, handler, self.writer, tools.limiter, clock, ENGINE
        )
        self.source.wake = self.engine.wake
        self.activity = ActivityWatch(source, self.books, clock, self.measures)
        self.discovery = DiscoveryLoop(source, tools.fetcher, tools.memory, self.writer, clock, tools.desk)
        self.subscribers: list[Subscriber] = []
        self.keeper.watched = self.activity.look
        self.keeper.arrived = self._arrived
        self.discovery.found = self._found
        self.discovery.is_live = self.schedule.accelerated.__contains__
        self.live.changed.append(self._settings)
        self._reconcile = asyncio.Event()
        self._wanted = NOTHING

    async def open(self) -> None:
        """Be the one who polls, and learn how things stand. Raises PollingStoreError."""
        await self.tools.store.claim(self.clock.wall())
        await self.feed.open()
        self.needs.load(await self.tools.store.fetched())
        # Its rows say what is live, also while nobody can tell what there is: the upstream may be down just now.
        events = {known.found.event for known in await self.tools.store.known() if known.gone is None}
        if len(events) == 1:
            (self.activity.event,) = events
        await self.live.adopt()
        await self.live.read()

    async def run(self, *others: Coroutine[Any, Any, object]) -> None:
        """Poll until it is stopped; `others` run beside it, and end with it. `open` it first."""
        loops = (
            self.books.run(),
            self.discovery.run(self.tools.store),
            self.activity.run(),
            self.live.run(),
            self.feed.tend(),
            self._follow_settings(),
            *(subscriber.run() for subscriber in self.subscribers),
        )
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(each) for each in (*loops, *others)]
            try:
                await self.engine.run()
            finally:
                self.source.close()
                self.feed.close()
                for task in beside:
                    task.cancel()
        await self.books.flush()

    def stop(self) -> None:
        """Begin nothing more."""
        self.engine.stop()

    def control(self, wanted: Control) -> None:
        """Pause, go on; leave hosts alone; stop; drain. The setting that switches polling off pauses as well."""
        self._wanted = wanted
        settings = self.live.now
        paused = wanted.paused or settings is None or not settings.enabled
        self.source.paused = paused
        self.discovery.paused = paused or wanted.ending != ""
        self.engine.control(msgspec.structs.replace(wanted, paused=paused))
        self.source.look()

    @property
    def inflight(self) -> int:
        """Requests in flight."""
        return self.engine.inflight

    @property
    def trouble(self) -> str:
        """Why the database is not to be had, while it is not."""
        return self.books.trouble or self.writer.sink.trouble

    # What one part tells another.

    def _look(self) -> None:
        self.source.look()

    def _usual_seconds(self, entry: Entry) -> float:
        return self.source.adapter.interval(entry)

    def _dropped(self, number: int) -> None:
        self.source.adapter.forget(number)

    def _active_seconds(self, entry: Entry) -> float:
        settings = self.live.now
        own = 0.0 if settings is None else settings.active.get(entry.kind, 0.0)
        return own or min(entry.usual, max(FASTEST, entry.usual / HASTE))

    def _arrived(self, entry: Entry) -> None:
        if self.schedule.promote(entry, self.clock.now(), NOT_OFTENER):
            self.measures.promoted("parent")
            self._look()

    def _found(self, discovered: Discovered) -> None:
        if self.activity.event != discovered.event or self.discovery.in_doubt:
            self.activity.event = discovered.event
            self.activity.look()
        self.books.poke()

    def _settings(self, settings: PollingSettings) -> None:
        if settings.full != self.discovery.settings.full:
            self.discovery.look()
        self.discovery.settings = self.activity.settings = settings
        self.source.burst, self.engine.room.per_host = settings.burst, settings.concurrency
        self.schedule.jitter = settings.jitter
        self.source.adapter.tune(settings)
        for entry in self.schedule.entries.values():
            self.schedule.set_usual(entry, self._usual_seconds(entry), self.clock.now())
        self.activity.look()
        self._reconcile.set()
        self.control(self._wanted)

    async def _follow_settings(self) -> None:
        """Give the targets the intervals that the settings say, when these change."""
        while True:
            await self._reconcile.wait()
            self._reconcile.clear()
            try:
                await self.discovery.reconcile(self.tools.store)
            except PollingStoreError:  # the next discovery does the same
                continue
            self.books.poke()
