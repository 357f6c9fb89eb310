"""The one writer of a store: what ended and what was found goes to disk in groups, with the source's checkpoint.

A group is cut at one instant, so that an item is either in the group or still open at the checkpoint. It is written
every half a second, earlier when much has come in, and within 20 ms while nothing else can be sent.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sanderling.clock import Clock, Timer
from sanderling.engine.ports import Sink

E = TypeVar("E")
F = TypeVar("F")
C = TypeVar("C")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WriterRules:
    """When a group is written. Times in seconds."""

    every: float = 0.5  # what a crash makes us ask again, never what it loses
    hungry: float = 0.02  # the same while nothing else can be sent
    items: int = 500  # that ended; then a group is written at once
    bytes: int = 8 * 2**20
    most_bytes: int = 16 * 2**20  # in memory, those that are being written among them; then nothing more is asked for
    most_items: int = 2000
    # Where writing one costs as much as writing fifty: what ended waits so long for so many. What was found does not,
    # nor does the checkpoint: it must say nothing of what ended.
    gather: float = 0.0
    enough: int = 1


class Writer(Generic[E, F, C, T]):
    """`add` what ended, `find` what was found; `run` writes it until `close`."""

    def __init__(
        self, sink: Sink[E, F, C, T], checkpoint: Callable[[], C], clock: Clock, rules: WriterRules | None = None
    ) -> None:
        self._hungry = False
        self.still = False  # whether nothing more will come before what is here is on disk
        self._sink = sink
        self._checkpoint = checkpoint
        self._clock = clock
        self._rules = rules or WriterRules()
        self._ended: list[E] = []
        self._found: list[F] = []
        self._size = 0
        self._writing_items = self._writing_size = 0
        self._busy = False
        self._since = 0.0  # when the first of the group came in
        self._last: C | None = None  # the checkpoint that is on disk
        self.added = self.durable = 0  # items that ended, in all, and of those on disk
        self._soon: Timer | None = None  # by which a group is written early
        self._wake = asyncio.Event()
        self._written = asyncio.Event()
        self._closing = False
        self._turn = asyncio.Lock()

    @property
    def hungry(self) -> bool:
        """Whether nothing else can be sent before what is here is on disk."""
        return self._hungry

    @hungry.setter
    def hungry(self, hungry: bool) -> None:
        self._hungry = hungry
        if hungry and self._soon is None and (self._found or self._is_ripe):
            self._soon = self._clock.call_later(self._rules.hungry, self._hurry)

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way to disk."""
        return not (self._ended or self._found or self._busy)

    @property
    def crowded(self) -> bool:
        """Whether so much waits to be written that nothing more should be asked for."""
        size, items = self._size + self._writing_size, len(self._ended) + self._writing_items
        return size > self._rules.most_bytes or items > self._rules.most_items

    @property
    def finds(self) -> int:
        """How much of what was found is not on its way to disk yet."""
        return len(self._found)

    def add(self, ended: E, size: int = 0) -> None:
        """Write what became of an item, with the next group."""
        if not self._ended:
            self._since = self._clock.now()
        self._ended.append(ended)
        self._size += size
        self.added += 1
        if self._size >= self._rules.bytes or len(self._ended) >= self._rules.items:
            self._wake.set()

    def find(self, found: F) -> None:
        """Write what was found, with the next group."""
        self._found.append(found)
        if self.hungry:
            self._wake.set()

    async def run(self, written: Callable[[T], object]) -> None:
        """Write what comes in until `close`; `written` is told what the sink says of each group."""
        while not self._closing:
            await self._pause()
            if self._found or self._is_ripe or self._checkpoint() != self._last:
                await self.flush(written)
        while not self.idle:
            await self.flush(written, everything=True)

    async def flush(self, written: Callable[[T], object], *, everything: bool = False) -> None:
        """Write what came in; what ended and may wait for more only if `everything` is wanted."""
        async with self._turn:
            if self._soon is not None:
                self._soon.cancel()
                self._soon = None
            ended: list[E] = []
            if everything or self._is_ripe:
                ended, self._ended = self._ended, []
                self._writing_items, self._writing_size, self._size = len(ended), self._size, 0
            found, self._found = self._found, []
            checkpoint, added = self._checkpoint(), self.added - len(self._ended)
            self._busy = True
            try:
                result = await self._sink.write(ended, found, checkpoint)
            finally:
                self._busy = False
                self._writing_items = self._writing_size = 0
            self._last, self.durable = checkpoint, added
        self._written.set()
        written(result)

    async def settled(self) -> None:
        """Return when all that ended so far is on disk. For while `run` runs."""
        added = self.added  # and not until nothing is left: more comes in all the time
        while self.durable < added:
            self._written.clear()
            self._wake.set()
            await self._written.wait()

    def close(self) -> None:
        """Let `run` come to its end, with all that came in."""
        self._closing = True
        self._sink.stop()
        self._wake.set()

    @property
    def _is_large(self) -> bool:
        return len(self._ended) >= self._rules.items or self._size >= self._rules.bytes

    @property
    def _is_ripe(self) -> bool:
        """Whether what ended should not wait for more."""
        if not self._ended:
            return False
        if not self._rules.gather or self.still or self._closing or self._is_large:
            return True
        return len(self._ended) >= self._rules.enough or self._clock.now() - self._since >= self._rules.gather

    def _hurry(self) -> None:
        self._soon = None
        self._wake.set()

    async def _pause(self) -> None:
        """Until somebody calls, or it is time."""
        if not self._is_large:
            wait = self._rules.hungry if self.hungry and self._found else self._rules.every
            timer = self._clock.call_later(wait, self._wake.set)
            await self._wake.wait()
            timer.cancel()
        self._wake.clear()
