"""What came of the repos, on its way to disk: blocks into the segment first, then the progress takes note of them.

A DID counts as archived only when its block is durable. What a crash leaves between the two is found again at the next
start, in the segment itself.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sanderling.apis.atproto import Category
from sanderling.clock import Clock
from sanderling.flow.desk import Desk
from sanderling.repos.dispatcher import LowWater
from sanderling.stores.ports import Finished, Progress, Unfinished

EVERY = 0.5  # seconds between writes: what a crash makes us ask again, never what it loses
BYTES, ENDS = 16 * 2**20, 5000  # a write is due earlier when so much has come in
MOST = 128 * 2**20  # bytes that may wait for the disk; then nothing more is asked for


class Appends(Protocol):
    """The segments, as far as they are written to."""

    def append(self, blocks: list[tuple[str, bytes]]) -> int:
        """Make the blocks durable; the number of the segment."""

    @property
    def number(self) -> int:
        """The segment that is written to."""


class Archived(NamedTuple):
    """A repo that was read: its block."""

    did: str
    block: bytes


@dataclass(slots=True)
class _Batch:
    archived: list[Archived] = field(default_factory=list)
    failed: list[Unfinished] = field(default_factory=list)
    size: int = 0

    def __bool__(self) -> bool:
        return bool(self.archived or self.failed)

    @property
    def due(self) -> bool:
        return self.size >= BYTES or len(self.archived) + len(self.failed) >= ENDS


class Books:
    """`keep` a block, `note` a failure; `write` until `close`."""

    def __init__(self, segments: Appends, progress: Progress, desk: Desk, clock: Clock) -> None:
        self.water = LowWater()
        self._segments = segments
        self._progress = progress
        self._desk = desk
        self._clock = clock
        self.bytes = 0  # of repos that are durable, in this run
        self._batch = _Batch()
        self._writing: _Batch | None = None
        self._wake = asyncio.Event()
        self._written = asyncio.Event()
        self._closing = False

    @property
    def crowded(self) -> bool:
        """Whether so much waits for the disk that nothing more should be asked for."""
        return self._batch.size + (self._writing.size if self._writing else 0) > MOST

    def keep(self, archived: Archived) -> None:
        """Archive a repo with the next write."""
        self._batch.archived.append(archived)
        self._batch.size += len(archived.block)
        if self._batch.due:
            self._wake.set()

    def note(self, did: str, category: Category, *, for_good: bool = True) -> None:
        """Note with the next write why a repo was not to be had; for good if its category is, and that is meant."""
        self._batch.failed.append(Unfinished(did, category.value, category.permanent and for_good))
        if self._batch.due:
            self._wake.set()

    async def write(self, written: Callable[[], object]) -> None:
        """Write what comes in, now and then, until `close`; `written` is called each time."""
        while not self._closing:
            timer = self._clock.call_later(EVERY, self._wake.set)
            await self._wake.wait()
            timer.cancel()
            self._wake.clear()
            await self._flush()
            self._written.set()
            written()
        await self._flush()  # what came in during the last write

    async def settled(self) -> None:
        """Return when all that came in so far is written. For while `write` runs."""
        while self._batch or self._writing:
            self._written.clear()
            self._wake.set()
            await self._written.wait()

    async def _flush(self) -> None:
        batch, self._batch = self._batch, _Batch()
        self._writing = batch
        for did in (*(each.did for each in batch.archived), *(each.did for each in batch.failed)):
            self.water.settle(did)
        cursor = self.water.rise()
        if batch or cursor is not None:
            await self._desk(_record, self._segments, self._progress, batch, cursor)
        self.bytes += batch.size
        self._writing = None

    def close(self) -> None:
        """Let `write` come to its end, with all that came in."""
        self._closing = True
        self._wake.set()


def _record(segments: Appends, progress: Progress, batch: _Batch, cursor: str | None) -> None:
    """At the desk. The cursor stands for what this very write settles, so it moves with it and not before."""
    number = segments.append([(each.did, each.block) for each in batch.archived]) if batch.archived else segments.number
    done = [Finished(each.did, len(each.block)) for each in batch.archived]
    progress.record(done, batch.failed, cursor=cursor, segment=number)
