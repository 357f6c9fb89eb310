"""What becomes of a URL: counted, noted in the books, and its links offered."""

from collections import Counter

import msgspec

from sanderling.clock import Clock
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.books import Books
from sanderling.pages.discovery import Discovery
from sanderling.pages.hosts import HostQueue
from sanderling.pages.robots import Robots
from sanderling.stores.frontier_rows import End, Queued
from sanderling.task import Reply

BIG = 2**20  # bytes of a body


class Deciding:
    """Decides URLs, each once."""

    def __init__(self, books: Books, discovery: Discovery, clock: Clock, counts: Counter[End]) -> None:
        self.bytes = 0  # that were read
        self._books = books
        self._discovery = discovery
        self._clock = clock
        self._counts = counts

    async def keep(self, host: HostQueue, queued: Queued, outcome: Outcome, reply: Reply) -> None:
        """It was answered, and what it said is kept."""
        wall = self._clock.wall()
        self.bytes += len(reply.body)
        host.good = queued.url if len(reply.body) <= BIG else host.good
        if outcome.code is Code.NOT_MODIFIED:
            ended = record.unchanged(queued, outcome, reply, wall)
        else:
            # A page takes a moment to read, what a stranger makes of 30 MB may take seconds: not on the loop.
            given = queued, outcome, reply, wall, self._discovery.announced(queued.url)
            big = len(reply.body) > BIG
            ended, links, sitemap = await self._books.ask(record.read, *given) if big else record.read(*given)
            if sitemap is not None:
                self._discovery.follow_sitemap(sitemap, queued.url, queued.depth)
                follow = []
            else:
                follow = self._discovery.follow(links, queued.url, queued.depth)
            if follow and (ended.etag or ended.modified):
                ended = msgspec.structs.replace(ended, links=tuple(follow))
        self._counts[ended.end] += 1
        self._decided(host, queued)
        self._books.note(ended)

    async def move(self, host: HostQueue, queued: Queued, reply: Reply) -> None:
        """It redirects, to a URL of its own or to nowhere."""
        moved = await self._discovery.move(queued, reply)
        if isinstance(moved, Outcome):
            self.end(host, queued, moved, End.FAILED)
            return
        self._counts[End.MOVED] += 1
        self._decided(host, queued)
        self._books.note(record.moved(queued, reply, moved.target, moved.detail, self._clock.wall()))

    def end(self, host: HostQueue, queued: Queued, outcome: Outcome, end: End) -> None:
        """It was not fetched."""
        self._counts[end] += 1
        self._decided(host, queued)
        self._books.note(record.unfetched(queued, outcome, end))

    def refuse(self, host: HostQueue, queued: Queued, known: Robots) -> None:
        """It is forbidden by robots.txt."""
        self.end(host, queued, Outcome(Code.REFUSED, detail=known.why(queued.url)[:200]), End.REFUSED)

    def _decided(self, host: HostQueue, queued: Queued) -> None:
        host.ended(queued)
        self._discovery.ended(queued.url)
