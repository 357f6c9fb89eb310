"""The changes that polling finds, as one client of the stream is told them."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

import msgspec
from msgspec import UNSET

from sanderling.polling.change_feed import ChangeFeed, Trimmed
from sanderling.stores.polling import Op, RowChange
from sanderling.web.polling_types import LARGEST, EventsQuery, Reset
from sanderling.web.stream import RETRY, alive, event

# Changes that are read at once, and bytes that are sent at once: a client that does not read holds both in memory.
MOST, LARGEST_PIECE = 100, 65_536
UNKNOWN = -1  # a position that no change has


class ChangeStream:
    """What one client is told, and how far it is."""

    def __init__(self, feed: ChangeFeed, since: int | None, wanted: EventsQuery) -> None:
        self.position = feed.newest if since is None else since  # what was sent, or was not wanted
        self._feed = feed
        self._wanted = wanted
        self._over = False

    def silent(self) -> bytes:
        """What is sent when there is nothing to say."""
        return alive(max(0, self.position))

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """All that it is told, piece by piece; asked for the next, it takes the last one for sent."""
        yield RETRY if self.position == UNKNOWN else RETRY + self.silent()
        while not self._over:
            async with aclosing(self._pieces()) as told:
                async for data, last in told:
                    yield data
                    self.position = last

    async def _pieces(self) -> AsyncGenerator[tuple[bytes, int], None]:
        """All up to the end, or up to a reset, each with how far it goes."""
        async with aclosing(self._batches()) as batches:
            async for batch in batches:
                for piece in self._spell(batch):
                    yield piece

    async def _batches(self) -> AsyncGenerator[list[RowChange] | Reset, None]:
        """What comes after the position, up to the end or up to where some of it is not to be had."""
        try:
            async with aclosing(self._feed.follow(self.position, MOST)) as batches:
                async for batch in batches:
                    yield batch
                    self.position = batch[-1].seq  # also past what was not wanted
            self._over = True
        except Trimmed as trimmed:
            yield Reset(oldest=trimmed.oldest, newest=max(self._feed.newest, trimmed.oldest - 1))

    def _spell(self, batch: list[RowChange] | Reset) -> Iterator[tuple[bytes, int]]:
        if isinstance(batch, Reset):
            yield event("reset", msgspec.json.encode(batch), batch.newest), batch.newest
        else:
            yield from pieces(change for change in batch if self._wants(change))

    def _wants(self, change: RowChange) -> bool:
        if change.op is Op.PURGE:
            return True
        wanted = self._wanted
        return wanted.table in (UNSET, change.table) and wanted.kind in (UNSET, change.kind)


def pieces(changes: Iterable[RowChange]) -> Iterator[tuple[bytes, int]]:
    """Changes as events, some in one piece, and the number of the last one in it."""
    piece, last = b"", 0
    for change in changes:
        piece, last = piece + event("change", msgspec.json.encode(change), change.seq), change.seq
        if len(piece) >= LARGEST_PIECE:
            yield piece, last
            piece = b""
    if piece:
        yield piece, last


def position_of(last: str, query: EventsQuery) -> int | None:
    """Where a client wants to begin: after its Last-Event-ID, or where it says; None for now."""
    if last:
        number = int(last) if last.isascii() and last.isdecimal() and len(last) < 20 else UNKNOWN
        return number if number <= LARGEST else UNKNOWN
    return None if query.since is UNSET else query.since
