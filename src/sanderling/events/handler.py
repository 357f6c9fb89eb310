"""Takes a message one station further: looks its event up, reads its batch, puts that into the rows.

What a station says of a message (it is known, its object is missing, the database refuses it) is an answer. An error
is a failure, first the message's; one that lets nobody in is the station's, whatever the message.
"""

from collections.abc import Callable
from functools import partial

from sanderling.clock import Clock
from sanderling.engine.ports import Permits, Settled
from sanderling.events.batches import BatchError, Document, parse, size_notes, unpack
from sanderling.events.digest import digest
from sanderling.events.envelopes import Envelope, InlineEnvelope
from sanderling.events.identity import identity_of, is_known, place_of, renamed
from sanderling.events.items import read_result
from sanderling.events.limits import ROW_BYTES, row_count, weight, within
from sanderling.events.message import Fetched, Found, Kept, Known, Message, Missing, Poison, Step, Told, Unknown
from sanderling.events.rules import ConsumeRules
from sanderling.events.source import MessageSource
from sanderling.events.stations import LOOKUPS, OBJECTS, Stations
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
        source: MessageSource,
        permits: Permits,
        back: Callable[[], object],
        clock: Clock,
        rules: ConsumeRules,
    ) -> None:
        """Call `back` when a station is back."""
        self.memory = Memory(rules.memory)
        self._at = at
        self._stations = source.stations
        self._measures = source.measures
        self._permits = permits
        self._back = back
        self._clock = clock
        self._rules = rules

    async def __call__(self, work: Step, permit: Permit, blame: Blame) -> Settled[Found]:
        """What came of it."""
        began = self._clock.now()
        try:
            settled = await self._ask(work)
        except (AnalyticsError, ObjectError) as error:
            settled = Settled(self._failure(error))
        self._report(work.station, permit, blame, settled.outcome, self._clock.now() - began)
        return settled

    def received(self, work: Step) -> None:
        """Nothing is cut for being slow: stores have limits of time of their own."""

    def _failure(self, error: AnalyticsError | ObjectError) -> Outcome:
        if isinstance(error, ObjectError):
            self._measures.objects_failed()
            return Outcome(Code.STORAGE_ERROR, detail=str(error), unsent=error.fault is ObjectFault.DOWN)
        return Outcome(Code.DATABASE_ERROR, detail=str(error), unsent=not error.answered)

    def _report(self, station: str, permit: Permit, blame: Blame, outcome: Outcome, took: float) -> None:
        """Let the breaker learn, and say so when a station goes or comes back."""
        was_down = self._permits.is_down(station)
        error = None if outcome.status else outcome.code.value
        told = Feedback(outcome.status, took, error, blame=blame, unsent=outcome.unsent)
        self._permits.feedback(permit, told)
        is_down = self._permits.is_down(station)
        if is_down and not was_down:
            log.warning("events_wait", what=station, why=outcome.detail)
        elif was_down and not is_down:
            log.info("events_go_on", what=station)
            self._back()

    async def _ask(self, work: Step) -> Settled[Found]:
        """Raises ObjectError and AnalyticsError if the station fails."""
        message = work.message
        if message is None or work.is_probe:
            await self._probe(work.station, message)
            return Settled(OK)
        try:
            if work.station == LOOKUPS:
                return await self._look_up(message)
            if work.station == OBJECTS:
                return await self._fetch(message)
            return await (self._tell_failed(message) if message.burial else self._keep(message))
        except RefusedRowsError as error:
            return Settled(OK, Poison(f"the database refuses it: {error}"))
        except PoisonError as error:
            return Settled(OK, Poison(str(error)))

    async def _probe(self, name: str, good: Message | None) -> None:
        """Ask for what went well before; where nothing has, whether the service is there."""
        station = self._stations[name]
        if good is None and station.is_suspect:
            good = station.last_failed
        if name == LOOKUPS:
            await self._at.store.ping()
        elif name == OBJECTS:
            await self._get(good)
        else:
            batch = None if good is None or good.digested is None else good.digested.batch
            await self._at.store.rehearse(batch or NOTHING)

    async def _get(self, good: Message | None) -> None:
        if good is None or good.envelope is None:
            await self._at.objects.ping()
            return
        try:
            await self._at.objects.get(*place_of(good.envelope, self._rules.bucket), self._rules.most_raw)
        except ObjectError as error:
            if error.unavailable:
                raise

    # Looking up.

    async def _look_up(self, message: Message) -> Settled[Found]:
        """Under which id the batch is to be kept, if it is not in the rows already."""
        envelope, bucket = _envelope_of(message), self._rules.bucket
        while found := await self._at.store.processed(envelope.context.event_id):
            identity = identity_of(envelope, message.arrival.message, bucket)
            if is_known(found.message, identity, bucket):
                return Settled(OK, Unknown(envelope) if found.replayed else Known())
            envelope = renamed(envelope, identity)
        return Settled(OK, Unknown(envelope))

    # The batch.

    async def _fetch(self, message: Message) -> Settled[Found]:
        """Its items, within bounds."""
        last = message.arrival.last
        try:
            place = place_of(_envelope_of(message), self._rules.bucket)
            with self._measures.fetching():
                found = await self._at.objects.get(*place, self._rules.most_raw)
            with self._measures.parsing():
                read = partial(_unpacked, found.body, dict(found.metadata), place.key, self._rules.most, last=last)
                document, size = await self._at.desk(read)
                await self.memory.hold(message.holder, size)
                batch = await self._at.desk(partial(parse, document, last=last))
        except BatchError as error:
            return Settled(OK, (Missing if error.transient else Poison)(str(error)))
        except ObjectError as error:
            if error.unavailable:
                raise
            later = error.fault in (ObjectFault.MISSING, ObjectFault.REFUSED)  # a policy may be mended
            return Settled(NOT_THERE, (Missing if later else Poison)(str(error)))
        items, size = await self._bound(message, batch.items, batch.notes, size)
        return Settled(OK, Fetched(items, size), size=size)

    async def _bound(
        self, message: Message, items: list[object], notes: tuple[str, ...], size: int
    ) -> tuple[list[object], int]:
        """The items within bounds, and how many bytes they take. Waits for memory. Raises PoisonError."""
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
        bounded = within(items, limits)
        total = size + ROW_BYTES * row_count(bounded)
        await self.memory.hold(message.holder, total)
        return bounded, total

    # The rows.

    async def _keep(self, message: Message) -> Settled[Found]:
        envelope = _envelope_of(message)
        if message.items is None and isinstance(envelope, InlineEnvelope):
            items, notes = read_result(envelope.item)
            message.items, message.size = await self._bound(message, items, notes, weight(message.arrival.message))
        if message.digested is None:
            with self._measures.analysing():
                work = (digest, envelope, message.items or [], self._at.analyser, message.arrival, self._clock)
                message.digested = await self._at.desk(*work)
        kept = await self._at.store.keep(message.digested.batch)
        return Settled(OK, Kept(message.digested, kept.new), size=message.size)

    async def _tell_failed(self, message: Message) -> Settled[Found]:
        """Put word into the outbox that nothing came of a batch, for whoever waits for it."""
        if message.note is not None:
            await self._at.store.add([message.note])
        return Settled(OK, Told())


def _envelope_of(message: Message) -> Envelope:
    assert message.envelope is not None  # noqa: S101 - one without never gets to a station
    return message.envelope


def _unpacked(body: bytes, metadata: dict[str, str], key: str, most: int, *, last: bool) -> tuple[Document, int]:
    """The document of an object, and how many bytes both will take. Raises BatchError."""
    found = unpack(body, metadata, key, most, last=last)
    return found, len(body) + weight(found.data)
