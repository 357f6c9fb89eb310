"""What a crawl does with one request: may it be sent, send it, understand the response, have it read."""

import asyncio
from dataclasses import dataclass, field

import msgspec

from sanderling.clock import Clock
from sanderling.crawl.pages import SITEMAP, row_of
from sanderling.crawl.repeats import mark_of
from sanderling.crawl.robots import RobotsRules
from sanderling.crawl.scope import CrawlScope, LeaveOut
from sanderling.crawl.work import FoundRequest, Head, ReadAnswer
from sanderling.engine.ports import Handled
from sanderling.fetch.client import Client
from sanderling.fetch.messages import Headers, HttpRequest, HttpResponse
from sanderling.limit import Permit
from sanderling.outcome import Code, Outcome
from sanderling.readers.pool import ReaderError, Readers
from sanderling.stores import FoundUrl, Ledger, PageMemory, QueuedUrl

LATER = 5.0  # seconds: a host that may not be requested for longer is left, and comes when it may


@dataclass(slots=True)
class Result:
    """What came of an item, for the sink."""

    end: str = ""  # empty: the outcome says it
    code: str = "OK"
    lines: tuple[bytes, ...] = ()
    found: list[FoundUrl] = field(default_factory=list)
    detail: str = ""
    requests: int = 0
    memory: PageMemory | None = None
    text: bytes = b""
    counts: bool = True  # as a page of --max-pages
    passed: int = 0


class CrawlHandler:
    """Fetches one item and has it read."""

    def __init__(
        self, ledger: Ledger, client: Client, readers: Readers, robots: RobotsRules, scope: CrawlScope,
        leave_out: LeaveOut, clock: Clock, *, max_depth: int,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._client = client
        self._readers = readers
        self._robots = robots
        self._scope = scope
        self._leave_out = leave_out
        self._clock = clock
        self._max_depth = max_depth
        self._met: dict[str, asyncio.Task[None]] = {}
        self.deep = 0  # links that --depth cut off
        self.more_hosts: tuple[str, ...] = ()  # to which first addresses redirect

    async def __call__(self, item: QueuedUrl, permit: Permit) -> Handled:
        """Send the request with this permit, or another one if robots.txt took it."""
        await self._meet(item.host)
        allowed = await self._may_request(item.url, permit)
        if allowed is not None:
            return allowed
        if not permit.live:
            wait = self._client.limiter.ready_at(item.host) - self._clock.now()
            if wait > LATER:
                return Handled(Outcome(Code.DEFERRED, retry_after=wait, sent=False), Result())
        conditional = _conditions(item.memory)
        request = HttpRequest(item.url, headers=conditional)
        response = await self._client.send(request, permit, follow=False, item=item.key)
        outcome = response.outcome
        result = Result(requests=response.requests, detail=outcome.detail)
        if response.location is not None and outcome.ok:
            return self._moved(item, response, result)
        if not outcome.ok or not response.status:
            return Handled(outcome, result)
        head = self._head(item, response)
        if response.status == 304:
            return Handled(outcome, result)
        return await self._read(item, head, response, result)

    async def _meet(self, host: str) -> None:
        """Take up what is stored of a host, before its first request."""
        task = self._met.get(host)
        if task is None:
            task = self._met[host] = asyncio.create_task(self._restore(host))
        if not task.done():
            await asyncio.shield(task)

    async def _restore(self, host: str) -> None:
        robots, cookies = await self._ledger.documents(host)
        if robots:
            self._robots.restore(robots)
        if cookies:
            self._client.cookies.restore(cookies, self._clock.wall())

    async def _may_request(self, url: str, permit: Permit) -> Handled | None:
        """None if robots.txt allows it, else what becomes of the item."""
        rules = self._robots.now(url) or await self._robots.fetch(url, permit)
        if isinstance(rules, Outcome):
            return Handled(rules, Result(detail=rules.detail), of_host=True)
        decision = rules.decide(url)
        if decision.allowed:
            return None
        refused = Outcome(Code.REFUSED, detail=decision.why, sent=False)
        return Handled(refused, Result(end="refused", detail=decision.why))

    def _head(self, item: QueuedUrl, response: HttpResponse) -> Head:
        return Head(
            id=item.id, url=item.url, status=response.status, headers=response.headers, depth=item.depth,
            function=item.function, data=item.data, run=self._ledger.run, at=self._clock.wall(),
            seconds=response.latency, hosts=self.more_hosts,
        )  # fmt: skip

    def _moved(self, item: QueuedUrl, response: HttpResponse, result: Result) -> Handled:
        """A redirect: its target is an address of its own, if it belongs to the crawl."""
        target = response.location or ""
        host = target.split("/", 3)[2]
        if item.depth == 0 and not self._scope.has_host(host):
            self._scope.hosts.add(host)
            self.more_hosts += (host,)
        if self._scope.wants(target):
            result.found = [FoundUrl(target, host, depth=item.depth, function=item.function, data=item.data)]
        row = row_of(self._head(item, response), "OK", moved_to=target)
        result.end, result.lines, result.counts = "moved", (msgspec.json.encode(row),), False
        return Handled(response.outcome, result, size=len(result.lines[0]))

    async def _read(self, item: QueuedUrl, head: Head, response: HttpResponse, result: Result) -> Handled:
        try:
            read = await self._readers.run(item.host, msgspec.msgpack.encode(head), response.body)
        except ReaderError as error:
            if error.reason == "start":
                raise
            failed = Outcome(Code.PARSE_ERROR, response.status, f"{error.reason}: {error.detail}"[-500:])
            result.detail = failed.detail
            return Handled(failed, result)
        answer = _decode(read)
        result.end, result.lines, result.detail = answer.end, answer.lines, answer.detail
        result.text, result.passed, result.counts = answer.text, answer.passed, item.function != SITEMAP
        self._follow(item, answer, result)
        etag, modified = response.header("etag") or "", response.header("last-modified") or ""
        if etag or modified:
            result.memory = PageMemory(item.key, etag[:500], modified[:100], seen=head.at)
        return Handled(response.outcome, result, size=sum(map(len, answer.lines)) + 100 * len(result.found))

    def _follow(self, item: QueuedUrl, answer: ReadAnswer, result: Result) -> None:
        """What a response leads to, as far as the depth allows."""
        depth = item.depth + 1
        if depth > self._max_depth and answer.links:
            self.deep += len(answer.links)
        else:
            mark = mark_of(item.url)
            result.found += [FoundUrl(url, url.split("/", 3)[2], depth=depth, data=mark) for url in answer.links]
        for each in answer.requests:
            result.found.append(self._found(each, item))

    def _found(self, each: FoundRequest, item: QueuedUrl) -> FoundUrl:
        # What a sitemap lists is one link from the beginning, however it was found.
        depth = 1 if item.function == SITEMAP else item.depth + 1
        return FoundUrl(
            each.url, each.url.split("/", 3)[2], each.key, depth, priority=each.priority, function=each.function,
            data=each.data,
        )  # fmt: skip


_decode = msgspec.msgpack.Decoder(ReadAnswer).decode


def _conditions(memory: PageMemory | None) -> Headers:
    """What has the host say 304 if nothing has changed."""
    if memory is None:
        return ()
    pairs = (("If-None-Match", memory.etag), ("If-Modified-Since", memory.modified))
    return tuple((name, value) for name, value in pairs if value)
