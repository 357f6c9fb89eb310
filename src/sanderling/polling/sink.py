"""Keeps documents in the database: one after another, in the order they came, of each target the newest.

An absent database stops no poll. What comes meanwhile waits here, and a later document of a target takes the place of
an earlier one: rows are compared with what is stored, so a change counts once. A document that the database does not
take, though it takes others, is given up: it is that target's outcome, and the next poll brings it again.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sanderling.clock import Clock
from sanderling.engine.writer import Writer, WriterRules
from sanderling.observe import logs
from sanderling.polling.keeping import Keeper
from sanderling.polling.runs import Result
from sanderling.stores.documents import SourceError
from sanderling.stores.polling import PolledDocument, PollingStoreError, RowChange

PAUSE = 1.0  # seconds until an absent database is tried again
MOST_BYTES = 64 << 20  # of documents that wait. What does not fit is polled again
# Whoever follows the changes should not wait, so each document is written at once, with those that came meanwhile; and
# what waits stops no poll.
RULES = WriterRules(every=1.0, items=1, most_items=10**9, most_bytes=10**12)

Name = tuple[str, str]  # of a target: kind and source id
Kept = list[RowChange] | SourceError | PollingStoreError  # what became of a document

log = logs.get(__name__)


@dataclass(slots=True, eq=False)
class Unsaved:
    """A document that waits. `done` is told what became of it; that it is not stored yet may come before."""

    told: PolledDocument
    size: int
    done: Callable[[Kept], object]
    asked: list[asyncio.Future[Result]] = field(default_factory=list)
    keeps: bool = True  # for as long as the database is away

    @property
    def name(self) -> Name:
        """Whose it is."""
        return self.told.kind, self.told.source_id


class PollingSink:
    """Writes what waits."""

    def __init__(self, keeper: Keeper, clock: Clock) -> None:
        self.trouble = ""  # why nothing is stored, while nothing is
        self._keeper = keeper
        self._clock = clock
        self._waiting: dict[Name, Unsaved] = {}
        self._bytes = 0
        self._stored = 0
        self._failed: dict[Name, int] = {}  # how many were stored when it last failed
        self._stopping = False
        self._hurry = asyncio.Event()

    def has(self, name: Name) -> bool:
        """Whether a document of that target waits."""
        return name in self._waiting

    def put(self, unsaved: Unsaved) -> bool:
        """Let it wait, instead of an earlier one of its target; whether there is room for it."""
        before = self._waiting.get(unsaved.name)
        if before is None and unsaved.size and self._bytes + unsaved.size > MOST_BYTES:
            return False
        if before is not None:
            self._bytes -= before.size
            unsaved.asked.extend(before.asked)
        self._waiting[unsaved.name] = unsaved
        self._bytes += unsaved.size
        return True

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
            self.put(unsaved)
        if not self.trouble:
            log.warning("documents_not_stored", why=str(error))
        self.trouble = str(error)
        timer = self._clock.call_later(PAUSE, self._hurry.set)
        await self._hurry.wait()
        timer.cancel()
        if not self._stopping:
            self._hurry.clear()

    def stop(self) -> None:
        """Try once more what waits, and no longer: it is polled again by the next run."""
        self._stopping = True
        self._hurry.set()


class DocumentWriter(Writer[Name, None, None, None]):
    """The one writer of documents."""

    def __init__(self, keeper: Keeper, clock: Clock) -> None:
        self.sink = PollingSink(keeper, clock)
        self.measures = keeper.measures
        super().__init__(self.sink, lambda: None, clock, RULES)

    def put(self, unsaved: Unsaved) -> bool:
        """Write it as soon as that is possible; whether there is room for it."""
        new = not self.sink.has(unsaved.name)
        if not self.sink.put(unsaved):
            return False
        if new:
            self.add(unsaved.name)
        if self.sink.trouble:
            unsaved.done(PollingStoreError(self.sink.trouble))
        return True

    async def keep(self, told: PolledDocument) -> list[RowChange]:
        """Write a document, and wait until that is done. Raises SourceError or PollingStoreError."""
        done: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        self.put(Unsaved(told, 0, lambda kept: None if done.done() else done.set_result(kept), keeps=False))
        kept = await done
        if isinstance(kept, Exception):
            raise kept
        return kept
