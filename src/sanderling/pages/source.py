"""What a crawl asks next, as far as robots.txt and our own list allow; and what becomes of each URL."""

from collections.abc import Sequence

import msgspec

from sanderling.crawls.source import FrontierSource, LedgerWriter
from sanderling.engine.backlog import Loader
from sanderling.engine.classes import Class
from sanderling.engine.ports import Settled
from sanderling.limit import Limiter
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.discovery import LinkDiscovery, MovedUrl
from sanderling.pages.handler import Understood
from sanderling.pages.hosts import PageHost, RobotsWork
from sanderling.pages.permissions import Permissions, RobotsAnswer
from sanderling.pages.record import ReadPage
from sanderling.pages.robots import Robots
from sanderling.pages.rules import CrawlRules
from sanderling.pages.urls import origin_of
from sanderling.stores.frontier_rows import End, Ended, HostNote, QueuedUrl
from sanderling.stores.frontier_visits import DueVisit


class PageSource(FrontierSource[PageHost, QueuedUrl, QueuedUrl | RobotsWork]):
    """Hosts with what waits for them, and how many URLs came to which end."""

    def __init__(
        self,
        writer: LedgerWriter,
        discovery: LinkDiscovery,
        permissions: Permissions,
        loader: Loader[PageHost],
        limiter: Limiter,
        rules: CrawlRules,
    ) -> None:
        super().__init__(writer, loader, PageHost, rules.patience)
        self._discovery = discovery
        self._permissions = permissions
        self._limiter = limiter
        self._rules = rules
        self.visiting = False  # whether pages are visited again, so that there is always more to come

    # What is next.

    @property
    def loading(self) -> bool:
        """Whether something is on its way from disk, or will be due."""
        return self.visiting or super().loading

    def drain(self) -> None:
        """Ask for what is known, and leave what is found from now on, and what is due then, to the next run."""
        self.visiting = False
        super().drain()

    def visit(self, due: DueVisit) -> PageHost:
        """A page is due again; its host."""
        host, queued = self.host(due.queued.host), due.queued
        self.counts[due.was] -= 1
        self._discovery.forget_move(queued.url)
        self._wait(host, 1)
        host.line_up(queued)
        return host

    def enough(self, inflight: int) -> bool:
        """Whether as many pages as were wanted are fetched, or about to be."""
        limit = self._rules.max_pages
        return limit is not None and self.counts[End.FETCHED] + self.counts[End.UNCHANGED] + inflight >= limit

    def classes(self, host: PageHost, now: float) -> Sequence[Class]:
        """What is due: URLs that were not asked for yet, and such as were put off."""
        return () if host.learning else super().classes(host, now)

    def due(self, host: PageHost, now: float) -> float | None:
        """When there is next something to take."""
        return None if host.learning else super().due(host, now)

    def take_untried(self, host: PageHost, now: float) -> QueuedUrl | RobotsWork | None:
        """A URL that was not asked for yet, from the far end of what is known."""
        return None if host.learning else super().take_untried(host, now)

    def check(self, host: PageHost, queued: QueuedUrl, now: float) -> QueuedUrl | RobotsWork | None:
        """The URL if nothing known forbids it, or robots.txt if that comes first."""
        if host.forbidden is not None:
            self.end(host, queued, host.forbidden, End.FAILED, requests=0)
            return None
        if self._rules.leave_out is not None and (why := self._rules.leave_out.why(queued.url, host.name)):
            outcome = Outcome(Code.REFUSED, detail=f"left out: {why}"[:200])
            self.end(host, queued, outcome, End.LEFT_OUT, requests=0)
            return None
        origin = origin_of(queued.url)
        if (shut := host.shut_until(origin, now)) is not None:
            if shut.for_good:
                self.withhold(host)
            else:
                host.put_off(queued, shut.until)
            return None
        known = self._permissions.known(origin)
        if known is None:
            host.put_back(queued)
            host.learning = True
            return RobotsWork(origin)
        if known.allows(queued.url):
            return queued
        refusal = Outcome(Code.REFUSED, detail=known.why(queued.url)[:200])
        self.end(host, queued, refusal, End.REFUSED, requests=0)
        return None

    # What became of it.

    def settled(self, host: PageHost, work: QueuedUrl | RobotsWork, settled: Settled[Understood], now: float) -> None:
        """The host answered, or robots.txt was asked for."""
        result = settled.result
        if isinstance(work, RobotsWork):
            self._learned(host, work.key, settled.outcome, result if isinstance(result, RobotsAnswer) else None, now)
        elif isinstance(result, ReadPage | Ended):
            self.bytes += settled.size
            self.add(host, result if isinstance(result, Ended) else self._follow(work, result))
        elif isinstance(result, MovedUrl):
            self._discovery.move(work, result)
            ended = record.moved(work, result.reply, result.target, result.detail, self._clock.wall())
            self.add(host, record.keep_raw(ended, result.reply, self._discovery.folder.plan.keep))
        else:
            outcome = result if isinstance(result, Outcome) else settled.outcome
            self.end(host, work, outcome, End.FAILED, requests=host.failures(work.key) + 1)

    def later(self, host: PageHost, work: QueuedUrl | RobotsWork, outcome: Outcome, due: float) -> None:
        """It has not failed."""
        if isinstance(work, RobotsWork):
            host.learning = False
            host.wait_for(work.key, due, self._clock.now())
        else:
            super().later(host, work, outcome, due)

    def failed(
        self, host: PageHost, work: QueuedUrl | RobotsWork, outcome: Outcome, failures: int, due: float | None
    ) -> None:
        """It failed so many times in a row; without a due time, for good."""
        if isinstance(work, RobotsWork):
            self._learned(host, work.key, outcome, None, self._clock.now())
        else:
            super().failed(host, work, outcome, failures, due)

    def _follow(self, queued: QueuedUrl, result: ReadPage) -> Ended:
        """Offer where a page or a sitemap leads; its end, with the links that the next crawl will want to know."""
        if result.sitemap is not None:
            self._discovery.follow_sitemap(result.sitemap, queued.url, queued.depth)
            return result.ended
        follow, ended = self._discovery.follow(result.links, queued.url, queued.depth), result.ended
        if follow and (ended.etag or ended.modified):
            return msgspec.structs.replace(ended, links=tuple(follow))
        return ended

    def unfetched(self, queued: QueuedUrl, outcome: Outcome, end: End, requests: int) -> Ended:
        """No row of its own: the frontier keeps the reason."""
        return record.unfetched(queued, outcome, end, requests)

    def add(self, host: PageHost, ended: Ended, size: int = 0) -> None:
        """A URL has its end."""
        self._discovery.ended(ended.url)
        size += len(ended.row or b"") + sum(len(each.data) for each in (ended.body, ended.raw) if each is not None)
        size += 0 if ended.reply is None else len(ended.reply.body)
        super().add(host, ended, size)

    # robots.txt.

    def _learned(self, host: PageHost, origin: str, outcome: Outcome, learned: RobotsAnswer | None, now: float) -> None:
        """The rules of an origin are known, or are not available."""
        host.learning = False
        if learned is not None and learned.rules is not None:
            host.let_in(origin)
            self._heed(host, origin, learned.rules, asked=outcome.code is not Code.DEFERRED)
        elif outcome.code is Code.REFUSED:  # by our own guard, which does not change its mind
            host.forbidden = outcome
        elif host.shut_out(origin, now, self._rules):
            self._writer.add(HostNote(host.name, outcome))

    def _heed(self, host: PageHost, origin: str, known: Robots, *, asked: bool) -> None:
        """Take notice of what robots.txt says beside its rules, when it was asked for, or met for the first time."""
        scheme = origin.partition("://")[0]
        if not asked and scheme in host.heeded:
            return
        if host.answered is None:
            host.answered = self._clock.now()  # in an earlier run
        host.heeded = tuple(dict.fromkeys((*host.heeded, scheme)))
        if known.delay:
            asks = f"robots.txt asks for {known.delay:g} s between requests"
            self._limiter.cap(host.name, 1 / known.delay, asks)
        self._discovery.announce(known.sitemaps, f"{scheme}://{host.name}/", 0)
