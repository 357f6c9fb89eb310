"""From the queue into rows: a message says where a batch is, and is done when all of its items are in the database.

What can go wrong, and what becomes of the message:

| | |
|---|---|
| it is no message that anyone could read, or its batch is nothing that anyone could | buried, with the reason |
| it is of a format that is switched off, or outside the canary's share | back into the queue, for half a minute |
| its batch is not there, or only half | back into the queue, ever longer |
| that is so after many tries | its items that are whole are stored, the rest is an error row; without any, buried |
| the object store, the database or the queue is not to be had | kept in hand until it is, and nothing more is taken |
| that is not so yet, and we are to stop | left in the queue, as if nobody had taken it |
| its batch is in the rows already | done: it changes nothing |
| its event is in the rows, with another batch | stored under an id of its own, and people are told |
| it has more items than a batch may have | buried, with the reason |

Of items that are too large each is an error row. How much memory all batches in hand may take is bounded: who would
pass it waits until others are done.

One bad item is an error row, and its 49 neighbours are rows all the same.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol, TypeVar

from sanderling.clock import Clock
from sanderling.events.analysis.analyse import Analyser
from sanderling.events.batches import BatchError, Document, Place, parse, size_notes, unpack
from sanderling.events.digest import Arrival, Digested, digest
from sanderling.events.envelopes import Envelope, EnvelopeError, InlineEnvelope, read_envelope
from sanderling.events.identity import identity_of, is_known, place_of, renamed
from sanderling.events.items import read_result
from sanderling.events.limits import ROW_BYTES, row_count, weight, within
from sanderling.events.measures import Measures
from sanderling.events.modes import LiveModes
from sanderling.events.rows import result_message
from sanderling.events.rules import ConsumeRules
from sanderling.flow.desk import Desk
from sanderling.flow.memory import Memory
from sanderling.observe import logs
from sanderling.stores.analytics import AnalyticsError, AnalyticsStore, Processed
from sanderling.stores.analytics_rows import RefusedError
from sanderling.stores.control_file import Control
from sanderling.stores.objects import Fault, ObjectError, Objects
from sanderling.stores.queue import Delivery, Queue, QueueError

T = TypeVar("T")

# What may not be to be had. To take and to give back are apart: a broker may do the one and not the other.
TAKING, SETTLING, OBJECTS, DATABASE = "taking", "settling", "objects", "database"

log = logs.get(__name__)


class PoisonError(Exception):
    """A message can never be processed; it says why."""


class LaterError(Exception):
    """A message cannot be processed yet; it says why."""

    def __init__(self, why: str, seconds: float | None = None) -> None:
        super().__init__(why)
        self.seconds = seconds  # None: ever longer, and not for ever


class StoppedError(Exception):
    """Something is not to be had, and we are to stop."""


class Watches(Protocol):
    """Who is told what came of batches: alerts."""

    def digested(self, done: Digested) -> None:
        """A batch is in the rows."""

    def buried(self, key: str, why: str) -> None:
        """A message was given up."""

    def reused(self, event_id: str, own_id: str) -> None:
        """A batch came under the event id of another, and is in the rows under one of its own."""


@dataclass(frozen=True, slots=True)
class Stations:
    """What a batch passes."""

    queue: Queue
    objects: Objects
    store: AnalyticsStore
    analyser: Analyser
    modes: LiveModes
    desk: Desk  # where batches are unpacked and analysed


class Consumer:
    """`run` until `stop`, which lets each worker finish the batch it has in hand."""

    def __init__(self, stations: Stations, clock: Clock, watches: Watches, rules: ConsumeRules | None = None) -> None:
        self.measures = Measures(clock)
        self.told: Callable[[], object] = lambda: None  # called when there is something in the outbox
        self._at = stations
        self._clock = clock
        self._watches = watches
        self._rules = rules or ConsumeRules()
        self._memory = Memory(self._rules.memory)
        self._numbers = count()  # of messages
        self._stopping = asyncio.Event()
        self._draining = False  # whether nothing more is taken
        self._troubles: dict[str, str] = {}  # why what is not to be had is not
        self._up = asyncio.Event()  # cleared while there are any
        self._up.set()
        self._wanted = asyncio.Event()  # cleared while somebody wants it to rest
        self._wanted.set()
        self._resting: set[asyncio.Event] = set()

    @property
    def trouble(self) -> str:
        """What is not to be had, while it is not."""
        return "; ".join(self._troubles.values())

    @property
    def paused(self) -> bool:
        """Whether somebody wants it to rest."""
        return not self._wanted.is_set()

    def control(self, wanted: Control) -> None:
        """Rest, or go on; drain: take nothing more; stop. What is in hand comes to its end."""
        self._draining = self._draining or bool(wanted.ending)
        if wanted.ending == "stop":
            self.stop()
        elif wanted.paused and not (self._stopping.is_set() or self._draining):
            self._wanted.clear()
        else:
            self._wanted.set()

    def stop(self) -> None:
        """Take nothing more. What waits for something that is not to be had goes back into the queue."""
        self._stopping.set()
        self._wanted.set()
        self._up.set()
        for over in self._resting:
            over.set()

    async def run(self) -> None:
        """Process what comes, several batches at once."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._rules.batches):
                group.create_task(self._work())

    async def _work(self) -> None:
        while not (self._stopping.is_set() or self._draining):
            await self._wanted.wait()
            await self._up.wait()
            for delivery in await self._taken():
                await self._handle(delivery)

    async def _taken(self) -> list[Delivery]:
        """The next message, if one comes soon; a broker that is away gives none."""
        if self._stopping.is_set() or self._draining:
            return []
        try:
            return await self._had(TAKING, lambda: self._at.queue.take(1, self._rules.wait))
        except StoppedError:
            return []

    async def _handle(self, delivery: Delivery) -> None:
        began = self._clock.now()
        last = delivery.tries >= self._rules.most_tries
        arrival = Arrival(self._clock.wall(), delivery.body, self._rules.exchange, last)
        self.measures.received()
        try:
            envelope = _read(delivery)
            await self._process(envelope, arrival)
        except StoppedError:
            self.measures.postponed()
            return
        except LaterError as error:
            await self._postpone(delivery, error)
            return
        except PoisonError as error:
            await self._bury(delivery, str(error))
            return
        self.measures.processed(envelope.context.platform, self._clock.now() - began)
        await self._settled(lambda: self._at.queue.done([delivery]))

    async def _process(self, envelope: Envelope, arrival: Arrival) -> None:
        """Put a batch into the rows, unless it is there already. Raises LaterError, PoisonError or StoppedError."""
        if why := self._at.modes.now.refuses(envelope):
            raise LaterError(why, self._rules.switched_off)
        holder = f"{next(self._numbers)}"
        try:
            while own := await self._unprocessed(envelope, arrival.message):
                if await self._store(own, arrival, holder):
                    break
            else:
                self.measures.duplicate()
                return
        finally:
            self._memory.release(holder)
        if own is not envelope:
            self.measures.reused()
            self._watches.reused(envelope.context.event_id, own.context.event_id)

    async def _unprocessed(self, envelope: Envelope, message: bytes) -> Envelope | None:
        """The message under the id that its batch has in the rows; None if it is there already."""
        bucket = self._rules.bucket
        while found := await self._known(envelope.context.event_id):
            identity = identity_of(envelope, message, bucket)
            if is_known(found.message, identity, bucket):
                return envelope if found.replayed else None
            envelope = renamed(envelope, identity)
        return envelope

    async def _known(self, event: str) -> Processed | None:
        return await self._in_rows(lambda: self._at.store.processed(event))

    async def _store(self, envelope: Envelope, arrival: Arrival, holder: str) -> bool:
        """Put a batch into the rows; False if its event came there meanwhile."""
        items = await self._items(envelope, arrival, holder)
        with self.measures.analysing():
            digested = await self._at.desk(digest, envelope, items, self._at.analyser, arrival, self._clock)
        kept = await self._in_rows(lambda: self._at.store.keep(digested.batch))
        if not kept.new:
            return False
        self.measures.kept(digested)
        self._watches.digested(digested)
        if digested.batch.outbox:
            self.told()
        return True

    async def _items(self, envelope: Envelope, arrival: Arrival, holder: str) -> list[object]:
        """The items that a message speaks of, within bounds; `holder` has the memory for them."""
        notes = list(envelope.notes)
        if isinstance(envelope, InlineEnvelope):
            items, more = read_result(envelope.item)
            size = weight(arrival.message)
        else:
            items, more, size = await self._fetched(envelope, holder, last=arrival.last)
        context, limits = envelope.context, self._rules.limits
        if len(items) > limits.items:
            raise PoisonError(f"found {len(items):,} items, expected at most {limits.items:,}")
        notes += more
        if envelope.mode == "new":  # others are single posts, as a rule
            notes += size_notes(len(items), context.platform, context.content_count)
        if notes:
            self.measures.odd(context.platform, len(items))
            log.warning("batch_is_odd", message=context.event_id, job=context.job_id, notes=notes[:10])
        bounded = within(items, limits)
        await self._memory.hold(holder, size + ROW_BYTES * row_count(bounded))
        return bounded

    async def _fetched(
        self, envelope: Envelope, holder: str, *, last: bool
    ) -> tuple[list[object], tuple[str, ...], int]:
        """Its items, what is odd about them, and how much memory they take."""
        try:
            place = place_of(envelope, self._rules.bucket)
        except BatchError as error:
            raise PoisonError(str(error)) from None
        body, metadata = await self._body(place)
        try:
            with self.measures.parsing():
                unpacked = partial(_unpacked, body, metadata, place.key, self._rules.most, last=last)
                found, size = await self._at.desk(unpacked)
                await self._memory.hold(holder, size)
                batch = await self._at.desk(partial(parse, found, last=last))
        except BatchError as error:
            raise (LaterError if error.transient else PoisonError)(str(error)) from None
        return batch.items, batch.notes, size

    async def _body(self, place: Place) -> tuple[bytes, dict[str, str]]:
        try:
            with self.measures.fetching():
                found = await self._had(OBJECTS, lambda: self._at.objects.get(*place, self._rules.most_raw))
        except ObjectError as error:
            later = error.fault in (Fault.MISSING, Fault.REFUSED)  # a policy may be mended
            raise (LaterError if later else PoisonError)(str(error)) from None
        return found.body, dict(found.metadata)

    async def _in_rows(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await self._had(DATABASE, ask)
        except RefusedError as error:
            raise PoisonError(f"the database refuses it: {error}") from None

    # What is not to be had.

    async def _had(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """What is asked for, as soon as it can be had: an outage is no message's fault.

        An error that is an answer is raised as it is: only that one thing will not be had. Raises StoppedError.
        """
        pause = self._rules.first_pause
        while True:
            try:
                found = await ask()
            except (AnalyticsError, ObjectError, QueueError) as error:
                if _is_answer(error):
                    self._is_up(what)
                    raise
                self._down(what, str(error))
            else:
                self._is_up(what)
                return found
            if self._stopping.is_set():
                raise StoppedError
            await self._rest(pause)
            pause = min(self._rules.longest_pause, 2 * pause)

    def _down(self, what: str, why: str) -> None:
        if what not in self._troubles:
            log.warning("events_wait", what=what, why=why)
        if what == OBJECTS:
            self.measures.objects_failed()
        self._troubles[what] = why
        if not self._stopping.is_set():
            self._up.clear()

    def _is_up(self, what: str) -> None:
        if self._troubles.pop(what, None) is None:
            return
        log.info("events_go_on", what=what)
        if not self._troubles:
            self._up.set()
        for over in self._resting:
            over.set()  # who waits for the same need not wait longer

    async def _rest(self, seconds: float) -> None:
        """Return after so long, or when it is time to end."""
        over = asyncio.Event()
        timer = self._clock.call_later(seconds, over.set)
        self._resting.add(over)
        try:
            if not self._stopping.is_set():
                await over.wait()
        finally:
            timer.cancel()
            self._resting.discard(over)

    # What becomes of messages.

    async def _postpone(self, delivery: Delivery, error: LaterError) -> None:
        if error.seconds is None and delivery.tries >= self._rules.most_tries:
            await self._bury(delivery, f"{error}; after {delivery.tries} tries")
            return
        seconds = self._rules.delay(delivery.tries) if error.seconds is None else error.seconds
        self.measures.postponed()
        # A format that is switched off says nothing about the message.
        failed = error.seconds is None
        await self._settled(lambda: self._at.queue.later(delivery, seconds, str(error), failed=failed))

    async def _bury(self, delivery: Delivery, why: str) -> None:
        """Put it among the dead, and tell whoever waits for its batch that nothing came of it."""
        try:
            await self._tell_failed(delivery)
        except StoppedError:
            self.measures.postponed()
            return
        self.measures.failed()
        self._watches.buried(delivery.key, why)
        await self._settled(lambda: self._at.queue.bury(delivery, why))

    async def _tell_failed(self, delivery: Delivery) -> None:
        try:
            context = read_envelope(delivery.body).context
        except EnvelopeError:
            return
        message = result_message(context, 0, context.content_count or 1, self._clock.wall())
        if message is not None:
            await self._had(DATABASE, lambda: self._at.store.add([message]))
            self.told()

    async def _settled(self, say: Callable[[], Awaitable[None]]) -> None:
        """Have the queue know. Who is to stop before it does leaves the message to others, and it changes nothing."""
        with suppress(StoppedError):
            await self._had(SETTLING, say)


def _is_answer(error: AnalyticsError | ObjectError | QueueError) -> bool:
    """Whether it is about what was asked for, and not about the one who was asked."""
    return isinstance(error, RefusedError) or (isinstance(error, ObjectError) and error.fault is not Fault.DOWN)


def _read(delivery: Delivery) -> Envelope:
    try:
        return read_envelope(delivery.body)
    except EnvelopeError as error:
        raise PoisonError(str(error)) from None


def _unpacked(body: bytes, metadata: dict[str, str], key: str, most: int, *, last: bool) -> tuple[Document, int]:
    """The document of an object, and how many bytes both will take. Raises BatchError."""
    found = unpack(body, metadata, key, most, last=last)
    return found, len(body) + weight(found.data)
