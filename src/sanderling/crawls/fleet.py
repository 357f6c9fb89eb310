"""The servers of a fleet: which of them has a part, and how those are asked who cannot be waited for otherwise.

Ledgers are written in threads, and sometimes in the event loop itself; connections belong to an event loop. So the
servers are asked in a thread with an event loop of its own.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import wait
from typing import Any, Protocol, TypeVar

from sanderling.stores.fleet import Beat, CrawlView, FleetCrawl, FleetStore, InboxMessage, PartFigures, WorkerPace
from sanderling.stores.leases import Lease, LeasesAwayError, PartHolder

T = TypeVar("T")

LOOK = 0.25  # seconds between two looks at whether anybody still waits


class StoreCaller(Protocol):
    """Runs what asks servers."""

    async def __call__(self, asks: Coroutine[Any, Any, T]) -> T:
        """What comes of it."""

    def wait_for(self, asks: Coroutine[Any, Any, T], gives_up: Callable[[], bool] = bool) -> T:
        """The same for who is no coroutine: the thread waits, until it `gives_up`. Raises LeasesAwayError then."""

    def rest(self, until: threading.Event, seconds: float) -> None:
        """Let the thread wait for something, so long at most."""


class ThreadStoreCaller:
    """Runs coroutines in a thread of its own, until `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._thread.start()

    async def __call__(self, asks: Coroutine[Any, Any, T]) -> T:
        """As in the port."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asks, self._loop))

    def wait_for(self, asks: Coroutine[Any, Any, T], gives_up: Callable[[], bool] = bool) -> T:
        """As in the port."""
        future = asyncio.run_coroutine_threadsafe(asks, self._loop)
        while not wait([future], LOOK).done:
            if gives_up():
                future.cancel()
                raise LeasesAwayError("no answer yet, and nobody waits for it any more")
        return future.result()

    def rest(self, until: threading.Event, seconds: float) -> None:
        """As in the port."""
        until.wait(seconds)

    def close(self) -> None:
        """Nothing more is asked."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class DirectStoreCaller:
    """Runs coroutines of servers that never wait, where they are called: those in memory."""

    async def __call__(self, asks: Coroutine[Any, Any, T]) -> T:
        """As in the port."""
        return await asks

    def wait_for(self, asks: Coroutine[Any, Any, T], gives_up: Callable[[], bool] = bool) -> T:
        """As in the port."""
        del gives_up
        try:
            asks.send(None)
        except StopIteration as ended:
            result: T = ended.value
            return result
        raise RuntimeError("a server in memory waits for something")

    def rest(self, until: threading.Event, seconds: float) -> None:
        """As in the port."""
        until.wait(seconds)


class FleetStores:
    """All servers of one crawl. The first also says what the crawl is, and who works on it."""

    def __init__(self, servers: Sequence[FleetStore], call: StoreCaller, urls: Sequence[str] = ()) -> None:
        """`urls` are those of the servers, as they were given."""
        self.urls = urls
        # By part, since when it waits for a server or the object store by our clock, and why; of who waits in a thread.
        self.waits: dict[int, tuple[float, str]] = {}
        self.servers = servers
        self.call = call

    def server_of(self, part: int) -> FleetStore:
        """Where a part is."""
        return self.servers[part % len(self.servers)]

    def by_server(self, leases: Sequence[Lease]) -> list[list[Lease]]:
        """The leases of each server."""
        number = len(self.servers)
        return [[each for each in leases if each.part % number == which] for which in range(number)]

    async def begin(self, crawl: FleetCrawl) -> FleetCrawl:
        """The crawl of this name, on all servers, made if there is none."""
        found = crawl
        for which, server in enumerate(self.servers):
            begun = await self.call(server.begin(found, range(which, found.parts, len(self.servers))))
            found = found if which else begun
        return found

    async def beat(
        self, leases: Sequence[Lease], figures: Sequence[PartFigures], report: str, pace: WorkerPace
    ) -> Beat:
        """Show all servers that we live; what the first says, with the sums of all."""
        beats = []
        for server, some in zip(self.servers, self.by_server(leases), strict=True):
            beats.append(await self.call(server.beat(some, figures, report, len(leases), pace)))
        kept = [part for each in beats for part in each.kept]
        fetched, asked = sum(each.fetched for each in beats), sum(each.asked for each in beats)
        return beats[0]._replace(kept=kept, fetched=fetched, asked=asked)

    async def acquire(self, most: int, preferred: Sequence[int]) -> list[Lease]:
        """Take parts that are free, so many at most: of each server as many as of any other."""
        found: list[Lease] = []
        for number, server in enumerate(self.servers):
            share = -(-(most - len(found)) // (len(self.servers) - number))
            found += await self.call(server.acquire(share, preferred))
        return found

    async def release(self, leases: Sequence[Lease]) -> None:
        """Give parts back."""
        for server, some in zip(self.servers, self.by_server(leases), strict=True):
            if some:
                await self.call(server.release(some))

    async def receive(self, taken: Mapping[int, Collection[int]], most: int) -> list[InboxMessage]:
        """What was sent to these parts, without what was taken of each."""
        found: list[InboxMessage] = []
        for which, server in enumerate(self.servers):
            if some := [part for part in taken if part % len(self.servers) == which]:
                # An id is one of its server only.
                had = [each for part in some for each in taken[part]]
                found += await self.call(server.receive(some, had, most))
        return found

    async def view(self) -> CrawlView:
        """How much is left of the crawl. With several servers, each at a moment of its own."""
        views = [await self.call(server.view()) for server in self.servers]
        return CrawlView(*(sum(numbers) for numbers in zip(*views, strict=True)))

    async def end(self, *, done: bool) -> None:
        """Nothing is left; or somebody goes on."""
        for server in self.servers:
            await self.call(server.end(done=done))

    async def retry(self, number: int) -> None:
        """Have what failed asked for again, for this time the `number`.

        The first server last: workers hear of it from that.
        """
        for server in reversed(self.servers):
            await self.call(server.retry(number))

    async def holders(self) -> list[PartHolder]:
        """Who has which part, by part."""
        return sorted([each for server in self.servers for each in await self.call(server.holders())])

    async def leave(self) -> None:
        """We end: nobody counts on us any more."""
        for server in self.servers:
            await self.call(server.leave())

    async def close(self) -> None:
        """Let go."""
        for server in self.servers:
            await self.call(server.close())
