"""The smallest crawl on the engine, the ledger and the fetch client: a list of URLs, whose links are followed."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

from sanderling.clock import SystemClock
from sanderling.engine.blame import Verdict
from sanderling.engine.loop import Engine
from sanderling.engine.ports import Done, Handled, Parked
from sanderling.engine.rules import EngineRules
from sanderling.extract.html import read_page
from sanderling.fetch import Client, HttpRequest, RequestOptions
from sanderling.ids import host_of, normalise_url
from sanderling.limit import Permit
from sanderling.stores import (
    Batch,
    EndedUrl,
    FoundUrl,
    HostNote,
    HostWork,
    Ledger,
    QueuedUrl,
    RetryUrl,
    StoredUrl,
    Taken,
    open_ledger,
)

CLOCK = SystemClock()


class UrlCrawl:
    """Source, handler and sink. It stays on the hosts it began with, and keeps no rows."""

    def __init__(self, ledger: Ledger, client: Client) -> None:
        self.fetched: dict[str, float] = {}  # when, by URL
        self.requests = 0
        self._ledger = ledger
        self._client = client
        self._hosts: set[str] = set()

    async def begin(self, urls: Sequence[str]) -> None:
        """Take up the first URLs."""
        self._hosts = {host_of(url) for url in urls}
        found = [FoundUrl(normalise_url(url), host_of(url)) for url in urls]
        for host in await self._ledger.commit(Batch(found=found)):
            self._ledger.release(host)  # the engine asks for it

    # The source.

    async def hosts(self, limit: int) -> Sequence[HostWork]:
        """Hosts with work that is due."""
        return await self._ledger.hosts(limit)

    async def take(self, host: str, limit: int) -> Taken:
        """URLs of a host."""
        return await self._ledger.take(host, limit)

    def probe(self, host: str) -> None:
        """Nothing is remembered of earlier runs."""

    def release(self, host: str) -> None:
        """The engine has forgotten the host."""
        self._ledger.release(host)

    def enough(self, pending: int) -> bool:  # noqa: ARG002 - there is no budget
        """Never."""
        return False

    def may_send(self) -> bool:
        """Whether our lease is young."""
        return self._ledger.may_send()

    # The handler.

    async def handle(self, item: QueuedUrl, permit: Permit) -> Handled:
        """Request one page, and read where it leads."""
        response = await self._client.send(
            HttpRequest(item.url), permit, follow=lambda target: host_of(target) == item.host, item=item.key
        )
        self.requests += response.requests
        links: list[FoundUrl] = []
        if response.outcome.ok:
            self.fetched.setdefault(item.url, CLOCK.now())  # a host that is down is probed with it again
            for link in read_page(response.body, response.header("content-type"), item.url, text="none").links:
                host = host_of(link.url)
                if host in self._hosts:
                    links.append(FoundUrl(link.url, host, depth=item.depth + 1))
        return Handled(response.outcome, links, size=200 * len(links))

    # The sink.

    async def write(self, batch: Sequence[Done], parked: Sequence[Parked]) -> Sequence[str]:
        """Store what came of these pages."""
        stored, ended, again, found = list[StoredUrl](), list[EndedUrl](), list[RetryUrl](), list[FoundUrl]()
        for done in batch:
            outcome, judgement = done.handled.outcome, done.judgement
            if judgement.verdict in (Verdict.RETRY, Verdict.WAIT):
                again.append(RetryUrl(done.item, CLOCK.wall() + judgement.wait, judgement.failures, outcome.code))
            elif outcome.ok:
                stored.append(StoredUrl(done.item))
                found += done.handled.result
            else:
                ended.append(EndedUrl(done.item, "failed", outcome.code, outcome.status, outcome.detail))
        notes = [HostNote(each.host, 0.0 if each.wait is None else CLOCK.wall() + each.wait) for each in parked]
        return await self._ledger.commit(Batch(stored, ended, again, found, notes))


async def crawl(
    urls: Sequence[str],
    folder: Path,
    options: RequestOptions,
    rules: EngineRules,
    limit: float = inf,
) -> tuple[UrlCrawl, dict[str, str], set[str]]:
    """Crawl these for at most `limit` seconds; the crawl, the reasons of what failed by URL, and what still waits."""
    async with open_ledger(folder / "crawl.db", plan={}, clock=CLOCK) as ledger, Client(options, clock=CLOCK) as client:
        it = UrlCrawl(ledger, client)
        await it.begin(urls)
        engine = Engine(it, it.handle, it, client.limiter, CLOCK, rules)
        timer = None if limit == inf else CLOCK.call_later(limit, engine.stop)
        await engine.run()
        if timer is not None:
            timer.cancel()
        failed = {each.url: each.code async for each in ledger.tasks("failed")}
        waiting = {each.url async for each in ledger.tasks("waiting")}
    return it, failed, waiting
