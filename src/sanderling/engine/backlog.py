"""What waits for each host of a crawl: a few items in memory, the rest in the frontier; and what loads them."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from sanderling.clock import Clock
from sanderling.engine.hosts import HostState
from sanderling.executor import Executor

HELD = 20_000  # items in memory, over all hosts
MOST_PER_HOST = 256  # that are loaded at once
MOST_HELD = 512  # items of one host in memory, those that were put off among them
FEW = 16  # items of one host that were not put off; with fewer, more are loaded


class Waits(Protocol):
    """An item that waits in a frontier."""

    @property
    def id(self) -> int:
        """Its id there."""

    @property
    def url(self) -> str:
        """Its URL."""

    @property
    def failures(self) -> int:
        """How many requests for it failed in a row, in an earlier run."""

    @property
    def due(self) -> float:
        """When it is due after that, in seconds since 1970."""


Q = TypeVar("Q", bound=Waits)


@dataclass(slots=True, eq=False)
class BacklogHost(HostState, Generic[Q]):
    """What waits for one host."""

    waiting: int = 0  # items without an end, in memory, on disk and in flight
    on_disk: int = 0  # of those, in the frontier and not yet taken
    after: int = 0  # the last id that was taken
    loading: bool = False  # whether the frontier was asked for more
    counted: int = 0  # items in memory, as far as the loader has heard of them
    withheld: int = 0  # items that are left waiting for the next run, though the host answers
    ready: deque[Q] | None = None  # made when needed: most hosts of a wide crawl have a handful of items
    _later: list[tuple[float, int, Q]] | None = None

    def want(self, most: int) -> tuple[Any, ...]:
        """What to take from the frontier next, and last how many: no more than we were told of.

        What was found while a crawl drains is for the next run.
        """
        return self.name, self.after, min(most, self.on_disk)

    def put(self, items: list[Q], now: float, wall: float, longest: float) -> None:
        """Take in what came from the frontier, in its order; what failed in an earlier run when it is due."""
        for queued in items:
            if queued.failures:
                self.recall(queued.id, queued.failures, now)
                # A clock that was wrong must not put anything off for longer than we ever do.
                self.put_off(queued, now + min(longest, max(0.0, queued.due - wall)))
            else:
                self.line_up(queued)
        if items:
            self.after = items[-1].id
            self.on_disk = max(0, self.on_disk - len(items))

    def took_all(self, number: int) -> None:
        """All that waits on disk is these so many, which come next."""
        self.on_disk = number

    def line_up(self, queued: Q) -> None:
        """Last in line."""
        self.ready = self.ready or deque()
        self.ready.append(queued)

    def put_back(self, queued: Q) -> None:
        """First in line again: it could not be asked for now. What has failed stays behind what has not."""
        if self.failures(queued.id):
            self.put_off(queued, 0.0)
            return
        self.ready = self.ready or deque()
        self.ready.appendleft(queued)

    def put_off(self, queued: Q, until: float) -> None:
        """Not before `until`."""
        self._later = self._later or []
        heapq.heappush(self._later, (until, queued.id, queued))

    def pop_new(self) -> Q | None:
        """The next that was never put off."""
        return self._popped(self.ready.popleft()) if self.ready else None

    def pop_last(self) -> Q | None:
        """The last that was never put off, far away from what may be broken."""
        return self._popped(self.ready.pop()) if self.ready else None

    def pop_again(self, now: float) -> Q | None:
        """The next that was put off and is due."""
        return heapq.heappop(self._later)[2] if self.has_again(now) and self._later else None

    def _popped(self, queued: Q) -> Q:
        self.ready = self.ready or None  # an empty one is three times as large as all the rest of a host
        return queued

    @property
    def has_new(self) -> bool:
        """Whether something that was never put off is in memory."""
        return bool(self.ready)

    def has_again(self, now: float) -> bool:
        """Whether something that was put off is due."""
        return bool(self._later) and self._later is not None and self._later[0][0] <= now

    def due(self) -> float | None:
        """When there is next something to take; 0 if there is now, None if there is nothing in memory."""
        if self.has_new:
            return 0.0
        return self._later[0][0] if self._later else None

    @property
    def is_short(self) -> bool:
        """Whether little is in memory, and more on disk."""
        if not self.on_disk:
            return False
        fresh = len(self.ready or ())
        return fresh < FEW and fresh + len(self._later or ()) < MOST_HELD

    @property
    def held(self) -> int:
        """How many items are in memory, without those in flight."""
        return len(self.ready or ()) + len(self._later or ())

    def drop(self) -> None:
        """Forget what is in memory, and leave it to the next run."""
        self.withheld += self.held
        self.ready = self._later = None

    @property
    def set_aside(self) -> int:
        """How many of its items are left to the next run."""
        return self.waiting if self.aside else self.withheld


H = TypeVar("H", bound=BacklogHost[Any])


class Loader(Generic[H]):
    """Brings what waits on disk into memory, HELD items at most. `run` answers wants until it is cancelled.

    Hosts that want more stand in line while there is no room, each for its share; one with little goes on with little.
    """

    def __init__(
        self, take: Callable[[Sequence[Any]], list[list[Any]]], executor: Executor, clock: Clock, longest_pause: float
    ) -> None:
        self.clock = clock
        self.sharing = 1  # hosts that share the memory
        self.most = HELD  # items in memory
        self._take = take
        self._executor = executor
        self._longest = longest_pause
        self.held = 0  # items in memory
        self._wants: deque[H] = deque()
        self._spare: deque[H] = deque()  # hosts that were set aside
        self._wanted = asyncio.Event()
        self._busy = False

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way from disk."""
        return not (self._wants or self._busy)

    def want(self, host: H) -> None:
        """Bring more of what waits for the host, if it has little in memory and more on disk."""
        self.count(host)
        if not host.loading and host.is_short:
            host.loading = True
            self._wants.append(host)
        if self._wants and (self.held < self.most or self._spare):
            self._wanted.set()

    def count(self, host: H) -> None:
        """Take note of what the host has in memory."""
        held = host.held
        self.held += held - host.counted
        host.counted = held

    def spare(self, host: H) -> None:
        """The host was set aside: what it has in memory is the first to go."""
        self._spare.append(host)

    def _next(self) -> list[tuple[H, tuple[Any, ...]]]:
        """The hosts that are loaded next, in turn, and what of each, as long as there is room."""
        while self.held >= self.most and self._spare:
            if (host := self._spare.popleft()).aside:
                host.drop()
                self.count(host)
        room, following = self.most - self.held, []
        share = max(1, min(MOST_PER_HOST, self.most // max(self.sharing, len(self._wants))))
        while self._wants and room > 0:
            host = self._wants.popleft()
            want = host.want(min(share, room))
            room -= want[-1]
            following.append((host, want))
        return following

    async def run(self, loaded: Callable[[list[H]], object]) -> None:
        """Load what is wanted, and say which hosts it was for."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if not (following := self._next()):
                continue
            self._busy = True
            now, wall = self.clock.now(), self.clock.wall()
            taken = await self._executor(self._take, [want for _, want in following])
            for (host, want), items in zip(following, taken, strict=True):
                host.loading = False
                if len(items) < want[-1]:
                    host.took_all(len(items))
                host.put(items, now, wall, self._longest)
                self.want(host)  # also of another priority
            self._busy = False
            loaded([host for host, _ in following])
