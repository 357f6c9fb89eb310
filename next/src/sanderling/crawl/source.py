"""What waits for a crawl: the ledger as the engine's source. What needs no request is settled on the way out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from sanderling.clock import Clock
from sanderling.crawl.job import Job
from sanderling.crawl.repeats import Repeats
from sanderling.crawl.request import Stored
from sanderling.crawl.scope import CrawlScope, LeaveOut
from sanderling.crawl.watchdog import AFTER, Watchdog
from sanderling.crawl.work import SITEMAP
from sanderling.ids import domain_of, url_key
from sanderling.limit import Limiter
from sanderling.outcome import Code
from sanderling.stores import Batch, EndedUrl, HostWork, Ledger, QueuedUrl, RetryUrl, Taken

# Ends in the tally that are none of a URL.
OTHERS_PAUSE = 1.0  # seconds between two looks whether other processes have left us something
CUT = "cut"  # what waits since the option that is its code cut it off
DOMAIN = "domain"  # pages of the registered domain that is its code, where --max-per-domain bounds them
GONE = "gone"  # the code of requests whose function the job has no more


@dataclass(slots=True)
class Progress:
    """What this crawl has done, over all its runs, and what may end it."""

    fetched: int = 0  # pages, or requests of a job
    records: int = 0
    most: int | None = None  # of pages or requests
    most_records: int | None = None
    of_requests: bool = False  # whether requests are counted, and not pages

    def enough(self, pending: int) -> bool:
        """Whether a budget is spent, if all that is pending counts."""
        if self.most_records is not None and self.records >= self.most_records:
            return True
        return self.most is not None and self.fetched + pending >= self.most


class HostShares:
    """How many pages each host and each registered domain has given, where that is bounded."""

    def __init__(self, per_host: int | None, per_domain: int | None) -> None:
        self._per_host = per_host
        self._per_domain = per_domain
        self._stored = Counter[str]()  # by host and by domain, which is written *.example.org
        self._pending = Counter[str]()
        self._taken: set[bytes] = set()
        self._met: set[str] = set()

    def meet(self, host: str, stored: int) -> None:
        """The host has given so many in earlier runs."""
        if host not in self._met:
            self._met.add(host)
            self._stored[host] += stored

    def learn(self, ends: Mapping[tuple[str, str], int]) -> None:
        """What the ledger has counted for domains, pages of other processes among them."""
        for (end, domain), number in ends.items():
            if end == DOMAIN:
                self._stored[f"*.{domain}"] = number

    def domain(self, host: str) -> str:
        """The registered domain for which a page of the host counts; empty where none is bounded."""
        return domain_of(host) if self._per_domain is not None else ""

    def take(self, item: QueuedUrl) -> str:
        """It is to be requested; the option that forbids it, or an empty text."""
        if item.key in self._taken:
            return ""
        names = (item.host, f"*.{self.domain(item.host)}")
        for name, bound, option in zip(
            names, (self._per_host, self._per_domain), ("max-per-host", "max-per-domain"), strict=True
        ):
            if bound is not None and self._stored[name] + self._pending[name] >= bound:
                return option
        self._taken.add(item.key)
        self._pending.update(names)
        return ""

    def end(self, item: QueuedUrl, *, stored: bool) -> None:
        """It has ended, or waits again."""
        names = (item.host, f"*.{self.domain(item.host)}")
        if item.key in self._taken:
            self._taken.remove(item.key)
            self._pending.subtract(names)
        if stored:
            self._stored.update(names)


class CrawlSource:
    """The engine's view of a ledger."""

    def __init__(
        self, ledger: Ledger, limiter: Limiter, job: Job, scope: CrawlScope, leave_out: LeaveOut | None,
        watchdog: Watchdog | None, repeats: Repeats, shares: HostShares, progress: Progress, clock: Clock,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._limiter = limiter
        self._job = job
        self._scope = scope
        self._leave_out = leave_out
        self._watchdog = watchdog
        self._repeats = repeats
        self._shares = shares
        self._progress = progress
        self._clock = clock
        self._late: set[str] = set()  # what held the loop in an earlier run, and goes behind the others
        self._good: dict[str, str] = {}

    async def hosts(self, limit: int) -> Sequence[HostWork]:
        """Hosts with work that is due."""
        while not (works := await self._ledger.hosts(limit)) and await self._ledger.others_work():
            await self._clock.sleep(OTHERS_PAUSE)
        for work in works:
            if work.pace:
                self._limiter.restore(work.name, work.pace)
            self._shares.meet(work.name, work.stored)
            if work.good:
                self._good[work.name] = work.good
        return works

    async def take(self, host: str, limit: int) -> Taken:
        """Items of a host that are to be requested."""
        taken = await self._ledger.take(host, limit)
        pairs = [(item, self._settle(item)) for item in taken.items]
        settled = [each for _, each in pairs if each is not None]
        if not settled:
            return taken
        ended = [each for each in settled if isinstance(each, EndedUrl)]
        again = [each for each in settled if isinstance(each, RetryUrl)]
        tally = Counter((CUT, each.code) for each in again if each.due == inf)
        await self._ledger.commit(Batch(ended=ended, again=again, tally=tally))
        waits = [each.due - self._clock.wall() for each in again if each.due < inf]
        waits += [] if taken.next_wait is None else [taken.next_wait]
        return Taken([item for item, each in pairs if each is None], min(waits, default=None))

    def _settle(self, item: QueuedUrl) -> EndedUrl | RetryUrl | None:
        """What becomes of an item that is not to be requested; None: it is."""
        if self._leave_out is not None and self._leave_out.names(item.url):
            return EndedUrl(item, "left_out", Code.SKIPPED, detail="--leave-out names it", requests=0)
        if self._watchdog is not None and (held := self._watchdog.held.get(item.url)) is not None:
            if held.times > 1:
                self._watchdog.drop(item.url)
                said = f"{held.place} held the whole crawl for a minute, twice"
                return EndedUrl(item, "failed", Code.PARSE_ERROR, 0, said, requests=0)
            if item.url not in self._late:
                self._late.add(item.url)
                return RetryUrl(item, self._clock.wall() + AFTER, item.failures, "")
        if item.function not in self._job.functions and item.function not in ("", SITEMAP):
            return RetryUrl(item, inf, item.failures, GONE)
        if not self._scope.has_host(item.host):
            said = f"{item.host} is none of the crawl's hosts"
            return EndedUrl(item, "left_out", Code.REFUSED, detail=said, requests=0)
        if item.kind == "new" and b"flaw" in item.data and (flaw := Stored.unpack(item.data).flaw):
            return EndedUrl(item, "failed", Code.PARSE_ERROR, 200, flaw, requests=0)
        is_start = not item.depth and not self._job.functions
        if is_start or item.function == SITEMAP or item.kind == "visit":
            return None
        option = "max-same-text" if self._repeats.is_over(item.url) else self._shares.take(item)
        return RetryUrl(item, inf, item.failures, option) if option else None

    def probe(self, host: str) -> QueuedUrl | None:
        """A page that the host answered well in an earlier run."""
        url = self._good.pop(host, None)
        if url is None:
            return None
        return QueuedUrl(0, host, url, url_key(url), 0, "probe", 0, 0, 0, "", b"", "")

    def release(self, host: str) -> None:
        """The engine has forgotten this host."""
        self._ledger.release(host)

    def enough(self, pending: int) -> bool:
        """Whether a budget is spent."""
        return self._progress.enough(pending)

    def may_send(self) -> bool:
        """Whether requests may leave."""
        return self._ledger.may_send()
