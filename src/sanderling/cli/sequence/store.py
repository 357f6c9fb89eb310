"""`sanderling sequence store`: from the queue into the store, by as many workers as the queue calls for."""

import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple, Never

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.text import Text

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.events.onward import GATHER, NOWHERE, Onward
from sanderling.cli.flags import SETTING
from sanderling.cli.loop import explain_end, run, stop_on_signals
from sanderling.cli.options import WATCHED, Options, Watched, expose, observe, serve_dashboard
from sanderling.cli.reach import KNOWN, PATIENCE, reached
from sanderling.cli.running import Ran
from sanderling.cli.screen import Picture, ScreenOf, Window, Wordy, suited
from sanderling.cli.sequence.place import EMBEDDED, USUAL, SequenceFolder, SequenceQueue, SequenceStores
from sanderling.cli.watching import repeat, run_beside
from sanderling.clock import Clock, SystemClock
from sanderling.observe.metrics import prefixed
from sanderling.sequence.report import store_metrics
from sanderling.sequence.store import DepthRules, StoreRules, StoreWorkers
from sanderling.stores.queue import Depth, Queue, QueueError
from sanderling.words import count, duration, printable

if TYPE_CHECKING:
    from sanderling.events.handover import EventsHandOver
    from sanderling.formats.instance import Message

SAY_EVERY = 5.0  # seconds between two lines, where nobody watches
LOOK = 0.5  # seconds between looks at whether the queue is empty


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFlags:
    """Who stores. A command takes one as `*, staff: Staff = USUAL_STAFF`."""

    workers: Annotated[int, Parameter(validator=Number(gte=1, lte=1000))] = 4
    """Workers at first; a queue that grows gets more, one that is short gets fewer."""

    min_workers: Annotated[int, Parameter(validator=Number(gte=1, lte=1000)), SETTING] = 1
    """The fewest that there may be."""

    max_workers: Annotated[int, Parameter(validator=Number(gte=1, lte=1000)), SETTING] = 16
    """The most that there may be."""

    batch: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000)), SETTING] = 100
    """Letters that are stored in one transaction at most."""

    def rules(self) -> StoreRules:
        """The rules that go with the flags. Raises CommandError."""
        if not self.min_workers <= self.workers <= self.max_workers:
            found = f"min-workers {self.min_workers}, workers {self.workers}, max-workers {self.max_workers}"
            raise CommandError(f"{found}: expected them not to decrease in this order", code=2)
        depth = DepthRules(least=self.min_workers, start=self.workers, most=self.max_workers)
        return StoreRules(batch=self.batch, depth=depth)


USUAL_STAFF = StoreFlags()


class StoreWork(NamedTuple):
    """All that it was called with."""

    place: SequenceFolder
    keeping: SequenceStores
    rules: StoreRules
    options: Options
    until_empty: bool
    onward: Onward


@dataclass(slots=True)
class Storing:
    """Those who store, and whoever they hand on to, if anybody."""

    workers: StoreWorkers
    queue: Queue
    feed: "EventsHandOver[Message] | None"
    depth: Depth | None = None  # of the queue, as it was last seen
    gave_up: str = ""  # why it did, if it did
    seconds: float = 0.0  # that it ran for

    @property
    def held_up(self) -> str:
        """Why nothing is handed on, while nothing is."""
        return "" if self.feed is None else self.feed.trouble

    def stop(self) -> None:
        """Take nothing more."""
        self.workers.stop()

    async def look(self) -> None:
        """See how much there is in the queue, if it can be asked."""
        try:
            self.depth = await self.queue.depth()
        except QueueError:
            self.depth = None  # the workers say so themselves


Screen = ScreenOf[Storing, Never]


class StoreLines(Wordy[Storing, Never]):
    """A line every few seconds, to stderr."""

    every = SAY_EVERY

    def show(self, storing: Storing, /) -> None:
        """Print how it stands."""
        self.note(", ".join(_counters(storing)))


class StorePicture(Picture[Storing, Never]):
    """One line that changes."""

    def _lines(self, storing: Storing, window: Window) -> Iterator[Text]:
        del window  # it is cut to what there is
        yield Text(printable(", ".join(_counters(storing))))


def store(  # noqa: PLR0913 - flags, in groups
    *,
    until_empty: Annotated[bool, Parameter(negative=(), help="End when nothing is left to store now.")] = False,
    json: SummaryAsJson = False,
    staff: StoreFlags = USUAL_STAFF,
    place: SequenceFolder = USUAL,
    keeping: SequenceStores = EMBEDDED,
    onward: Onward = NOWHERE,
    options: Watched = WATCHED,
) -> None:
    """Store what comes, until somebody stops it."""
    onward.check()
    work = StoreWork(place, keeping, staff.rules(), options.quieter("error"), until_empty, onward)
    screen: Screen = suited(StorePicture, StoreLines, json=json)
    ends = ["--until-empty"] if until_empty else []
    with explain_end(again("sequence store", *ends, staff, place, keeping, onward, options), KNOWN):
        ran = run(_store(work, screen))
    letters = SequenceQueue(queue=keeping.queue, queue_name=keeping.queue_name)
    dead = again("dead list", place.out if keeping.queue is None else "sequence", letters)
    screen.end([*_words(ran.last, dead), *ran.notes], _as_json(ran.last))
    if ran.last.gave_up:
        raise CommandError(printable(ran.last.gave_up))
    if ran.interrupted:
        sys.exit(130)


async def _store(work: StoreWork, screen: Screen) -> Ran[Storing]:
    clock, place, keeping = SystemClock(), work.place, work.keeping
    started = clock.now()
    async with AsyncExitStack() as stack:
        queue = await stack.enter_async_context(keeping.opened(place, clock, screen.note))
        rows = await reached("--rows", keeping.rows, partial(keeping.open_rows, place), screen.note)
        stack.push_async_callback(rows.close)
        raw = await reached("--raw", keeping.raw, keeping.open_raw, screen.note)
        if raw is not None:
            stack.push_async_callback(raw.close)
        feed = await stack.enter_async_context(work.onward.reports(clock, screen.note))
        rules = work.rules if feed is None else replace(work.rules, gather=GATHER)
        storing = Storing(StoreWorkers(queue, rows, raw, clock, rules, feed), queue, feed)
        tally = storing.workers.tally
        shown = expose(lambda: (prefixed(each, "sanderling_sequence_") for each in store_metrics(tally, storing.depth)))
        await stack.enter_async_context(observe(work.options, shown, say=screen.note))
        await stack.enter_async_context(serve_dashboard(work.options, place.out, screen.note, queue=queue))
        stack.enter_context(screen)
        came = stack.enter_context(stop_on_signals(storing.stop, screen.note, lambda: "storing what is in hand"))
        await _run(storing, screen, clock, until_empty=work.until_empty)
        await storing.look()
    storing.seconds = clock.now() - started
    return Ran(storing, signals=tuple(came), notes=work.onward.words(feed))


# While it runs.


async def _run(storing: Storing, screen: Screen, clock: Clock, *, until_empty: bool) -> None:
    """Store until it is stopped, or nothing is left."""

    async def show() -> None:
        await storing.look()
        screen.show(storing)

    looks = repeat(screen.every, show), *([_emptied(storing, clock)] if until_empty else [])
    await run_beside(storing.workers.run(), *looks)


async def _emptied(storing: Storing, clock: Clock) -> None:
    """Stop the workers when nothing is left that could be stored now, or nothing can be; then it gave up."""
    well = clock.now()
    while True:
        trouble = storing.workers.tally.trouble or storing.held_up
        try:
            depth = await storing.queue.depth()
        except QueueError as error:
            trouble = str(error)
        else:
            # What is delayed comes back later, for whoever stores then.
            if not trouble and not (depth.ready or depth.taken):
                break
        well = well if trouble else clock.now()
        if clock.now() - well >= PATIENCE:
            storing.gave_up = trouble
            break
        await clock.sleep(LOOK)
    storing.stop()


def _counters(storing: Storing) -> Iterator[str]:
    tally, depth = storing.workers.tally, storing.depth
    yield f"{tally.stored:,} stored"
    yield count(tally.duplicates, "duplicate")
    yield f"{tally.retried:,} to be tried again"
    yield f"{tally.buried:,} buried"
    yield "queue unknown" if depth is None else f"{depth.ready + depth.delayed:,} in the queue"
    yield count(tally.workers, "worker")
    if tally.trouble:
        yield f"nothing is stored: {tally.trouble}"
    if storing.held_up:
        yield f"nothing is handed on to events: {storing.held_up}"


def _as_json(storing: Storing) -> dict[str, object]:
    tally = storing.workers.tally
    return {
        "seconds": round(storing.seconds, 3),
        "stored": tally.stored,
        "duplicates": tally.duplicates,
        "retried": tally.retried,
        "buried": tally.buried,
        "outages": tally.outages,
        "queue": storing.depth._asdict() if storing.depth else None,
        "trouble": storing.gave_up,
        "last_error": tally.last_error,
    }


def _words(storing: Storing, dead: str) -> Iterator[str]:
    tally, depth = storing.workers.tally, storing.depth
    stored, duplicates = count(tally.stored, "record"), count(tally.duplicates, "duplicate")
    yield f"{stored} stored in {duration(storing.seconds)}, {duplicates}."
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
