"""Where an id ends: records into the queue first, then cursor and missed ids to disk, in one write.

An id is settled when its fate is durable. What a crash leaves in the queue without the cursor having moved is asked and
queued once more, and the store, which knows every id, keeps it once.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, Never

import msgspec

from sanderling.clock import Clock, Pauses
from sanderling.engine.writer import Writer, WriterRules
from sanderling.executor import Executor
from sanderling.sequence.cursor import IdCursor, Position, ranges_of
from sanderling.sequence.retries import Missed
from sanderling.sequence.state import Fates, SavedCrawl, SequenceState
from sanderling.stores.queue import Letter, Queue, QueueError, UnfitLetterError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between tries while the queue is not to be had


class Resolved(NamedTuple):
    """An id that has a record; without a message it is one that nobody wants."""

    number: int
    message: bytes | None = None


End = Resolved | Missed


class SequenceSink:
    """Queue and disk of a crawl. While the queue is not to be had, `write` waits for it, until `stop`."""

    def __init__(
        self, state: SequenceState, queue: Queue, executor: Executor, clock: Clock, position: Position
    ) -> None:
        self.state = state
        self.executor = executor
        self.durable = position  # what a restart would find
        self.published = 0
        self.failures = 0  # of publishing
        self.trouble = ""  # why the queue is not to be had, while it is not
        self._queue = queue
        self._clock = clock
        self._pauses = Pauses(clock)

    async def write(self, ended: Sequence[End], found: Sequence[object], checkpoint: SavedCrawl) -> None:
        """Return when all of it is durable."""
        del found  # ids are not found, they follow each other
        resolved = [each for each in ended if isinstance(each, Resolved)]
        letters = [Letter(str(each.number), each.message) for each in resolved if each.message is not None]
        await self._publish(letters, checkpoint.api)
        missed = [each for each in ended if isinstance(each, Missed)]
        fates = Fates(ranges_of([each.number for each in resolved]), missed)
        await self.executor(self.state.record, checkpoint, fates)
        self.durable = checkpoint.position

    def stop(self) -> None:
        """Wait no longer for a queue that is away. The cursor has not moved: nothing is lost."""
        self._pauses.stop()

    async def _publish(self, letters: list[Letter], api: str) -> None:
        """Return when all are durable in the queue, those that it never takes as dead letters that say so."""
        while letters:
            try:
                await self._until_taken(partial(self._queue.publish, letters))
            except UnfitLetterError as error:
                await self._until_taken(partial(self._queue.publish_dead, *self._instead(error, api)))
                letters = [each for each in letters if each.key != error.key]
            else:
                self.published += len(letters)
                return

    def _instead(self, unfit: UnfitLetterError, api: str) -> tuple[Letter, str]:
        """What stands among the dead letters for a record that does not fit into any, and why."""
        body = {"id": unfit.key, "api": api, "crawled": self._clock.wall(), "not_queued": unfit.why}
        why = f"the record {unfit.why}; to ask for it again: sanderling sequence missed import"
        return Letter(unfit.key, msgspec.json.encode(body)), why

    async def _until_taken(self, give: Callable[[], Awaitable[None]]) -> None:
        """Return when the queue has taken it, however long that takes: to go on without would lose it."""
        pause = FIRST_PAUSE
        while True:
            try:
                await give()
            except QueueError as error:
                self.failures += 1
                self.trouble = str(error)
            else:
                self.trouble = ""
                return
            if self._pauses.stopped:
                raise QueueError(self.trouble)
            await self._pauses.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)


# Ids are small, and come by the thousand: while the queue is away, so much of them may wait for it.
RULES = WriterRules(items=2000, most_bytes=64 * 2**20, most_items=40_000)


class SequenceWriter(Writer[End, Never, SavedCrawl, None]):
    """`keep` a record, `skip` one, `miss` ids: the cursor may pass them from then on."""

    def __init__(
        self, sink: SequenceSink, cursor: IdCursor, api: str, clock: Clock, rules: WriterRules | None = None
    ) -> None:
        self.cursor = cursor
        self.clock = clock
        self.newest: int | None = None  # the highest id that has a record
        self._api = api
        super().__init__(sink, self.checkpoint, clock, rules or RULES)

    def checkpoint(self) -> SavedCrawl:
        """Where the crawl is, as far as it has ended."""
        return SavedCrawl(self._api, self.cursor.position(), self.newest)

    def keep(self, number: int, message: bytes) -> None:
        """Queue a record with the next write."""
        self._resolve(Resolved(number, message), len(message))

    def skip(self, number: int) -> None:
        """Settle an id whose record nobody wants."""
        self._resolve(Resolved(number), 0)

    def miss(self, missed: Sequence[Missed]) -> None:
        """Settle ids that were not to be had, or note that they still are not."""
        for each in missed:
            if each.low == each.high:
                self.cursor.settle(each.low)
            self.add(each)

    def _resolve(self, ended: Resolved, size: int) -> None:
        self.newest = ended.number if self.newest is None else max(self.newest, ended.number)
        self.cursor.settle(ended.number)
        self.add(ended, size)
