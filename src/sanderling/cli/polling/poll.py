"""`sanderling polling run`: keep live documents fresh, and tell what changed."""

import sys
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import accumulate
from math import ceil
from random import Random
from typing import Annotated

from aiohttp.web import Application
from cyclopts import Parameter

from sanderling.apis.polled import PolledSource
from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import SummaryAsJson
from sanderling.cli.loop import describe_inflight, explain_end
from sanderling.cli.loop import run as run_loop
from sanderling.cli.options import BOUNDED, Bounded, Options
from sanderling.cli.polling.flags import ChangeSinks, PollFlags, PollingPace, PollingUpstream, StandbyFlags
from sanderling.cli.polling.place import USUAL, PollingFolder, keep_kinds, opened
from sanderling.cli.polling.standby import LeasedSink, StoppedInStandbyError, stand_by
from sanderling.cli.polling.summary import again, fetched, summarise, words
from sanderling.cli.reach import KNOWN
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.clock import Clock, SystemClock
from sanderling.fetch.attempts import Fetcher, LeasedSender, Sends
from sanderling.observe.histogram import Histogram
from sanderling.observe.report import Report
from sanderling.polling.change_sinks import ChangeSink
from sanderling.polling.control import Ingested, PollingControl
from sanderling.polling.discovery import DiscoveryError
from sanderling.polling.measures import Late
from sanderling.polling.report import PollingFacts
from sanderling.polling.subscribers import Subscriber
from sanderling.polling.system import PollingResources, PollingSystem
from sanderling.polling.watch import PollingWatch
from sanderling.stores.durable import plainly
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_lease import PolledElsewhereError
from sanderling.stores.polling_limiter import PollingLimiterKeeper
from sanderling.web.polling_api import polling_app
from sanderling.web.polling_standby import standby_app
from sanderling.web.stream import Streams

Lateness = Mapping[str, Late]  # of all runs, by pace
Until = Callable[[PollingControl], Awaitable[object]]  # polling stops when it is over
UPSTREAM, PACE, TELLING, ALONE = PollingUpstream(), PollingPace(), ChangeSinks(), StandbyFlags()


def run(  # noqa: PLR0913 - flags, in groups
    *,
    once: Annotated[
        bool, Parameter(negative=(), help="Find out what there is, fetch all of it once, and end.")
    ] = False,
    json: SummaryAsJson = False,
    place: PollingFolder = USUAL,
    upstream: PollingUpstream = UPSTREAM,
    pace: PollingPace = PACE,
    turns: StandbyFlags = ALONE,
    serving: Serving = UNSERVED,
    telling: ChangeSinks = TELLING,
    options: Bounded = BOUNDED,
) -> None:
    """Poll until Ctrl-C."""
    turns.check(place, once=once)
    flags = PollFlags(place, upstream, pace, serving, telling, turns)
    screen = fitting(json=json, logs=options.log_format is not None)
    if once:
        _run_once(flags, options, screen)
        return
    onward = again(flags, options)
    try:
        with explain_end(onward, KNOWN):
            ran, late = run_loop(_poll_in_turn(flags, options, screen))
    except StoppedInStandbyError as stopped:
        screen.end(["Waited for another process that polls, and was stopped."], {"standby": True})
        sys.exit(130 if stopped.interrupted else 0)
    screen.end(words(flags, ran.last, late, onward), summarise(flags, ran.last, late))
    if ran.interrupted:
        sys.exit(130)


def _run_once(flags: PollFlags, options: Options, screen: Screen) -> None:
    """Fetch everything once."""
    done: list[Ingested] = []

    async def fetch_all(control: PollingControl) -> None:
        try:
            done.extend(await control.full())
        except DiscoveryError as error:
            raise CommandError(f"what there is to fetch could not be found out: {error}") from None

    with explain_end(again(flags, options, "run --once"), KNOWN):
        ran, _ = run_loop(run_polling(flags, options, SystemClock(), screen, until=fetch_all))
    screen.end(*fetched(ran.last, done))
    if ran.interrupted:
        sys.exit(130)
    if not all(each.ok for each in done):
        sys.exit(1)


async def _poll_in_turn(
    flags: PollFlags, options: Options, screen: Screen
) -> tuple[Ran[Report[PollingFacts]], Lateness]:
    """Poll until somebody stops it; with --standby, whenever no other process does."""
    while True:
        try:
            return await run_polling(flags, options, SystemClock(), screen)
        except* PolledElsewhereError as group:
            if not flags.standby:
                raise
            screen.note(f"{_first(group)}; this one waits")


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


async def run_polling(
    flags: PollFlags, options: Options, clock: Clock, screen: Screen, *, until: Until | None = None
) -> tuple[Ran[Report[PollingFacts]], Lateness]:
    """Poll until somebody stops it, or until `until` is over; also how late runs began. Raises CommandError."""
    source, folder = flags.upstream.describe(), flags.place.out
    flags.serving.check()
    transport, sinks = flags.upstream.transport(clock), flags.telling.sinks(clock)
    settings = flags.pace.checked(source) if flags.pace else {}
    with plainly(folder):
        folder.mkdir(parents=True, exist_ok=True)
    async with opened(flags.place, source.schema, source.name, screen.note) as (store, executor):
        # Redirects are not followed: a header with a secret is for this host only.
        http: Sends = LeasedSender(transport.http, store.database.may_send) if flags.standby else transport.http
        fetcher = Fetcher(http, transport.limiter, clock=clock, follow=False, retry=False)
        tools = PollingResources(source, fetcher, transport.limiter, transport.memory, store, executor, folder)
        system = PollingSystem(tools, clock=clock, rng=Random(), keep=flags.telling.keep_changes, others=flags.standby)
        watch = PollingWatch(system)
        control = PollingControl(system, watch)

        limits = PollingLimiterKeeper(store.database) if flags.standby else None

        async def wait() -> None:
            async with flags.serving.serve(partial(standby_app, clock), bool):
                await stand_by(system, screen.note)
            if limits is not None:
                await limits.recall(transport.limiter)

        async def stop_after() -> None:
            if until is not None:
                try:
                    await until(control)
                finally:
                    system.stop()

        async def poll() -> None:
            await system.run(watch.run(), stop_after())
            await watch.count()

        shell = Shell(
            folder=folder,
            options=options.quieter("warning"),
            screen=screen,
            executor=executor,
            report=watch.report,
            stopping=lambda inflight: describe_inflight(inflight) if inflight else "stopping",
            transport=transport,
            limiter_keeper=limits,
            claim=_claim(system, settings, sinks, wait if flags.standby else None),
            contexts=(flags.serving.serve(partial(_make_api, control, source, clock), screen.note),),
            polling=store,
        )
        ran = await run_system(system, shell, poll)
    found = {pace: overall(each) for pace, each in system.measures.lateness.items()}
    return ran, {pace: late for pace, late in found.items() if late.runs}


@asynccontextmanager
async def _claim(
    system: PollingSystem,
    settings: Mapping[str, str],
    sinks: Mapping[str, ChangeSink],
    wait: Callable[[], Awaitable[None]] | None,
) -> AsyncIterator[None]:
    """Be the one who polls, by the settings that flags give, and tells the sinks. Raises CommandError.

    `wait` does so once no other process polls.
    """
    store, clock = system.tools.store, system.clock
    if wait is None:
        await _open(system)
    else:
        await wait()
        sinks = {name: LeasedSink(sink, store.database.may_send) for name, sink in sinks.items()}
    await keep_kinds(store, system.tools.source.kinds)
    for key, text in settings.items():
        await system.live.set(key, text)
    async with AsyncExitStack() as stack:
        for name, sink in sinks.items():
            stack.push_async_callback(sink.close)
            system.subscribers.append(Subscriber(name, sink, system.feed, store, clock, Random()))
        yield


async def _open(system: PollingSystem) -> None:
    try:
        await system.open()
    except PollingStoreError as error:
        if error.transient:
            raise
        raise CommandError(f"{error}; stop it first, or poll into another --out or --database", code=2) from None


def _make_api(control: PollingControl, source: PolledSource, clock: Clock) -> Application:
    never_live = tuple(kind.name for kind in source.kinds if kind.active_seconds is None)
    streams = Streams(clock)
    streams.counted = control.followed
    return polling_app(control, clock, streams, never_live)


def overall(lateness: Histogram) -> Late:
    """How late runs were, all in all: none of these bounds is too low."""
    bounds = [bound for bound, _ in lateness.buckets]
    numbers = list(accumulate(number for _, number in lateness.buckets))
    half, most = (bounds[bisect_left(numbers, ceil(numbers[-1] * share))] for share in (0.5, 0.99))
    return Late(half, most, numbers[-1])
