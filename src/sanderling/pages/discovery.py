"""What links and redirects lead to: offered to the books, as far as it belongs to the crawl."""

from collections.abc import Iterable
from typing import NamedTuple

from sanderling.fetch.attempts import MOST_HOPS
from sanderling.ids import host_of
from sanderling.outcome import Code, Outcome
from sanderling.pages.books import Books
from sanderling.pages.ends import Queued
from sanderling.pages.folder import CrawlFolder
from sanderling.pages.urls import Scope, UrlError, normalise, trap
from sanderling.task import Reply

# URLs of which it is known how many redirects led there. One that had its end before never comes to it again, so there
# would be ever more of them; what is forgotten is counted anew.
MOST_COUNTED = 10_000


class Moved(NamedTuple):
    """Where a URL has moved, and what there is to say of it."""

    target: str
    detail: str


class Discovery:
    """Knows which URLs belong to the crawl."""

    def __init__(self, folder: CrawlFolder, books: Books) -> None:
        plan = folder.plan
        self.scope = Scope.of(plan.seeds, (*plan.allow, *folder.moved_hosts), plan.depth)
        self._folder = folder
        self._books = books
        self._hops: dict[str, int] = {}  # redirects on the way to a URL that waits

    def follow(self, links: Iterable[str], page: str, depth: int) -> list[str]:
        """Offer the links of a page that belong to the crawl; which those are."""
        if depth >= self.scope.depth:
            return []
        followed = []
        for link in links:
            try:
                url = normalise(link, page)
            except UrlError:
                continue
            host = host_of(url)
            if self.scope.allows(host) and trap(url) is None:
                followed.append(url)
                self._books.offer(url, host, depth + 1)
        return followed

    async def move(self, queued: Queued, reply: Reply) -> Moved | Outcome:
        """Offer the target of a redirect, a URL of its own, unless it leads out of the crawl; or why it leads nowhere.

        That is to what is no URL, back here, or on and on.
        """
        try:
            target = normalise(reply.header("Location") or "", queued.url)
        except UrlError as error:
            return Outcome(Code.INVALID_URL, reply.status, f"redirect: {error}"[:200])
        hops = self._hops.pop(queued.url, 0) + 1
        if hops > MOST_HOPS:
            return Outcome(Code.REDIRECT_LOOP, reply.status, f"{hops} redirects and no end in sight")
        if await self._leads_to(target, queued.url):
            return Outcome(Code.REDIRECT_LOOP, reply.status, f"leads back here by {target}"[:200])
        host = host_of(target)
        if queued.depth == 0 and not self.scope.allows(host):
            # Who asks for example.org means www.example.org too, if that is where it lives.
            self.scope = self.scope.with_host(host)
            await self._books.ask(self._folder.allow_moved, host)
        if not self.scope.allows(host):
            return Moved(target, "moved out of the crawl")
        self._count(target, hops)
        self._books.offer(target, host, queued.depth)
        return Moved(target, "moved")

    def ended(self, url: str) -> None:
        """The URL is decided."""
        self._hops.pop(url, None)

    def _count(self, target: str, hops: int) -> None:
        if len(self._hops) >= MOST_COUNTED:
            del self._hops[next(iter(self._hops))]
        self._hops[target] = hops

    async def _leads_to(self, start: str, goal: str) -> bool:
        """Whether the redirects that are known lead from `start` to `goal`, or on for too long to be meant."""
        at = start
        for _ in range(MOST_HOPS):
            if at == goal:
                return True
            following = await self._books.moved_to(at)
            if following is None:
                return False
            at = following
        return True
