"""What a crawl of repos is fed with: what is due, then the directory; and what waits for hosts that are back."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sanderling.executor import Executor
from sanderling.repos.directory import Directory, DirectoryEntry
from sanderling.repos.hosts import QueuedRepo, RepoHost
from sanderling.repos.measures import RepoMeasures
from sanderling.stores.ports import FIRST, Due, RepoProgress

AT_ONCE = 5_000  # DIDs that are read from the schedule
FEW = 1_000  # DIDs of one host in memory; with fewer, more of those that wait on disk are read

TakesRepos = Callable[[Sequence[QueuedRepo]], object]


@dataclass(slots=True, eq=False)
class _Page:
    last: str
    left: int


class LowWater:
    """How far everything is settled, page by page of the directory, whatever the order in which DIDs are."""

    def __init__(self) -> None:
        self.cursor: str | None = None  # the DID up to which everything is settled; None before the first page is
        self._pages: deque[_Page] = deque()
        self._page_of: dict[str, _Page] = {}

    def __len__(self) -> int:
        return len(self._page_of)

    def begin(self, last: str, dids: Iterable[str]) -> None:
        """A page that ends with `last`; of it, these are still to be settled."""
        page = _Page(last, 0)
        for did in dids:
            page.left += 1
            self._page_of[did] = page
        self._pages.append(page)
        self._rise()

    def settle(self, did: str) -> None:
        """The DID is archived, ended, or has a due time. What belongs to no page is settled already."""
        page = self._page_of.pop(did, None)
        if page is not None:
            page.left -= 1
            if not page.left:
                self._rise()

    def _rise(self) -> None:
        while self._pages and self._pages[0].left == 0:
            self.cursor = self._pages.popleft().last


class WalkedPage(NamedTuple):
    """The next entries of the directory, and the DID up to which all that is ours was looked at."""

    entries: Sequence[DirectoryEntry]
    last: str
    due: Sequence[Due] = ()  # of accounts that have moved here from hosts of other parts: the progress has them


class DirectoryWalk(Protocol):
    """The directory from a DID on, as far as it concerns one crawl, or one part of it."""

    async def page(self, after: str, *, idle: bool) -> WalkedPage | None:
        """What follows; nothing up to the same DID if there is nothing yet, None at the end.

        Whoever asks says whether it is idle: if all parts are, and nothing follows, it is the end.
        """

    def is_own(self, url: str) -> bool:
        """Whether we ask the host of this address."""

    async def pass_on(self, moved: Mapping[Due, str]) -> None:
        """These are scheduled here, and at addresses that others ask now."""


class WholeDirectory:
    """All of the directory, read page by page."""

    def __init__(self, directory: Directory, disk: Executor, page_size: int) -> None:
        self._directory = directory
        self._disk = disk
        self._page_size = page_size

    async def page(self, after: str, *, idle: bool) -> WalkedPage | None:
        """The page behind a DID."""
        del idle
        found = await self._disk(self._directory.page, after, self._page_size)
        return WalkedPage(found, found[-1].did) if found else None

    def is_own(self, url: str) -> bool:  # noqa: ARG002 - the port's
        """All are."""
        return True

    async def pass_on(self, moved: Mapping[Due, str]) -> None:
        """There are no others."""


class BringsBack(Protocol):
    """Takes what waited on disk while a host was away."""

    def __call__(self, host: RepoHost, found: Sequence[QueuedRepo], *, last: bool) -> object:
        """Whether these are the last of them."""


class Feeder:
    """`feed` what is to be asked for, and `bring_back` what was left on disk while hosts were away."""

    def __init__(
        self,
        directory: Directory,
        walk: DirectoryWalk,
        progress: RepoProgress,
        others: Sequence[RepoProgress],
        disk: Executor,
        measures: RepoMeasures,
    ) -> None:
        """`others` are those of other parts: what they know is not asked for here."""
        self.water = LowWater()
        self.held: set[str] = set()  # DIDs that are scheduled, and in memory as well
        self.complete = False  # whether all of the directory was read
        self._directory = directory
        self._walk = walk
        self._progress = progress
        self._others = others
        self._disk = disk
        self._measures = measures
        self._fed = False
        self._draining = False
        self._held_back = False  # whether somebody waits for room
        self._moved = asyncio.Event()  # something has changed for who waits to feed
        self._wants: list[RepoHost] = []
        self._wanted = asyncio.Event()
        self._reading = False
        self._moved_away: list[Due] = []

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way from disk."""
        return self._fed and not self.brings_back

    def drain(self) -> None:
        """Read no more of what is new."""
        self._draining = True
        self.look()

    def look(self) -> None:
        """There may be room for more."""
        if self._held_back:
            self._moved.set()

    def want(self, host: RepoHost) -> None:
        """Less waits in memory than did, of this host among others."""
        if self._held_back:
            self._moved.set()
        if host.unread and not host.loading and not host.aside and host.fresh < FEW:
            host.loading = True
            self._wants.append(host)
            self._wanted.set()

    def locate_again(self, moved: Sequence[Due]) -> None:
        """These are scheduled, since their accounts have moved."""
        if moved:
            self._moved_away += moved
            self._wanted.set()

    @property
    def brings_back(self) -> bool:
        """Whether something that was left on disk is on its way."""
        return bool(self._wants or self._reading or self._moved_away)

    async def feed(self, has_room: Callable[[], bool], is_idle: Callable[[], bool], feed: TakesRepos) -> None:
        """What has a due time, the first first; then the directory from where it was left, but for what is known."""
        after, until = FIRST, await self._disk(self._progress.last_due)
        while await self._room(has_room) and (found := await self._read_due(after, until)):
            after = found[-1]
            feed(await self._located(found))
        last = await self._disk(self._progress.cursor)
        while await self._room(has_room):
            page = await self._walk.page(last, idle=is_idle())
            if page is None:
                self.complete = True
                break
            if page.due:
                feed(await self._located(page.due))
            if page.last == last:
                continue
            entries, last, _ = page
            new = set(await self._disk(self._pending, [entry.did for entry in entries]))
            self._measures.pages += 1
            self._measures.page_dids.add(len(new))
            self.water.begin(last, new)
            feed([QueuedRepo(entry.did, entry.host) for entry in entries if entry.did in new])
        self._fed = True
        feed(())

    def _pending(self, dids: Sequence[str]) -> Sequence[str]:
        """Of these, those of which neither we nor others know that they are complete or scheduled."""
        for each in (self._progress, *self._others):
            dids = each.pending(dids) if dids else ()
        return dids

    async def _room(self, has_room: Callable[[], bool]) -> bool:
        """Return when more may be read; False if nothing more is wanted."""
        while not self._draining and not has_room():
            self._moved.clear()
            self._held_back = True
            await self._moved.wait()
            self._held_back = False
        return not self._draining

    async def _read_due(self, after: Due, until: int) -> list[Due]:
        return await self._disk(self._progress.due, after, until, AT_ONCE)

    async def _located(self, found: Sequence[Due]) -> list[QueuedRepo]:
        """Those that the directory has at hosts of ours, with their addresses; the others are passed on."""
        urls = await self._disk(self._directory.hosts_of, [each.did for each in found])
        there = {each: urls[each.did] for each in found if each.did in urls}
        moved = {each: url for each, url in there.items() if not self._walk.is_own(url)}
        # What is in memory is under way at its old host; whatever comes of that, it is noted here.
        if gone := {each: url for each, url in moved.items() if each.did not in self.held}:
            await self._walk.pass_on(gone)
        own = (each for each in there if each not in moved)
        return [QueuedRepo(each.did, there[each], each.failures, each.due) for each in own]

    async def bring_back(self, settled: Callable[[], Awaitable[None]], take: BringsBack, feed: TakesRepos) -> None:
        """Read what waits on disk for hosts that want it, and find those that have moved, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            hosts, self._wants, self._reading = self._wants, [], True
            await settled()  # what was left a moment ago may still be on its way to disk
            for host in hosts:
                await self._read_group(host, take)
            moved, self._moved_away = self._moved_away, []
            found = await self._located(moved) if moved else []
            self._reading = False
            feed(found)

    async def _read_group(self, host: RepoHost, take: BringsBack) -> None:
        """The next of what waits for one host."""
        host.loading = False
        if host.aside or not host.unread:
            return
        after = host.unread[0]
        found = await self._read_due(after, after.due)
        queued = await self._located(found)
        if len(found) == AT_ONCE:
            host.unread[0] = found[-1]
        else:
            del host.unread[0]
        take(host, queued, last=not host.unread)
        self.want(host)
