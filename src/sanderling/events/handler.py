"""Takes a message one station further: looks its event up, reads its batch, puts that into the rows.

What a station says of a message (it is known, its object is missing, the database refuses it) is an answer. An error
is a failure, first the message's; one that lets nobody in is the station's, whatever the message.
"""

import asyncio
from functools import partial

from sanderling.clock import Clock
from sanderling.engine.ports import Permits, Settled
from sanderling.events.batches import (
    ROW_BYTES,
    BatchError,
    UnpackedObject,
    bound_items,
    parse,
    row_count,
    size_notes,
    unpack,
    weight,
)
from sanderling.events.envelopes import Envelope, InlineEnvelope, identity_of, is_known, location_of, with_own_id
from sanderling.events.items import read_result
from sanderling.events.measures import EventMeasures
from sanderling.events.rows import process_batch
from sanderling.events.rules import ConsumeRules
from sanderling.events.stations import (
    LOOKUPS,
    OBJECTS,
    EventMessage,
    MessageStep,
    Missing,
    Poison,
    StationAnswer,
    StationCall,
    Stations,
    note_trouble,
)
from sanderling.limit import Feedback, Permit
from sanderling.limit.memory import Memory
from sanderling.observe import logs
from sanderling.outcome import Code, Outcome
from sanderling.stores.analytics import AnalyticsBatch, AnalyticsError
from sanderling.stores.analytics_rows import RefusedRowsError
from sanderling.stores.objects import ObjectError, ObjectFault
from sanderling.task import Blame

OK, NOT_THERE = Outcome(Code.OK, 200), Outcome(Code.CONTENT_NOT_FOUND, 404)
# By which it is known whether batches can be kept, before any was.
NOTHING = AnalyticsBatch(
    event_id="nothing",
    job_id="",
    project_id=None,
    platform="",
    mode="",
    received_at=0.0,
    processed_at=0.0,
    posts=(),
    comments=(),
    errors=(),
)

log = logs.get(__name__)


class PoisonError(Exception):
    """A message can never be processed; it says why."""


class MessageHandler:
    """Asks one station about one message."""

    def __init__(
        self,
        at: Stations,
        measures: EventMeasures,
        permits: Permits,
        back: asyncio.Event,
        clock: Clock,
        rules: ConsumeRules,
    ) -> None:
        """Set `back` when a station has gone down, or is back."""
        self.memory = Memory(rules.memory)
        self._at = at
        self._measures = measures
        self._permits = permits
        self._back = back
        self._clock = clock
        self._rules = rules

    async def __call__(self, work: StationCall, permit: Permit, blame: Blame) -> Settled[StationAnswer]:
        """What came of it."""
        began = self._clock.now()
        try:
            settled = await self._ask(work)
        except ObjectError as error:
            self._measures.objects_failed()
            down = error.fault is ObjectFault.DOWN
            settled = Settled(Outcome(Code.STORAGE_ERROR, detail=str(error), unsent=down))
        except AnalyticsError as error:
            settled = Settled(Outcome(Code.DATABASE_ERROR, detail=str(error), unsent=not error.answered))
        self._report(work.station.name, permit, blame, settled.outcome, self._clock.now() - began)
        return settled

    def received(self, work: StationCall) -> None:
        """Nothing is cut for being slow: stores have limits of time of their own."""

    def _report(self, station: str, permit: Permit, blame: Blame, outcome: Outcome, took: float) -> None:
        """Let the breaker learn, and say so when a station goes or comes back."""
        was_down = self._permits.is_down(station)
        error = None if outcome.status else outcome.code.value
        self._permits.feedback(permit, Feedback(outcome.status, took, error, blame=blame, unsent=outcome.unsent))
        is_down = self._permits.is_down(station)
        if is_down != was_down:
            note_trouble(station, "down" * was_down, (outcome.detail or "down") * is_down)
            self._back.set()

    async def _ask(self, work: StationCall) -> Settled[StationAnswer]:
        """Raises ObjectError and AnalyticsError if the station fails."""
        message = work.message
        if message is None or work.is_probe:
            await self._probe(work)
            return Settled(OK)
        try:
            if work.station.name == LOOKUPS:
                return Settled(OK, await self._look_up(message))
            if work.station.name == OBJECTS:
                return await self._fetch(message)
            return await (self._tell_failed(message) if message.burial else self._keep(message))
        except RefusedRowsError as error:
            return Settled(OK, Poison(f"the database refuses it: {error}"))
        except PoisonError as error:
            return Settled(OK, Poison(str(error)))

    async def _probe(self, work: StationCall) -> None:
        """Ask for what went well before; where nothing has, whether the service is there."""
        station, good = work.station, work.message
        if good is None and station.is_suspect:
            good = station.last_failed
        if station.name == LOOKUPS:
            await self._at.store.ping()
        elif station.name == OBJECTS:
            await self._get(good)
        else:
            batch = None if good is None or good.processed is None else good.processed.batch
            await self._at.store.rehearse(batch or NOTHING)

    async def _get(self, good: EventMessage | None) -> None:
        if good is None or good.envelope is None:
            await self._at.objects.ping()
            return
        try:
            await self._at.objects.get(*location_of(good.envelope, self._rules.bucket), self._rules.most_raw)
        except ObjectError as error:
            if error.unavailable:
                raise

    # Looking up.

    async def _look_up(self, message: EventMessage) -> MessageStep:
        """Find the id under which the batch is to be kept, if it is not in the rows already."""
        envelope, bucket = _envelope_of(message), self._rules.bucket
        while found := await self._at.store.processed(envelope.context.event_id):
            identity = identity_of(envelope, message.arrival.message, bucket)
            if is_known(found.message, identity, bucket):
                if not found.replayed:
                    return MessageStep.KNOWN
                break
            envelope = with_own_id(envelope, identity)
        message.renamed, message.envelope = message.renamed or envelope is not message.envelope, envelope
        return MessageStep.LOOKED_UP

    # The batch.

    async def _fetch(self, message: EventMessage) -> Settled[StationAnswer]:
        """Its items, within bounds."""
        last = message.arrival.last
        try:
            location = location_of(_envelope_of(message), self._rules.bucket)
            with self._measures.fetching():
                found = await self._at.objects.get(*location, self._rules.most_raw)
            with self._measures.parsing():
                read = partial(_unpack, found.body, dict(found.metadata), location.key, self._rules.most, last=last)
                unpacked, size = await self._at.executor(read)
                await self.memory.hold(message.holder, size)
                batch = await self._at.executor(partial(parse, unpacked, last=last))
        except BatchError as error:
            return Settled(OK, (Missing if error.transient else Poison)(str(error)))
        except ObjectError as error:
            if error.unavailable:
                raise
            later = error.fault in (ObjectFault.MISSING, ObjectFault.REFUSED)  # a policy may be mended
            return Settled(NOT_THERE, (Missing if later else Poison)(str(error)))
        await self._take_items(message, batch.items, batch.notes, size)
        return Settled(OK, MessageStep.FETCHED, size=message.size)

    async def _take_items(self, message: EventMessage, items: list[object], notes: tuple[str, ...], size: int) -> None:
        """Take the items within bounds, once there is memory for them. Raises PoisonError."""
        envelope, limits = _envelope_of(message), self._rules.limits
        context = envelope.context
        if len(items) > limits.items:
            raise PoisonError(f"found {len(items):,} items, expected at most {limits.items:,}")
        odd = [*envelope.notes, *notes]
        if envelope.mode == "new":  # others are single posts, as a rule
            odd += size_notes(len(items), context.platform, context.content_count)
        if odd:
            self._measures.odd(context.platform, len(items))
            log.warning("batch_is_odd", message=context.event_id, job=context.job_id, notes=odd[:10])
        bounded = bound_items(items, limits)
        total = size + ROW_BYTES * row_count(bounded)
        await self.memory.hold(message.holder, total)
        message.items, message.size = bounded, total

    # The rows.

    async def _keep(self, message: EventMessage) -> Settled[StationAnswer]:
        envelope = _envelope_of(message)
        if message.items is None and isinstance(envelope, InlineEnvelope):
            items, notes = read_result(envelope.item)
            await self._take_items(message, items, notes, weight(message.arrival.message))
        if message.processed is None:
            with self._measures.analysing():
                work = (process_batch, envelope, message.items or [], self._at.analyser, message.arrival, self._clock)
                message.processed = await self._at.executor(*work)
        kept = await self._at.store.keep(message.processed.batch)
        return Settled(OK, MessageStep.KEPT if kept.new else MessageStep.RIVALLED, size=message.size)

    async def _tell_failed(self, message: EventMessage) -> Settled[StationAnswer]:
        """Put word into the outbox that nothing came of a batch, for whoever waits for it."""
        if message.note is not None:
            await self._at.store.add([message.note])
        return Settled(OK, MessageStep.TOLD)


def _envelope_of(message: EventMessage) -> Envelope:
    assert message.envelope is not None  # noqa: S101 - one without never gets to a station
    return message.envelope


def _unpack(body: bytes, metadata: dict[str, str], key: str, most: int, *, last: bool) -> tuple[UnpackedObject, int]:
    """What an object holds, and how many bytes both will take. Raises BatchError."""
    found = unpack(body, metadata, key, most, last=last)
    return found, len(body) + weight(found.data)
