"""What a crawl finds goes on to `events` while it runs.

    pages, sequence --hand--> EventsHandOver --batches--> object store
                                             --events---> outbox --> queue

What was handed over is safe in the object store and in the outbox. While one of these is away, `hand` waits, and so the
crawl does. Once told to stop, it waits some seconds more; what is not safe by then is found again by the next run.

Tricky bits:

- Each `hand` makes batches of its own, of 25 to 50 items where it brings as many. To bring some together is for whoever
  hands, since only they know what they have noted.
- What a crawl handed and had not noted when it was killed is handed again, in other batches. A page or a report is one
  row all the same; that a page failed may be there twice.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from random import Random
from typing import Generic, NamedTuple, TypeVar

from sanderling.clock import Clock, SystemClock
from sanderling.engine.handover import HandOverError
from sanderling.events.crawl_items import Item, LineError, from_report, platform_of, read_line
from sanderling.events.envelopes import EVENT_TYPE
from sanderling.events.outbox import DATABASE, OBJECTS, QUEUE, OutboxSender, TopicOfQueue, open_outgoing
from sanderling.events.producer import USUAL_SIZE, BatchSink, BatchSource, ItemError, SinkRules
from sanderling.events.publish import LONGEST_LINE
from sanderling.events.rows import EVENTS_EXCHANGE
from sanderling.executor import Executor, in_threads
from sanderling.formats.instance import Message
from sanderling.observe import logs
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.durable import plainly
from sanderling.stores.objects import ObjectError, Objects, open_objects
from sanderling.stores.queue import Binding, open_queue

GRACE = 3.0  # seconds that a crawl which was told to stop waits for what is away
LOG_EVERY = 60.0  # seconds between two lines about what is no item
MOST_SINKS = 64  # the names of APIs are in letters, so there could be any number

T_contra = TypeVar("T_contra", contravariant=True)

log = logs.get(__name__)


class HandedItem(NamedTuple):
    """What a row or a report is in a batch, and of which platform; None if it says nothing that is new."""

    platform: str
    item: Item | None


def read_page(row: bytes) -> HandedItem:
    """A row of pages.jsonl or failed.jsonl. Raises LineError."""
    if len(row) > LONGEST_LINE:
        raise LineError(f"a row of {len(row):,} bytes, expected at most {LONGEST_LINE:,}")
    return HandedItem("web", read_line(row))


def read_report(message: Message) -> HandedItem:
    """A report."""
    return HandedItem(platform_of(message.api), from_report(message))


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where batches go, and their messages: the object store, and the outbox, from which `sender` sends.

    While the queue is away, messages wait in the outbox, and nothing waits for them.
    """

    objects: Objects
    sender: OutboxSender
    clock: Clock

    def sink(self, source: BatchSource, rules: SinkRules | None = None) -> BatchSink:
        """What makes batches of items."""
        return BatchSink(self.objects, self.sender, self.clock, Random(), source, rules)


@dataclass(slots=True)
class HandOverTally:
    """What was handed on."""

    items: int = 0
    batches: int = 0
    left_out: int = 0  # pages that moved, or are as before
    odd: int = 0  # that are no items, and never will be
    last_odd: str = ""


class EventsHandOver(Generic[T_contra]):
    """`hand` what was found; `stop` when the crawl is to end."""

    def __init__(
        self,
        out: Outlet,
        source: Callable[[str], BatchSource],
        read: Callable[[T_contra], HandedItem],
        executor: Executor,
    ) -> None:
        """Say by `source` whose the batches of a platform are, and by `read` what the item of a finding is."""
        self.tally = HandOverTally()
        self._out = out
        self._source = source
        self._read = read
        self._executor = executor
        self._sinks: dict[str, BatchSink] = {}
        self._turn = asyncio.Lock()
        self._waiting: set[asyncio.Timeout] = set()
        self._stopping = self._over = False
        self._log_at = float("-inf")

    def __repr__(self) -> str:
        return f"<EventsHandOver, {self.tally}>"

    @property
    def trouble(self) -> str:
        """Why nothing goes on, while nothing does."""
        return next((sink.tally.trouble for sink in self._sinks.values() if sink.tally.trouble), "")

    @property
    def unsent(self) -> str:
        """Why messages do not go out, while they do not; they are safe in the outbox."""
        return self._out.sender.tally.trouble

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
        """Return when all of these are safe; False if we end, and they are not. Raises HandOverError if they cannot be.

        What is no item, and never will be, is counted: it must not stop a crawl.
        """
        if self._over:
            return False
        items = await self._executor(self._sorted, found)
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
            raise HandOverError(f"what was found does not go on to events: {error}") from None
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
            self._sinks[platform] = self._out.sink(self._source(platform))
        return self._sinks[platform]

    def _odd(self, error: ValueError) -> None:
        self.tally.odd += 1
        self.tally.last_odd = str(error)
        now = self._out.clock.now()
        if now >= self._log_at:
            self._log_at = now + LOG_EVERY
            log.warning("not_handed_on", so_far=self.tally.odd, why=str(error))


@dataclass(frozen=True, slots=True)
class ToEvents:
    """What to give to a crawl: `pages` to `crawl_pages`, `records` to `following`."""

    pages: EventsHandOver[bytes]
    records: EventsHandOver[Message]


@asynccontextmanager
async def hand_to_events(  # noqa: PLR0913 - the flags of the command
    folder: str | Path,
    job: str,
    *,
    project: str = "",
    brand: str = "",
    keyword: str = "",
    database: str | None = None,
    objects: str | None = None,
    queue: str | None = None,
) -> AsyncIterator[ToEvents]:
    """Hand what a crawl finds over to `sanderling events`, as results of a job, while the crawl runs.

        async with hand_to_events("events", "spring-brand-0") as events:
            await crawl_pages(["https://example.org/"], "site", hand_over=events.pages)

    Everything is in the folder, unless URLs of servers are given, as in the commands of `events`. What is handed over
    is safe before the crawl takes note of it, so that nothing is missing there after a kill. Raises ValueError for a
    job that makes no sense, FolderError, AnalyticsError, ObjectError or QueueError if a place cannot be used.
    """
    clock, path = SystemClock(), Path(folder)

    def source(platform: str) -> BatchSource:
        return BatchSource(platform, job, project_id=project, brand_name=brand, keyword=keyword)

    source("web")
    with plainly(path):
        path.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - once, before anything runs
    url, binding = queue or f"sqlite:{path}", Binding(EVENTS_EXCHANGE, EVENT_TYPE)
    async with AsyncExitStack() as stack:
        executor = in_threads(stack.enter_context(ThreadPoolExecutor(4, "events")))
        letters = open_queue(url, QUEUE, clock, binding=binding)
        stack.push_async_callback(letters.close)
        store = await open_analytics(database or f"sqlite:{path / DATABASE}", executor, writers=2, readers=1)
        stack.push_async_callback(store.close)
        bodies = open_objects(objects or f"file:{path / OBJECTS}")
        stack.push_async_callback(bodies.close)
        await bodies.ping()
        topic = await stack.enter_async_context(
            open_outgoing(url, EVENT_TYPE, letters, lambda name: open_queue(url, name, clock))
        )
        sender = OutboxSender(store, TopicOfQueue(topic, letters), clock, Random())
        make = partial(EventsHandOver, Outlet(bodies, sender, clock), source)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        group.create_task(sender.run())
        stack.callback(sender.stop)
        yield ToEvents(make(read_page, executor), make(read_report, executor))
