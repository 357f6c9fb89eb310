"""What waits in a frontier: a few items of each host in memory, the rest on disk. The part that such sources share."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, Protocol, TypeVar

from sanderling.clock import Clock
from sanderling.engine.classes import Class
from sanderling.engine.hosts import HostState
from sanderling.executor import Executor
from sanderling.outcome import Outcome
from sanderling.stores.frontier_rows import HostNote, RetryUrl

HELD = 20_000  # items in memory, over all hosts
MOST_PER_HOST, FEWEST_PER_HOST = 256, 4  # that are loaded at once
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
    def set_aside(self) -> int:
        """How many of its items are left to the next run."""
        return self.waiting if self.aside else self.withheld


H = TypeVar("H", bound=BacklogHost[Any])


class Loader(Generic[H]):
    """Brings what waits on disk into memory. `run` answers wants until it is cancelled."""

    def __init__(
        self, take: Callable[[Sequence[Any]], list[list[Any]]], desk: Executor, clock: Clock, longest_pause: float
    ) -> None:
        self.clock = clock
        self.sharing = 1  # hosts that share the memory
        self._take = take
        self._desk = desk
        self._longest = longest_pause
        self._wants: list[H] = []
        self._wanted = asyncio.Event()
        self._busy = False

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way from disk."""
        return not (self._wants or self._busy)

    def want(self, host: H) -> None:
        """Bring more of what waits for the host, if it has little in memory and more on disk."""
        if not host.loading and host.is_short:
            host.loading = True
            self._wants.append(host)
            self._wanted.set()

    async def run(self, loaded: Callable[[list[H]], object]) -> None:
        """Load what is wanted, and say which hosts it was for."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            hosts, self._wants, self._busy = self._wants, [], True
            most = max(FEWEST_PER_HOST, min(MOST_PER_HOST, HELD // max(1, self.sharing)))
            wants = [host.want(most) for host in hosts]
            now, wall = self.clock.now(), self.clock.wall()
            taken = await self._desk(self._take, wants)
            for host, want, items in zip(hosts, wants, taken, strict=True):
                host.loading = False
                if len(items) < want[-1]:
                    host.took_all(len(items))
                host.put(items, now, wall, self._longest)
                if not items:
                    self.want(host)  # there may be more of another priority
            self._busy = False
            loaded(hosts)


class Backlog(Generic[H, Q]):
    """Hosts with what waits for them, counted: what is due there, and what is left to the next run."""

    def __init__(
        self, loader: Loader[H], note: Callable[[RetryUrl | HostNote], object], new_host: Callable[[str], H]
    ) -> None:
        self.hosts: dict[str, H] = {}
        self.waiting = 0  # items without an end
        self.set_aside = 0  # of those, the ones that are left to the next run
        self.found_late = 0  # and those that were found while it drained
        self._draining = False
        self._loader = loader
        self._clock = loader.clock
        self._note = note
        self._new_host = new_host

    @property
    def loading(self) -> bool:
        """Whether something is on its way from disk."""
        return not self._loader.idle

    def drain(self) -> None:
        """Ask for what is known, and leave what is found from now on to the next run."""
        self._draining = True

    def classes(self, host: H, now: float) -> Sequence[Class]:
        """What is due: items that were not asked for yet, and such as were put off."""
        if not host.has_again(now):
            return (Class.NEW,) if host.has_new else ()
        return (Class.NEW, Class.AGAIN) if host.has_new else (Class.AGAIN,)

    def due(self, host: H, now: float) -> float | None:
        """When there is next something to take."""
        del now
        return host.due()

    def postpone(self, host: H, queued: Q, outcome: Outcome, due: float, patience: float) -> None:
        """It has not failed; at infinity, it is left to another run."""
        if due == inf:
            self.withhold(host)
            self._note_again(queued, outcome, 0, patience)
        else:
            host.put_off(queued, due)

    def withhold(self, host: H) -> None:
        """One that was taken is left to the next run."""
        host.withheld += 1
        self.set_aside += not host.aside

    def retry(self, host: H, queued: Q, outcome: Outcome, failures: int, due: float) -> None:
        """It failed so many times in a row, and is due again then."""
        host.put_off(queued, due)
        self._note_again(queued, outcome, failures, due - self._clock.now())

    def _note_again(self, queued: Q, outcome: Outcome, failures: int, wait: float) -> None:
        self._note(RetryUrl(queued.id, queued.url, failures, self._clock.wall() + wait, outcome))

    def leave(self, host: H, outcome: Outcome, due: float) -> None:
        """The host does not answer: its items go on waiting, with its reason."""
        self.set_aside += 0 if host.aside else host.waiting - host.withheld
        self._note(HostNote(host.name, outcome, self._clock.wall() + due - self._clock.now()))

    def welcome(self, host: H) -> None:
        """It answers again."""
        self.set_aside += host.withheld - host.waiting
        self._note(HostNote(host.name, None))

    def written(self, result: Mapping[Any, int]) -> Iterable[H]:
        """New items are on disk, so many for each host."""
        if not self._draining:
            return [self.add_waiting(name, number) for name, number in result.items()]
        found = sum(result.values())
        self.found_late += found
        self.waiting += found
        return ()

    def add_waiting(self, name: Any, number: int) -> H:  # noqa: ANN401 - a host, or what the sink tells hosts by
        """So many more items wait on disk for a host."""
        host = self.host(name)
        host.on_disk += number
        self._wait(host, number)
        self._loader.want(host)
        return host

    def host(self, name: str) -> H:
        """The host of this name, which is made if it was not met before."""
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = self._new_host(name)
        return host

    def _wait(self, host: H, number: int) -> None:
        before = host.set_aside
        host.waiting += number
        self.waiting += number
        self.set_aside += host.set_aside - before
