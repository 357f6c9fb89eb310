"""The routes about what was found: rows, changes, and the stream of changes."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Protocol

import msgspec
from aiohttp import web
from msgspec import UNSET

from sanderling.polling.feed import Trimmed
from sanderling.stores.documents import SourceRow
from sanderling.stores.polling import Op, RowChange
from sanderling.web.parsing import Nothing, given
from sanderling.web.polling_types import LARGEST, ChangesQuery, EventsQuery, RowsQuery, TablePath
from sanderling.web.polling_views import ChangePage, Reset, RowPage, Trimming, row_view
from sanderling.web.problems import ProblemError, problem, title
from sanderling.web.routes import Asked
from sanderling.web.stream import RETRY, Streams, alive, event

# Changes that are read at once, and bytes that are sent at once: a client that does not read holds both in memory.
MOST, LARGEST_PIECE = 100, 65_536
UNKNOWN = -1  # a position that no change has


class Followed(Protocol):
    """A feed of changes."""

    @property
    def newest(self) -> int:
        """The number of the newest change."""

    @property
    def oldest(self) -> int:
        """The first number that is to be had."""

    async def look(self) -> None:
        """Learn both anew. Raises PollingStoreError."""

    def follow(self, after: int, most: int = 500) -> AsyncGenerator[list[RowChange], None]:
        """All changes after that number, until the feed is closed. Raises Trimmed."""


class RowControl(Protocol):
    """What there must be behind these routes. What is asked of it raises PollingStoreError."""

    @property
    def feed(self) -> Followed:
        """What changes."""

    async def rows(self, table: str, *, event: str | None, after: str, most: int) -> list[SourceRow]:
        """Rows of a table, by key. Raises KeyError if there is no such table."""

    async def changes(self, after: int, most: int) -> list[RowChange]:
        """The next ones after a number."""


class RowRoutes:
    """They answer."""

    def __init__(self, control: RowControl, streams: Streams) -> None:
        self._control = control
        self._streams = streams

    async def rows(self, asked: Asked[TablePath, RowsQuery, Nothing]) -> RowPage:
        """Rows of a table, in the order of their keys.

        To have a copy of a table: read all pages, then follow the changes after the `seq` of the first page.
        """
        table, query = asked.path.table, asked.query
        # Before the rows: a change in between is told again, and none is missed.
        seq = self._control.feed.newest
        try:
            found = await self._control.rows(table, event=given(query.event), after=query.after, most=query.limit + 1)
        except KeyError:
            raise problem(404, f"there is no table {table!a:.100}") from None
        page = found[: query.limit]
        return RowPage(
            rows=tuple(row_view(row) for row in page), next=page[-1].key if len(found) > query.limit else None, seq=seq
        )

    async def changes(self, asked: Asked[Nothing, ChangesQuery, Nothing]) -> ChangePage:
        """Changes after a number, in order.

        Status 410 if some of them are no longer to be had, or there never was such a number: then read the rows anew.
        """
        since, feed = asked.query.since, self._control.feed
        found = await self._control.changes(since, asked.query.limit)
        complete = found[0].seq == since + 1 if found else since == feed.newest
        if not complete:
            # What is missing was trimmed, or belongs to nobody, or we are behind.
            await feed.look()
            if not feed.oldest - 1 <= since <= feed.newest:
                raise _trimmed(since, feed)
        return ChangePage(changes=tuple(found), newest=max(feed.newest, found[-1].seq if found else 0))

    async def events(self, asked: Asked[Nothing, EventsQuery, Nothing]) -> web.StreamResponse:
        """The stream of changes, as server-sent events: `change`, with a change as data.

        It begins after `since`, or after Last-Event-ID if a client comes back; without either, with what comes. An
        event `reset` says that changes are missing, and that it goes on after the newest: read the rows anew. A purge
        is told whatever the filters.
        """
        query = asked.query
        told = Told(self._control.feed, _position(asked.request.headers.get("Last-Event-ID", ""), query), query)
        return await self._streams.serve(asked.request, told.frames(), told.silent)


class Told:
    """What one client is told, and how far it is."""

    def __init__(self, feed: Followed, since: int | None, wanted: EventsQuery) -> None:
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
            async with aclosing(self._told()) as told:
                async for data in told:
                    yield data

    async def _told(self) -> AsyncGenerator[bytes, None]:
        """All up to the end, or up to a reset."""
        async with aclosing(self._batches()) as batches:
            async for batch in batches:
                for data, last in self._spelled(batch):
                    yield data
                    self.position = last

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

    def _spelled(self, batch: list[RowChange] | Reset) -> Iterator[tuple[bytes, int]]:
        if isinstance(batch, Reset):
            yield event("reset", msgspec.json.encode(batch), batch.newest), batch.newest
        else:
            yield from pieces(change for change in batch if self._wants(change))

    def _wants(self, change: RowChange) -> bool:
        if change.op is Op.PURGE:
            return True
        wanted = self._wanted
        return wanted.table in (UNSET, change.table) and wanted.kind in (UNSET, change.kind)


def change_event(change: RowChange) -> bytes:
    """A change as it is told."""
    return event("change", msgspec.json.encode(change), change.seq)


def pieces(changes: Iterable[RowChange]) -> Iterator[tuple[bytes, int]]:
    """Changes as events, some in one piece, and the number of the last one in it."""
    piece, last = b"", 0
    for change in changes:
        piece, last = piece + change_event(change), change.seq
        if len(piece) >= LARGEST_PIECE:
            yield piece, last
            piece = b""
    if piece:
        yield piece, last


def _position(last: str, query: EventsQuery) -> int | None:
    """Where a client wants to begin; None for now."""
    if last:
        number = int(last) if last.isascii() and last.isdecimal() and len(last) < 20 else UNKNOWN
        return number if number <= LARGEST else UNKNOWN
    return None if query.since is UNSET else query.since


def _trimmed(since: int, feed: Followed) -> ProblemError:
    detail = f"changes after {since} were asked for, and those from {feed.oldest} to {feed.newest} are there"
    return ProblemError(Trimming(title=title(410), status=410, detail=detail, oldest=feed.oldest, newest=feed.newest))
