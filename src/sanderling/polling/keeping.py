"""Keep what a target said: rows and changes in the database, then whoever follows, then what else follows from it."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from itertools import islice

from sanderling.apis.polled import PolledSource
from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.outcome import Code, Outcome
from sanderling.polling.entries import Entry
from sanderling.polling.feed import Feed
from sanderling.polling.handler import Answer
from sanderling.polling.measures import Measures
from sanderling.polling.runs import Result, Run
from sanderling.polling.schedule import Schedule
from sanderling.stores.documents import Document, Parent, SourceError, WaitingForParent
from sanderling.stores.polling import Op, PolledDocument, PollingStoreError, RowChange
from sanderling.stores.polling_store import PollingStore

MOST_WAITING = 10_000  # targets whose parents are remembered; others ask again in their time
LONGEST_STATUS = 255
MOST_RECENT = 20  # changes that are remembered for people
NOT_NOW = frozenset({Code.DEFERRED, Code.RATE_LIMITED, Code.CANCELLED})  # which are nobody's failure
MOST_SHOWN = 10  # targets whose odd values are shown in the status

log = logs.get(__name__)


class Keeper:
    """Keeps documents. `watched` is called when what is active may have changed."""

    def __init__(
        self,
        source: PolledSource,
        store: PollingStore,
        feed: Feed,
        schedule: Schedule,
        clock: Clock,
        measures: Measures,
    ) -> None:
        self.watched: Callable[[], object] = lambda: None
        self.arrived: Callable[[Entry], object] = lambda _: None  # a parent of this one is there
        self._source = source
        self._store = store
        self._feed = feed
        self._schedule = schedule
        self._clock = clock
        self.measures = measures
        self.recent: deque[RowChange] = deque(maxlen=MOST_RECENT)
        self._orphans: defaultdict[Parent, set[int]] = defaultdict(set)
        self._odd: dict[tuple[str, str], tuple[str, ...]] = {}  # values that could not be read, by kind and id

    def settle(self, run: Run, answer: Answer, kept: list[RowChange] | SourceError | PollingStoreError) -> Result:
        """How a run ended, by what became of its document."""
        entry = run.entry
        match kept:
            case WaitingForParent():
                self._remember(entry, kept.parent)
                return Result(str(kept)[:LONGEST_STATUS], ok=False, waits=True)
            case SourceError():
                return failed(kept.outcome)
            case PollingStoreError():
                return Result(f"not stored: {kept}"[:LONGEST_STATUS], ok=False)
        self.recognise(entry, answer)
        return Result(self.status(entry), changes=len(kept))

    def recognise(self, entry: Entry, answer: Answer) -> None:
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

    def status(self, entry: Entry) -> str:
        """The status of a target that went well, with what was odd about its document."""
        notes = self._odd.get((entry.kind, entry.source_id), ())
        more = f", and {len(notes) - 1} more" if len(notes) > 1 else ""
        return f"ok, without {notes[0]}{more}"[:LONGEST_STATUS] if notes else "ok"

    def _remember(self, entry: Entry, parent: Parent) -> None:
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


def failed(outcome: Outcome) -> Result:
    """How a run ended that brought nothing."""
    if outcome.code in NOT_NOW:
        return Result(f"not now: {outcome.detail or outcome.code}"[:LONGEST_STATUS], ok=False)
    said = f"error: {outcome.code}" + (f": {outcome.detail}" if outcome.detail else "")
    return Result(said[:LONGEST_STATUS], ok=False, failed=True)
