"""How many bytes may be held at once: bodies on their way in, and what is made of them."""

import asyncio


class Memory:
    """Whoever would hold more than there is waits until others let go.

    Who came first never waits, or all could wait for each other with half a body in hand: so what is held can pass the
    limit, by one body at most.
    """

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"most is {most} bytes; it must be at least 1")
        self.most = most
        self.total = 0
        self._held: dict[str, int] = {}  # in the order of arrival
        self._changed = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Memory {self.total:,} of {self.most:,} bytes, {len(self._held)} holders>"

    async def hold(self, who: str, size: int) -> None:
        """Return when `who` may hold `size` bytes in all."""
        if not self.take(who, size):
            await self.room(who)

    def take(self, who: str, size: int) -> bool:
        """Hold `size` bytes in all for `who`; whether that may be now, and else when there is `room`."""
        self.total += size - self._held.get(who, 0)
        self._held[who] = size
        return self.total <= self.most or next(iter(self._held)) == who

    async def room(self, who: str) -> None:
        """Return when `who` may hold what it wants to."""
        while self.total > self.most and next(iter(self._held)) != who:
            self._changed.clear()
            await self._changed.wait()

    def held(self, who: str) -> int:
        """How many bytes `who` holds, or waits to hold."""
        return self._held.get(who, 0)

    def release(self, who: str) -> None:
        """`who` holds nothing any more; it may be said of who never did."""
        size = self._held.pop(who, None)
        if size is not None:
            self.total -= size
            self._changed.set()
