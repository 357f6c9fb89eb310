"""What links and redirects lead to: offered to the frontier, as far as it belongs to the crawl."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from sanderling.executor import Executor
from sanderling.fetch.attempts import MOST_HOPS, location_of
from sanderling.outcome import Code, Outcome
from sanderling.pages.folder import CrawlFolder
from sanderling.pages.sitemaps import Sitemap, is_sitemap
from sanderling.pages.urls import CrawlScope, UrlError, host_in, normalise, trap
from sanderling.stores.frontier_rows import FoundUrl, QueuedUrl
from sanderling.task import Reply

T = TypeVar("T")

# URLs of which it is known how many redirects or sitemaps led there. One that had its end before never comes to it
# again, so there would be ever more of them; what is forgotten is counted anew.
MOST_COUNTED = 10_000
SEEN = 20_000  # found URLs that are not offered again soon; the frontier knows them all, this only spares it the asking
# Sitemaps on the way from robots.txt to a sitemap. The protocol allows one index; some sites nest two.
MOST_NESTED = 4


class MovedUrl(NamedTuple):
    """Where a URL has moved, and what there is to say of it."""

    target: str
    reply: Reply
    detail: str


class LinkDiscovery:
    """Knows which URLs belong to the crawl."""

    def __init__(self, folder: CrawlFolder, executor: Executor, find: Callable[[FoundUrl], object]) -> None:
        plan = folder.plan
        self.scope = CrawlScope.of(plan.seeds, (*plan.allow, *folder.moved_hosts), plan.depth)
        self.folder = folder
        self._executor = executor
        self._find = find
        self._recent: set[str] = set()
        self._older: set[str] = set()
        self.at_depth = 0  # pages of this run with links that are not followed: they are as deep as the crawl goes
        self._moves: OrderedDict[str, str] = OrderedDict()  # the last redirects, of which some are not on disk yet
        self._hops: OrderedDict[str, int] = OrderedDict()  # redirects on the way to a URL that waits
        self._nested: OrderedDict[str, int] = OrderedDict()  # sitemaps on the way to a sitemap that waits

    def offer(self, url: str, host: str, depth: int) -> None:
        """Put a URL in the queue, unless it is known."""
        if url in self._recent or url in self._older:
            return
        if len(self._recent) >= SEEN:
            self._recent, self._older = set(), self._recent
        self._recent.add(url)
        if self.folder.forgotten.has(url, host):
            return
        self._find(FoundUrl(url, host, depth, self._hops.get(url, 0), self._nested.get(url)))

    def accept(self, found: FoundUrl) -> None:
        """Take what another part of the crawl has found: a URL of ours, or where one of its first addresses lives."""
        if self.is_ours(found):
            if found.hops:
                _count(self._hops, found.url, found.hops)
            if found.nested is not None:
                _count(self._nested, found.url, found.nested)
            self.offer(found.url, found.host, found.depth)

    def is_ours(self, found: FoundUrl) -> bool:
        """Whether a URL that another part has found is ours; where one of its first addresses lives is remembered."""
        if found.depth == 0 and not self.scope.allows(found.host):
            self.scope = self.scope.with_host(found.host)
            self.folder.heard_moved.append(found.host)
        return self.folder.owns(found.host)

    def unfound(self, links: Iterable[str], page: str) -> Iterator[str]:
        """Those links that were not found lately."""
        for link in links:
            with suppress(UrlError):
                url = normalise(link, page)
                if url not in self._recent and url not in self._older:
                    yield url

    def follow(self, links: Sequence[str], page: str, depth: int, nested: int | None = None) -> list[str]:
        """Offer the links of a page that belong to the crawl, so deep in sitemaps if they are some; which those are.

        From pages that are as deep as the crawl goes, only sitemaps are: they cost no depth.
        """
        if not self.scope.depth:
            return []
        followed = []
        deepest = depth >= self.scope.depth
        if deepest:
            new = (url for link in links if (url := self._belongs(link, page)) and not is_sitemap(url))
            self.at_depth += any(url not in self._recent and url not in self._older for url in new)
        for link in links:
            if deepest and "sitemap" not in link:
                continue
            known = link in self._recent or link in self._older  # as most are: what was offered belongs to the crawl
            url = link if known else self._belongs(link, page)
            if url is None or (deepest and not is_sitemap(url)):
                continue
            followed.append(url)
            if nested is not None:
                _count(self._nested, url, nested)
            if not known:
                self.offer(url, host_in(url), min(depth + 1, self.scope.depth))
        return followed

    def _belongs(self, link: str, page: str) -> str | None:
        """The URL of a link, if it belongs to the crawl."""
        try:
            url = normalise(link, page)
        except UrlError:
            return None
        return url if self.scope.allows(host_in(url)) and trap(url) is None else None

    def announce(self, sitemaps: Sequence[str], page: str, nested: int = 0) -> None:
        """Offer sitemaps that robots.txt or another sitemap names as such."""
        self.follow(sitemaps, page, 0, nested)

    def announced(self, url: str) -> bool:
        """Whether the URL, which waits, was named as a sitemap."""
        return url in self._nested

    def follow_sitemap(self, listed: Sitemap, url: str) -> None:
        """Offer what a sitemap lists: one link from the beginning, wherever the sitemap was found."""
        nested = self._nested.get(url, 0) + 1
        if nested <= MOST_NESTED:
            self.announce(listed.sitemaps, url, nested)
        self.follow(listed.pages, url, 0)

    async def resolve(self, queued: QueuedUrl, reply: Reply) -> MovedUrl | Outcome:
        """Where a redirect leads, or why it leads nowhere: to what is no URL, back here, or on and on."""
        try:
            target = normalise(location_of(reply), queued.url)
        except UrlError as error:
            return Outcome(Code.INVALID_URL, reply.status, f"redirect: {error}"[:200])
        if (hops := self._hops.get(queued.url, 0) + 1) > MOST_HOPS:
            return Outcome(Code.REDIRECT_LOOP, reply.status, f"{hops} redirects and no end in sight")
        if await self._leads_to(target, queued.url):
            return Outcome(Code.REDIRECT_LOOP, reply.status, f"leads back here by {target}"[:200])
        host = host_in(target)
        if queued.depth == 0 and not self.scope.allows(host):
            # Who asks for example.org means www.example.org too, if that is where it lives.
            self.scope = self.scope.with_host(host)
            await self._executor(self.folder.allow_moved, target)
        return MovedUrl(target, reply, "moved" if self.scope.allows(host) else "moved out of the crawl")

    def move(self, queued: QueuedUrl, moved: MovedUrl) -> None:
        """Offer the target of a redirect, a URL of its own, unless it leads out of the crawl."""
        _count(self._moves, queued.url, moved.target)
        host = host_in(moved.target)
        if self.scope.allows(host):
            _count(self._hops, moved.target, self._hops.get(queued.url, 0) + 1)
            if queued.url in self._nested:
                _count(self._nested, moved.target, self._nested[queued.url])
            self.offer(moved.target, host, queued.depth)

    def forget_move(self, url: str) -> None:
        """The URL is asked for again: where it led may not be where it leads."""
        self._moves.pop(url, None)

    def ended(self, url: str) -> None:
        """The URL is decided."""
        self._hops.pop(url, None)
        self._nested.pop(url, None)

    async def _leads_to(self, start: str, goal: str) -> bool:
        """Whether the redirects that are known lead from `start` to `goal`, or on for too long to be meant."""
        at = start
        for _ in range(MOST_HOPS):
            if at == goal:
                return True
            following = self._moves.get(at) or await self._executor(self.folder.ledger.moved_to, at)
            if following is None:
                return False
            at = following
        return True


def _count(known: OrderedDict[str, T], url: str, of: T) -> None:
    if len(known) >= MOST_COUNTED:
        known.popitem(last=False)
    known[url] = of
