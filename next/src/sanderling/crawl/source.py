"""What waits for a crawl: the ledger as the engine's source. What needs no request is settled on the way out."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from sanderling.clock import Clock
from sanderling.ids import domain_of, url_key
from sanderling.limit import Limiter
from sanderling.stores import Batch, EndedUrl, HostWork, Ledger, QueuedUrl, RetryUrl, Taken

CUT = "cut"  # in the tally: what waits since the option that is its code cut it off
Settled = EndedUrl | RetryUrl
# What becomes of an item that is not to be requested; None: it is.
Settle = Callable[[QueuedUrl], Settled | None]


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
        self._bounds = {"max-per-host": per_host, "max-per-domain": per_domain}
        self._stored = Counter[str]()
        self._taken = Counter[str]()
        self._met: set[str] = set()

    def _names(self, host: str) -> list[tuple[str, str, int]]:
        """What counts for a host: option, name and bound."""
        return [
            (option, host if option == "max-per-host" else f"domain/{domain_of(host)}", bound)
            for option, bound in self._bounds.items()
            if bound is not None
        ]

    def meet(self, host: str, stored: int) -> None:
        """The host has given so many in earlier runs."""
        if host not in self._met:
            self._met.add(host)
            for _, name, _ in self._names(host):
                self._stored[name] += stored

    def take(self, host: str) -> str:
        """One more of the host is to be requested; the option that forbids it, or an empty text."""
        names = self._names(host)
        for option, name, bound in names:
            if self._stored[name] + self._taken[name] >= bound:
                return option
        for _, name, _ in names:
            self._taken[name] += 1
        return ""

    def end(self, host: str, *, stored: bool) -> None:
        """One of those has ended."""
        for _, name, _ in self._names(host):
            self._taken[name] = max(0, self._taken[name] - 1)
            self._stored[name] += stored


class CrawlSource:
    """The engine's view of a ledger."""

    def __init__(
        self, ledger: Ledger, limiter: Limiter, settle: Settle, progress: Progress, shares: HostShares, clock: Clock
    ) -> None:
        self._ledger = ledger
        self._limiter = limiter
        self._settle = settle
        self._progress = progress
        self._shares = shares
        self._clock = clock
        self._good: dict[str, str] = {}

    async def hosts(self, limit: int) -> Sequence[HostWork]:
        """Hosts with work that is due."""
        works = await self._ledger.hosts(limit)
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
