"""Changes and positions in memory, with a store's moods: it may be slow before and after it looks, and it may fail."""

from bisect import bisect
from collections.abc import Awaitable, Callable

from sanderling.stores.polling import ChangeSpan, Op, PollingStoreError, RowChange

Mood = Callable[[], Awaitable[None]]


async def calm() -> None:
    """Answer at once."""


async def broken() -> None:
    raise PollingStoreError("sqlite:race.db cannot be read: disk I/O error")


def change(seq: int, text: str = "") -> RowChange:
    return RowChange(
        seq=seq,
        at=1_800_000_000.0 + seq,
        op=Op.INSERT,
        table="laps",
        key=f"lap-{seq}",
        values={"id": f"lap-{seq}", "seconds": seq / 8, "note": text},
        kind="race",
        source_id="heat-1",
        event="cup",
    )


class MemoryChanges:
    def __init__(self, newest: int = 0) -> None:
        self.kept = [change(seq) for seq in range(1, newest + 1)]
        self.newest = newest
        self.positions: dict[str, int] = {}
        self.mood: Mood = calm
        self.reads: list[tuple[int, int]] = []
        self.trims: list[int] = []

    def commit(self, count: int = 1, *, holes: int = 0) -> list[RowChange]:
        """The next changes; before them so many numbers that belong to nothing."""
        first = self.newest + 1 + holes
        made = [change(seq) for seq in range(first, first + count)]
        self.kept += made
        self.newest = first + count - 1
        return made

    def forget(self, keep: int) -> int:
        gone = max(0, len(self.kept) - keep)
        del self.kept[:gone]
        return gone

    async def changes(self, after: int, most: int) -> list[RowChange]:
        self.reads.append((after, most))
        await self.mood()
        start = bisect(self.kept, after, key=lambda each: each.seq)
        found = self.kept[start : start + most]
        await self.mood()
        return found

    async def span(self) -> ChangeSpan:
        await self.mood()
        span = ChangeSpan(self.kept[0].seq if self.kept else 0, self.newest)
        await self.mood()
        return span

    async def trim(self, keep: int) -> int:
        await self.mood()
        self.trims.append(keep)
        return self.forget(keep)

    async def position(self, name: str) -> int | None:
        await self.mood()
        return self.positions.get(name)

    async def advance(self, name: str, seq: int) -> None:
        await self.mood()
        self.positions[name] = seq
