"""Brings what waits on disk into memory, a few URLs for each host that is about to run out."""

import asyncio
from collections.abc import Callable

from sanderling.clock import Clock
from sanderling.flow.desk import Desk
from sanderling.pages.hosts import PageHost
from sanderling.stores.frontier import Frontier

HELD = 20_000  # URLs in memory, over all hosts
MOST_PER_HOST, FEWEST_PER_HOST = 256, 4  # that are loaded at once
MOST_HELD = 512  # URLs of one host in memory, those that were put off among them
FEW = 16  # URLs of one host that were not put off; with fewer, more are loaded


class Loader:
    """`run` answers wants until it is cancelled."""

    def __init__(self, frontier: Frontier, desk: Desk, clock: Clock, longest_pause: float) -> None:
        self.frontier = frontier
        self.clock = clock
        self.sharing = 1  # hosts that share the memory
        self._desk = desk
        self._longest = longest_pause
        self._wants: list[PageHost] = []
        self._wanted = asyncio.Event()
        self._busy = False

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way from disk."""
        return not (self._wants or self._busy)

    def want(self, host: PageHost) -> None:
        """Bring more of what waits for the host, if it has little in memory and more on disk."""
        if host.on_disk and not host.loading and host.fresh < FEW and host.held < MOST_HELD:
            host.loading = True
            self._wants.append(host)
            self._wanted.set()

    async def run(self, loaded: Callable[[list[PageHost]], object]) -> None:
        """Load what is wanted, and say which hosts it was for."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            hosts, self._wants, self._busy = self._wants, [], True
            most = max(FEWEST_PER_HOST, min(MOST_PER_HOST, HELD // max(1, self.sharing)))
            # No more than we were told of: what was found while the crawl drains is for the next run.
            wants = [(host.name, host.after, min(most, host.on_disk)) for host in hosts]
            now, wall = self.clock.now(), self.clock.wall()
            taken = await self._desk(self.frontier.take, wants)
            for host, urls, (_, _, number) in zip(hosts, taken, wants, strict=True):
                host.loading = False
                if len(urls) < number:
                    host.on_disk = len(urls)  # that was all
                host.put(urls, now, wall, self._longest)
            self._busy = False
            loaded(hosts)
