"""A crawl of ids under way: what it works in, the store beside it, its signals, and whoever watches it."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Self

from sanderling.apis.numbered import NumberedApi
from sanderling.cli import CommandError
from sanderling.cli.alerting import NOBODY, Alerting, saying
from sanderling.cli.events.onward import GATHER, NOWHERE, Onward
from sanderling.cli.loop import finishing, stoppable
from sanderling.cli.options import Options, beside, disk_room, observed, pace_of, showing
from sanderling.cli.reach import reached
from sanderling.cli.sequence.flags import Pace, Readings, Upstream
from sanderling.cli.sequence.place import EMBEDDED, USUAL, Keeping, Place
from sanderling.cli.sequence.screen import Screen
from sanderling.cli.watching import PUBLISH_EVERY, drawn, every, kept, obey, told, watched
from sanderling.clock import Clock
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import Http
from sanderling.flow.desk import Desk, desk_in
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter
from sanderling.observe.alerts_webhook import Webhook
from sanderling.observe.metrics_sequence import SequenceMetrics, SequenceReadings, StoreReadings
from sanderling.observe.prometheus import PrometheusServer
from sanderling.sequence.cursor import Position
from sanderling.sequence.prometheus_readings import PrometheusRules, PrometheusSource
from sanderling.sequence.start import StartError, begin_at, left_open
from sanderling.sequence.state import SequenceState
from sanderling.sequence.status import SequenceStatus, SequenceWatch
from sanderling.sequence.store import StoreRules, StoreWorkers
from sanderling.sequence.system import SequenceRules, SequenceSystem, Tools
from sanderling.stores.instances import Instances, InstancesError, RawInstances
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.queue import QueueError, WholeQueue
from sanderling.stores.status_file import write_status

if TYPE_CHECKING:
    from sanderling.events.handover import EventsHandOver
    from sanderling.formats.instance import Message

BODIES = 256 * 2**20  # bytes that records may hold at once
LOOK = 0.1  # seconds between looks at whether the last id has its fate, or all is stored


@dataclass(frozen=True, slots=True)
class Given:
    """All that a crawl was called with."""

    place: Place = USUAL
    upstream: Upstream = field(default_factory=Upstream)
    pace: Pace = field(default_factory=Pace)
    keeping: Keeping = EMBEDDED
    readings: Readings = field(default_factory=Readings)
    alerting: Alerting = NOBODY
    store: bool = True  # whether what is queued is stored here too
    onward: Onward = NOWHERE


@dataclass(frozen=True, slots=True)
class Gear:
    """What a crawl is run with, beside what it works in."""

    api: NumberedApi
    memory: Memory
    http: Http
    limiter: Limiter
    rules: SequenceRules
    sink: Webhook | None
    server: tuple[PrometheusServer, PrometheusRules] | None

    @classmethod
    def make(cls, given: Given, clock: Clock) -> Self:
        """That which goes with the flags. Raises CommandError."""
        memory = Memory(BODIES)
        return cls(
            given.upstream.describe(),
            memory,
            given.upstream.client(memory, given.pace.max_workers, clock),
            given.pace.limiter(clock),
            given.pace.rules(),
            given.alerting.sink(clock),
            given.readings.server(),
        )

    def fetcher(self, clock: Clock) -> Fetcher:
        """Asks without following redirects: a header with a secret, under whatever name, is for this host only."""
        return Fetcher(self.http, self.limiter, clock=clock, follow=False)

    def tools(self, state: SequenceState, queue: WholeQueue, desk: Desk, clock: Clock) -> Tools:
        """The same for the crawl, with what it writes to."""
        return Tools(self.api, self.fetcher(clock), self.limiter, self.memory, state, queue, desk)


class Ran(NamedTuple):
    """How a run went: how it stood at its end, which signals came, whether it came to its last id, what went on."""

    last: SequenceStatus
    signals: tuple[int, ...]
    complete: bool
    onward: tuple[str, ...] = ()


class _Stores(NamedTuple):
    queue: WholeQueue
    rows: Instances | None
    raw: RawInstances | None


@dataclass(slots=True)
class _Running:
    """A crawl, the store beside it, and whoever looks."""

    system: SequenceSystem
    store: StoreWorkers | None
    feed: "EventsHandOver[Message] | None"
    queue: WholeQueue
    watch: SequenceWatch
    clock: Clock

    def status(self, *, running: bool = True) -> SequenceStatus:
        """How it stands."""
        return self.watch.take(self.clock.now(), self.clock.wall(), running=running)

    async def look(self) -> None:
        """Ask the queue how it stands; one that does not say stands as before."""
        with suppress(QueueError):  # the crawl says so itself
            self.watch.depth = await self.queue.depth()

    def readings(self) -> SequenceReadings:
        """The same for Prometheus."""
        depth = self.watch.depth
        if self.store is None:
            return self.system.readings(StoreReadings({} if depth is None else depth._asdict()))
        return self.system.readings(self.store.tally.readings(depth))


async def run_crawl(
    given: Given, gear: Gear, state: SequenceState, options: Options, clock: Clock, screen: Screen
) -> Ran:
    """Crawl until somebody stops it, or until the last id that is wanted has its fate."""
    folder, limiter = given.place.out, gear.limiter
    async with AsyncExitStack() as stack:
        # The thread ends last: what it is at comes to its end, in one piece.
        desk = desk_in(stack.enter_context(ThreadPoolExecutor(1, "disk")))
        stores = await stack.enter_async_context(_stores(given, screen, clock))
        position = await _begin(given.pace, gear.api.name, state, stores.rows, screen, clock.wall())
        recall(limiter, folder)
        # The log is set up behind it, so that its lines do not tear the picture apart.
        stack.enter_context(screen)
        say = await stack.enter_async_context(saying(gear.sink, screen.tell, options, clock))
        tools, rng = gear.tools(state, stores.queue, desk, clock), Random()
        system = SequenceSystem(tools, position, gear.rules, say=say, clock=clock, rng=rng)
        system.end_at(given.pace.until)
        if gear.server is not None:
            server, rules = gear.server
            system.read_from(PrometheusSource(await stack.enter_async_context(server), clock, rules))
        feed = await stack.enter_async_context(given.onward.reports(clock, screen.note))
        store = _storing(stores, feed, clock) if given.store else None
        watch = SequenceWatch(system, store.tally if store else None, clock.wall())
        now = _Running(system, store, feed, stores.queue, watch, clock)
        shows = pace_of(limiter), showing(SequenceMetrics, now.readings)
        await stack.enter_async_context(observed(options, *shows, say=screen.note))
        await stack.enter_async_context(beside(options, folder, screen.note))
        await stack.enter_async_context(gear.http)
        came = stack.enter_context(stoppable(system.stop, screen.note, lambda: finishing(system.inflight)))
        await now.look()
        complete = await watched(
            _run(now, given.pace.until),
            drawn(screen, now.status),
            every(PUBLISH_EVERY, now.look),
            told(folder, now.status, desk),
            kept(limiter, folder, desk),
            obey(folder, system.control, screen.note, disk_room(options, folder)),
        )
        await now.look()
        system.missed = {reason.value: ids for reason, ids in (await desk(state.counts)).items()}
        last = now.status(running=False)
        screen.show(last)
        await desk(write_status, folder, last)
        await desk(keep, folder, list(limiter.saving()))
    return Ran(last, tuple(came), complete, given.onward.words(feed))


# What it works in.


@asynccontextmanager
async def _stores(given: Given, screen: Screen, clock: Clock) -> AsyncIterator[_Stores]:
    """The queue and the stores, reached."""
    keeping = given.keeping
    async with AsyncExitStack() as stack:
        queue = await stack.enter_async_context(keeping.opened(given.place, clock, screen.note))
        rows = raw = None
        if given.store or keeping.rows is not None:
            rows = await reached("--rows", keeping.rows, partial(keeping.open_rows, given.place), screen.note)
            stack.push_async_callback(rows.close)
        if given.store:
            raw = await reached("--raw", keeping.raw, keeping.open_raw, screen.note)
            if raw is not None:
                stack.push_async_callback(raw.close)
        yield _Stores(queue, rows, raw)


def _storing(stores: _Stores, feed: "EventsHandOver[Message] | None", clock: Clock) -> StoreWorkers | None:
    rules = StoreRules() if feed is None else StoreRules(gather=GATHER)
    return StoreWorkers(stores.queue, stores.rows, stores.raw, clock, rules, feed) if stores.rows else None


async def _begin(
    pace: Pace, api: str, state: SequenceState, rows: Instances | None, screen: Screen, wall: float
) -> Position:
    """Where to begin. Raises CommandError."""
    saved = state.load()
    try:
        latest = None if rows is None or saved is not None else await rows.latest()
        position = begin_at(api, saved, latest, begin=pace.begin, target=pace.target, buffer=pace.buffer)
    except StartError as error:
        raise CommandError(str(error), code=2) from None
    except InstancesError as error:
        raise CommandError(str(error)) from None
    if saved is not None and position.low > saved.position.low:
        state.add_new(left_open(saved, position, wall))
        if position.low > saved.position.next:
            screen.note(f"--target: ids from {saved.position.next} to {position.low - 1} are left out")
    return position


# While it runs.


async def _run(now: _Running, until: int | None) -> bool:
    """Run the crawl and the store; whether it came to its last id."""
    system, store = now.system, now.store
    async with asyncio.TaskGroup() as group:
        if store is not None:
            group.create_task(store.run())
        await watched(system.run(), *(() if until is None else (_stop_behind(system, until, now.clock),)))
        complete = until is not None and system.durable.low > until
        if store is not None:
            if complete or system.draining:
                await _stored(now)
            store.stop()
    return complete


async def _stop_behind(system: SequenceSystem, until: int, clock: Clock) -> None:
    while system.durable.low <= until:
        await clock.sleep(LOOK)
    system.stop()


async def _stored(now: _Running) -> None:
    """Return when all that was queued is stored, or given up, or cannot be for now."""
    while now.store and not (now.store.tally.trouble or (now.feed and now.feed.trouble)):
        try:
            depth = await now.queue.depth()
        except QueueError:
            return  # what is in there stays there
        if not (depth.ready or depth.taken):
            return
        await now.clock.sleep(LOOK)
