"""Send requests: with leave, only where it is allowed, following redirects; each ends in one Outcome."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NamedTuple, Self

import aiohttp
from yarl import URL

from sanderling.clock import Clock, SystemClock
from sanderling.fetch.classify import EXPECTED, REDIRECTS, of_error, of_response
from sanderling.fetch.connect import Guarded, Trying, attempt, proxy_of_environment, tls
from sanderling.fetch.cookies import CookieJar, read_cookie_file
from sanderling.fetch.decode import ACCEPTED, Body
from sanderling.fetch.guard import Refused, check_name, check_url
from sanderling.fetch.messages import Headers, HttpRequest, HttpResponse
from sanderling.fetch.options import HostOptions, RequestOptions, limiter_for, proxy_parts
from sanderling.ids import Host, UrlError, normalise_url, origin_of
from sanderling.limit import CircuitOpen, Limiter, Permit
from sanderling.observe.log import log
from sanderling.outcome import Code, Outcome

CONNECT = 10.0  # seconds to a connection, the look-up of the name included
TOTAL = 300.0  # seconds for all of a response: a host that sends a byte now and then must not hold us for ever
PROBE = 10.0  # seconds that a probe of a closed host may be silent, so that probes leave at most so far apart
LONGEST_WAIT = 5.0  # seconds that a redirect waits for its permit; what is due later is the caller's to schedule
MOST_REDIRECTS = 20  # as browsers have it
MOST_HEADERS = 200
LONGEST_HEADER = 16_384  # bytes
LONGEST_LOCATION = 8000  # characters; signed addresses of files are long
DRAINED = 65_536  # bytes of a redirect's body that are read so that its connection can be used again
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})

Follow = Callable[[str], bool]
# What an API makes of a response; some say "slow down" with a 200.
Read = Callable[[HttpResponse], Outcome]


class _CutOff(Exception):  # noqa: N818 - it carries what happened past aiohttp, which would repeat the request
    pass


@dataclass(frozen=True, slots=True)
class _Route:
    """How the requests to one origin are sent."""

    host: Host
    options: HostOptions
    headers: Headers
    proxy: str | None
    proxy_headers: Headers
    fault: str = ""  # why nothing can be sent there


class _Received(NamedTuple):
    outcome: Outcome
    status: int = 0
    headers: Headers = ()
    body: bytes = b""
    latency: float = 0.0
    location: str | None = None
    stale: bool = False  # the connection had been used before and was closed: nobody has seen the request


class Client:
    """Sends requests. `async with Client() as client: response = await client.send(HttpRequest(url))`.

    Without a limiter of the caller's, it has one of its own by the same options.
    """

    def __init__(
        self, options: RequestOptions | None = None, limiter: Limiter | None = None, *, clock: Clock | None = None
    ) -> None:
        self.options = options or RequestOptions()
        self._clock = clock or SystemClock()
        self.limiter = limiter or limiter_for(self.options, clock=self._clock)
        self.cookies = CookieJar()
        self._routes: dict[str, _Route] = {}
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"<Client of {self.limiter!r}>"

    async def __aenter__(self) -> Self:
        options = self.options
        # What cannot work is said before anything is sent.
        proxies = [each.through()[0] for each in options.hosts.values()]
        named = filter(None, map(proxy_of_environment, ("http", "https")))
        proxies += [proxy_parts(proxy, "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY")[0] for proxy in named]
        if any(proxies):
            checked = "" if options.private else "; URLs with an address or a name of one's own network are refused"
            log.warning("proxied", say=f"A proxy looks names up: where they lead cannot be checked here{checked}.")
        for pattern, each in options.hosts.items():
            for url, headers in read_cookie_file(each.cookie_file, pattern) if each.cookie_file else ():
                self.cookies.learn(url, headers, self._clock.wall())
        self._guarded = Guarded(private=options.private)
        silence = options.timeout
        self._times = aiohttp.ClientTimeout(TOTAL, CONNECT, silence, CONNECT)
        self._probe_times = aiohttp.ClientTimeout(TOTAL, CONNECT, min(PROBE, silence), CONNECT)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=self._guarded, socket_factory=self._guarded.make_socket, limit=0, ttl_dns_cache=60, ssl=tls()
            ),
            headers={"User-Agent": options.user_agent, "Accept": "*/*", "Accept-Encoding": ACCEPTED},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=self._times,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
            max_headers=MOST_HEADERS,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            await self._guarded.close()
            self._session = None

    async def send(
        self,
        request: HttpRequest,
        permit: Permit | None = None,
        *,
        follow: bool | Follow = True,
        read: Read | None = None,
        item: Hashable | None = None,
        of_host: bool = False,
        scopes: Sequence[str] = (),
    ) -> HttpResponse:
        """Send a request and follow its redirects. Never raises for anything that a host does.

        `permit` is leave for the first request, else one is waited for; each redirect gets its own. `follow` may be
        asked for each redirect's URL; one that it does not want is the response, with its `location`. `read` has the
        last word on what a response means, before the limiter learns from it; `item` and `of_host` are told that too.
        """
        url, sent, redirects = request.url, 0, list[tuple[str, str]]()
        seen = set[tuple[str, str]]()
        repeated = False
        try:
            while True:
                try:
                    route = self._route(url)
                except (Refused, UrlError) as error:
                    return self._end(permit, HttpResponse(of_error(error), url, sent, redirects=tuple(redirects)))
                if route.fault and not request.anonymous:
                    unsent = Outcome(Code.REFUSED, detail=route.fault, sent=False)
                    return self._end(permit, HttpResponse(unsent, url, sent, redirects=tuple(redirects)))
                if permit is None or not permit.live:
                    leave = await self._acquire(route.host, scopes, patient=not sent)
                    if isinstance(leave, Outcome):
                        return HttpResponse(leave, url, sent, redirects=tuple(redirects))
                    permit = leave
                got = await self._exchange(request, url, route, permit)
                sent += got.outcome.sent
                if got.stale and not repeated:
                    # It counts as sent, and the next one needs leave of its own.
                    repeated = True
                    permit.release()
                    continue
                repeated = False
                target = got.location
                response = HttpResponse(
                    *(got.outcome, url, sent, got.status, got.headers, got.body, got.latency, target, tuple(redirects)),
                    at=self._clock.wall(),
                )
                if read is not None and got.status and target is None:
                    response = replace(response, outcome=read(response))
                permit.report(response.outcome, latency=got.latency, headers=got.headers, item=item, of_host=of_host)
                if target is None or not (follow if isinstance(follow, bool) else follow(target)):
                    return response
                redirects.append((url, target))
                question = target, self.cookies.header(target, self._clock.wall())
                if question in seen or len(redirects) > MOST_REDIRECTS:
                    loop = Outcome(Code.REDIRECT_LOOP, got.status, f"{len(redirects)} redirects, and no end in sight")
                    return replace(response, outcome=loop, redirects=tuple(redirects))
                seen.add(question)
                moved = _moved(request, url, target, got.status)
                if moved is None:
                    said = "it redirects a request with a body to another host, which must not see it"
                    return replace(response, outcome=Outcome(Code.REFUSED, got.status, said))
                request, url = moved, target
        finally:
            if permit is not None:
                permit.release()

    def _end(self, permit: Permit | None, response: HttpResponse) -> HttpResponse:
        if permit is not None:
            permit.report(response.outcome)
        return response

    def _route(self, url: str) -> _Route:
        """How requests for `url` are sent. Raises UrlError and Refused."""
        origin = origin_of(url)
        if (known := self._routes.get(origin)) is not None and url.isascii():
            return known
        host = check_url(url, private=self.options.private)
        scheme = origin.partition(":")[0]
        options = self.options.of_host(host)
        fault = ""
        if scheme == "http" and options.has_secrets and not options.plain_http:
            fault = (
                f"the secrets of {host} are sent by https:// only; to send them where anybody can read them, set "
                "plain-http = true in its table [hosts]"
            )
        proxy, proxy_headers = options.through()
        if not proxy and (proxy := proxy_of_environment(scheme, host)):
            proxy, proxy_headers = proxy_parts(proxy, "the environment")
        if proxy and not self.options.private:
            check_name(host)
        route = _Route(host, options, () if fault else options.sent(), proxy or None, proxy_headers, fault)
        if len(self._routes) >= REMEMBERED:
            self._routes.clear()
        self._routes[origin] = route
        return route

    async def _acquire(self, host: Host, scopes: Sequence[str], *, patient: bool) -> Permit | Outcome:
        """Leave for a request, or why there is none for now. The first waits its turn, a redirect for seconds."""
        now = self._clock.now()
        due = self.limiter.ready_at(host, *scopes)
        try:
            if patient:
                return await self.limiter.acquire(host, *scopes)
            if due - now <= LONGEST_WAIT:
                async with asyncio.timeout(LONGEST_WAIT):
                    return await self.limiter.acquire(host, *scopes)
        except CircuitOpen as closed:
            due = closed.until
        except TimeoutError:
            due = self.limiter.ready_at(host, *scopes)
        wait = max(0.0, due - self._clock.now())
        return Outcome(Code.DEFERRED, detail=f"{host} is not to be requested yet", retry_after=wait, sent=False)

    async def _exchange(self, request: HttpRequest, url: str, route: _Route, permit: Permit) -> _Received:
        """One request and its response."""
        if self._session is None:
            raise RuntimeError("use the client as a context manager: async with Client() as client")
        trying = Trying(proxied=route.proxy is not None)
        headers = self._headers(request, url, route)
        started = latency = 0.0
        status = 0
        kept: Headers = ()

        async def once(sent: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
            try:
                return await handler(sent)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                raise _CutOff from error

        token = attempt.set(trying)
        started = self._clock.now()
        try:
            async with self._session.request(
                request.method,
                URL(url, encoded=True),
                headers=headers,
                data=request.body,
                allow_redirects=False,
                proxy=route.proxy,
                proxy_headers=dict(route.proxy_headers) if route.proxy_headers else None,
                timeout=self._probe_times if permit.probe else self._times,
                middlewares=(once,),
            ) as response:
                latency = self._clock.now() - started
                status = response.status
                kept = tuple([(_text(name), _text(value)) for name, value in response.raw_headers])
                location = _location(url, response) if status in REDIRECTS else None
                outcome = of_response(status, kept, self._clock.wall())
                if route.options.cookies is not False and not request.anonymous:
                    self.cookies.learn(url, kept, self._clock.wall())
                body = await self._read(request, response, moves=location is not None)
                if status == 206 and not any(name.lower() == "range" for name, _ in request.headers):
                    outcome = Outcome(Code.TRUNCATED, status, "a part came that nobody had asked for")
                if location == "":
                    outcome = Outcome(Code.HTTP_ERROR, status, "it redirects to what is no http:// or https:// URL")
                return _Received(outcome, status, kept, body, latency, location or None)
        except _CutOff as cut:
            outcome = of_error(cut.__cause__ or cut)
            stale = not trying.fresh and request.method in REPEATABLE and outcome.code is Code.CONNECTION_RESET
            return _Received(outcome, latency=self._clock.now() - started, stale=stale)
        except EXPECTED as error:
            return _Received(of_error(error, status), status, kept, latency=latency or self._clock.now() - started)
        finally:
            attempt.reset(token)

    def _headers(self, request: HttpRequest, url: str, route: _Route) -> dict[str, str] | None:
        if request.anonymous:
            return dict(request.headers) or None
        cookie = self.cookies.header(url, self._clock.wall()) if route.options.cookies is not False else ""
        if not (route.headers or request.headers or cookie):
            return None
        # The request's own count most.
        headers = {name.lower(): value for name, value in (*route.headers, *request.headers)}
        if cookie:
            own = headers.get("cookie")
            headers["cookie"] = f"{own}; {cookie}" if own else cookie
        return headers

    async def _read(self, request: HttpRequest, response: aiohttp.ClientResponse, *, moves: bool) -> bytes:
        if request.method == "HEAD" or response.status in (204, 304):
            return b""
        if moves:  # nobody reads it
            body = Body("", DRAINED, cut=True)
        else:
            body = Body(", ".join(response.headers.getall("Content-Encoding", ())), request.largest, cut=request.cut)
        content = response.content
        while not body.full and not content.at_eof():
            body.add(content.read_nowait() if content.is_eof() else await _next_piece(response))
        if not content.at_eof():
            response.close()  # the rest would have to be read before another request could use the connection
        return body.finish()


REMEMBERED = 65_536  # origins of which it is remembered how they are requested


async def _next_piece(response: aiohttp.ClientResponse) -> bytes:
    """The next bytes of a body.

    When they cease to be HTTP, aiohttp closes the connection and leaves who reads waiting, past all its times but the
    last; so this looks each second.
    """
    while True:
        try:
            async with asyncio.timeout(1.0) as look:
                return await response.content.readany()
        except TimeoutError:
            if not look.expired():
                raise
            transport = response.connection and response.connection.transport
            if transport is None or transport.is_closing():
                raise aiohttp.ClientPayloadError from None


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _location(url: str, response: aiohttp.ClientResponse) -> str | None:
    """Where a redirect leads: None if it does not say, "" if that is no URL."""
    raw = next((value for name, value in response.raw_headers if name.lower() == b"location"), b"")
    # Bytes that are no ASCII are escaped, as browsers do it.
    text = "".join([chr(byte) if byte < 128 else f"%{byte:02X}" for byte in raw])
    try:
        return normalise_url(text, url, LONGEST_LOCATION) if text else None
    except UrlError:
        return ""


def _moved(request: HttpRequest, url: str, target: str, status: int) -> HttpRequest | None:
    """The request as a redirect wants it; None if it must not go there."""
    keeps = status in (307, 308) or request.method in ("GET", "HEAD") or (status != 303 and request.method != "POST")
    if not keeps:
        request = replace(
            request,
            method="GET",
            body=None,
            headers=tuple(pair for pair in request.headers if not pair[0].lower().startswith("content-")),
        )
    if origin_of(url) == origin_of(target):
        return request
    return None if request.body is not None else replace(request, headers=())
