"""`sanderling events consume`: crawled batches into rows, errors and alarms."""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.alerting import NOBODY, Alerting, saying
from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.events.flags import AnalysisFlags, ConsumeFlags, ConsumeWork
from sanderling.cli.events.place import (
    KNOWN,
    OWN_BODIES,
    OWN_LETTERS,
    OWN_ROWS,
    USUAL,
    EventsDatabase,
    EventsFolder,
    EventsObjects,
    EventsQueue,
)
from sanderling.cli.events.summary import summarise, words
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import BOUNDED, Bounded, Options
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.clock import Clock, SystemClock
from sanderling.events.analysis.analyse import Analyser
from sanderling.events.modes import LiveModes, modes_from
from sanderling.events.report import EventsFacts
from sanderling.events.stations import Stations
from sanderling.events.system import EventsSystem
from sanderling.events.watch import EventsControl, EventsWatch
from sanderling.executor import in_threads
from sanderling.observe.report import Report
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.queue import QueueError, WholeQueue
from sanderling.stores.status_file import StatusFile
from sanderling.web.events_api import events_app

WORK, READING = ConsumeWork(), AnalysisFlags()
MANY = 20  # batches at once, above which more are mostly in each other's way
THREADS = 2  # that unpack and analyse; more of them only wait for each other
# Looks at an empty queue before it is, and seconds between them: a message on its way to us is nowhere for a moment.
LOOKS, LOOK_EVERY = 2, 0.2

Until = Callable[[EventsSystem], Awaitable[object]]  # consuming stops when it is over


def consume(  # noqa: PLR0913 - flags, in groups
    *,
    drain: Annotated[
        bool, Parameter(negative=(), help="End when no message is left, instead of waiting for more.")
    ] = False,
    json: SummaryAsJson = False,
    folder: EventsFolder = USUAL,
    rows: EventsDatabase = OWN_ROWS,
    bodies: EventsObjects = OWN_BODIES,
    letters: EventsQueue = OWN_LETTERS,
    work: ConsumeWork = WORK,
    reading: AnalysisFlags = READING,
    serving: Serving = UNSERVED,
    alerting: Alerting = NOBODY,
    options: Bounded = BOUNDED,
) -> None:
    """Consume until Ctrl-C."""
    flags = ConsumeFlags(folder, rows, bodies, letters, work, serving, alerting)
    analyser = reading.analyser()
    screen = fitting(json=json, logs=options.log_format is not None)
    places, ways = (folder, rows, bodies, letters), (work, reading, serving, alerting, options)
    onward = again("events consume", *(["--drain"] if drain else []), *places, *ways)
    with explain_end(onward, KNOWN):
        ran = run(
            run_events(flags, analyser, options, SystemClock(), screen, until=wait_until_empty if drain else None)
        )
    screen.end(words(flags, ran.last, onward), summarise(flags, ran.last))
    if ran.interrupted:
        sys.exit(130)


async def run_events(
    flags: ConsumeFlags,
    analyser: Analyser,
    options: Options,
    clock: Clock,
    screen: Screen,
    *,
    until: Until | None = None,
) -> Ran[Report[EventsFacts]]:
    """Consume until somebody stops it, or until `until` is over. Raises CommandError.

    `clock` is what rows are dated by. Leases, alerts and the status go by the real one: others have no other.
    """
    outside, folder, options = SystemClock(), flags.folder, options.quieter("error")
    flags.serving.check()
    if flags.work.batches > MANY:
        screen.note(f"--batches: {flags.work.batches} at once; above {MANY} they mostly wait for each other")
    async with AsyncExitStack() as stack:
        executor = in_threads(stack.enter_context(ThreadPoolExecutor(1, "disk")))
        file = stack.enter_context(StatusFile.of(folder.made(), outside.wall()))
        at, queue = await stack.enter_async_context(_open_stations(flags, analyser, outside, screen))
        topic = await stack.enter_async_context(flags.letters.topic(folder, outside, queue))
        say = await stack.enter_async_context(saying(flags.alerting.sink(outside), screen.tell, options, outside))
        rules = flags.work.rules(flags.bodies, flags.letters)
        system = EventsSystem(at, topic, say=say, clock=clock, rng=Random(), rules=rules)
        watch = EventsWatch(system, outside)
        app = partial(events_app, at.store, queue, EventsControl(watch), outside, Random())

        async def stop_after() -> None:
            if until is not None:
                await until(system)
                system.stop()

        async def consume_all() -> None:
            await system.run(watch.run(), stop_after())
            await watch.look()

        shell = Shell(
            folder=folder.out,
            options=options,
            screen=screen,
            executor=executor,
            report=watch.report,
            stopping=_describe_batches,
            contexts=(flags.serving.serve(app, screen.note),),
            status_file=file,
            metrics_port=flags.metrics_port,
            queue=queue,
        )
        return await run_system(system, shell, consume_all)


@asynccontextmanager
async def _open_stations(
    flags: ConsumeFlags, analyser: Analyser, clock: Clock, screen: Screen
) -> AsyncIterator[tuple[Stations, WholeQueue]]:
    """All that a batch passes, reached; the queue also with its dead letters. Raises CommandError."""
    folder, work = flags.folder, flags.work
    try:
        modes = LiveModes(folder.out, modes_from(os.environ), clock)
    except ValueError as error:
        raise CommandError(str(error), code=2) from None
    modes.look()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(
            flags.rows.opened(folder, screen.note, writers=work.writers, readers=work.read_pool)
        )
        objects = await stack.enter_async_context(flags.bodies.opened(folder, screen.note))
        queue = await stack.enter_async_context(flags.letters.opened(folder, clock, screen.note, work.handed_out))
        executor = in_threads(stack.enter_context(ThreadPoolExecutor(THREADS, "work")))
        yield Stations(queue, objects, store, analyser, modes, executor), queue


def _describe_batches(active: int) -> str:
    return f"finishing {active} batch{'es' * (active > 1)}" if active else "stopping"


async def wait_until_empty(system: EventsSystem) -> None:
    """Return when no message is left that could be processed, and nothing waits to go out."""
    clock, looks = SystemClock(), 0
    while looks < LOOKS:
        await clock.sleep(LOOK_EVERY)
        looks = looks + 1 if await _is_empty(system) else 0


async def _is_empty(system: EventsSystem) -> bool:
    """Whether it looks like that. What does not answer may have something."""
    try:
        depth, waiting = await system.stations.queue.depth(), await system.stations.store.depth()
    except (QueueError, AnalyticsError):
        return False
    # What nobody waits for stays in the outbox, for as long as that is so.
    return not (depth.ready or depth.taken or depth.delayed) and waiting <= system.sender.tally.left
