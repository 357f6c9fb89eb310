"""`sanderling sequence crawl`: follow ever-growing ids, and lose none."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from sanderling.cli.alerting import NOBODY, Alerting, saying
from sanderling.cli.command_error import CommandError, not_opened
from sanderling.cli.command_line import SummaryAsJson
from sanderling.cli.events.onward import GATHER, NOWHERE, Onward
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import BOUNDED, Bounded, Options
from sanderling.cli.reach import KNOWN, Say, reached
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.cli.sequence.flags import PrometheusFlags, SequenceFlags, SequencePace, SequenceUpstream
from sanderling.cli.sequence.place import EMBEDDED, USUAL, SequenceFolder, SequenceStores, alone
from sanderling.cli.sequence.summary import again, summarise, words
from sanderling.cli.watching import PUBLISH_EVERY, repeat, run_beside
from sanderling.clock import Clock, SystemClock
from sanderling.executor import in_threads
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.http import Http
from sanderling.fetch.transport import Transport
from sanderling.observe.report import Report
from sanderling.sequence.cursor import Position
from sanderling.sequence.readings import PrometheusSource
from sanderling.sequence.report import SequenceFacts, SequenceWatch
from sanderling.sequence.state import SequenceState, StartError, begin_at, left_open
from sanderling.sequence.store import StoreRules, StoreWorkers
from sanderling.sequence.system import SequenceRules, SequenceServices, SequenceSystem
from sanderling.stores.durable import FolderError
from sanderling.stores.instances import Instances, InstancesError, RawInstances
from sanderling.stores.queue import QueueError, WholeQueue

if TYPE_CHECKING:
    from sanderling.events.handover import EventsHandOver
    from sanderling.formats.instance import Message

UNFINISHED = 3  # the exit code of one that was drained before its last id
UPSTREAM, PACE, OWN_READINGS = SequenceUpstream(), SequencePace(), PrometheusFlags()
LOOK = 0.1  # seconds between looks at whether the last id has its fate, or all is stored


def crawl(  # noqa: PLR0913 - flags, in groups
    *,
    no_store: Annotated[bool, Parameter(negative=(), help="Only queue: somebody else stores.")] = False,
    json: SummaryAsJson = False,
    place: SequenceFolder = USUAL,
    upstream: SequenceUpstream = UPSTREAM,
    pace: SequencePace = PACE,
    keeping: SequenceStores = EMBEDDED,
    readings: PrometheusFlags = OWN_READINGS,
    alerting: Alerting = NOBODY,
    onward: Onward = NOWHERE,
    options: Bounded = BOUNDED,
) -> None:
    """Follow the ids of an API from where the crawl was, or from --begin."""
    _check(onward, no_store=no_store)
    flags = SequenceFlags(place, upstream, pace, keeping, readings, alerting, not no_store, onward)
    screen = fitting(json=json, logs=options.log_format is not None)
    with explain_end(again(flags, options), KNOWN):
        ran = run(run_crawl(flags, options, SystemClock(), screen))
    screen.end([*words(flags, ran, options), *ran.notes], summarise(flags, ran).as_json())
    if ran.interrupted:
        sys.exit(130)
    if pace.until is not None and not ran.complete and not ran.signals:
        sys.exit(UNFINISHED)


def _check(onward: Onward, *, no_store: bool) -> None:
    onward.check()
    if onward.events_job is not None and no_store:
        where = "what is stored is handed on; give it to `sanderling sequence store`"
        raise CommandError(f"--events-job does not go with --no-store: {where}", code=2)


async def run_crawl(
    flags: SequenceFlags, options: Options, clock: Clock, screen: Screen, rules: SequenceRules | None = None
) -> Ran[Report[SequenceFacts]]:
    """Crawl until somebody stops it, or until the last id that is wanted has its fate. Raises CommandError.

    The rules are those of the flags, unless others are given.
    """
    api, place = flags.upstream.describe(), flags.place
    transport = flags.upstream.transport(flags.pace.max_workers, clock)
    rules = rules or flags.pace.rules()
    sink, prometheus = flags.alerting.sink(clock), flags.readings.server()
    async with AsyncExitStack() as stack:
        # The thread ends last: what it is at comes to its end, in one piece.
        executor = in_threads(stack.enter_context(ThreadPoolExecutor(1, "disk")))
        state = stack.enter_context(open_state(place))
        queue = await stack.enter_async_context(flags.keeping.opened(place, clock, screen.note))
        rows, raw = await stack.enter_async_context(_open_stores(flags, screen.note))
        position = await _begin(flags.pace, api.name, state, rows, screen.note, clock.wall())
        say = await stack.enter_async_context(saying(sink, screen.tell, options, clock))
        fetcher = make_fetcher(transport, clock)
        tools = SequenceServices(api, fetcher, transport.limiter, transport.memory, state, queue, executor)
        system = SequenceSystem(tools, position, rules, say=say, clock=clock, rng=Random())
        system.end_at(flags.pace.until)
        if prometheus is not None:
            server, which = prometheus
            system.read_from(PrometheusSource(await stack.enter_async_context(server), clock, which))
        feed = await stack.enter_async_context(flags.onward.reports(clock, screen.note))
        gather = StoreRules() if feed is None else StoreRules(gather=GATHER)
        store = StoreWorkers(queue, rows, raw, clock, gather, feed) if flags.store and rows else None
        watch = SequenceWatch(system, store.tally if store else None, clock.wall())
        crawl = _StoringCrawl(system, store, feed, queue, watch, clock, flags.pace.until)
        shell = Shell(
            folder=place.out,
            options=options,
            screen=screen,
            executor=executor,
            report=crawl.report,
            transport=transport,
            queue=queue,
        )
        await crawl.look()
        ran = await run_system(system, shell, crawl.run)
    return replace(ran, notes=flags.onward.words(feed))


def make_fetcher(transport: Transport[Http], clock: Clock) -> Fetcher:
    """Asks without following redirects: a header with a secret, under whatever name, is for this host only."""
    return Fetcher(transport.http, transport.limiter, clock=clock, follow=False)


# What it works in.


@contextmanager
def open_state(place: SequenceFolder) -> Iterator[SequenceState]:
    """The state of the crawl in a folder, for us alone. Raises CommandError if it is unavailable."""
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(place))
            state = stack.enter_context(closing(SequenceState(place.state)))
        except FolderError as error:
            raise not_opened(error) from None
        yield state


@asynccontextmanager
async def _open_stores(flags: SequenceFlags, say: Say) -> AsyncIterator[tuple[Instances | None, RawInstances | None]]:
    """The store of rows, if it is stored here or a flag names it, since it says where to begin; and that of answers."""
    keeping, raw = flags.keeping, None
    async with AsyncExitStack() as stack:
        if not flags.store and keeping.rows is None:
            yield None, None
            return
        rows = await reached("--rows", keeping.rows, partial(keeping.open_rows, flags.place), say)
        stack.push_async_callback(rows.close)
        if flags.store:
            raw = await reached("--raw", keeping.raw, keeping.open_raw, say)
        if raw is not None:
            stack.push_async_callback(raw.close)
        yield rows, raw


async def _begin(
    pace: SequencePace, api: str, state: SequenceState, rows: Instances | None, say: Say, wall: float
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
            say(f"--target: ids from {saved.position.next} to {position.low - 1} are left out")
    return position


# While it runs.


@dataclass(frozen=True, slots=True)
class _StoringCrawl:
    """A crawl with the store beside it."""

    system: SequenceSystem
    store: StoreWorkers | None
    feed: "EventsHandOver[Message] | None"
    queue: WholeQueue
    watch: SequenceWatch
    clock: Clock
    until: int | None

    def report(self, *, running: bool = True) -> Report[SequenceFacts]:
        """How it stands."""
        return self.watch.report(self.clock.now(), self.clock.wall(), running=running)

    async def look(self) -> None:
        """Ask the queue how it stands; one that does not say stands as before."""
        with suppress(QueueError):  # the crawl says so itself
            self.watch.depth = await self.queue.depth()

    async def run(self) -> bool:
        """Run both; whether the crawl came to its last id."""
        complete = await run_beside(self._run(), repeat(PUBLISH_EVERY, self.look))
        await self.look()
        await self.system.count_missed()
        return complete

    async def _run(self) -> bool:
        system, store, until = self.system, self.store, self.until
        async with asyncio.TaskGroup() as group:
            if store is not None:
                group.create_task(store.run())
            await run_beside(system.run(), *(() if until is None else (self._stop_behind(until),)))
            complete = until is not None and system.durable.low > until
            if store is not None:
                if complete or system.draining:
                    await self._wait_until_stored(store)
                store.stop()
        return complete

    async def _stop_behind(self, until: int) -> None:
        while self.system.durable.low <= until:
            await self.clock.sleep(LOOK)
        self.system.stop()

    async def _wait_until_stored(self, store: StoreWorkers) -> None:
        """Return when all that was queued is stored, or given up, or cannot be for now."""
        while not (store.tally.trouble or (self.feed and self.feed.trouble)):
            try:
                depth = await self.queue.depth()
            except QueueError:
                return  # what is in there stays there
            if not (depth.ready or depth.taken):
                return
            await self.clock.sleep(LOOK)
