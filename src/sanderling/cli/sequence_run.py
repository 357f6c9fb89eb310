"""A crawl of ids under way: what it works in, the store beside it, its signals, and whoever watches it."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple, Self

from sanderling.apis.numbered import NumberedApi
from sanderling.cli import CommandError
from sanderling.cli.loop import stoppable
from sanderling.cli.options import Options, observed, showing
from sanderling.cli.pages_summary import finishing
from sanderling.cli.sequence_flags import Pace, Telling, Upstream
from sanderling.cli.sequence_place import EMBEDDED, USUAL, Keeping, Place, reached
from sanderling.cli.sequence_screen import Screen
from sanderling.clock import Clock, SystemClock
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import Http
from sanderling.flow.desk import Desk, desk_in
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter
from sanderling.observe.alerts import Alert, Alerts
from sanderling.observe.alerts_webhook import Webhook
from sanderling.observe.metrics import TOP_HOSTS, LimiterMetrics
from sanderling.observe.metrics_sequence import SequenceMetrics, SequenceReadings, StoreReadings
from sanderling.observe.prometheus import PrometheusServer
from sanderling.sequence.cursor import Position
from sanderling.sequence.lookout import Say
from sanderling.sequence.prometheus_readings import PrometheusRules, PrometheusSource
from sanderling.sequence.start import StartError, begin_at, left_open
from sanderling.sequence.state import SequenceState
from sanderling.sequence.status import SequenceStatus, SequenceWatch, publish
from sanderling.sequence.store import StoreWorkers
from sanderling.sequence.system import SequenceRules, SequenceSystem, Tools
from sanderling.stores.durable import plainly, write_new
from sanderling.stores.instances import Instances, InstancesError, RawInstances
from sanderling.stores.queue import QueueError, WholeQueue

BODIES = 256 * 2**20  # bytes that records may hold at once
LIMITER = "limiter.json"
PUBLISH_EVERY = 1.0  # seconds between two status.json
KEEP_EVERY = 5.0  # seconds that what the limiter learned may be old after a crash
LOOK = 0.1  # seconds between looks at whether the last id has its fate, or all is stored


@dataclass(frozen=True, slots=True)
class Given:
    """All that a crawl was called with."""

    place: Place = USUAL
    upstream: Upstream = field(default_factory=Upstream)
    pace: Pace = field(default_factory=Pace)
    keeping: Keeping = EMBEDDED
    telling: Telling = field(default_factory=Telling)
    store: bool = True  # whether what is queued is stored here too


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
            given.telling.sink(clock),
            given.telling.server(),
        )

    def fetcher(self, clock: Clock) -> Fetcher:
        """Asks without following redirects: a header with a secret, under whatever name, is for this host only."""
        return Fetcher(self.http, self.limiter, clock=clock, follow=False)

    def tools(self, state: SequenceState, queue: WholeQueue, desk: Desk, clock: Clock) -> Tools:
        """The same for the crawl, with what it writes to."""
        return Tools(self.api, self.fetcher(clock), self.limiter, self.memory, state, queue, desk)


class Ran(NamedTuple):
    """How a run went: how it stood at its end, which signals came, and whether it came to its last id."""

    last: SequenceStatus
    signals: tuple[int, ...]
    complete: bool


class _Stores(NamedTuple):
    queue: WholeQueue
    rows: Instances | None
    raw: RawInstances | None


@dataclass(slots=True)
class _Running:
    """A crawl, the store beside it, and whoever looks."""

    system: SequenceSystem
    store: StoreWorkers | None
    queue: WholeQueue
    watch: SequenceWatch
    folder: Path
    desk: Desk
    clock: Clock
    screen: Screen

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
    folder = given.place.out
    async with AsyncExitStack() as stack:
        # The thread ends last: what it is at comes to its end, in one piece.
        desk = desk_in(stack.enter_context(ThreadPoolExecutor(1, "disk")))
        stores = await stack.enter_async_context(_stores(given, screen, clock))
        position = await _begin(given.pace, gear.api.name, state, stores.rows, screen, clock.wall())
        _recall(gear.limiter, folder)
        # The log is set up behind it, so that its lines do not tear the picture apart.
        stack.enter_context(screen)
        say = await stack.enter_async_context(_saying(gear.sink, options, screen, clock))
        tools, rng = gear.tools(state, stores.queue, desk, clock), Random()
        system = SequenceSystem(tools, position, gear.rules, say=say, clock=clock, rng=rng)
        if gear.server is not None:
            server, rules = gear.server
            system.read_from(PrometheusSource(await stack.enter_async_context(server), clock, rules))
        store = StoreWorkers(stores.queue, stores.rows, stores.raw, clock) if given.store and stores.rows else None
        watch = SequenceWatch(system, store.tally if store else None, clock.wall())
        running = _Running(system, store, stores.queue, watch, folder, desk, clock, screen)
        shows = (
            showing(LimiterMetrics, partial(gear.limiter.snapshot, TOP_HOSTS)),
            showing(SequenceMetrics, running.readings),
        )
        metrics = await stack.enter_async_context(observed(options, *shows))
        if metrics:
            screen.note(f"metrics: {metrics}")
        await stack.enter_async_context(gear.http)
        came = stack.enter_context(stoppable(system.stop, screen.note, lambda: finishing(system.crawl.inflight)))
        complete = await _run(running, given.pace.until)
        await running.look()
        system.missed = {reason.value: ids for reason, ids in (await desk(state.counts)).items()}
        last = running.status(running=False)
        screen.show(last)
        await desk(publish, folder, last)
        await desk(_keep, folder, gear.limiter.save())
    return Ran(last, tuple(came), complete)


# What it works in.


@asynccontextmanager
async def _stores(given: Given, screen: Screen, clock: Clock) -> AsyncIterator[_Stores]:
    """The queue and the stores, reached."""
    keeping = given.keeping
    async with AsyncExitStack() as stack:
        queue = keeping.open_queue(given.place, clock)
        stack.push_async_callback(queue.close)
        await reached("--queue", keeping.queue, queue.depth, screen.note)
        rows = raw = None
        if given.store or keeping.rows is not None:
            rows = await reached("--rows", keeping.rows, partial(keeping.open_rows, given.place), screen.note)
            stack.push_async_callback(rows.close)
        if given.store:
            raw = await reached("--raw", keeping.raw, keeping.open_raw, screen.note)
            if raw is not None:
                stack.push_async_callback(raw.close)
        yield _Stores(queue, rows, raw)


async def _begin(
    pace: Pace, api: str, state: SequenceState, rows: Instances | None, screen: Screen, wall: float
) -> Position:
    """Where to begin. Raises CommandError."""
    saved = state.load()
    try:
        latest = None if rows is None or saved is not None else await rows.latest()
        position = begin_at(api, saved, latest, target=pace.target, buffer=pace.buffer)
    except StartError as error:
        raise CommandError(str(error), code=2) from None
    except InstancesError as error:
        raise CommandError(str(error)) from None
    if saved is not None and position.low > saved.position.low:
        state.add_new(left_open(saved, position, wall))
        if position.low > saved.position.next:
            screen.note(f"--target: ids from {saved.position.next} to {position.low - 1} are left out")
    return position


def _recall(limiter: Limiter, folder: Path) -> None:
    # Not there, or written by another version: what it knew is learned again.
    with suppress(OSError, ValueError):
        limiter.restore((folder / LIMITER).read_bytes())


def _keep(folder: Path, limiter: bytes) -> None:
    """What the limiter must not forget: a Retry-After outlives the process."""
    with plainly(folder):
        write_new(folder / LIMITER, [limiter])


@asynccontextmanager
async def _saying(sink: Webhook | None, options: Options, screen: Screen, clock: Clock) -> AsyncIterator[Say]:
    """How alerts are said: on the screen, to a webhook if there is one, and in the log if there is one."""
    async with AsyncExitStack() as stack:
        if sink is not None:
            await stack.enter_async_context(sink)
        alerts = await stack.enter_async_context(Alerts(sink, clock, Random()))

        def say(alert: Alert) -> None:
            screen.tell(alert)
            if sink is not None or options.log_format is not None:
                alerts.say(alert)

        yield say


# While it runs.


async def _run(running: _Running, until: int | None) -> bool:
    """Run the crawl, the store and the watch; whether it came to its last id."""
    system, store = running.system, running.store
    async with asyncio.TaskGroup() as group:
        beside = [group.create_task(_watch(running))]
        if until is not None:
            beside.append(group.create_task(_stop_behind(system, until, running.clock)))
        if store is not None:
            group.create_task(store.run())
        await system.run()
        complete = until is not None and system.books.durable.low > until
        if store is not None:
            if complete:
                await _stored(running)
            store.stop()
        for task in beside:
            task.cancel()
    return complete


async def _stop_behind(system: SequenceSystem, until: int, clock: Clock) -> None:
    while system.books.durable.low <= until:
        await clock.sleep(LOOK)
    system.stop()


async def _stored(running: _Running) -> None:
    """Return when all that was queued is stored, or given up, or cannot be for now."""
    while running.store and not running.store.tally.trouble:
        try:
            depth = await running.queue.depth()
        except QueueError:
            return  # what is in there stays there
        if not (depth.ready or depth.taken):
            return
        await running.clock.sleep(LOOK)


async def _watch(running: _Running) -> None:
    """Show how it goes, tell other processes, and keep what the limiter learned, until cancelled."""
    clock, limiter = SystemClock(), running.system.tools.limiter  # people's time, also where ours is scaled
    published = kept = float("-inf")
    while True:
        now = clock.now()
        if now - published >= PUBLISH_EVERY:
            published = now
            await running.look()
            await running.desk(publish, running.folder, running.status())
        if now - kept >= KEEP_EVERY:
            kept = now
            await running.desk(_keep, running.folder, limiter.save())
        running.screen.show(running.status())
        await clock.sleep(running.screen.every)
