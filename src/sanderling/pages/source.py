"""What a crawl asks next, as far as robots.txt and our own list allow; and what becomes of each URL."""

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from sanderling.engine.backlog import Backlog, Loader
from sanderling.engine.classes import Class
from sanderling.engine.ports import Settled
from sanderling.engine.writer import Writer
from sanderling.limit import Limiter
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.discovery import Discovery, Moved
from sanderling.pages.handler import Understood
from sanderling.pages.hosts import Ask, PageHost
from sanderling.pages.permissions import Learned, Permissions
from sanderling.pages.record import Read
from sanderling.pages.robots import Robots
from sanderling.pages.rules import CrawlRules
from sanderling.pages.sink import Note
from sanderling.pages.urls import origin_of
from sanderling.stores.frontier_rows import End, Ended, FoundUrl, HostNote, QueuedUrl

PageWriter = Writer[Note, FoundUrl, None, dict[str, int]]


class PageSource(Backlog[PageHost, QueuedUrl]):
    """Hosts with what waits for them, and how many URLs came to which end."""

    def __init__(
        self,
        writer: PageWriter,
        discovery: Discovery,
        permissions: Permissions,
        loader: Loader[PageHost],
        limiter: Limiter,
        rules: CrawlRules,
    ) -> None:
        super().__init__(loader, writer.add, PageHost)
        self.counts: Counter[End] = Counter()
        self.bytes = 0  # of documents that were read
        self._writer = writer
        self._discovery = discovery
        self._permissions = permissions
        self._limiter = limiter
        self._rules = rules

    # What is next.

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

    def take(self, host: PageHost, of: Class, now: float) -> Ask | None:
        """The next URL, or robots.txt if that comes first."""
        return self._next_allowed(host, now, host.pop_new if of is Class.NEW else lambda: host.pop_again(now))

    def take_untried(self, host: PageHost, now: float) -> Ask | None:
        """A URL that was not asked for yet, from the far end of what is known."""
        return None if host.learning else self._next_allowed(host, now, host.pop_last)

    def _next_allowed(self, host: PageHost, now: float, pop: Callable[[], QueuedUrl | None]) -> Ask | None:
        """The next URL that nothing known forbids. Those that something does are decided."""
        ask = None
        while ask is None and (queued := pop()) is not None:
            ask = self._check(host, queued, now)
        self._loader.want(host)
        return ask

    def _check(self, host: PageHost, queued: QueuedUrl, now: float) -> Ask | None:
        """What to ask for this URL; None if it is decided, or must wait."""
        if host.forbidden is not None:
            self._end(host, queued, host.forbidden, End.FAILED, requests=0)
            return None
        if self._rules.leave_out is not None and (why := self._rules.leave_out.why(queued.url, host.name)):
            outcome = Outcome(Code.REFUSED, detail=f"left out: {why}"[:200])
            self._end(host, queued, outcome, End.LEFT_OUT, requests=0)
            return None
        origin, before = origin_of(queued.url), host.set_aside
        if host.withholds(queued, origin, now):
            self.set_aside += host.set_aside - before
            return None
        known = self._permissions.known(origin)
        if known is None:
            host.put_back(queued)
            host.learning = True
            return Ask(origin, f"{origin}/robots.txt", None)
        if known.allows(queued.url):
            return Ask(queued.id, queued.url, queued)
        refusal = Outcome(Code.REFUSED, detail=known.why(queued.url)[:200])
        self._end(host, queued, refusal, End.REFUSED, requests=0)
        return None

    # What became of it.

    def settled(self, host: PageHost, work: Ask, settled: Settled[Understood], now: float) -> None:
        """The host answered, or robots.txt was asked for."""
        result = settled.result
        if work.queued is None:
            self._learned(host, str(work.key), settled.outcome, result if isinstance(result, Learned) else None, now)
        elif isinstance(result, Read | Ended):
            self._keep(host, work.queued, result, settled.size)
        elif isinstance(result, Moved):
            self._discovery.move(work.queued, result)
            ended = record.moved(work.queued, result.reply, result.target, result.detail, self._clock.wall())
            self._add(host, work.queued, ended)
        else:
            outcome = result if isinstance(result, Outcome) else settled.outcome
            self._end(host, work.queued, outcome, End.FAILED, requests=host.failures(work.key) + 1)

    def later(self, host: PageHost, work: Ask, outcome: Outcome, due: float) -> None:
        """It has not failed."""
        if work.queued is None:
            host.learning = False
            host.wait_for(str(work.key), due, self._clock.now())
        else:
            self.postpone(host, work.queued, outcome, due, self._rules.patience)

    def failed(self, host: PageHost, work: Ask, outcome: Outcome, failures: int, due: float | None) -> None:
        """It failed so many times in a row; without a due time, for good."""
        if work.queued is None:
            self._learned(host, str(work.key), outcome, None, self._clock.now())
        elif due is None:
            self._end(host, work.queued, outcome, End.FAILED, requests=failures)
        else:
            self.retry(host, work.queued, outcome, failures, due)

    def _keep(self, host: PageHost, queued: QueuedUrl, result: Read | Ended, size: int) -> None:
        """It was answered, and what it said is kept; where it leads is offered."""
        self.bytes += size
        if isinstance(result, Ended):
            self._add(host, queued, result)
            return
        ended = result.ended
        if result.sitemap is not None:
            self._discovery.follow_sitemap(result.sitemap, queued.url, queued.depth)
        else:
            follow = self._discovery.follow(result.links, queued.url, queued.depth)
            if follow and (ended.etag or ended.modified):
                ended = msgspec.structs.replace(ended, links=tuple(follow))
        self._add(host, queued, ended)

    def _end(self, host: PageHost, queued: QueuedUrl, outcome: Outcome, end: End, *, requests: int) -> None:
        """It was not fetched."""
        self._add(host, queued, record.unfetched(queued, outcome, end, requests))

    def _add(self, host: PageHost, queued: QueuedUrl, ended: Ended) -> None:
        self.counts[ended.end] += 1
        self._wait(host, -1)
        self._discovery.ended(queued.url)
        self._writer.add(ended, len(ended.row or b"") + (0 if ended.body is None else len(ended.body.data)))

    # robots.txt.

    def _learned(self, host: PageHost, origin: str, outcome: Outcome, learned: Learned | None, now: float) -> None:
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
