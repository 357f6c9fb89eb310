"""The changes as a stream: each follower goes on where it was, and those that keep up share one copy."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator

import msgspec

from sanderling.clock import Clock
from sanderling.polling.store import Change, Store
from sanderling.polling.tables import RECORDS
from sanderling.serving import StreamEvent

LOOK = 0.1  # seconds between two looks for new changes
ALIVE = 10.0
KEPT = 2000  # changes in memory
PAGE = 500


class Feed:
    """Reads new changes once for all followers."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.position = 0
        self.followers = 0
        self._store = store
        self._clock = clock
        self._recent: deque[StreamEvent] = deque(maxlen=KEPT)
        self._more = asyncio.Event()

    async def start(self) -> None:
        """Begin at the newest change."""
        self.position = await self._store.position()

    async def work(self) -> None:
        """Read what is new, again and again."""
        while True:
            found = await self._store.changes(self.position, PAGE)
            if found:
                self._recent.extend(map(event_of, found))
                self.position = found[-1].position
                self._more.set()
                self._more = asyncio.Event()
            if len(found) < PAGE:
                await self._clock.sleep(LOOK)

    async def follow(self, after: int | None) -> AsyncGenerator[StreamEvent]:
        """Changes behind a position, then those that come. What the log does not hold any more begins with all rows."""
        self.followers += 1
        try:
            position = self.position if after is None else after
            if after is not None and (position > self.position or position + 1 < await self._store.oldest()):
                async for event in self._snapshot(position):
                    yield event
                    position = event.position
            while True:
                more = self._more
                events = await self._behind(position)
                for event in events:
                    yield event
                    position = event.position
                if not events and not await self._wait(more):
                    yield StreamEvent(position)
        finally:
            self.followers -= 1

    async def _behind(self, position: int) -> list[StreamEvent]:
        if position >= self.position:
            return []
        first = self._recent[0].position if self._recent else self.position + 1
        if position + 1 >= first:
            return list(_from(self._recent, position))
        return [event_of(each) for each in await self._store.changes(position, PAGE)]

    async def _wait(self, more: asyncio.Event) -> bool:
        try:
            async with asyncio.timeout(ALIVE):
                await more.wait()
        except TimeoutError:
            return False
        return True

    async def _snapshot(self, position: int) -> AsyncGenerator[StreamEvent]:
        """All rows, as they are now."""
        now = await self._store.position()
        said = {"reason": f"position {position} is not in the log any more", "position": now}
        yield StreamEvent(now, "reset", msgspec.json.encode(said))
        for table in RECORDS:
            for key, row in (await self._store.records(table)).items():
                yield StreamEvent(now, "row", msgspec.json.encode({"table": table, "key": key, "data": row}))


def _from(events: deque[StreamEvent], position: int) -> Iterator[StreamEvent]:
    newer = []
    for event in reversed(events):
        if event.position <= position:
            break
        newer.append(event)
    return reversed(newer)


def event_of(change: Change) -> StreamEvent:
    """A change as it is told."""
    head = msgspec.json.encode({"table": change.table, "key": change.key, "op": change.op, "at": change.at})
    return StreamEvent(change.position, "change", head[:-1] + b',"data":' + change.data.encode() + b"}")
