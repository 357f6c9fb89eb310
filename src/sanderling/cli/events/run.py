"""Consuming under way: what it works in, its signals, whom it tells, and whoever watches it."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import NamedTuple

from sanderling.cli import CommandError
from sanderling.cli.alerting import NOBODY, Alerting, saying
from sanderling.cli.events.flags import Work
from sanderling.cli.events.place import OWN_BODIES, OWN_LETTERS, OWN_ROWS, USUAL, Bodies, Folder, Letters, Rows
from sanderling.cli.events.screen import Screen
from sanderling.cli.loop import stoppable
from sanderling.cli.options import Options, beside, disk_room, observed, showing
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.cli.watching import PUBLISH_EVERY, drawn, every, obey
from sanderling.clock import Clock, SystemClock
from sanderling.events.analysis.analyse import Analyser
from sanderling.events.modes import LiveModes, modes_from
from sanderling.events.stations import Stations
from sanderling.events.status import EventsStatus
from sanderling.events.system import EventsSystem
from sanderling.events.watch import EventsControl, EventsWatch
from sanderling.flow.desk import Desk, desk_in
from sanderling.observe.metrics_events import EventsMetrics
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.queue import QueueError, WholeQueue
from sanderling.stores.status_file import StatusFile
from sanderling.web.events_api import Behind, events_app

METRICS_PORT = 9090  # where dashboards of such services look
MANY = 20  # batches at once, above which more are mostly in each other's way
THREADS = 2  # that unpack and analyse; more of them only wait for each other
# Looks at an empty queue before it is, and seconds between them: a message on its way to us is nowhere for a moment.
LOOKS, LOOK_EVERY = 2, 0.2


@dataclass(frozen=True, slots=True)
class Given:
    """All that consuming was called with."""

    folder: Folder = USUAL
    rows: Rows = OWN_ROWS
    bodies: Bodies = OWN_BODIES
    letters: Letters = OWN_LETTERS
    work: Work = field(default_factory=Work)
    serving: Serving = UNSERVED
    alerting: Alerting = NOBODY
    metrics_port: int | None = METRICS_PORT  # where metrics are, if nobody asked for them and it is free; None: nowhere


class Ran(NamedTuple):
    """How a run went: how it stood at its end, and which signals came."""

    last: EventsStatus
    signals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Running:
    """A system, and whoever looks."""

    system: EventsSystem
    watch: EventsWatch
    given: Given
    came: list[int]  # signals
    desk: Desk
    file: StatusFile


@asynccontextmanager
async def _opened(
    given: Given, analyser: Analyser, clock: Clock, screen: Screen
) -> AsyncIterator[tuple[Stations, WholeQueue]]:
    """All that a batch passes, reached; the queue also with its dead letters. Raises CommandError."""
    folder, work = given.folder, given.work
    folder.made()
    try:
        modes = LiveModes(folder.out, modes_from(os.environ), clock)
    except ValueError as error:
        raise CommandError(str(error), code=2) from None
    modes.look()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(
            given.rows.opened(folder, screen.note, writers=work.writers, readers=work.read_pool)
        )
        objects = await stack.enter_async_context(given.bodies.opened(folder, screen.note))
        queue = await stack.enter_async_context(given.letters.opened(folder, clock, screen.note, work.handed_out))
        desk = desk_in(stack.enter_context(ThreadPoolExecutor(THREADS, "work")))
        yield Stations(queue, objects, store, analyser, modes, desk), queue


@asynccontextmanager
async def running(
    given: Given, analyser: Analyser, options: Options, clock: Clock, screen: Screen
) -> AsyncIterator[Running]:
    """A system that is ready to run, with everything around it. Raises CommandError.

    `clock` is what rows are dated by. Leases, alerts and the status go by the real one: others have no other.
    """
    outside = SystemClock()
    given.serving.check()
    if given.work.batches > MANY:
        screen.note(f"--batches: {given.work.batches} at once; above {MANY} they mostly wait for each other")
    async with AsyncExitStack() as stack:
        desk = desk_in(stack.enter_context(ThreadPoolExecutor(1, "disk")))
        file = stack.enter_context(StatusFile.of(given.folder.made(), outside.wall()))
        at, queue = await stack.enter_async_context(_opened(given, analyser, outside, screen))
        topic = await stack.enter_async_context(given.letters.topic(given.folder, outside, queue))
        # The log is set up behind it, so that its lines do not tear the picture apart.
        stack.enter_context(screen)
        say = await stack.enter_async_context(saying(given.alerting.sink(outside), screen.tell, options, outside))
        rules = given.work.rules(given.bodies, given.letters)
        system = EventsSystem(at, topic, say=say, clock=clock, rng=Random(), rules=rules)
        watch = EventsWatch(system, outside, os.getpid())
        await stack.enter_async_context(_measured(options, given.metrics_port, watch, screen))
        await stack.enter_async_context(beside(options, given.folder.out, screen.note, queue=queue))
        came = stack.enter_context(stoppable(system.stop, screen.note, lambda: _ending(watch)))
        app = partial(events_app, Behind(at.store, queue, EventsControl(watch)), outside, Random())
        await stack.enter_async_context(given.serving.served(app, screen.note))
        yield Running(system, watch, given, came, desk, file)


def _ending(watch: EventsWatch) -> str:
    active = watch.status().active
    return f"finishing {active} batch{'es' * (active > 1)}" if active else "stopping"


@asynccontextmanager
async def _measured(options: Options, usual: int | None, watch: EventsWatch, screen: Screen) -> AsyncIterator[None]:
    """The log, and the metrics: on the port that was asked for, or on the usual one if that is free."""
    shows, quiet = showing(EventsMetrics, watch.readings), options.quieter("error")
    asked = options.metrics_port is not None
    wanted = quiet if asked else replace(quiet, metrics_port=usual)
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(observed(wanted, shows, say=screen.note))
        except CommandError as error:
            if asked or error.code != 1:
                raise
            screen.note(f"no metrics: port {usual} is taken; --metrics-port chooses another")
        yield


async def run_events(
    given: Given,
    analyser: Analyser,
    options: Options,
    clock: Clock,
    screen: Screen,
    *,
    until: Callable[[Running], Awaitable[object]] | None = None,
) -> Ran:
    """Consume until somebody stops it, or until `until` is over."""
    async with running(given, analyser, options, clock, screen) as now:

        async def stop_then() -> None:
            if until is not None:
                await until(now)
                now.system.stop()

        await now.system.run(
            now.watch.run(),
            drawn(screen, now.watch.status),
            every(PUBLISH_EVERY, lambda: now.desk(now.file.write, now.watch.status())),
            obey(
                given.folder.out,
                now.system.control,
                screen.note,
                disk_room(options, given.folder.out),
                alone=now.file.alone,
            ),
            stop_then(),
        )
        await now.watch.look()
        last = now.watch.status(running=False)
        screen.show(last)
        await now.desk(now.file.write, last)
        return Ran(last, tuple(now.came))


async def empty(now: Running) -> None:
    """Return when no message is left that could be processed, and nothing waits to go out."""
    clock, looks = SystemClock(), 0
    while looks < LOOKS:
        await clock.sleep(LOOK_EVERY)
        looks = looks + 1 if await _is_empty(now.system) else 0


async def _is_empty(system: EventsSystem) -> bool:
    """Whether it looks like that. What does not answer may have something."""
    try:
        depth, waiting = await system.stations.queue.depth(), await system.stations.store.depth()
    except (QueueError, AnalyticsError):
        return False
    # What nobody waits for stays in the outbox, for as long as that is so.
    return not (depth.ready or depth.taken or depth.delayed) and waiting <= system.sender.tally.left
