"""What a crawl finds goes on to `events` while it runs.

    pages, sequence --hand--> Feed --batches--> object store
                                   --events---> outbox --> queue

A crawl takes note that something is done after `hand` has returned True: then it is safe, in the object store and in
the outbox. While one of these is away, `hand` waits, and so the crawl does. Once told to stop, it waits some seconds
more; what is not safe by then is found again by the next run.

Tricky bits:

- Each `hand` makes batches of its own, of 25 to 50 items where it brings as many. To bring some together is for whoever
  hands, since only they know what they have noted.
- What a crawl handed and had not noted when it was killed is handed again, in other batches. A page or a report is one
  row all the same; that a page failed may be there twice.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from math import ceil
from typing import Generic, NamedTuple, TypeVar

from sanderling.cli import CommandError
from sanderling.cli.command_line import again
from sanderling.cli.events.onward import Onward
from sanderling.cli.events.place import Bodies, Folder, Letters, Rows
from sanderling.cli.events.sink import Outlet, Where, outlet, source_of
from sanderling.clock import Clock
from sanderling.events.crawled import Item, LineError, from_report, platform_of, read_line
from sanderling.events.producer import USUAL_SIZE, BatchSink, ItemError, Source
from sanderling.events.publish import LONGEST_LINE
from sanderling.flow.desk import Desk, desk_in
from sanderling.formats.instance import Message
from sanderling.observe import logs
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.objects import ObjectError
from sanderling.words import count, printable

GRACE = 3.0  # seconds that a crawl which was told to stop waits for what is away
LOG_EVERY = 60.0  # seconds between two lines about what is no item
MOST_SINKS = 64  # the names of APIs are in letters, so there could be any number
VARIABLES = ("database", "objects", "queue")

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

log = logs.get(__name__)


class Read(NamedTuple):
    """What a row or a report is in a batch, and of which platform; None if it says nothing that is new."""

    platform: str
    item: Item | None


def read_page(row: bytes) -> Read:
    """A row of pages.jsonl or failed.jsonl. Raises LineError."""
    if len(row) > LONGEST_LINE:
        raise LineError(f"a row of {len(row):,} bytes, expected at most {LONGEST_LINE:,}")
    return Read("web", read_line(row))


def read_report(message: Message) -> Read:
    """A report."""
    return Read(platform_of(message.api), from_report(message))


def places(onward: Onward) -> Where:
    """Where `events` is: servers that the environment names, or the folder."""
    database, objects, queue = (os.environ.get(f"SANDERLING_EVENTS_{name.upper()}") for name in VARIABLES)
    return Where(Folder(out=onward.events_out), Rows(database=database), Bodies(objects=objects), Letters(queue=queue))


def source(onward: Onward, platform: str) -> Source:
    """Whose batches they are. Raises CommandError."""
    said = {"project_id": onward.events_project, "brand_name": onward.events_brand, "keyword": onward.events_keyword}
    return source_of(places(onward), "--events-", job_id=onward.events_job or "", platform=platform, **said)


@asynccontextmanager
async def feeding(
    onward: Onward, read: Callable[[T], Read], clock: Clock, say: Callable[[str], object]
) -> AsyncIterator["Feed[T]"]:
    """A feed, and beside it whoever sends what it puts into the outbox. Raises CommandError."""
    async with AsyncExitStack() as stack:
        desk = desk_in(stack.enter_context(ThreadPoolExecutor(1, "items")))
        try:
            out = await stack.enter_async_context(outlet(places(onward), clock, lambda told: say(_by_variable(told))))
        except CommandError as error:
            raise CommandError(_by_variable(str(error)), error.code) from None
        group = await stack.enter_async_context(asyncio.TaskGroup())
        group.create_task(out.sender.run())
        yield Feed(out, onward, read, desk)
        out.sender.stop()


def _by_variable(told: str) -> str:
    """A message that names the variable, where a command of `events` would name a flag."""
    for name in VARIABLES:
        if told.startswith(f"--{name}: "):
            return f"SANDERLING_EVENTS_{name.upper()}{told.removeprefix(f'--{name}')}"
    return told


@dataclass(slots=True)
class FeedTally:
    """What was handed on."""

    items: int = 0
    batches: int = 0
    left_out: int = 0  # pages that moved, or are as before
    odd: int = 0  # that are no items, and never will be
    last_odd: str = ""


class Feed(Generic[T_contra]):
    """`hand` what was found; `stop` when the crawl is to end."""

    def __init__(self, out: Outlet, onward: Onward, read: Callable[[T_contra], Read], desk: Desk) -> None:
        self.tally = FeedTally()
        self._out = out
        self._onward = onward
        self._read = read
        self._desk = desk
        self._sinks: dict[str, BatchSink] = {}
        self._turn = asyncio.Lock()
        self._waiting: set[asyncio.Timeout] = set()
        self._stopping = self._over = False
        self._log_at = float("-inf")

    def __repr__(self) -> str:
        return f"<Feed, {self.tally}>"

    @property
    def trouble(self) -> str:
        """Why nothing goes on, while nothing does."""
        return next((sink.tally.trouble for sink in self._sinks.values() if sink.tally.trouble), "")

    def stop(self) -> None:
        """From now on, wait for what is away no longer than a few seconds."""
        waiting = () if self._stopping else tuple(self._waiting)
        self._stopping = True
        for each in waiting:
            self._hurry(each)

    def _hurry(self, patience: asyncio.Timeout) -> None:
        def end() -> None:
            if patience in self._waiting:
                patience.reschedule(0.0)  # which is past

        self._out.clock.call_later(GRACE, end)

    async def hand(self, found: Sequence[T_contra]) -> bool:
        """Return when all of these are safe; False if we end, and they are not. Raises CommandError if they cannot be.

        What is no item, and never will be, is counted: it must not stop a crawl.
        """
        if self._over:
            return False
        items = await self._desk(self._sorted, found)
        patience = asyncio.timeout(None)
        try:
            async with patience:
                self._waiting.add(patience)
                if self._stopping:
                    self._hurry(patience)
                async with self._turn:
                    await self._put(items)
        except TimeoutError:
            self._over = True  # whoever comes now need not find out again
            return False
        except (ObjectError, AnalyticsError) as error:
            raise CommandError(printable(f"what was found does not go on to events: {error}")) from None
        finally:
            self._waiting.discard(patience)
        return True

    def _sorted(self, found: Sequence[T_contra]) -> dict[str, list[Item]]:
        """The items by platform. Not done on the loop: a page may have megabytes."""
        items: dict[str, list[Item]] = defaultdict(list)
        for each in found:
            try:
                platform, item = self._read(each)
            except LineError as error:
                self._odd(error)
                continue
            if item is None:
                self.tally.left_out += 1
            else:
                items[platform].append(item)
        return items

    async def _put(self, items: dict[str, list[Item]]) -> None:
        for platform, some in items.items():
            sink = self._sink(platform)
            size = ceil(len(some) / ceil(len(some) / USUAL_SIZE))  # as even as can be
            for start in range(0, len(some), size):
                await self._batch(sink, some[start : start + size])

    async def _batch(self, sink: BatchSink, items: Sequence[Item]) -> None:
        done = sink.tally.items, sink.tally.batches
        for item in items:
            try:
                await sink.add(item)
            except ItemError as error:
                self._odd(error)
        await sink.flush()
        self.tally.items += sink.tally.items - done[0]
        self.tally.batches += sink.tally.batches - done[1]

    def _sink(self, platform: str) -> BatchSink:
        if platform not in self._sinks:
            if len(self._sinks) >= MOST_SINKS:
                self._sinks.clear()  # all are empty: it is our turn
            self._sinks[platform] = self._out.sink(source(self._onward, platform))
        return self._sinks[platform]

    def _odd(self, error: ValueError) -> None:
        self.tally.odd += 1
        self.tally.last_odd = str(error)
        now = self._out.clock.now()
        if now >= self._log_at:
            self._log_at = now + LOG_EVERY
            log.warning("not_handed_on", so_far=self.tally.odd, why=str(error))

    def words(self) -> Iterator[str]:
        """What went on, and what to do next, as lines; those that are indented must not be broken."""
        tally, unsent = self.tally, self._out.sender.tally.trouble
        batches = f"{tally.batches:,} batch{'es' * (tally.batches != 1)}"
        yield f"Handed on to events, as {self._onward.events_job}: {count(tally.items, 'item')} in {batches}."
        if tally.odd:
            yield f"{count(tally.odd, 'row')} could not be handed on: {tally.last_odd}"
        if unsent:
            yield f"Not all messages went out ({unsent}). They are safe in the outbox, and whoever consumes sends them."
        yield "To have them analysed:"
        yield ""
        yield f"    {again('events consume', Folder(out=self._onward.events_out))}"
        yield ""
