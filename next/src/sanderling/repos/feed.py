"""Reads the directory page by page into the ledger, as far ahead as is of use, and is the engine's source."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from sanderling.clock import Clock
from sanderling.limit import Limiter
from sanderling.repos.atproto import account_at, address_of
from sanderling.repos.away import Servers
from sanderling.repos.directory import Account, Directory
from sanderling.repos.figures import RepoFigures
from sanderling.repos.handler import RepoHandler
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.paces import HostPaces
from sanderling.repos.redis_progress import RedisProgress
from sanderling.stores import Batch, EndedUrl, FoundUrl, HostWork, Ledger, QueuedUrl, Taken

CHUNK = 5_000  # DIDs that are stored at once
AHEAD, MOST_AHEAD = 10, 50  # pages that may wait; the larger number while few hosts have work
FEW_HOSTS = 50
LOOK = 0.5  # seconds between two looks whether there is room
NEWS = 5.0  # seconds between two looks for parked hosts that are due
LEFT_OUT = "left_out"


class RepoState(msgspec.Struct):
    """What the ledger keeps of the crawl itself."""

    cursor: str = ""  # all DIDs up to this one were fed
    fed: bool = False  # the directory was read to its end
    ended: bool = False  # the run has ended by itself
    first_segment: int = 1  # of this run
    looked: bool = True  # whether accounts that the directory has deleted since the run before got their tombstones
    excluded: str = ""  # a digest of what is left out, and of the directory


class DirectoryFeed:
    """From the directory to the ledger."""

    def __init__(
        self, directory: Directory, ledger: Ledger, state: RepoState, redis: RedisProgress | None,
        left_out: RepoLeaveOut, paces: HostPaces, figures: RepoFigures, servers: Servers, clock: Clock, page: int,
    ) -> None:  # fmt: skip
        self.state = state
        self.news = asyncio.Event()  # there may be new work
        self._directory = directory
        self._ledger = ledger
        # What an earlier crawl with this Redis has completed is not fetched again; a new run of ours asks everything.
        self._redis = redis
        self._left_out = left_out
        self._paces = paces
        self._figures = figures
        self._clock = clock
        self._page = page
        self._servers = servers

    @property
    def is_over(self) -> bool:
        """Whether all of the directory was read."""
        return self.state.fed

    async def run(
        self, wake: Callable[[Sequence[str]], None], is_roomy: Callable[[int], bool], is_idle: Callable[[], bool]
    ) -> None:
        """Read the directory to its end, but no further ahead than is of use.

        `is_roomy` says whether another page is, with so many DIDs waiting. Workers without work get one now and then in
        any case: what waits may be at hosts that are slow.
        """
        try:
            while not self.state.fed:
                await self._feed_page(wake)
                since = self._clock.now()
                while not self.state.fed and not is_roomy((await self._ledger.counts()).waiting):
                    if is_idle() and self._clock.now() - since >= NEWS:
                        break
                    await self._clock.sleep(LOOK)
        finally:
            self.news.set()

    async def _feed_page(self, wake: Callable[[Sequence[str]], None]) -> None:
        state = self.state
        page = await self._servers.call(lambda: self._directory.page(state.cursor, self._page))
        wanted = [each for each in page if not self._left_out.names(each.did, each.host)]
        self._figures.left_out += len(page) - len(wanted)
        redis = self._redis
        if redis is not None and self._ledger.run == 1:
            dids = [each.did for each in wanted]
            left = set(await self._servers.call(lambda: redis.incomplete(dids)))
            wanted = [each for each in wanted if each.did in left]
        self._figures.pages += 1
        self._figures.page_dids.add(len(wanted))
        for start in range(0, len(wanted), CHUNK):
            chunk = wanted[start : start + CHUNK]
            hosts = await self._ledger.commit(Batch(found=[_found(each) for each in chunk]))
            self._paces.meet(Counter(_host(each) for each in chunk))
            wake(hosts)
            self.news.set()
        state.cursor = page[-1].did if page else state.cursor
        state.fed = len(page) < self._page
        await self._ledger.commit(Batch(state=msgspec.msgpack.encode(state)))
        if redis is not None:
            await self._servers.call(lambda: redis.record(cursor=state.cursor))


def _found(account: Account) -> FoundUrl:
    return FoundUrl(address_of(account.host, account.did), _host(account))


def _host(account: Account) -> str:
    return account.host.partition("//")[2]


class RepoSource:
    """The engine's view of ledger and feed."""

    def __init__(
        self, ledger: Ledger, feed: DirectoryFeed, handler: RepoHandler, limiter: Limiter, paces: HostPaces,
        figures: RepoFigures, servers: Servers,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._feed = feed
        self._handler = handler
        self._limiter = limiter
        self._paces = paces
        self._figures = figures
        self._servers = servers

    async def hosts(self, limit: int) -> Sequence[HostWork]:
        """Hosts with work that is due. While the feed reads on, an empty answer would be wrong, so it is waited for."""
        while True:
            self._feed.news.clear()
            was_over = self._feed.is_over
            works = await self._ledger.hosts(limit)
            for work in works:
                if work.pace:
                    self._limiter.restore(work.name, work.pace)
                self._paces.meet({work.name: 0})
            if works or was_over:
                return works
            with suppress(TimeoutError):
                async with asyncio.timeout(NEWS):
                    await self._feed.news.wait()

    async def take(self, host: str, limit: int) -> Taken:
        """Accounts of a host that are to be requested; those that a list names by now end here."""
        taken = await self._ledger.take(host, limit)
        named = {item.id for item in taken.items if self._names(item)}
        if not named:
            return taken
        self._figures.left_out += len(named)
        said = "a list names it"
        ended = [
            EndedUrl(each, LEFT_OUT, LEFT_OUT, detail=said, requests=0) for each in taken.items if each.id in named
        ]
        await self._ledger.commit(Batch(ended=ended))
        return Taken([item for item in taken.items if item.id not in named], taken.next_wait)

    def _names(self, item: QueuedUrl) -> bool:
        host, did = account_at(item.url)
        return self._handler.left_out.names(did, host)

    def probe(self, host: str) -> QueuedUrl | None:  # noqa: ARG002 - a repo is too much to fetch for that
        """None: a host is probed with work that waits."""
        return None

    def release(self, host: str) -> None:
        """The engine has forgotten this host."""
        self._ledger.release(host)

    def enough(self, pending: int) -> bool:  # noqa: ARG002 - there is no budget
        """Never."""
        return False

    def may_send(self) -> bool:
        """Whether requests may leave."""
        return self._ledger.may_send() and not (self._handler.is_full or self._servers.why)
