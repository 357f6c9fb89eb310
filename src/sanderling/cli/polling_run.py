"""Polling under way: what it works in, whom it tells, its signals, and whoever watches it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple, Self

from sanderling.apis.polled import PolledSource
from sanderling.cli import CommandError
from sanderling.cli.loop import stoppable
from sanderling.cli.options import Options, observed, showing
from sanderling.cli.pages_summary import finishing
from sanderling.cli.polling_flags import Pace, Telling, Upstream
from sanderling.cli.polling_place import USUAL, Place, keep_kinds, opened
from sanderling.cli.polling_screen import Screen
from sanderling.clock import Clock, SystemClock
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import Http
from sanderling.flow.desk import Desk
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter
from sanderling.observe.metrics import TOP_HOSTS, LimiterMetrics
from sanderling.observe.metrics_polling import PollingMetrics
from sanderling.polling.control import Ingested, PollingControl
from sanderling.polling.discovery import DiscoveryError
from sanderling.polling.settings import SettingError
from sanderling.polling.sinks import Sink
from sanderling.polling.status import PollingStatus, publish
from sanderling.polling.subscribers import Subscriber
from sanderling.polling.system import PollingSystem, Tools
from sanderling.polling.watch import PollingWatch
from sanderling.stores.durable import plainly, write_new
from sanderling.stores.polling import PollingStore
from sanderling.web.access import AccessError
from sanderling.web.polling_api import polling_app
from sanderling.web.serve import AddressError, serving
from sanderling.web.stream import Streams

BODIES = 256 * 2**20  # bytes that documents may hold at once
LIMITER = "limiter.json"
PUBLISH_EVERY = 1.0  # seconds between two status.json
KEEP_EVERY = 5.0  # seconds that what the limiter learned may be old after a crash


@dataclass(frozen=True, slots=True)
class Given:
    """All that polling was called with."""

    place: Place = USUAL
    upstream: Upstream = field(default_factory=Upstream)
    pace: Pace | None = field(default_factory=Pace)  # None leaves all settings as they are
    telling: Telling = field(default_factory=Telling)


@dataclass(frozen=True, slots=True)
class Gear:
    """What polling is run with, beside what it works in."""

    source: PolledSource
    memory: Memory
    http: Http
    limiter: Limiter
    sinks: dict[str, Sink]

    @classmethod
    def make(cls, given: Given, clock: Clock) -> Self:
        """That which goes with the flags. Raises CommandError."""
        memory = Memory(BODIES)
        upstream = given.upstream
        return cls(
            upstream.describe(),
            memory,
            upstream.client(memory, clock),
            upstream.limiter(clock),
            given.telling.sinks(clock),
        )

    def tools(self, store: PollingStore, desk: Desk, clock: Clock) -> Tools:
        """The same for the system. Redirects are not followed: a header with a secret is for this host only."""
        fetcher = Fetcher(self.http, self.limiter, clock=clock, follow=False, retry=False)
        return Tools(self.source, fetcher, self.limiter, self.memory, store, desk)


class Ran(NamedTuple):
    """How a run went: how it stood at its end, and which signals came."""

    last: PollingStatus
    signals: tuple[int, ...]


@dataclass(slots=True)
class Running:
    """A system, and whoever looks."""

    system: PollingSystem
    watch: PollingWatch
    control: PollingControl
    folder: Path
    clock: Clock
    screen: Screen
    came: list[int]  # signals


@asynccontextmanager
async def running(given: Given, gear: Gear, options: Options, clock: Clock, screen: Screen) -> AsyncIterator[Running]:
    """A system that is ready to run, with everything around it. Raises CommandError."""
    folder = given.place.out
    with plainly(folder):
        folder.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        place = opened(given.place, gear.source.schema, gear.source.name, screen.note)
        store, desk = await stack.enter_async_context(place)
        _recall(gear.limiter, folder)
        # The log is set up behind it, so that its lines do not tear the picture apart.
        stack.enter_context(screen)
        system = PollingSystem(
            gear.tools(store, desk, clock), clock=clock, rng=Random(), keep=given.telling.keep_changes
        )
        watch = PollingWatch(system)
        shows = (
            showing(LimiterMetrics, partial(gear.limiter.snapshot, TOP_HOSTS)),
            showing(PollingMetrics, watch.readings),
        )
        metrics = await stack.enter_async_context(observed(options, *shows))
        if metrics:
            screen.note(f"metrics: {metrics}")
        await system.open()
        await _prepare(system, given.pace)
        for name, sink in gear.sinks.items():
            stack.push_async_callback(sink.close)
            system.subscribers.append(Subscriber(name, sink, system.feed, store, clock, Random()))
        await stack.enter_async_context(gear.http)
        control = PollingControl(system, watch)
        came = stack.enter_context(stoppable(system.stop, screen.note, lambda: finishing(system.poller.inflight)))
        await stack.enter_async_context(_served(given.telling, control, gear.source, screen, clock))
        yield Running(system, watch, control, folder, clock, screen, came)
        await asyncio.to_thread(_keep, folder, gear.limiter.save())


async def _prepare(system: PollingSystem, pace: Pace | None) -> None:
    """Write the settings that flags give. Raises CommandError."""
    await keep_kinds(system.tools.store, system.tools.source.kinds)
    for flag, key, text in pace.settings() if pace else ():
        try:
            await system.live.set(key, text)
        except SettingError as error:
            raise CommandError(f"{flag}: {error}", code=2) from None


@asynccontextmanager
async def _served(
    telling: Telling, control: PollingControl, source: PolledSource, screen: Screen, clock: Clock
) -> AsyncIterator[None]:
    """The admin API, if it was asked for."""
    if telling.port is None:
        yield
        return
    never_live = tuple(kind.name for kind in source.kinds if kind.active_seconds is None)
    streams = Streams(clock)
    streams.counted = control.followed
    app = polling_app(control, clock, streams, never_live)
    try:
        async with serving(app, telling.bind, telling.port, telling.token()) as address:
            screen.note(f"admin API: {address.url}")
            yield
    except (AccessError, AddressError) as error:
        raise CommandError(f"--port: {error}", code=2) from None


async def run_polling(
    given: Given,
    gear: Gear,
    options: Options,
    clock: Clock,
    screen: Screen,
    *,
    until: Callable[[], Awaitable[object]] | None = None,
) -> Ran:
    """Poll until somebody stops it, or until `until` is over."""
    async with running(given, gear, options, clock, screen) as now:

        async def stop_then() -> None:
            if until is not None:
                await until()
                now.system.stop()

        await now.system.run(now.watch.run(), _watch(now), stop_then())
        return await _ended(now)


async def run_full(
    given: Given, gear: Gear, options: Options, clock: Clock, screen: Screen
) -> tuple[Ran, list[Ingested]]:
    """Fetch everything once, and end. Raises CommandError."""
    async with running(given, gear, options, clock, screen) as now:
        done: list[Ingested] = []

        async def fetch() -> None:
            try:
                done.extend(await now.control.full())
            except DiscoveryError as error:
                raise CommandError(f"what there is to fetch could not be found out: {error}") from None
            finally:
                now.system.stop()

        await now.system.run(now.watch.run(), _watch(now), fetch())
        return await _ended(now), done


async def _ended(now: Running) -> Ran:
    await now.watch.count()
    last = now.watch.take(running=False)
    now.screen.show(last)
    await asyncio.to_thread(publish, now.folder, last)
    return Ran(last, tuple(now.came))


def _recall(limiter: Limiter, folder: Path) -> None:
    # Not there, or written by another version: what it knew is learned again.
    with suppress(OSError, ValueError):
        limiter.restore((folder / LIMITER).read_bytes())


def _keep(folder: Path, limiter: bytes) -> None:
    """What the limiter must not forget: a Retry-After outlives the process."""
    with plainly(folder):
        write_new(folder / LIMITER, [limiter])


async def _watch(now: Running) -> None:
    """Show how it goes, tell other processes, and keep what the limiter learned, until cancelled."""
    clock, limiter = SystemClock(), now.system.tools.limiter  # people's time, also where ours is scaled
    published = kept = float("-inf")
    while True:
        moment = clock.now()
        status = now.watch.take()
        if moment - published >= PUBLISH_EVERY:
            published = moment
            await asyncio.to_thread(publish, now.folder, status)
        if moment - kept >= KEEP_EVERY:
            kept = moment
            await asyncio.to_thread(_keep, now.folder, limiter.save())
        now.screen.show(status)
        await clock.sleep(now.screen.every)
