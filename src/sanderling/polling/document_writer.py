"""Keeps what targets said: rows and changes in the database, then whoever follows, then what else follows from it.

Documents are written one after another, in the order they came, of each target the newest. An absent database stops no
poll. What comes meanwhile waits here, and a later document of a target takes the place of an earlier one: rows are
compared with what is stored, so a change counts once. A document that the database does not take, though it takes
others, is given up: it is that target's outcome, and the next poll brings it again.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sanderling.apis.polled import PolledSource
from sanderling.clock import Clock
from sanderling.engine.writer import Writer, WriterRules
from sanderling.observe import logs
from sanderling.outcome import Code, Outcome
from sanderling.polling.change_feed import ChangeFeed
from sanderling.polling.handler import PolledAnswer
from sanderling.polling.measures import PollingMeasures
from sanderling.polling.schedule import Schedule
from sanderling.polling.targets import PollResult, PollRun, ScheduledTarget
from sanderling.stores.documents import Document, Parent, SourceError, WaitingForParent
from sanderling.stores.polling import Op, PolledDocument, PollingStoreError, RowChange
from sanderling.stores.polling_store import PollingStore

MOST_WAITING = 10_000  # targets whose parents are remembered; others ask again in their time
LONGEST_STATUS = 255
MOST_RECENT = 20  # changes that are remembered for people
NOT_NOW = frozenset({Code.DEFERRED, Code.RATE_LIMITED, Code.CANCELLED})  # which are nobody's failure
MOST_SHOWN = 10  # targets whose odd values are shown in the status
PAUSE = 1.0  # seconds until an absent database is tried again
MOST_BYTES = 64 << 20  # of documents that wait. What does not fit is polled again
# Whoever follows the changes should not wait, so each document is written at once, with those that came meanwhile; and
# what waits stops no poll.
RULES = WriterRules(every=1.0, items=1, most_items=10**9, most_bytes=10**12)

Name = tuple[str, str]  # of a target: kind and source id
Kept = list[RowChange] | SourceError | PollingStoreError  # what became of a document

log = logs.get(__name__)


class Keeper:
    """Keeps documents. `watched` is called when what is active may have changed."""

    def __init__(
        self,
        source: PolledSource,
        store: PollingStore,
        feed: ChangeFeed,
        schedule: Schedule,
        clock: Clock,
        measures: PollingMeasures,
    ) -> None:
        self.watched: Callable[[], object] = lambda: None
        self.arrived: Callable[[ScheduledTarget], object] = lambda _: None  # a parent of this one is there
        self._source = source
        self._store = store
        self._feed = feed
        self._schedule = schedule
        self._clock = clock
        self.measures = measures
        self.recent: deque[RowChange] = deque(maxlen=MOST_RECENT)
        self._orphans: defaultdict[Parent, set[int]] = defaultdict(set)
        self._odd: dict[tuple[str, str], tuple[str, ...]] = {}  # values that could not be read, by kind and id

    def settle(
        self, run: PollRun, answer: PolledAnswer, kept: list[RowChange] | SourceError | PollingStoreError
    ) -> PollResult:
        """How a run ended, by what became of its document."""
        entry = run.entry
        match kept:
            case WaitingForParent():
                self._remember(entry, kept.parent)
                return PollResult(str(kept)[:LONGEST_STATUS], ok=False, waits=True)
            case SourceError():
                return failed(kept.outcome)
            case PollingStoreError():
                return PollResult(f"not stored: {kept}"[:LONGEST_STATUS], ok=False)
        self.recognise(entry, answer)
        return PollResult(self.status(entry), changes=len(kept))

    def recognise(self, entry: ScheduledTarget, answer: PolledAnswer) -> None:
        """Know the document again."""
        entry.etag, entry.modified, entry.raw = answer.etag, answer.modified, answer.raw
        entry.digest, entry.epoch = answer.digest, answer.epoch

    async def keep(self, told: PolledDocument) -> list[RowChange]:
        """Store a document and tell everyone. Raises SourceError or PollingStoreError."""
        changes = await self._store.keep(told)
        self._note_odd(told)
        self._feed.note(changes)
        self.recent.extend(changes[-MOST_RECENT:])
        for change in changes:
            self.measures.changed(change.table, change.op)
        tables = {change.table for change in changes}
        if went_along(changes, told.document):
            self._schedule.epochs[told.event] += 1  # they must come back from their own documents
        if tables.intersection(self._source.watched):
            self.watched()
        self._wake(Parent(change.table, change.key) for change in changes if change.op is Op.INSERT)
        return changes

    @property
    def odd(self) -> list[str]:
        """What could not be read and is left out, in words: one for each of the first targets that have any."""
        return [
            f"{kind or 'discovery'} {key}: {notes[0]}" for (kind, key), notes in islice(self._odd.items(), MOST_SHOWN)
        ]

    def _note_odd(self, told: PolledDocument) -> None:
        name, notes = (told.kind, told.source_id), told.document.notes
        if notes == self._odd.get(name, ()):
            return
        self._odd.pop(name, None)
        if notes and len(self._odd) < MOST_WAITING:
            self._odd[name] = notes
            log.warning("odd_values", kind=told.kind or "discovery", target=told.source_id, found=list(notes))

    def status(self, entry: ScheduledTarget) -> str:
        """The status of a target that went well, with what was odd about its document."""
        notes = self._odd.get((entry.kind, entry.source_id), ())
        more = f", and {len(notes) - 1} more" if len(notes) > 1 else ""
        return f"ok, without {notes[0]}{more}"[:LONGEST_STATUS] if notes else "ok"

    def _remember(self, entry: ScheduledTarget, parent: Parent) -> None:
        if parent in self._orphans or len(self._orphans) < MOST_WAITING:
            self._orphans[parent].add(entry.id)

    def _wake(self, parents: Iterable[Parent]) -> None:
        if not self._orphans:
            return
        for parent in parents:
            for number in self._orphans.pop(parent, ()):
                entry = self._schedule.entries.get(number)
                if entry is not None:
                    self.arrived(entry)


def went_along(changes: Iterable[RowChange], document: Document) -> bool:
    """Whether rows went that the document does not speak of: they referred to some that did."""
    own = {whole.table for whole in document.whole}
    return any(change.op is Op.DELETE and change.table not in own for change in changes)


def failed(outcome: Outcome) -> PollResult:
    """How a run ended that brought nothing."""
    if outcome.code in NOT_NOW:
        return PollResult(f"not now: {outcome.detail or outcome.code}"[:LONGEST_STATUS], ok=False)
    said = f"error: {outcome.code}" + (f": {outcome.detail}" if outcome.detail else "")
    return PollResult(said[:LONGEST_STATUS], ok=False, failed=True)


@dataclass(slots=True, eq=False)
class Unsaved:
    """A document that waits. `done` is told what became of it; that it is not stored yet may come before."""

    told: PolledDocument
    size: int
    done: Callable[[Kept], object]
    asked: list[asyncio.Future[PollResult]] = field(default_factory=list)
    keeps: bool = True  # for as long as the database is away

    @property
    def name(self) -> Name:
        """Whose it is."""
        return self.told.kind, self.told.source_id


class DocumentWriter(Writer[Name, None, None, None]):
    """The one writer of documents, and its own sink."""

    def __init__(self, keeper: Keeper, clock: Clock) -> None:
        super().__init__(self, lambda: None, clock, RULES)
        self.trouble = ""  # why nothing is stored, while nothing is
        self.measures = keeper.measures
        self._keeper = keeper
        self._waiting: dict[Name, Unsaved] = {}
        self._bytes = 0
        self._stored = 0
        self._failed: dict[Name, int] = {}  # how many were stored when it last failed
        self._stopping = False
        self._retry = asyncio.Event()

    def put(self, unsaved: Unsaved) -> bool:
        """Write it as soon as that is possible, instead of an earlier one of its target; whether there is room."""
        new = unsaved.name not in self._waiting
        if not self._let_wait(unsaved):
            return False
        if new:
            self.add(unsaved.name)
        if self.trouble:
            unsaved.done(PollingStoreError(self.trouble))
        return True

    async def keep(self, told: PolledDocument) -> list[RowChange]:
        """Write a document, and wait until that is done. Raises SourceError or PollingStoreError."""
        done: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        self.put(Unsaved(told, 0, lambda kept: None if done.done() else done.set_result(kept), keeps=False))
        kept = await done
        if isinstance(kept, Exception):
            raise kept
        return kept

    async def write(self, ended: Sequence[Name], found: Sequence[None], checkpoint: None) -> None:  # noqa: ARG002
        """Write all that waits, whatever comes in meanwhile. Raises PollingStoreError if that will never work."""
        while self._waiting:
            unsaved = self._waiting.pop(next(iter(self._waiting)))
            self._bytes -= unsaved.size
            try:
                unsaved.done(await self._keep(unsaved))
            except PollingStoreError as error:
                if not error.transient:
                    raise
                await self._fail(unsaved, error)

    def stop(self) -> None:
        """Try once more what waits, and no longer: it is polled again by the next run."""
        self._stopping = True
        self._retry.set()

    def _let_wait(self, unsaved: Unsaved) -> bool:
        before = self._waiting.get(unsaved.name)
        if before is None and unsaved.size and self._bytes + unsaved.size > MOST_BYTES:
            return False
        if before is not None:
            self._bytes -= before.size
            unsaved.asked.extend(before.asked)
        self._waiting[unsaved.name] = unsaved
        self._bytes += unsaved.size
        return True

    async def _keep(self, unsaved: Unsaved) -> list[RowChange] | SourceError:
        try:
            kept: list[RowChange] | SourceError = await self._keeper.keep(unsaved.told)
        except SourceError as error:
            kept = error
        self._stored += 1
        self._failed.pop(unsaved.name, None)
        if self.trouble:
            log.info("documents_stored_again")
            self.trouble = ""
        return kept

    async def _fail(self, unsaved: Unsaved, error: PollingStoreError) -> None:
        """The database is away, or does not take this one: the others tell which."""
        name, before = unsaved.name, self._failed.get(unsaved.name)
        self._failed[name] = self._stored
        unsaved.done(error)
        if self._stopping or not unsaved.keeps or (before is not None and self._stored > before):
            return
        if name not in self._waiting:
            self._let_wait(unsaved)
        if not self.trouble:
            log.warning("documents_not_stored", why=str(error))
        self.trouble = str(error)
        timer = self._clock.call_later(PAUSE, self._retry.set)
        await self._retry.wait()
        timer.cancel()
        if not self._stopping:
            self._retry.clear()
