"""Polling under way: what it works in, whom it tells, its signals, and whoever watches it."""

from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import ceil
from pathlib import Path
from random import Random
from typing import NamedTuple, Self

from aiohttp.web import Application

from sanderling.apis.polled import Discovered, PolledSource
from sanderling.cli import CommandError
from sanderling.cli.loop import finishing, stoppable
from sanderling.cli.options import Options, beside, disk_room, observed, pace_of, showing
from sanderling.cli.polling.flags import Pace, Telling, Upstream
from sanderling.cli.polling.place import USUAL, Place, keep_kinds, opened
from sanderling.cli.polling.screen import Frame, KindPace, Screen
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.cli.watching import Look, drawn, kept, obey, told
from sanderling.clock import Clock
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import Http
from sanderling.flow.desk import Desk
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter
from sanderling.observe.histogram import Histogram
from sanderling.observe.metrics_polling import PollingMetrics
from sanderling.polling.control import Ingested, PollingControl
from sanderling.polling.discovery import DiscoveryError
from sanderling.polling.feed import Feed, Trimmed
from sanderling.polling.measures import Late
from sanderling.polling.sinks import Sink
from sanderling.polling.status import PollingStatus
from sanderling.polling.subscribers import Subscriber
from sanderling.polling.system import PollingSystem, Tools
from sanderling.polling.watch import PollingWatch
from sanderling.stores.durable import plainly
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.polling import PollingStore, PollingStoreError
from sanderling.stores.status_file import write_status
from sanderling.web.polling_api import polling_app
from sanderling.web.stream import Streams

BODIES = 256 * 2**20  # bytes that documents may hold at once


@dataclass(frozen=True, slots=True)
class Given:
    """All that polling was called with."""

    place: Place = USUAL
    upstream: Upstream = field(default_factory=Upstream)
    pace: Pace | None = field(default_factory=Pace)  # None leaves all settings as they are
    serving: Serving = UNSERVED
    telling: Telling = field(default_factory=Telling)


@dataclass(frozen=True, slots=True)
class Gear:
    """What polling is run with, beside what it works in."""

    source: PolledSource
    memory: Memory
    http: Http
    limiter: Limiter
    sinks: dict[str, Sink]
    settings: dict[str, str]  # that flags give, by key

    @classmethod
    def make(cls, given: Given, clock: Clock) -> Self:
        """That which goes with the flags. Raises CommandError."""
        memory = Memory(BODIES)
        upstream, source = given.upstream, given.upstream.describe()
        given.serving.check()
        return cls(
            source,
            memory,
            upstream.client(memory, clock),
            upstream.limiter(clock),
            given.telling.sinks(clock),
            given.pace.checked(source) if given.pace else {},
        )

    def tools(self, store: PollingStore, desk: Desk, clock: Clock, folder: Path) -> Tools:
        """The same for the system. Redirects are not followed: a header with a secret is for this host only."""
        fetcher = Fetcher(self.http, self.limiter, clock=clock, follow=False, retry=False)
        return Tools(self.source, fetcher, self.limiter, self.memory, store, desk, folder)


class Ran(NamedTuple):
    """How a run went: how it stood at its end, which signals came, and how late all runs began, by pace."""

    last: PollingStatus
    signals: tuple[int, ...]
    late: Mapping[str, Late]


@dataclass(slots=True)
class Running:
    """A system, and whoever looks."""

    system: PollingSystem
    watch: PollingWatch
    control: PollingControl
    folder: Path
    screen: Screen
    came: list[int]  # signals
    _found: Discovered | None = None
    _targets: Counter[str] = field(default_factory=Counter)

    def frame(self, *, running: bool = True) -> Frame:
        """What there is to see."""
        settings, found = self.system.live.now, self.system.discovery.last
        if found is not self._found:
            self._found = found
            self._targets = Counter(each.kind for each in (found.wanted if found else ()))
        kinds = self.system.tools.source.kinds
        usual = settings.usual if settings else {}
        paces = [KindPace(kind.name, self._targets[kind.name], usual.get(kind.name, 0.0)) for kind in kinds]
        return Frame(self.watch.take(running=running), paces)


@asynccontextmanager
async def running(given: Given, gear: Gear, options: Options, clock: Clock, screen: Screen) -> AsyncIterator[Running]:
    """A system that is ready to run, with everything around it. Raises CommandError."""
    folder = given.place.out
    with plainly(folder):
        folder.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        place = opened(given.place, gear.source.schema, gear.source.name, screen.note)
        store, desk = await stack.enter_async_context(place)
        recall(gear.limiter, folder)
        # The log is set up behind it, so that its lines do not tear the picture apart.
        stack.enter_context(screen)
        system = PollingSystem(
            gear.tools(store, desk, clock, folder), clock=clock, rng=Random(), keep=given.telling.keep_changes
        )
        watch = PollingWatch(system)
        shows = pace_of(gear.limiter), showing(PollingMetrics, watch.readings)
        await stack.enter_async_context(observed(options.quieter("warning"), *shows, say=screen.note))
        await _claim(system, gear)
        for name, sink in gear.sinks.items():
            stack.push_async_callback(sink.close)
            system.subscribers.append(Subscriber(name, sink, system.feed, store, clock, Random()))
        await stack.enter_async_context(beside(options, folder, screen.note, polling=store))
        await stack.enter_async_context(gear.http)
        control = PollingControl(system, watch)
        came = stack.enter_context(stoppable(system.stop, screen.note, lambda: _ending(system)))
        app = partial(_api, control, gear.source, clock)
        await stack.enter_async_context(given.serving.served(app, screen.note))
        yield Running(system, watch, control, folder, screen, came)
        await desk(keep, folder, list(gear.limiter.saving()))


def _ending(system: PollingSystem) -> str:
    return finishing(system.engine.inflight) if system.engine.inflight else "stopping"


async def _claim(system: PollingSystem, gear: Gear) -> None:
    """Be the one who polls, by the settings that flags give. Raises CommandError or PollingStoreError."""
    store = system.tools.store
    try:
        await system.open()
    except PollingStoreError as error:
        if error.transient:
            raise
        raise CommandError(f"{error}; stop it first, or poll into another --out or --database", code=2) from None
    await keep_kinds(store, gear.source.kinds)
    for key, text in gear.settings.items():
        await system.live.set(key, text)


def _api(control: PollingControl, source: PolledSource, clock: Clock) -> Application:
    never_live = tuple(kind.name for kind in source.kinds if kind.active_seconds is None)
    streams = Streams(clock)
    streams.counted = control.followed
    return polling_app(control, clock, streams, never_live)


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

        await now.system.run(*_looks(now, options), stop_then())
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

        await now.system.run(*_looks(now, options), fetch())
        return await _ended(now), done


async def _ended(now: Running) -> Ran:
    await now.watch.count()
    last = now.frame(running=False)
    now.screen.show(last)
    await now.system.tools.desk(write_status, now.folder, last.status)
    found = {pace: overall(each) for pace, each in now.system.measures.lateness.items()}
    return Ran(last.status, tuple(now.came), {pace: late for pace, late in found.items() if late.runs})


def overall(lateness: Histogram) -> Late:
    """How late runs were, all in all: none of these bounds is too low."""
    bounds = [bound for bound, _ in lateness.buckets]
    numbers = list(accumulate(number for _, number in lateness.buckets))
    half, most = (bounds[bisect_left(numbers, ceil(numbers[-1] * share))] for share in (0.5, 0.99))
    return Late(half, most, numbers[-1])


def _looks(now: Running, options: Options) -> Iterator[Look]:
    desk, limiter = now.system.tools.desk, now.system.tools.limiter
    yield now.watch.run()
    yield drawn(now.screen, now.frame)
    yield told(now.folder, now.watch.take, desk)
    yield kept(limiter, now.folder, desk)
    yield obey(now.folder, now.system.control, now.screen.note, disk_room(options, now.folder))
    yield _tell(now)


async def _tell(now: Running) -> None:
    """Show what changes, until cancelled."""
    feed = now.system.feed
    while not feed.closed:
        with suppress(Trimmed):  # more changed than is kept: what comes now is enough to look at
            await _follow(feed, now.screen)


async def _follow(feed: Feed, screen: Screen) -> None:
    async with aclosing(feed.follow(feed.newest)) as batches:
        async for batch in batches:
            screen.tell(batch)
