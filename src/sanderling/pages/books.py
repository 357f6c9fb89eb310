"""Keeps the books of a crawl: what ended and what was found goes to disk together, what waits there comes back.

All of it through one desk, one thing at a time, so that the folder is never touched by two at once.

Where somebody comes after us (`onward`), what ended is handed on before the ledger takes note of it: whoever is killed
in between asks for it again, and hands it on again. To hand on one row costs as much as to hand on fifty, so rows wait
for others for a few seconds, while there is anything else to do. What was found never waits for them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sanderling.clock import Clock
from sanderling.flow.desk import Desk
from sanderling.ids import host_of
from sanderling.outcome import Outcome
from sanderling.pages.folder import CrawlFolder, failed_row
from sanderling.pages.hosts import HostQueue
from sanderling.stores.frontier_rows import End, Ended, Found, Queued, failed_as

T = TypeVar("T")

EVERY = 0.5  # seconds between commits: what a crash makes us ask again, never what it loses
HUNGRY = 0.02  # the same while somebody waits for what was found
ROWS, BYTES = 500, 8 * 2**20  # a commit is due earlier when so much has come in
HELD = 20_000  # URLs in memory, over all hosts
MOST_PER_HOST, FEWEST_PER_HOST = 256, 4
SEEN = 20_000  # found URLs that are not offered again soon; the ledger knows them all, this only spares it the asking
ENOUGH, GATHER = 50, 5.0  # rows that are handed on together, and seconds that one of them waits for the others


class Onward(Protocol):
    """Somebody who gets all that ended, at least once."""

    async def hand(self, rows: Sequence[bytes]) -> bool:
        """Return when these rows of pages.jsonl and failed.jsonl are safe; False if we end, and they are not."""


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
        self.still = False  # whether nothing more will come before what is here was committed
        self.onward: Onward | None = None
        self.unhanded: Counter[End] = Counter()  # what ended, and waits again, since nobody took it
        self._desk = desk
        self._clock = clock
        self._batch = Batch()
        self._committing = Batch()
        self._since = 0.0  # when the first that ended came into the batch
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
        if not self._batch.ended:
            self._since = self._clock.now()
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
            if self._batch.found or (self._batch.ended and self._ripe):
                await self.commit()

    async def _pause(self) -> None:
        """Until somebody calls, or it is time."""
        if not (self._wants or self._batch.due):
            wait = HUNGRY if self.hungry and self._batch.found else EVERY
            timer = self._clock.call_later(wait, self._wake.set)
            await self._wake.wait()
            timer.cancel()
        self._wake.clear()

    @property
    def _ripe(self) -> bool:
        """Whether what ended should not wait for more."""
        if self.onward is None or self.still or self._closing or self._batch.due:
            return True
        return len(self._batch.ended) >= ENOUGH or self._clock.now() - self._since >= GATHER

    async def commit(self, *, whole: bool = False) -> None:
        """Put what came in on disk; what ended and is not ripe only if all is wanted."""
        async with self._writing:
            batch = self._batch
            if whole or self._ripe:
                self._committing, self._batch = batch, Batch()
            else:
                self._committing, batch.found = Batch(found=batch.found), []
            try:
                new = await self._desk(_commit, self.folder, await self._handed(self._committing))
            finally:
                self._committing = Batch()
        self._tell(new)

    async def _handed(self, batch: Batch) -> Batch:
        """What of a batch may be committed: nothing has ended that was to be handed on, and is not."""
        # Whoever wants to be left out is not handed on as a failure either.
        rows = [_row(each) for each in batch.ended if each.end is not End.LEFT_OUT]
        if self.onward is None or not rows or await self.onward.hand(rows):
            return batch
        self.unhanded.update(each.end for each in batch.ended)
        return Batch(found=batch.found)

    async def give_up(self, host: HostQueue, outcome: Outcome) -> int:
        """Decide all that waits for a host of which nothing is in flight; how many that was."""
        await self.commit(whole=True)  # what was decided just now must not be decided again
        async with self._writing:  # nor anything be found that was not handed on
            if self.onward is not None and not await self._given_up(self.onward, host.name, outcome):
                return 0
            return await self._desk(self.folder.ledger.give_up, host.name, outcome)

    async def set_aside(self, host: HostQueue, outcome: Outcome) -> None:
        """Leave all that waits for a host of which nothing is in flight to the next run."""
        await self._desk(self.folder.ledger.set_aside, host.name, outcome)

    async def _given_up(self, onward: Onward, host: str, outcome: Outcome) -> bool:
        """Hand on that all that waits for a host has failed; there may be a great many."""
        after = 0
        while urls := (await self._desk(self.folder.ledger.take, [(host, after, ROWS)]))[0]:
            if not await onward.hand([_failed(each, End.FAILED, outcome) for each in urls]):
                return False
            after = urls[-1].id
        return True

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


def _row(ended: Ended) -> bytes:
    """The row of what ended, also of what has none in pages.jsonl."""
    return _failed(ended, ended.end, ended.outcome) if ended.row is None else ended.row


def _failed(of: Ended | Queued, end: End, outcome: Outcome) -> bytes:
    return failed_row(failed_as(of, host_of(of.url), end, outcome))


def _commit(folder: CrawlFolder, batch: Batch) -> dict[str, int]:
    """At the desk: a page that has not changed leads where it led in the earlier crawl."""
    found = batch.found
    for ended in batch.ended:
        if ended.end is End.UNCHANGED and ended.depth < folder.plan.depth:
            links = folder.ledger.remembered_links(ended.url)
            found.extend(Found(link, host_of(link), ended.depth + 1) for link in links)
    return folder.commit(batch.ended, found)
