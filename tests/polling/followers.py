"""Followers of a feed that remember what they saw."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memory_changes import MemoryChanges

from sanderling.polling.change_feed import ChangeFeed, Trimmed
from sanderling.stores.polling import RowChange
from sanderling.testing import LoopClock


async def opened(store: MemoryChanges, keep: int = 100_000) -> ChangeFeed:
    feed = ChangeFeed(store, LoopClock(), keep=keep)
    await feed.open()
    return feed


def numbers(changes: Sequence[RowChange]) -> list[int]:
    return [change.seq for change in changes]


@dataclass
class Follower:
    """Follows from a number on, thinks after each batch, and remembers."""

    after: int
    most: int = 500
    think: Callable[[], float] = lambda: 0.0
    seen: list[int] = field(default_factory=list)
    trimmed: Trimmed | None = None
    ended: bool = False

    @property
    def reached(self) -> int:
        return self.seen[-1] if self.seen else self.after

    async def follow(self, feed: ChangeFeed) -> None:
        try:
            async for batch in feed.follow(self.after, self.most):
                assert 0 < len(batch) <= self.most
                self.seen += numbers(batch)
                if seconds := self.think():
                    await asyncio.sleep(seconds)
        except Trimmed as trimmed:
            self.trimmed = trimmed
        self.ended = True


@asynccontextmanager
async def following(feed: ChangeFeed, *followers: Follower) -> AsyncIterator[None]:
    """While the followers follow; the feed is closed at the end."""
    async with asyncio.timeout(100_000), asyncio.TaskGroup() as group:
        for follower in followers:
            group.create_task(follower.follow(feed))
        yield
        feed.close()
