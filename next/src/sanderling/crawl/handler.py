"""What a crawl does with one request: may it be sent, send it, understand the response, have it read."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from sanderling.clock import Clock
from sanderling.crawl.archive import KeptArchive
from sanderling.crawl.functions import Functions
from sanderling.crawl.keep import Keeper, body_path
from sanderling.crawl.page import Reply, request_of
from sanderling.crawl.pages import read_document, row_of, when
from sanderling.crawl.render import RenderRules
from sanderling.crawl.repeats import mark_of
from sanderling.crawl.request import MOST_PRIORITY, Stored, request_key
from sanderling.crawl.robots import RobotsRules
from sanderling.crawl.scope import CrawlScope, UrlPattern
from sanderling.crawl.session import JobSession, host_auth, login_session
from sanderling.crawl.urls import absolute
from sanderling.crawl.warc import Capture
from sanderling.crawl.work import LARGEST_MEANING, SITEMAP, FoundRequest, Head, PageRules, ReadAnswer
from sanderling.engine.ports import Handled
from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.files import Exit, FolderError
from sanderling.ids import url_key
from sanderling.limit import Permit
from sanderling.outcome import Code, Outcome, code_named
from sanderling.readers.pool import ReaderError, Readers
from sanderling.records.rows import RowReader
from sanderling.stores import FoundUrl, Ledger, PageMemory, QueuedUrl

if TYPE_CHECKING:  # an extra
    from sanderling.fetch.browser import BrowserRenderer, RenderedPage

SMALL = 16 << 10  # bytes of JSON, which is read sooner than a reader is asked; built to be slow, in 11 ms
MOST_MOVES = 20  # redirects from one address
MOST_HOPS = 10  # through walls and back
# The digest of a page's memory: where its row is, what tells its text from others, and for jobs what it led to.
PLACE, TEXT = 6, 8  # bytes
BARE = "bare"  # the end of a page that is to be rendered, until it is
LATER = 5.0  # seconds: a host that may not be requested for longer is left, and comes when it may


@dataclass(slots=True)
class Result:
    """What came of an item, for the sink."""

    end: str = ""  # empty: the outcome says it
    lines: tuple[bytes, ...] = ()
    found: list[FoundUrl] = field(default_factory=list)
    detail: str = ""
    requests: int = 0
    memory: PageMemory | None = None
    text: bytes = b""
    counts: bool = True  # as a page of --max-pages
    same: bool = False  # what an earlier run or visit has stored still holds
    kept: list[Capture | bytes] = field(default_factory=list)
    rendered: "RenderedPage | None" = None
    changed: dict[str, float] = field(default_factory=dict)  # pages that a sitemap has, and when they last changed


class CrawlHandler:
    """Fetches one item and has it read: by the functions of a job, or with `pages` as `pages crawl` does."""

    def __init__(
        self,
        functions: Functions,
        ledger: Ledger,
        client: Client,
        readers: Readers,
        robots: RobotsRules | None,
        scope: CrawlScope,
        clock: Clock,
        *,
        keeper: Keeper,
        pages: PageRules | None = None,
        first: Sequence[UrlPattern] = (),
        archive: KeptArchive | None = None,
        revisits: bool = False,
        old_rows: RowReader | None = None,
        session: JobSession | None = None,
        more_hosts: tuple[str, ...] = (),
        renders: RenderRules | None = None,
        renderer: "BrowserRenderer | None" = None,
    ) -> None:
        self._functions = functions
        self._job = functions.job
        self._ledger = ledger
        self._client = client
        self._readers = readers
        self._robots = robots
        self._scope = scope
        self._clock = clock
        self._keeper = keeper
        self._pages = pages
        self._first = first
        self._archive = archive
        self._revisits = revisits
        self._old_rows = old_rows
        self._session = session
        self._renders = renders or RenderRules()
        self._renderer = renderer
        self._met: dict[str, asyncio.Task[None]] = {}
        # What is wrong with one of them is said before anything is requested.
        logins = [host_auth(each.login) for each in client.options.hosts.values() if each.login]
        self._has_logins = bool(logins)
        self._logins: dict[str, JobSession | None] = {}
        self._no_walls: set[str] = set()  # pages that did not lead back
        self._answered: set[str] = set()  # hosts
        self.deep = 0  # links that lead deeper than allowed
        self.rendered = 0  # pages, by a browser
        self.more_hosts = more_hosts  # to which first addresses redirect

    async def __call__(self, item: QueuedUrl, permit: Permit) -> Handled:
        """Send the request with this permit, or another one if robots.txt took it."""
        await self._meet(item.host)
        if self._robots is not None and (stopped := await self._may_request(self._robots, item.url, permit)):
            return stopped
        if not permit.live:
            wait = self._client.limiter.ready_at(item.host) - self._clock.now()
            if wait > LATER:
                return Handled(Outcome(Code.DEFERRED, retry_after=wait, sent=False), Result())
        stored = Stored.unpack(item.data)
        try:
            request = self._request(item, stored)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - of a function before each request, whatever it raises
            said = self._functions.failure(error).detail
            return Handled(Outcome(Code.PARSE_ERROR, detail=said, sent=False), Result(detail=said))
        cookie = self._client.cookies.header(item.url, self._clock.wall())
        response = await self._send(item, request, permit)
        if response.status:
            self._answered.add(item.host)
        elif response.outcome.code is Code.REFUSED and item.host in self._answered:
            # Its name has begun to lead inside: that is the host's trouble, and none of its pages'.
            response = replace(response, outcome=replace(response.outcome, code=Code.DNS_ERROR))
        result = Result(requests=response.requests, detail=response.outcome.detail)
        plain = (stored.method, stored.body) == ("GET", None)
        if response.location is not None and response.outcome.ok:
            passed = await self._through_wall(item, request, response, permit, cookie) if plain else None
            if passed is None:
                self._keep(request, response, result)
                return await self._moved(item, stored, response, result)
            response = passed
            result = Result(requests=response.requests, detail=response.outcome.detail)
        self._keep(request, response, result)
        if response.status == 304:
            return await self._unchanged(item, response, result)
        if not response.status or not (response.outcome.ok or self._asks_for(item, response)):
            return Handled(response.outcome, result, repeatable=plain)
        if self._renderer is not None and self._renders.choose(item.url, item.function, response):
            return await self._render(self._renderer, item, request, response, result, repeatable=plain)
        handled = await self._read(item, response, result, repeatable=plain)
        if result.end == BARE and self._renderer is not None:
            return await self._render(self._renderer, item, request, response, result, repeatable=plain)
        return handled

    async def _render(
        self, renderer: "BrowserRenderer", item: QueuedUrl, request: HttpRequest, response: HttpResponse,
        result: Result, *, repeatable: bool,
    ) -> Handled:  # fmt: skip
        """Have a browser run the scripts of a page, and read what they have made."""
        from sanderling.fetch.browser import RenderError  # noqa: PLC0415 - it is there where there is a renderer

        try:
            made = result.rendered = await renderer.render(response)
        except RenderError as error:
            failed = Outcome(Code.PARSE_ERROR, response.status, str(error))
            return Handled(failed, Result(requests=result.requests, detail=str(error)), repeatable=repeatable)
        self.rendered += 1
        result.requests += made.requests
        result.end = ""
        result.kept.clear()
        self._keep(request, made.response, result)
        if made.picture:
            result.kept.append(made.picture)
        return await self._read(item, made.response, result, repeatable=repeatable)

    def _keep(self, request: HttpRequest, response: HttpResponse, result: Result) -> None:
        if (capture := self._keeper.take(request, response)) is not None:
            result.kept.append(capture)

    async def _unchanged(self, item: QueuedUrl, response: HttpResponse, result: Result) -> Handled:
        """What an earlier run has stored still holds, and leads to what it led to."""
        digest = item.memory.digest if item.memory is not None else b""
        if digest and item.kind == "visit":  # what it leads to is known since this run has read it
            result.end, result.same = "unchanged", True
            return Handled(response.outcome, result)
        if digest and self._pages is None:
            requests = msgspec.msgpack.decode(digest[PLACE + TEXT :], type=tuple[FoundRequest, ...])
            result.end, result.same = "unchanged", True
            self._follow(item, ReadAnswer(requests=requests), result)
            return Handled(response.outcome, result)
        entry = None
        if digest and self._old_rows is not None:
            entry = self._old_rows.entry_of(item.key, int.from_bytes(digest[:PLACE]))
        if entry is not None and entry.lines:
            return await self._read(item, replace(response, body=entry.lines[0]), result, repeatable=True)
        said = "304 Not Modified, and nothing is known that could be the same"
        return Handled(Outcome(Code.HTTP_ERROR, 304, said), Result(requests=result.requests, detail=said))

    def _request(self, item: QueuedUrl, stored: Stored) -> HttpRequest:
        headers = stored.headers
        asks = self._job.conditional or self._revisits
        if item.memory is not None and asks and (stored.method, stored.body) == ("GET", None):
            pairs = (("If-None-Match", item.memory.etag), ("If-Modified-Since", item.memory.modified))
            headers += tuple((name, value) for name, value in pairs if value)
        if not self._job.before_each:
            return HttpRequest(item.url, stored.method, headers, stored.body, largest=self._keeper.largest)
        stored = msgspec.structs.replace(stored, headers=headers)
        request = request_of(item.url, item.function, stored, max(-MOST_PRIORITY, min(item.priority, MOST_PRIORITY)))
        request = self._functions.prepare(request, item.url)
        return HttpRequest(absolute(request.url, None), request.method, request.headers, request.body)

    async def _send(self, item: QueuedUrl, request: HttpRequest, permit: Permit) -> HttpResponse:
        if self._archive is not None:
            permit.release()
            kept = await self._archive.send(request)
            return replace(kept, outcome=self._meaning(kept)) if kept.status and kept.location is None else kept

        async def send(signed: HttpRequest) -> HttpResponse:
            own = permit if permit.live else None
            return await self._client.send(signed, own, follow=False, read=self._meaning, item=item.key)

        session = self._session or self._login_of(item.host)
        return await send(request) if session is None else await session.send(request, send)

    def _login_of(self, host: str) -> JobSession | None:
        if not self._has_logins:
            return None
        if host not in self._logins:
            self._logins[host] = login_session(self._client, host, self._clock)
        return self._logins[host]

    def _meaning(self, response: HttpResponse) -> Outcome:
        """What a response means where a job declares it; that of larger ones is worked out in a reader."""
        answers = self._job.answers
        if answers is None or len(response.body) > LARGEST_MEANING:
            return response.outcome
        reply = Reply(response.url, response.status, response.headers, response.body)
        return answers.read(reply.seen, self._clock.wall()) or response.outcome

    def _asks_for(self, item: QueuedUrl, response: HttpResponse) -> bool:
        """Whether the function of an item reads responses with this status too."""
        function = self._job.functions.get(item.function)
        is_named = function is not None and response.status in function.status
        return is_named and response.outcome.status == response.status

    def sitemaps(self, host: str) -> list[FoundUrl]:
        """What a robots.txt of the host names that was read since this was last asked."""
        named = self._robots.sitemaps(host) if self._robots is not None and self._job.sitemaps else ()
        hosts = [(url, url.split("/", 3)[2]) for url in named]
        return [FoundUrl(url, own, depth=1, function=SITEMAP) for url, own in hosts if self._scope.has_host(own)]

    async def _meet(self, host: str) -> None:
        """Take up what is stored of a host, before its first request."""
        task = self._met.get(host)
        if task is None:
            task = self._met[host] = asyncio.create_task(self._restore(host))
        if not task.done():
            await asyncio.shield(task)

    async def _restore(self, host: str) -> None:
        robots, cookies = await self._ledger.documents(host)
        if robots and self._robots is not None:
            self._robots.restore(robots)
        if cookies:
            self._client.cookies.restore(cookies, self._clock.wall())

    async def _may_request(self, robots: RobotsRules, url: str, permit: Permit) -> Handled | None:
        """None if robots.txt allows it, else what becomes of the item."""
        rules = robots.now(url) or await robots.fetch(url, permit)
        if isinstance(rules, Outcome):
            return Handled(rules, Result(detail=rules.detail), of_host=True)
        decision = rules.decide(url)
        if decision.allowed:
            return None
        refused = Outcome(Code.REFUSED, detail=decision.why, sent=False)
        return Handled(refused, Result(end="refused", detail=decision.why))

    def _head(self, item: QueuedUrl, response: HttpResponse, screenshot: str = "") -> Head:
        at = response.at or self._clock.wall()
        return Head(
            id=item.id, url=item.url, status=response.status, headers=response.headers, depth=item.depth,
            function=item.function, data=item.data, run=self._ledger.run, at=at, seconds=response.latency,
            stored=when(at), hosts=self.more_hosts, priority=item.priority, screenshot=screenshot,
        )  # fmt: skip

    async def _through_wall(
        self, item: QueuedUrl, request: HttpRequest, response: HttpResponse, permit: Permit, cookie: str
    ) -> HttpResponse | None:
        """What the address responds once walls of its host, a consent say, have set a cookie and led back to it.

        None for a redirect like any other. `cookie` is what the first request was sent with.
        """
        target, number = response.location, response.requests
        for _ in range(MOST_HOPS):
            now = self._client.cookies.header(item.url, self._clock.wall())
            if target == item.url:
                if now == cookie:
                    break
                cookie = now
                response = await self._send(item, request, permit)
            elif target is not None and self._is_wall(item.url, target, changed=now != cookie):
                response = await self._send(item, replace(request, url=target), permit)
                if response.location is None:
                    self._no_walls.add(target.partition("?")[0])
                    return None
            else:
                return None
            number += response.requests
            target = response.location
            if target is None:
                return replace(response, requests=number)
        loop = Outcome(Code.REDIRECT_LOOP, response.status, "it redirects to itself")
        return replace(response, outcome=loop, requests=number, location=None)

    def _is_wall(self, url: str, target: str, *, changed: bool) -> bool:
        """Whether a redirect may lead back: it sets a cookie, or names where to come back to."""
        start, _, own = url.partition("//")[2].partition("/")
        page, _, query = target.partition("?")
        if target.partition("//")[2].partition("/")[0] != start or page in self._no_walls:
            return False
        rules = self._robots.now(target) if self._robots is not None else None
        return (changed or (own != "" and own in unquote(query))) and (rules is None or rules.decide(target).allowed)

    async def _moved(self, item: QueuedUrl, stored: Stored, response: HttpResponse, result: Result) -> Handled:
        """A redirect: its target is an address of its own, if it belongs to the crawl."""
        target = response.location or ""
        host = target.split("/", 3)[2]
        result.end, result.counts, result.detail = "moved", False, target
        moves = stored.moves + 1
        if moves > MOST_MOVES:
            loop = Outcome(Code.REDIRECT_LOOP, response.status, f"{moves} redirects, and no end in sight")
            return Handled(loop, Result(requests=result.requests, detail=loop.detail))
        keeps = response.status in (307, 308) or stored.method in ("GET", "HEAD")
        if keeps and stored.body is not None and host != item.host:
            said = "it redirects a request with a body to another host, which must not see it"
            return Handled(Outcome(Code.REFUSED, response.status, said), Result(end="failed", detail=said))
        changed = {} if keeps else {"method": "GET", "body": None}
        headers = stored.headers if host == item.host else ()
        after = msgspec.structs.replace(stored, headers=headers, moves=moves, **changed)
        if self._pages is not None:
            if item.depth == 0 and not self._scope.has_host(host):
                self._scope.hosts.add(host)
                self.more_hosts += (host,)
            row = row_of(self._head(item, response), "OK", moved_to=target)
            result.lines = (msgspec.json.encode(row),)
            key = b""
        else:
            # What a job has given a key of its own is read wherever it leads.
            own = f"{item.key.hex()} {moves}" if stored.keyed or stored.only else None
            key = request_key(target, after.method, after.body, own)
        if self._pages is None or self._scope.wants(target):
            key, data = b"" if key == url_key(target) else key, after.pack()
            result.found = [
                FoundUrl(target, host, key, item.depth, priority=item.priority, function=item.function, data=data)
            ]
        if self._asks_for(item, response):
            return await self._read(item, response, result, repeatable=False)
        return Handled(response.outcome, result, size=sum(map(len, result.lines)))

    async def _read(self, item: QueuedUrl, response: HttpResponse, result: Result, *, repeatable: bool) -> Handled:
        rendered, function = result.rendered, self._job.functions.get(item.function)
        head = self._head(item, response, body_path(rendered.picture) if rendered and rendered.picture else "")
        if function is not None and function.is_async:
            answer = await self._functions.read_async(head, response.body)
        elif self._pages is not None and self._is_small_json(item, response):
            answer = read_document(head, response.body, keep_noindex=self._pages.keep_noindex)
        else:
            try:
                read = await self._readers.run(item.host, msgspec.msgpack.encode(head), response.body)
            except ReaderError as error:
                if error.reason == "start":
                    raise FolderError(f"no reader process starts: {error.detail}", code=Exit.LATER) from None
                result.detail = f"{error.reason}: {error.detail}"[:1000]
                return Handled(Outcome(Code.PARSE_ERROR, response.status, result.detail), result, repeatable=repeatable)
            answer = _decode(read)
        if answer.is_bare and rendered is None:
            result.end = BARE
            return Handled(response.outcome, result)
        if rendered is not None and rendered.onward and self._pages is not None and self._scope.wants(rendered.onward):
            answer.links = tuple(dict.fromkeys([*answer.links, rendered.onward]))
        outcome = self._judged(item.host, answer, response)
        result.end, result.lines, result.text = answer.end and (result.end or answer.end), answer.lines, answer.text
        result.detail = answer.detail or result.detail
        result.counts = result.counts and item.function != SITEMAP
        result.same = answer.end == "unchanged"
        self.deep += answer.deep
        if outcome.ok:
            if self._pages is not None and answer.end == "fetched":
                self._keep_body(response, result)
            self._follow(item, answer, result)
            result.memory = self._memory(item, answer, response) if result.end in ("fetched", "sitemap") else None
            if item.kind == "visit" and item.memory is not None:
                result.same = result.memory is None or result.memory.digest == item.memory.digest[PLACE:]
                if result.same:
                    result.lines, result.kept = (), []
        size = sum(map(len, answer.lines)) + 100 * len(result.found) + (len(response.body) if result.kept else 0)
        return Handled(outcome, result, size=size, repeatable=repeatable)

    def _memory(self, item: QueuedUrl, answer: ReadAnswer, response: HttpResponse) -> PageMemory | None:
        """What the next request for a page has to know about this one."""
        # What a sitemap lists is not stored, so that it has to come whole each time.
        tells = answer.is_whole and item.function != SITEMAP
        etag = (response.header("etag") or "")[:500] if tells else ""
        modified = (response.header("last-modified") or "")[:100] if tells else ""
        stored = Stored.unpack(item.data)
        if (stored.method, stored.body) != ("GET", None):
            return None
        if not (self._revisits or (self._job.conditional and (etag or modified))):
            return None
        digest = answer.version or blake2b(response.body, digest_size=TEXT).digest()
        if self._pages is None:
            digest += msgspec.msgpack.encode(answer.requests)
        return PageMemory(item.key, etag, modified, digest, seen=response.at or self._clock.wall())

    def _keep_body(self, response: HttpResponse, result: Result) -> None:
        """Keep the body of a page in a file, if it is wanted, and name it in its row, with how it was rendered."""
        path, why = self._keeper.body_of(response)
        if path:
            result.kept.append(response.body)
        said: dict[str, object] = {"body_path": path, "sha256": path.rpartition("/")[2]} if path else {}
        if why:
            said["not_kept"] = why
        if (rendered := result.rendered) is not None:
            said["rendered"] = {"requests": rendered.requests, "blocked": rendered.blocked, "cut": rendered.cut}
            if rendered.picture:
                said["screenshot"] = body_path(rendered.picture)
        if said:
            more = msgspec.json.encode(said)[1:]
            result.lines = tuple(line[:-1] + b"," + more for line in result.lines)

    def _is_small_json(self, item: QueuedUrl, response: HttpResponse) -> bool:
        """Whether it costs less to read than to hand over, whatever is in it."""
        is_plain = len(response.body) <= SMALL and item.function != SITEMAP and response.status != 304
        return is_plain and response.content_type.endswith(("/json", "+json"))

    def _judged(self, host: str, answer: ReadAnswer, response: HttpResponse) -> Outcome:
        """What the response means by what its function said of it."""
        if answer.code == Code.OK:
            # A page function may ask for pages that are no success.
            return response.outcome if response.outcome.ok else Outcome(Code.OK, response.status)
        outcome = Outcome(code_named(answer.code), response.status, answer.detail, answer.wait)
        if outcome.code is Code.RATE_LIMITED:
            self._client.limiter.feedback(host, status=429, retry_after=answer.wait)
        return outcome

    def _follow(self, item: QueuedUrl, answer: ReadAnswer, result: Result) -> None:
        """What a response leads to, as far as the depth allows."""
        depth = item.depth + 1
        data = Stored(by=mark_of(item.url)).pack() if answer.links else b""
        result.found += [
            FoundUrl(url, url.split("/", 3)[2], depth=depth, priority=self._priority(url), data=data)
            for url in answer.links
        ]
        for each in answer.requests:
            # What a sitemap lists is one link from the beginning, however it was found.
            if each.modified and item.kind == "visit":
                result.changed[each.url] = each.modified
            deep = 1 if item.function == SITEMAP else item.depth if each.no_deeper else depth
            result.found.append(found_url(each, deep, each.priority or self._priority(each.url)))

    def _priority(self, url: str) -> int:
        return MOST_PRIORITY if self._first and any(each.match(url) is not None for each in self._first) else 0


def found_url(found: FoundRequest, depth: int, priority: int) -> FoundUrl:
    """What goes into the ledger."""
    host = found.url.split("/", 3)[2]
    return FoundUrl(found.url, host, found.key, depth, priority=priority, function=found.function, data=found.data)


_decode = msgspec.msgpack.Decoder(ReadAnswer).decode
