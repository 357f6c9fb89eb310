"""What changed, for whoever follows it: each number once and in order, from memory or from the store.

A follower is nothing but a number. What comes next for it is looked up when it asks: among the last changes, which are
in memory for all followers together, or else in the store. So a slow one holds up nobody and costs no memory, and a
follower gets either every change or the word that some are no longer to be had.

Tricky bits:

- The store is the truth, and what we are told a shortcut: a commit whose confirmation was lost, or one by another
  process, is found by looking, once a second.
- A change may be in the store before we are told. A follower that reads it there is ahead of `newest` for a moment,
  and waits until the others have caught up.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.stores.polling import ChangeLog, ChangeSpan, PollingStoreError, RowChange

log = logs.get(__name__)

# Changes in memory, and characters of them: a change has the whole row, which a stranger may have made large.
RING, RING_BYTES = 1_000, 32 << 20
MOST = 500  # changes at once
READS = 4  # of followers at the same time: a thousand that come back together must not crowd out whoever polls
LOOK_SECONDS = 1.0
TRIM_SECONDS = 60.0
# Between tries while the store cannot be read.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


class Trimmed(Exception):  # noqa: N818 - nothing went wrong
    """What comes after that number is not to be had; `oldest` is the first number that is, or that will be."""

    def __init__(self, after: int, oldest: int) -> None:
        super().__init__(f"changes after {after} were asked for, and those from {oldest} on are there")
        self.oldest = oldest


class ChangeFeed:
    """`open`, `note` what was committed, `tend` until `close`; anyone may `follow`."""

    def __init__(self, changes: ChangeLog, clock: Clock, *, keep: int = 100_000) -> None:
        if keep < 1:
            raise ValueError(f"{keep} changes to keep, expected at least 1")
        self.newest = 0
        self.oldest = 1  # as of the last look; the next one that will be, if there are none
        self.trouble = ""  # why the store cannot be read, while it cannot
        self.closed = False
        self._changes = changes
        self._clock = clock
        self._keep = keep
        self._ring: list[RowChange] = []  # numbers without a hole
        self._held = 0  # their weight
        self._news = asyncio.Event()  # one for all who wait; set once, and replaced
        self._reads = asyncio.Semaphore(READS)
        self._resting: set[asyncio.Event] = set()

    def __repr__(self) -> str:
        return f"<ChangeFeed of {self.oldest} to {self.newest}, {len(self._ring)} in memory>"

    async def open(self) -> None:
        """Learn where the changes end; who follows from `newest` gets all after that. Raises PollingStoreError."""
        self._learn(await self._changes.span())

    def note(self, changes: Sequence[RowChange]) -> None:
        """Tell all followers what was committed. Numbers that are missing in between they find in the store."""
        for change in changes[-RING:]:
            last = self._ring[-1].seq if self._ring else change.seq - 1
            if change.seq > last + 1:
                self._drop(len(self._ring))
            if change.seq > last:  # otherwise a look has found it before
                self._ring.append(change)
                self._held += _weight(change)
        self._drop(len(self._ring) - RING)
        while self._held > RING_BYTES:
            self._drop(1)
        if changes:
            self._reach(changes[-1].seq)

    def _drop(self, oldest: int) -> None:
        """Hold so many less in memory."""
        if oldest > 0:
            self._held -= sum(map(_weight, self._ring[:oldest]))
            del self._ring[:oldest]

    async def look(self) -> None:
        """Find what was committed without our being told. Raises PollingStoreError."""
        span = await self._changes.span()
        # Once, for all followers; if there are more, they read the rest themselves.
        self.note(await self._changes.changes(self.newest, RING))
        self._learn(span)

    def _learn(self, span: ChangeSpan) -> None:
        self.oldest = max(self.oldest, _first(span))
        self._reach(span.newest)
        if self.trouble:
            self.trouble = ""
            log.info("feed_store_works_again")

    def _reach(self, newest: int) -> None:
        if newest > self.newest:
            self.newest = newest
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def follow(self, after: int, most: int = MOST) -> AsyncGenerator[list[RowChange], None]:
        """All changes after that number, some at a time, until the feed is closed.

        Raises Trimmed if some of them are no longer there, or if there never was such a number.
        """
        if most < 1:
            raise ValueError(f"{most} changes at a time, expected at least 1")
        if after > self.newest:
            await self._check_future(after)
        while batch := await self._next(after, most):
            after = batch[-1].seq
            yield batch
            # It may be long until there is a next one.
            del batch

    async def _check_future(self, after: int) -> None:
        """A number that we were not told of may be from the store all the same."""
        pause = FIRST_PAUSE
        while not self.closed:
            try:
                await self.look()
            except PollingStoreError as error:
                pause = await self._recover(error, pause)
                continue
            if after > self.newest:
                raise Trimmed(after, self.oldest)
            return

    async def _next(self, after: int, most: int) -> list[RowChange]:
        """What comes after that number, as soon as there is something; nothing once closed."""
        pause = FIRST_PAUSE
        while not self.closed:
            news = self._news
            if after >= self.newest:
                await news.wait()
                continue
            try:
                batch = self._remembered(after, most) or await self._read(after, most)
            except PollingStoreError as error:
                pause = await self._recover(error, pause)
                continue
            if batch:
                return batch
            # The last numbers there ever were belong to nothing, or the store is behind.
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_PAUSE):
                    await news.wait()
        return []

    def _remembered(self, after: int, most: int) -> list[RowChange]:
        start = after + 1 - self._ring[0].seq if self._ring else -1
        return self._ring[start : start + most] if start >= 0 else []

    async def _read(self, after: int, most: int) -> list[RowChange]:
        async with self._reads:
            batch = await self._changes.changes(after, most)
            if batch and batch[0].seq == after + 1:
                return batch
            # A hole: numbers that were trimmed, or that never were.
            span = await self._changes.span()
        self._learn(span)
        if _first(span) > after + 1:
            raise Trimmed(after, _first(span))
        return batch

    async def _recover(self, error: PollingStoreError, pause: float) -> float:
        """Wait before the next try; say how long to wait after that."""
        self._fail(error)
        await self.rest(pause)
        return min(LONGEST_PAUSE, 2 * pause)

    def _fail(self, error: PollingStoreError) -> None:
        # One line for all followers: they all wait for the same store.
        if not self.trouble:
            log.warning("feed_store_fails", why=str(error))
        self.trouble = str(error)

    async def tend(self) -> None:
        """Look, and trim the store now and then, until `close`."""
        trimmed = -math.inf
        while not self.closed:
            try:
                if (now := self._clock.now()) - trimmed >= TRIM_SECONDS:
                    await self._changes.trim(self._keep)
                    trimmed = now
                await self.look()
            except PollingStoreError as error:
                self._fail(error)
            await self.rest(LOOK_SECONDS)

    async def rest(self, seconds: float) -> None:
        """Return after `seconds`, or as soon as the feed is closed."""
        if self.closed:
            return
        over = asyncio.Event()
        self._resting.add(over)
        timer = self._clock.call_later(seconds, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()
            self._resting.discard(over)

    def close(self) -> None:
        """End all followers, and whoever rests."""
        self.closed = True
        self._wake()
        for over in self._resting:
            over.set()


def _weight(change: RowChange) -> int:
    """How many characters it holds, as far as that may be many."""
    return sum(len(value) for value in change.values.values() if isinstance(value, str))


def _first(span: ChangeSpan) -> int:
    """The first number that is there, or the next one that will be."""
    return span.oldest or span.newest + 1
