"""What a crawl asks next, as far as robots.txt and our own list allow; and what becomes of each URL."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import msgspec

from sanderling.crawls.source import LedgerWriter
from sanderling.engine.backlog import Loader
from sanderling.engine.ports import Settled
from sanderling.limit import Limiter
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.budgets import TrapBudgets
from sanderling.pages.discovery import LinkDiscovery, MovedUrl
from sanderling.pages.handler import Understood
from sanderling.pages.hosts import PageHost, RobotsWork
from sanderling.pages.permissions import Permissions
from sanderling.pages.record import ReadPage
from sanderling.pages.robots_source import RobotsSource
from sanderling.pages.rules import CrawlRules
from sanderling.stores.board import BoardField
from sanderling.stores.frontier_rows import End, Ended, QueuedUrl
from sanderling.stores.frontier_visits import DueVisit


class PageSource(RobotsSource[PageHost, QueuedUrl]):
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
        super().__init__(writer, loader, PageHost, permissions, limiter, rules)
        self.sitemaps = 0  # that were fetched, by this run and those before
        self._discovery = discovery
        self._rules = rules
        self._visited: set[int] = set()  # what is visited again, and was counted when it was new
        self.visiting = False  # whether pages are visited again, so that there is always more to come
        self.budgets = TrapBudgets(rules, {})
        self.cut_off = 0  # URLs that a budget has left out, in this run and those before
        self.exempt = (
            0  # the last id that no budget counts for: what was cut off is asked for, and what it leads to not
        )

    # What is next.

    @property
    def loading(self) -> bool:
        """Whether something is on its way from disk, or will be due."""
        loading = super().loading  # which looks for room, too
        return self.visiting or loading

    def drain(self) -> None:
        """Ask for what is known, and leave what is found from now on, and what is due then, to the next run."""
        self.visiting = False
        super().drain()

    def visit(self, due: DueVisit) -> PageHost:
        """A page is due again; its host."""
        host, queued = self.host(due.queued.host), due.queued
        self.counts[due.was] -= 1
        self._discovery.forget_move(queued.url)
        self._visited.add(queued.id)
        self._wait(host, 1)
        host.line_up(queued)
        return host

    def enough(self, inflight: int) -> bool:
        """Whether as many pages as were wanted are fetched, or about to be. Sitemaps are no pages."""
        limit = self._rules.max_pages
        if limit is None:
            return False
        asked = self.counts[End.FETCHED] + self.counts[End.UNCHANGED] - self.sitemaps + inflight
        return self.with_others(BoardField.FETCHED, asked) >= limit

    def check(self, host: PageHost, queued: QueuedUrl, now: float) -> QueuedUrl | RobotsWork | None:
        """The URL if nothing known forbids it, or robots.txt if that comes first."""
        if host.forbidden is None and (unwanted := self._left_out(host, queued)) is not None:
            self.end(host, queued, unwanted, End.LEFT_OUT, requests=0)
            return None
        return self.check_robots(host, queued, now)

    def _left_out(self, host: PageHost, queued: QueuedUrl) -> Outcome | None:
        """Why it is not to be asked for: somebody's wish, or a budget, which no first address counts against."""
        if self._rules.leave_out is not None and (why := self._rules.leave_out.why(queued.url, host.name)):
            return Outcome(Code.REFUSED, detail=f"left out: {why}"[:200])
        new = queued.depth and queued.id > self.exempt and queued.id not in self._visited
        if not new or (spent := self.budgets.spent(host, queued.url)) is None:
            return None
        self.cut_off += 1
        return spent

    # What became of it.

    def settled(self, host: PageHost, work: QueuedUrl | RobotsWork, settled: Settled[Understood], now: float) -> None:
        """The host answered, or robots.txt was asked for."""
        result = settled.result
        if isinstance(work, RobotsWork):
            self.learned(host, work.key, settled.outcome, result, now)
        elif isinstance(result, ReadPage | Ended):
            self.bytes += settled.size
            if work.id not in self._visited:
                self._count(host, work, result)
            self.add(host, result if isinstance(result, Ended) else self._follow(work, result))
        elif isinstance(result, MovedUrl):
            self._discovery.move(work, result)
            ended = record.moved(work, result.reply, result.target, result.detail, self._clock.wall())
            self.add(host, record.keep_raw(ended, result.reply, self._discovery.folder.plan.keep))
        else:
            outcome = result if isinstance(result, Outcome) else settled.outcome
            self.end(host, work, outcome, End.FAILED, requests=host.failures(work.key) + 1)

    def _count(self, host: PageHost, work: QueuedUrl, result: ReadPage | Ended) -> None:
        """A page takes up some of the budgets."""
        if isinstance(result, Ended):
            self.budgets.count(host, work.url, None)
        else:
            leads_to = partial(self._discovery.unfound, result.links, work.url)
            self.budgets.count(host, work.url, result.text, leads_to)

    def failed(
        self, host: PageHost, work: QueuedUrl | RobotsWork, outcome: Outcome, failures: int, due: float | None
    ) -> None:
        """It failed so many times in a row; without a due time, for good."""
        own = due is None and outcome.code is Code.HOST_UNAVAILABLE and not isinstance(work, RobotsWork)
        # Its host is well, or the URL would wait with the others of the host: the error is the page's own.
        super().failed(host, work, replace(outcome, code=Code.HTTP_ERROR) if own else outcome, failures, due)

    def _follow(self, queued: QueuedUrl, result: ReadPage) -> Ended:
        """Offer where a page or a sitemap leads; its end, with the links that the next crawl will want to know."""
        if result.sitemap is not None:
            self.sitemaps += 1
            self._discovery.follow_sitemap(result.sitemap, queued.url)
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
        self._visited.discard(ended.id)
        size += len(ended.row or b"") + sum(len(each.data) for each in (ended.body, ended.raw) if each is not None)
        size += 0 if ended.reply is None else len(ended.reply.body)
        super().add(host, ended, size)

    def announce(self, sitemaps: Sequence[str], url: str) -> None:
        """Ask for the sitemaps that robots.txt names."""
        self._discovery.announce(sitemaps, url)
