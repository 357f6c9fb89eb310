"""Where an id ends: records into the queue first, then cursor and missed ids to disk, in one write.

An id is settled when its fate is durable. What a crash leaves in the queue without the cursor having moved is asked and
queued once more, and the store, which knows every id, keeps it once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from sanderling.clock import Clock
from sanderling.executor import Executor
from sanderling.sequence.cursor import Position, ranges_of
from sanderling.sequence.missed import Missed
from sanderling.sequence.state import Fates, Saved, SequenceState
from sanderling.stores.queue import Letter, Queue, QueueError, UnfitLetterError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between tries while the queue is not to be had


class Resolved(NamedTuple):
    """An id that has a record; without a message it is one that nobody wants."""

    number: int
    message: bytes | None = None


End = Resolved | Missed


class SequenceSink:
    """Queue and disk of a crawl. While the queue is not to be had, `write` waits for it, until `stop`."""

    def __init__(self, state: SequenceState, queue: Queue, desk: Executor, clock: Clock, position: Position) -> None:
        self.state = state
        self.desk = desk
        self.durable = position  # what a restart would find
        self.published = 0
        self.failures = 0  # of publishing
        self.trouble = ""  # why the queue is not to be had, while it is not
        self._queue = queue
        self._clock = clock
        self._retry = asyncio.Event()
        self._stopping = False

    async def write(self, ended: Sequence[End], found: Sequence[object], checkpoint: Saved) -> None:
        """Return when all of it is durable."""
        del found  # ids are not found, they follow each other
        resolved = [each for each in ended if isinstance(each, Resolved)]
        letters = [Letter(str(each.number), each.message) for each in resolved if each.message is not None]
        await self._publish(letters, checkpoint.api)
        missed = [each for each in ended if isinstance(each, Missed)]
        fates = Fates(ranges_of([each.number for each in resolved]), missed)
        await self.desk(self.state.record, checkpoint, fates)
        self.durable = checkpoint.position

    def stop(self) -> None:
        """Wait no longer for a queue that is away. The cursor has not moved: nothing is lost."""
        self._stopping = True
        self._retry.set()

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
            if self._stopping:
                raise QueueError(self.trouble)
            self._retry.clear()
            timer = self._clock.call_later(pause, self._retry.set)
            await self._retry.wait()
            timer.cancel()
            pause = min(LONGEST_PAUSE, 2 * pause)
