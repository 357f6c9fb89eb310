"""What became of the ids, on its way to disk: records into the queue first, then cursor and missed ids in one write.

An id is settled when its fate is durable. What a crash leaves in the queue without the cursor having moved is asked and
queued once more, and the store, which knows every id, keeps it once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from sanderling.clock import Clock
from sanderling.flow.desk import Desk
from sanderling.sequence.cursor import Cursor, Position, ranges_of
from sanderling.sequence.missed import Missed
from sanderling.sequence.state import Fates, Saved, SequenceState
from sanderling.stores.queue import Letter, Queue, QueueError, UnfitLetterError

EVERY = 0.5  # seconds between writes: what a crash makes us ask again, never what it loses
BYTES, ENDS = 8 * 2**20, 2000  # a write is due earlier when so much has come in
MOST = 64 * 2**20  # bytes that may wait for the queue; then nothing more is asked for
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between tries while the queue is not to be had


@dataclass(slots=True)
class _Batch:
    letters: list[Letter] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)  # ids that have a record, kept or not
    missed: list[Missed] = field(default_factory=list)
    size: int = 0
    ends: int = 0

    @property
    def due(self) -> bool:
        return self.size >= BYTES or self.ends >= ENDS


@dataclass(slots=True)
class Books:
    """`keep` a record, `skip` one, `miss` ids; `write` until `close`."""

    api: str
    cursor: Cursor
    state: SequenceState
    queue: Queue
    desk: Desk
    clock: Clock
    newest: int | None = field(init=False, default=None)  # the highest id that has a record
    published: int = field(init=False, default=0)
    failures: int = field(init=False, default=0)  # of publishing
    trouble: str = field(init=False, default="")  # why the queue is not to be had, while it is not
    durable: Position = field(init=False)
    _batch: _Batch = field(init=False, default_factory=_Batch)
    _writing: _Batch | None = field(init=False, default=None)
    _wake: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _written: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _retry: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _came_in: int = field(init=False, default=0)  # ends, in all; and how many of them are written
    _on_disk: int = field(init=False, default=0)
    _closing: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.durable = self.cursor.position()

    @property
    def crowded(self) -> bool:
        """Whether so much waits for the queue that nothing more should be asked for."""
        waiting = (self._batch, self._writing) if self._writing else (self._batch,)
        return sum(batch.size for batch in waiting) > MOST or sum(batch.ends for batch in waiting) > 20 * ENDS

    def keep(self, number: int, message: bytes) -> None:
        """Queue a record with the next write."""
        self._batch.letters.append(Letter(str(number), message))
        self._batch.size += len(message)
        self.skip(number)

    def skip(self, number: int) -> None:
        """Settle an id whose record nobody wants."""
        self.newest = number if self.newest is None else max(self.newest, number)
        self.cursor.settle(number)
        self._batch.ended.append(number)
        self._came()

    def miss(self, missed: Sequence[Missed]) -> None:
        """Settle ids that were not to be had, or note that they still are not."""
        for each in missed:
            if each.low == each.high:
                self.cursor.settle(each.low)
        self._batch.missed += missed
        self._came()

    def _came(self) -> None:
        self._came_in += 1
        self._batch.ends += 1
        if self._batch.due:
            self._wake.set()

    async def write(self, written: Callable[[], object]) -> None:
        """Write what comes in, now and then, until `close`; `written` is called each time."""
        while not self._closing:
            timer = self.clock.call_later(EVERY, self._wake.set)
            await self._wake.wait()
            timer.cancel()
            self._wake.clear()
            await self._flush()
            self._written.set()
            written()
        await self._flush()  # what came in during the last write

    async def settled(self) -> None:
        """Return when all that came in so far is written. For while `write` runs."""
        # Not until nothing is left: more comes in all the time.
        came = self._came_in
        while self._on_disk < came:
            self._written.clear()
            self._wake.set()
            await self._written.wait()

    async def _flush(self) -> None:
        position = self.cursor.position()
        if not self._batch.ends and position == self.durable:
            return
        # Position and batch are of one moment: an id is in one of them.
        batch, self._batch, came = self._batch, _Batch(), self._came_in
        self._writing = batch
        if batch.letters:
            await self._publish(batch.letters)
        fates = Fates(ranges_of(batch.ended), batch.missed)
        await self.desk(self.state.record, Saved(self.api, position, self.newest), fates)
        self.durable = position
        self._on_disk = came
        self._writing = None

    async def _publish(self, letters: list[Letter]) -> None:
        """Return when all are durable in the queue, those that it never takes as dead letters that say so."""
        while letters:
            try:
                await self._until_taken(partial(self.queue.publish, letters))
            except UnfitLetterError as error:
                await self._until_taken(partial(self.queue.publish_dead, *self._instead(error)))
                letters = [each for each in letters if each.key != error.key]
            else:
                self.published += len(letters)
                return

    def _instead(self, unfit: UnfitLetterError) -> tuple[Letter, str]:
        """What stands among the dead letters for a record that does not fit into any, and why."""
        body = {"id": unfit.key, "api": self.api, "crawled": self.clock.wall(), "not_queued": unfit.why}
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
            if self._closing:
                # Whoever stops a crawl should not wait for a broker. The cursor has not moved: nothing is lost.
                raise QueueError(self.trouble)
            self._retry.clear()
            timer = self.clock.call_later(pause, self._retry.set)
            await self._retry.wait()
            timer.cancel()
            pause = min(LONGEST_PAUSE, 2 * pause)

    def close(self) -> None:
        """Let `write` come to its end, with all that came in."""
        self._closing = True
        self._wake.set()
        self._retry.set()
