"""`sanderling sequence store`: from the queue into the store, by as many workers as the queue calls for."""

import asyncio
import json as jsonlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, NamedTuple, Self, TypeVar

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.text import Text

from sanderling.cli import CommandError
from sanderling.cli.loop import run, stoppable
from sanderling.cli.options import DEFAULT, Options, observed, showing
from sanderling.cli.pages_summary import count, duration, printable
from sanderling.cli.sequence_dead import Letters
from sanderling.cli.sequence_place import EMBEDDED, PATIENCE, USUAL, Keeping, Place, flags_of, reached
from sanderling.clock import Clock, SystemClock
from sanderling.observe.metrics_sequence import StoreMetrics
from sanderling.sequence.depth import DepthRules
from sanderling.sequence.store import StoreRules, StoreTally, StoreWorkers
from sanderling.stores.queue import Depth, Queue, QueueError

SAY_EVERY = 5.0  # seconds between two lines, where nobody watches
SHOW_EVERY = 0.5  # the same on a terminal
LOOK = 0.5  # seconds between looks at whether the queue is empty

T = TypeVar("T")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """Who stores. A command takes one as `*, staff: Staff = USUAL_STAFF`."""

    workers: Annotated[int, Parameter(validator=Number(gte=1, lte=1000))] = 4
    """Workers at first; a queue that grows gets more, one that is short gets fewer."""

    min_workers: Annotated[int, Parameter(validator=Number(gte=1, lte=1000))] = 1
    """The fewest that there may be."""

    max_workers: Annotated[int, Parameter(validator=Number(gte=1, lte=1000))] = 16
    """The most that there may be."""

    batch: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000))] = 100
    """Letters that are stored in one transaction at most."""

    def rules(self) -> StoreRules:
        """The rules that go with the flags. Raises CommandError."""
        if not self.min_workers <= self.workers <= self.max_workers:
            found = f"--min-workers {self.min_workers}, --workers {self.workers}, --max-workers {self.max_workers}"
            raise CommandError(f"{found}: expected them not to decrease in this order", code=2)
        depth = DepthRules(least=self.min_workers, start=self.workers, most=self.max_workers)
        return StoreRules(batch=self.batch, depth=depth)


USUAL_STAFF = Staff()


class Work(NamedTuple):
    """All that it was called with."""

    place: Place
    keeping: Keeping
    rules: StoreRules
    options: Options
    until_empty: bool


class Ran(NamedTuple):
    """How a run went. `depth` is what is left, if that is known; `trouble` is why it gave up, if it did."""

    tally: StoreTally
    depth: Depth | None
    seconds: float
    trouble: str
    signals: tuple[int, ...]


class Screen:
    """Says how it goes, to stderr: on a terminal in one line that changes, elsewhere in a line every few seconds."""

    def __init__(self, *, shown: bool) -> None:
        terminal = shown and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.depth: Depth | None = None  # of the queue, as it was last shown
        self._shown = shown
        self._line = Console(stderr=True).status("") if terminal else None
        self.every = SHOW_EVERY if terminal else SAY_EVERY

    def __enter__(self) -> Self:
        if self._line is not None:
            self._line.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.stop()

    def show(self, tally: StoreTally, depth: Depth | None) -> None:
        """How it stands."""
        self.depth = depth
        line = printable(", ".join(_counters(tally, depth)))
        if self._line is not None:
            self._line.update(Text(line, overflow="ellipsis", no_wrap=True))
        elif self._shown:
            print(line, file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Something that should stay to be read."""
        if self._line is not None:
            self._line.console.print(Text(printable(text)))
        else:
            print(printable(text), file=sys.stderr, flush=True)


def store(
    *,
    until_empty: Annotated[bool, Parameter(negative=(), help="End when nothing is left to store now.")] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print the summary as JSON, and nothing else.")] = False,
    staff: Staff = USUAL_STAFF,
    place: Place = USUAL,
    keeping: Keeping = EMBEDDED,
    options: Options = DEFAULT,
) -> None:
    """Store what comes, until somebody stops it."""
    # The screen says it all, unless somebody wants a log.
    watched = replace(options, log_level="error") if options.log_format is None else options
    work = Work(place, keeping, staff.rules(), watched, until_empty)
    try:
        ran = run(_store(work, Screen(shown=not json)))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise CommandError("stopped at once; what was not stored is still in the queue", code=130) from None
    if json:
        print(jsonlib.dumps(_as_json(ran)))
    else:
        letters = Letters(queue=keeping.queue, queue_name=keeping.queue_name)
        for line in _words(ran, f"sanderling sequence dead list{flags_of(place, letters)}"):
            print(printable(line))
    if ran.trouble:
        raise CommandError(printable(ran.trouble))
    if signal.SIGINT in ran.signals:
        sys.exit(130)


async def _store(work: Work, screen: Screen) -> Ran:
    clock, place, keeping = SystemClock(), work.place, work.keeping
    started = clock.now()
    async with AsyncExitStack() as stack:
        queue = keeping.open_queue(place, clock)
        stack.push_async_callback(queue.close)
        await reached("--queue", keeping.queue, queue.depth, screen.note)
        rows = await reached("--rows", keeping.rows, partial(keeping.open_rows, place), screen.note)
        stack.push_async_callback(rows.close)
        raw = await reached("--raw", keeping.raw, keeping.open_raw, screen.note)
        if raw is not None:
            stack.push_async_callback(raw.close)
        workers = StoreWorkers(queue, rows, raw, clock, work.rules)
        shown = showing(StoreMetrics, lambda: workers.tally.readings(screen.depth))
        metrics = await stack.enter_async_context(observed(work.options, shown))
        if metrics:
            screen.note(f"metrics: {metrics}")
        stack.enter_context(screen)
        came = stack.enter_context(stoppable(workers.stop, screen.note, lambda: "storing what is in hand"))
        trouble = await _run(workers, queue, screen, clock, until_empty=work.until_empty)
        depth = await _depth(queue)
    return Ran(workers.tally, depth, clock.now() - started, trouble, tuple(came))


# While it runs.


async def _run(workers: StoreWorkers, queue: Queue, screen: Screen, clock: Clock, *, until_empty: bool) -> str:
    """Store until it is stopped, or nothing is left; why it gave up, if it did."""
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(_watch(workers, queue, screen, clock))
        emptying = group.create_task(_emptied(workers, queue, clock)) if until_empty else None
        await workers.run()
        watching.cancel()
        if emptying is not None and not emptying.done():
            emptying.cancel()
    return emptying.result() if emptying is not None and not emptying.cancelled() else ""


async def _emptied(workers: StoreWorkers, queue: Queue, clock: Clock) -> str:
    """Stop the workers when nothing is left that could be stored now, or nothing can be; then say why."""
    well = clock.now()
    while True:
        trouble = workers.tally.trouble
        try:
            depth = await queue.depth()
        except QueueError as error:
            trouble = str(error)
        else:
            # What is delayed comes back later, for whoever stores then.
            if not trouble and not (depth.ready or depth.taken):
                workers.stop()
                return ""
        well = well if trouble else clock.now()
        if clock.now() - well >= PATIENCE:
            workers.stop()
            return trouble
        await clock.sleep(LOOK)


async def _watch(workers: StoreWorkers, queue: Queue, screen: Screen, clock: Clock) -> None:
    while True:
        screen.show(workers.tally, await _depth(queue))
        await clock.sleep(screen.every)


async def _depth(queue: Queue) -> Depth | None:
    """How much there is in the queue, if it can be asked."""
    try:
        return await queue.depth()
    except QueueError:
        return None  # the workers say so themselves


def _counters(tally: StoreTally, depth: Depth | None) -> Iterator[str]:
    yield f"{tally.stored:,} stored"
    yield count(tally.duplicates, "duplicate")
    yield f"{tally.retried:,} to be tried again"
    yield f"{tally.buried:,} buried"
    yield "queue unknown" if depth is None else f"{depth.ready + depth.delayed:,} in the queue"
    yield count(tally.workers, "worker")
    if tally.trouble:
        yield f"nothing is stored: {tally.trouble}"


def _as_json(ran: Ran) -> dict[str, object]:
    tally = ran.tally
    return {
        "seconds": round(ran.seconds, 3),
        "stored": tally.stored,
        "duplicates": tally.duplicates,
        "retried": tally.retried,
        "buried": tally.buried,
        "outages": tally.outages,
        "queue": ran.depth._asdict() if ran.depth else None,
        "trouble": ran.trouble,
        "last_error": tally.last_error,
    }


def _words(ran: Ran, dead: str) -> Iterator[str]:
    tally, depth = ran.tally, ran.depth
    yield f"{count(tally.stored, 'record')} stored in {duration(ran.seconds)}, {count(tally.duplicates, 'duplicate')}."
    if depth is not None and depth.ready + depth.taken + depth.delayed:
        waiting = depth.ready + depth.taken
        yield f"Left in the queue: {waiting:,} to be stored, {depth.delayed:,} to be tried again later."
    if tally.buried:
        yield f"{count(tally.buried, 'letter')} buried: {tally.last_error}"
    if depth is not None and depth.dead:
        yield f"{count(depth.dead, 'letter')} dead; to see why:"
        yield ""
        yield f"    {dead}"
        yield ""
