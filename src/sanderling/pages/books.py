"""Keeps the books of a crawl: what ended and what was found goes to disk together, what waits there comes back.

All of it through one desk, one thing at a time, so that the folder is never touched by two at once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sanderling.clock import Clock
from sanderling.flow.desk import Desk
from sanderling.ids import host_of
from sanderling.outcome import Outcome
from sanderling.pages.ends import End, Ended, Found
from sanderling.pages.folder import CrawlFolder
from sanderling.pages.hosts import HostQueue

T = TypeVar("T")

EVERY = 0.5  # seconds between commits: what a crash makes us ask again, never what it loses
HUNGRY = 0.02  # the same while somebody waits for what was found
ROWS, BYTES = 500, 8 * 2**20  # a commit is due earlier when so much has come in
HELD = 20_000  # URLs in memory, over all hosts
MOST_PER_HOST, FEWEST_PER_HOST = 256, 4
SEEN = 20_000  # found URLs that are not offered again soon; the ledger knows them all, this only spares it the asking


@dataclass(slots=True)
class Batch:
    """What came in since the last commit."""

    ended: list[Ended] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    moves: dict[str, str] = field(default_factory=dict)
    size: int = 0

    def add(self, ended: Ended) -> None:
        """Note what became of a URL."""
        self.ended.append(ended)
        self.size += len(ended.row or b"") + (0 if ended.body is None else len(ended.body.data))
        if ended.moved_to is not None:
            self.moves[ended.url] = ended.moved_to

    def __bool__(self) -> bool:
        return bool(self.ended or self.found)

    @property
    def due(self) -> bool:
        """Whether it should not wait any longer."""
        return len(self.ended) >= ROWS or self.size >= BYTES


class Books:
    """`note` what ended, `offer` what was found, `want` more for a host; `keep` does the rest until `close`."""

    def __init__(self, folder: CrawlFolder, desk: Desk, clock: Clock) -> None:
        self.folder = folder
        self.hungry = False  # whether somebody would rather have what was found at once
        self.sharing = 1  # hosts that share the memory
        self._desk = desk
        self._clock = clock
        self._batch = Batch()
        self._committing = Batch()
        self._wants: list[HostQueue] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._writing = asyncio.Lock()
        self._tell: Callable[[dict[str, int]], None] = lambda _new: None
        self._recent: set[str] = set()
        self._older: set[str] = set()

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way to or from the disk."""
        return not (self._batch or self._committing or self._wants)

    @property
    def crowded(self) -> bool:
        """Whether so much waits to be written that nothing more should be asked for."""
        return self._batch.due and bool(self._committing)

    def note(self, ended: Ended) -> None:
        """Keep what became of a URL, with the next commit."""
        self._batch.add(ended)
        if self._batch.due:
            self._wake.set()

    def offer(self, url: str, host: str, depth: int) -> None:
        """Put a URL in the queue, unless it is known."""
        if url in self._recent or url in self._older:
            return
        if len(self._recent) >= SEEN:
            self._recent, self._older = set(), self._recent
        self._recent.add(url)
        self._batch.found.append(Found(url, host, depth))
        if self.hungry:
            self._wake.set()

    def want(self, host: HostQueue) -> None:
        """Bring more of what waits for the host."""
        if not host.loading:
            host.loading = True
            self._wants.append(host)
            self._wake.set()

    async def moved_to(self, url: str) -> str | None:
        """Where a URL was found to have moved, if it did."""
        known = self._batch.moves.get(url) or self._committing.moves.get(url)
        return known or await self._desk(self.folder.ledger.moved_to, url)

    async def ask(self, work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
        """Have something done at the desk, after what is being done there."""
        return await self._desk(work, *args)

    async def keep(self, found: Callable[[dict[str, int]], None], filled: Callable[[list[HostQueue]], None]) -> None:
        """Commit and refill until `close`; tell of new URLs by host, and of the hosts that were filled."""
        self._tell = found
        while not self._closing:
            await self._pause()
            if self._wants:
                filled(await self._refill(max(FEWEST_PER_HOST, min(MOST_PER_HOST, HELD // self.sharing))))
            if self._batch:
                await self.commit()

    async def _pause(self) -> None:
        """Until somebody calls, or it is time."""
        if not (self._wants or self._batch.due):
            wait = HUNGRY if self.hungry and self._batch.found else EVERY
            timer = self._clock.call_later(wait, self._wake.set)
            await self._wake.wait()
            timer.cancel()
        self._wake.clear()

    async def commit(self) -> None:
        """Put all that came in on disk."""
        async with self._writing:
            self._committing, self._batch = self._batch, Batch()
            try:
                new = await self._desk(_commit, self.folder, self._committing)
            finally:
                self._committing = Batch()
        self._tell(new)

    async def give_up(self, host: HostQueue, outcome: Outcome) -> int:
        """Decide all that waits for a host of which nothing is in flight; how many that was."""
        await self.commit()  # what was decided just now must not be decided again
        return await self._desk(self.folder.ledger.give_up, host.name, outcome)

    async def _refill(self, most: int) -> list[HostQueue]:
        hosts, self._wants = self._wants, []
        wants = [(host.name, host.after, most) for host in hosts]
        for host, urls in zip(hosts, await self._desk(self.folder.ledger.take, wants), strict=True):
            host.loading = False
            if len(urls) < most:
                host.on_disk = len(urls)  # that was all
            host.put(urls)
        return hosts

    def close(self) -> None:
        """Let `keep` come to its end."""
        self._closing = True
        self._wake.set()


def _commit(folder: CrawlFolder, batch: Batch) -> dict[str, int]:
    """At the desk: a page that has not changed leads where it led in the earlier crawl."""
    found = batch.found
    for ended in batch.ended:
        if ended.end is End.UNCHANGED and ended.depth < folder.plan.depth:
            links = folder.ledger.remembered_links(ended.url)
            found.extend(Found(link, host_of(link), ended.depth + 1) for link in links)
    return folder.commit(batch.ended, found)
