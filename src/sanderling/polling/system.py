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
from sanderling.polling.adaptive import Adapter
from sanderling.polling.change_feed import ChangeFeed
from sanderling.polling.discovery import DiscoveryLoop
from sanderling.polling.document_writer import DocumentWriter, Keeper
from sanderling.polling.handler import PolledAnswer, PollingHandler
from sanderling.polling.hosts import PolledHost
from sanderling.polling.live_settings import LiveSettings
from sanderling.polling.measures import PollingMeasures
from sanderling.polling.schedule import Schedule
from sanderling.polling.settings import PollingSettings
from sanderling.polling.source import ENGINE, Needs, PollingSource
from sanderling.polling.subscribers import Subscriber
from sanderling.polling.target_sync import NOT_OFTENER, TargetSync
from sanderling.polling.targets import PollRun, ScheduledTarget
from sanderling.stores.control_file import NOTHING, Control
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_store import PollingStore


@dataclass(frozen=True, slots=True)
class PollingResources:
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

    def __init__(
        self, tools: PollingResources, *, clock: Clock, rng: Random, keep: int = 100_000, others: bool = False
    ) -> None:
        """With `others`, processes that wait to poll: then nothing is asked for while one of them may be polling."""
        source, store = tools.source, tools.store
        self.tools = tools
        self.clock = clock
        kinds, tables = source.kinds, source.schema.tables
        self.measures = PollingMeasures((kind.name for kind in kinds), (table.name for table in tables), clock)
        self.feed = ChangeFeed(store, clock, keep=keep)
        self.live = LiveSettings(store, source.kinds, clock, tools.folder)
        handler = PollingHandler(source, tools.fetcher, tools.memory, clock, tools.desk)
        self.schedule = Schedule(handler.host, rng)
        self.keeper = Keeper(source, store, self.feed, self.schedule, clock, self.measures)
        self.adapter = Adapter()
        self.sync = TargetSync(
            store,
            self.schedule,
            self.adapter,
            self.measures,
            clock,
            lambda: self.source.look(),  # noqa: PLW0108 - which is made below
        )
        self.needs = Needs(source.kinds)
        self.writer = DocumentWriter(self.keeper, clock)
        self.source = PollingSource(handler, self.sync, self.keeper, self.needs, self.writer, self.adapter)
        self.engine: Engine[PolledHost, PollRun, PolledAnswer] = Engine(
            self.source, handler, self.writer, tools.limiter, clock, ENGINE
        )
        self.source.wake = self.engine.wake
        if others:
            self.engine.may_ask = store.database.may_send
        self.activity = ActivityWatch(source, self.sync, clock, self.measures)
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
        try:
            async with asyncio.TaskGroup() as group:
                holding = group.create_task(self.tools.store.database.hold(bool))
                await self._learn()
                holding.cancel()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _learn(self) -> None:
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
            self.tools.store.database.hold(self.engine.pump),
            self.sync.run(),
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
        await self.sync.flush()

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
        return self.sync.trouble or self.writer.trouble

    # What one part tells another.

    def _arrived(self, entry: ScheduledTarget) -> None:
        if self.schedule.promote(entry, self.clock.now(), NOT_OFTENER):
            self.measures.promoted("parent")
            self.source.look()

    def _found(self, discovered: Discovered) -> None:
        if self.activity.event != discovered.event or self.discovery.in_doubt:
            self.activity.event = discovered.event
            self.activity.look()
        self.sync.poke()

    def _settings(self, settings: PollingSettings) -> None:
        if settings.full != self.discovery.settings.full:
            self.discovery.look()
        self.discovery.settings = self.activity.settings = settings
        self.source.burst, self.engine.room.per_host = settings.burst, settings.concurrency
        self.schedule.jitter, self.schedule.active = settings.jitter, settings.active
        self.adapter.tune(settings)
        for entry in self.schedule.entries.values():
            self.schedule.set_usual(entry, self.adapter.interval(entry), self.clock.now())
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
            self.sync.poke()
