"""A browser that renders pages, and has no network: each request of a page is answered by our own client.

So all that holds for a request of ours holds for those of a page: leave of its host, the guard at every hop, limits of
time and size. What would not pass through here (sockets, workers of sites, look-ups ahead) finds no host at all.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urldefrag

from playwright.async_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Playwright,
    Request,
    Route,
    ViewportSize,
    WebSocketRoute,
    async_playwright,
)

from sanderling.clock import Clock
from sanderling.fetch.render import PageNetwork, RenderedPage, RenderError, RenderRules, ScriptCache
from sanderling.task import Headers, Reply, Task

T = TypeVar("T")

# What a page is made with. Images, media, fonts, frames, beacons, streams and whatever is fetched ahead are not.
ASKED = frozenset({"script", "xhr", "fetch"})
STYLE = "stylesheet"  # answered with nothing, where nobody looks: scripts wait until they have one
LOOK = 0.05  # seconds between two looks at whether a page is at rest
ANSWER = 10.0  # seconds that a browser has to answer us
OPEN = 3 * ANSWER  # to open a page, of which Playwright says nothing if the browser dies in that very moment
VIEW = ViewportSize(width=1280, height=1024)
# What does not pass through here finds no name, and nobody at the proxy that it has to use, for this machine too.
OFFLINE = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
NO_RTC = "delete window.RTCPeerConnection; delete window.webkitRTCPeerConnection;"
# Ours are sent in their place, or they say what only the connection knows.
DROPPED_ASKING = frozenset({"host", "connection", "content-length", "accept-encoding", "user-agent"})
DROPPED_ANSWERING = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})


@dataclass(slots=True, eq=False)
class _Running:
    """A browser and the program that drives it."""

    driver: Playwright
    browser: Browser
    pages: int = 0  # that were opened in it
    open: int = 0
    retired: bool = False

    def fresh(self, most: int) -> bool:
        """Whether another page may be opened in it."""
        return not self.retired and self.pages < most and self.browser.is_connected()

    async def close(self) -> None:
        """End it; one that has died is ended as well."""
        for end in (self.browser.close, self.driver.stop):
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(ANSWER):
                    await end()


class BrowserRenderer:
    """Renders pages, each in a context of its own. A browser that dies costs the pages that were in it."""

    def __init__(self, rules: RenderRules, program: str, clock: Clock) -> None:
        self.rules = rules
        self._program = program
        self._clock = clock
        self._tabs = asyncio.Semaphore(rules.tabs)
        self._starting = asyncio.Lock()
        self._running: _Running | None = None
        self._scripts = ScriptCache(rules.cached)

    async def __aenter__(self) -> Self:
        self._running = await self._launch()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            await self._running.close()
            self._running = None

    async def render(self, reply: Reply, network: PageNetwork) -> RenderedPage:
        """What the scripts of a page make of it. Raises RenderError."""
        try:
            async with self._context() as context:
                async with asyncio.TaskGroup() as group:
                    visit = _Visit(reply, network, self.rules, self._scripts, group)
                    made = await visit.run(context, self._clock)
                if isinstance(made, RenderedPage):
                    return made
                raise made
        except Error as error:
            raise _failure(error) from None

    @asynccontextmanager
    async def _context(self) -> AsyncIterator[BrowserContext]:
        async with self._tabs:
            running = await self._take()
            running.open += 1
            running.pages += 1
            try:
                context = await self._new_context(running)
                try:
                    yield context
                finally:
                    await self._leave(running, context)
            finally:
                running.open -= 1
                if running is not self._running and not running.open:
                    await running.close()

    async def _new_context(self, running: _Running) -> BrowserContext:
        made = running.browser.new_context(accept_downloads=False, service_workers="block", viewport=VIEW)
        try:
            return await _answered(made)
        except RenderError:
            running.retired = True
            raise

    async def _take(self) -> _Running:
        """The browser that is there, or another in its place."""
        async with self._starting:
            running = self._running
            if running is None or not running.fresh(self.rules.pages):
                self._running = await self._launch()
                if running is not None and not running.open:
                    await running.close()
                running = self._running
            return running

    async def _leave(self, running: _Running, context: BrowserContext) -> None:
        """Give back what the page took. A browser that does not even do that takes no other page."""
        try:
            async with asyncio.timeout(ANSWER):
                await context.close()
        except (Error, TimeoutError):
            running.retired = True

    async def _launch(self) -> _Running:
        driver = await async_playwright().start()
        try:
            browser = await driver.chromium.launch(
                executable_path=self._program,
                args=OFFLINE,
                chromium_sandbox=os.geteuid() != 0,  # which Chromium refuses to root
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            await driver.stop()
            raise RenderError(f"{self._program} does not start: {_first_line(error)}") from None
        return _Running(driver, browser)


class _Visit:
    """One page in the browser: what it asks for, and when it is at rest."""

    def __init__(
        self, reply: Reply, network: PageNetwork, rules: RenderRules, scripts: ScriptCache, group: asyncio.TaskGroup
    ) -> None:
        self._reply = reply
        self._url = urldefrag(reply.url).url
        self._network = network
        self._rules = rules
        self._scripts = scripts
        self._group = group
        self._asking: set[asyncio.Task[None]] = set()
        self._waiting = 0  # for leave
        self._opened = self._loaded = self._crashed = self._over = False
        self._stirred = True  # it has asked for something since we last looked
        self._requests = self._blocked = self._bytes = 0
        self._onward: str | None = None

    async def run(self, context: BrowserContext, clock: Clock) -> RenderedPage | RenderError:
        """What the page has become, or why nothing; not raised, which would make a group of it."""
        try:
            return await self._open(context, clock)
        except RenderError as error:
            return error
        except Error as error:
            return _failure(error)
        finally:
            self._over = True
            for task in self._asking:
                task.cancel()

    async def _open(self, context: BrowserContext, clock: Clock) -> RenderedPage:
        """Open the page, wait until it rests, and take what it has become."""
        page = await _answered(self._begin(context))
        page.on("load", self._on_load)
        page.on("crash", self._on_crash)
        context.on("page", self._refuse)  # every other one
        await _answered(page.goto(self._url, wait_until="commit", timeout=ANSWER * 1000))
        cut = await self._rest(clock)
        try:
            async with asyncio.timeout(ANSWER):
                html = await page.content()
        except TimeoutError:
            raise RenderError("rendering: its scripts never end") from None
        picture = await _answered(page.screenshot(timeout=ANSWER * 1000)) if self._rules.screenshots else None
        return RenderedPage(self._made(html), self._requests, self._blocked, picture, self._onward, cut)

    async def _begin(self, context: BrowserContext) -> Page:
        await context.route("**/*", self._route)
        await context.route_web_socket("**/*", self._refuse)
        await context.add_init_script(NO_RTC)
        return await context.new_page()

    async def _rest(self, clock: Clock) -> str:
        """Return when the page has loaded and asks for nothing; or why that was not waited for."""
        began = seen = resting = clock.now()
        spent = 0.0
        while spent < self._rules.scripts and clock.now() - began < self._rules.longest:
            await clock.sleep(LOOK)
            if self._crashed:
                raise RenderError("rendering: the page has crashed its tab")
            now = clock.now()
            spent += 0.0 if self._waiting else now - seen
            seen = now
            if self._asking or self._stirred or not self._loaded:
                resting, self._stirred = now, False
            elif now - resting >= self._rules.quiet:
                return "" if self._requests < self._rules.most_requests else f"cut after {self._requests} requests"
        return f"cut after {spent:.0f} s: it never rests"

    # What the page asks for.

    def _route(self, route: Route) -> None:
        if not self._over:
            self._stirred = True
            task = self._group.create_task(self._answer(route))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _answer(self, route: Route) -> None:
        request = route.request
        with suppress(Error):  # the page is gone, and with it who waits for the answer
            if request.is_navigation_request():
                await self._navigate(route, request)
            elif request.resource_type == STYLE and not self._rules.screenshots:
                self._blocked += 1
                await route.fulfill(status=200, content_type="text/css", body="")
            else:
                reply = await self._ask(request)
                if reply is None:
                    self._blocked += 1
                    await route.abort("blockedbyclient")
                else:
                    await route.fulfill(status=reply.status, headers=_answering(reply.headers), body=reply.body)

    async def _navigate(self, route: Route, request: Request) -> None:
        """The page itself is here already. Where it goes from there is an address like any that it links to."""
        url = urldefrag(request.url).url
        if not self._opened and url == self._url:
            self._opened = True
            headers = _answering(self._reply.headers)
            headers.pop("content-disposition", None)  # or it were a download
            await route.fulfill(status=self._reply.status, headers=headers, body=self._reply.body)
            return
        if request.frame.parent_frame is None and url != self._url and self._onward is None:
            self._onward = url
            self._loaded = True  # who leaves does not load the rest
        self._blocked += 1
        await route.abort("aborted")  # any other reason would put a page of the browser in its place

    async def _ask(self, request: Request) -> Reply | None:
        task = None if self._is_blocked(request) else _task(request, f"{self._url} {self._requests}")
        if task is None or self._rules.tracks(task.host):
            return None
        shared = task.method == "GET" and request.resource_type in ("script", STYLE)
        if shared and (known := self._scripts.get(task.url)) is not None:
            return known
        self._requests += 1
        self._waiting += 1
        try:
            permit = await self._network.admit(task)
        finally:
            self._waiting -= 1
        reply = None if permit is None else await self._network.send(task, permit)
        if permit is None:
            self._requests -= 1
        if reply is not None:
            self._bytes += len(reply.body)
            if shared:
                self._scripts.put(task.url, reply)
        return reply

    def _is_blocked(self, request: Request) -> bool:
        wanted = request.resource_type in ASKED or (request.resource_type == STYLE and self._rules.screenshots)
        room = self._requests < self._rules.most_requests and self._bytes < self._rules.most_bytes
        return not (wanted and room)

    def _made(self, html: str) -> Reply:
        """The reply with the document as it is now."""
        reply = self._reply
        kept = tuple(pair for pair in reply.headers if pair[0].lower() not in DROPPED_ANSWERING | {"content-type"})
        headers = (*kept, ("Content-Type", "text/html; charset=utf-8"))
        body = html.encode("utf-8", "replace")
        return Reply(reply.status, headers, body, reply.url, reply.latency, reply.address)

    def _on_load(self, _page: Page) -> None:
        self._loaded = True

    def _on_crash(self, _page: Page) -> None:
        self._crashed = True

    def _refuse(self, opened: Page | WebSocketRoute) -> None:
        """No other windows, and no sockets."""
        self._blocked += 1
        if not self._over:
            self._group.create_task(_close(opened))


async def _answered(asked: Awaitable[T]) -> T:
    """What a browser answers. Raises RenderError if it does not."""
    try:
        async with asyncio.timeout(OPEN):
            return await asked
    except TimeoutError:
        raise RenderError("rendering: the browser does not answer") from None


async def _close(opened: Page | WebSocketRoute) -> None:
    with suppress(Error):
        await opened.close()


def _task(request: Request, holder: str) -> Task | None:
    """What to ask in the page's place; None for what is no request of ours."""
    named = ((name.lower(), value) for name, value in request.headers.items())
    headers: Headers = tuple(
        (name, value)
        for name, value in named
        if name not in DROPPED_ASKING and not name.startswith(("sec-", ":", "proxy-", "upgrade"))
    )
    try:
        return Task(
            urldefrag(request.url).url,
            method=request.method,
            headers=headers,
            body=request.post_data_buffer,
            holder=holder,
        )
    except ValueError:  # HostError is one: data: and the like
        return None


def _answering(headers: Headers) -> dict[str, str]:
    """The headers as the browser may have them; of several with one name it gets all."""
    said: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if key not in DROPPED_ANSWERING:
            between = "\n" if key == "set-cookie" else ", "
            said[key] = f"{said[key]}{between}{value}" if key in said else value
    return said


def _failure(error: Error) -> RenderError:
    return RenderError(f"rendering: {_first_line(error)}")


def _first_line(error: Error) -> str:
    return (error.message.strip().splitlines() or ["the browser has died"])[0][:200]
