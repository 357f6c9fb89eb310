"""A browser that renders pages and has no network: each request of a page is sent by our own client.

So all that holds for a request of ours holds for those of a page: leave of its host, the guard against private
addresses at every hop, limits of time and size. What would not come by here (sockets, workers of sites, look-ups ahead)
finds no name and no way.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
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
from sanderling.fetch.client import MOST_REDIRECTS, Client
from sanderling.fetch.guard import Refused, check_url
from sanderling.fetch.messages import LARGEST, Headers, HttpRequest, HttpResponse
from sanderling.files import Exit, FolderError
from sanderling.ids import UrlError, domain_of, host_of, normalise_url
from sanderling.limit import CircuitOpen, Permit
from sanderling.observe.log import log
from sanderling.options import OptionError

T = TypeVar("T")

PROGRAMS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
# What a page is made with; for a picture also what it looks like. Frames, beacons, media and streams are not.
MADE_WITH = frozenset({"script", "xhr", "fetch"})
LOOKS = frozenset({"stylesheet", "image", "font"})
TABS = 4  # pages at once
PAGES = 100  # that one browser renders: browsers only grow
QUIET = 0.5  # seconds without a request after which a page that has loaded is at rest
SCRIPTS = 30.0  # seconds for a page that never rests; the time that its requests wait for leave does not count
LONGEST = 600.0  # with that
MOST_REQUESTS = 200  # of one page
MOST_WISHES = 5000  # of one page, sent or not
MOST_BYTES = 64 << 20  # of all responses to one page
ANSWER = 10.0  # seconds that a browser has to answer us
OPEN = 3 * ANSWER  # to open a page, of which Playwright says nothing if the browser dies in that very moment
LOOK = 0.05  # seconds between two looks at whether a page is at rest
VIEW = ViewportSize(width=1280, height=1024)
# What does not pass through here finds no name, and nobody at the proxy that it has to use, for this machine too.
OFFLINE = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--js-flags=--max-old-space-size=512",  # MB: a page that takes more crashes its tab
)
NO_RTC = "delete window.RTCPeerConnection; delete window.webkitRTCPeerConnection; delete window.WebTransport;"
# No variable with a secret in it is the browser's business.
ENVIRONMENT = ("HOME", "PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
# Ours are sent in their place, or they say what only the connection knows. Cookies are those of our own jar, which no
# script sees.
OURS = frozenset("host connection content-length accept-encoding user-agent referer cookie".split())
ELSEWHERE = frozenset({"accept", "accept-language", "origin"})  # all that other sites are sent
DROPPED = frozenset("content-encoding content-length transfer-encoding connection keep-alive set-cookie".split())
# What no longer holds of a page that scripts have made: another visit has to make it anew.
UNTRUE = DROPPED | {"content-type", "etag", "last-modified"}


class RenderError(Exception):
    """A page could not be rendered; the message says why."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """What a browser made of a page."""

    response: HttpResponse  # with the document that the scripts have made
    requests: int  # that were sent for it
    blocked: int  # that were not
    picture: bytes = b""  # PNG
    onward: str = ""  # where a script, or a refresh, wanted to go
    cut: str = ""  # why it was not waited for any longer


@dataclass(slots=True, eq=False)
class _Running:
    """A browser and the program that drives it."""

    driver: Playwright
    browser: Browser
    pages: int = 0  # that were opened in it
    open: int = 0
    retired: bool = False

    @property
    def is_fresh(self) -> bool:
        return not self.retired and self.pages < PAGES and self.browser.is_connected()

    async def close(self) -> None:
        """End it; one that has died is ended as well."""
        for end in (self.browser.close, self.driver.stop):
            with suppress(RenderError, TimeoutError), _errors():
                async with asyncio.timeout(ANSWER):
                    await end()


class BrowserRenderer:
    """Renders pages, each in a context of its own. A browser that dies costs none but the page that killed it.

    `may` says of an address whether a page may request it.
    """

    def __init__(
        self, client: Client, clock: Clock, *, program: Path | None, sandbox: bool, pictures: bool,
        may: Callable[[str], bool], seconds: float = SCRIPTS,
    ) -> None:  # fmt: skip
        self.client = client
        self.clock = clock
        self.pictures = pictures
        self.may = may
        self.seconds = seconds
        self._program = find_browser(program)
        self._sandbox = sandbox
        self._tabs = asyncio.Semaphore(TABS)
        self._starting = asyncio.Lock()
        self._running: _Running | None = None

    async def __aenter__(self) -> Self:
        """Start the browser. Raises OptionError if it has no sandbox, FolderError if it does not start."""
        if self._sandbox and os.geteuid() == 0:
            raise OptionError("a browser has no sandbox as root; run as another user, or do without it: --no-sandbox")
        if not self._sandbox:
            log.warning(
                "unsandboxed",
                say="The browser runs without its sandbox: a page that breaks out of it can do what you can.",
            )
        try:
            self._running = await self._launch()
        except RenderError as error:
            raise FolderError(str(error), code=Exit.FAILED) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            await self._running.close()
            self._running = None

    async def render(self, response: HttpResponse) -> RenderedPage:
        """What the scripts of a page make of it. Raises RenderError."""
        running: _Running | None = None
        async with self._tabs:
            try:
                async with self._shared() as running:
                    made = await self._visit(running, response)
            except RenderError:
                if running is None or (running.browser.is_connected() and not running.retired):
                    raise
                # Which of the pages has killed it, nobody knows: each of them gets a browser to itself.
                alone = await self._launch()
                try:
                    made = await self._visit(alone, response)
                finally:
                    await alone.close()
        return made

    @asynccontextmanager
    async def _shared(self) -> AsyncIterator[_Running]:
        async with self._starting:
            running = self._running
            if running is None or not running.is_fresh:
                before, self._running = running, None
                if before is not None and not before.open:
                    await before.close()
                running = self._running = await self._launch()
        running.open += 1
        running.pages += 1
        try:
            yield running
        finally:
            running.open -= 1
            if running is not self._running and not running.open:
                await running.close()

    async def _visit(self, running: _Running, response: HttpResponse) -> RenderedPage:
        with _errors():
            made = running.browser.new_context(accept_downloads=False, service_workers="block", viewport=VIEW)
            context = await _answered(made)
            left: list[Route] = []
            try:
                async with asyncio.TaskGroup() as group:
                    visited = await _Visit(self, response, group, left).run(context)
            finally:
                try:
                    async with asyncio.timeout(ANSWER):
                        with _errors():
                            await context.close()
                except (RenderError, TimeoutError):  # one that does not even do that takes no other page
                    running.retired = True
                for route in left:  # or Playwright would wait for each of them for ever
                    with suppress(RenderError), _errors():
                        await route.fallback()
        if isinstance(visited, RenderError):
            raise visited
        return visited

    async def _launch(self) -> _Running:
        driver = await async_playwright().start()
        try:
            browser = await driver.chromium.launch(
                executable_path=self._program,
                args=OFFLINE,
                chromium_sandbox=self._sandbox,
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            await driver.stop()
            said = next((line for line in error.message.splitlines() if "rror" in line), "it ended at once")[:300]
            hint = "; without its sandbox: --no-sandbox" if "sandbox" in error.message and self._sandbox else ""
            raise RenderError(f"{self._program} does not start: {said}{hint}") from None
        return _Running(driver, browser)


class _Visit:
    """One page in the browser: what it requests, and when it is at rest."""

    def __init__(
        self, renderer: BrowserRenderer, response: HttpResponse, group: asyncio.TaskGroup, left: list[Route]
    ) -> None:
        self._renderer = renderer
        self._left = left  # what was not answered
        self._response = response
        self._url = response.url
        self._site = domain_of(host_of(response.url))
        self._group = group
        self._page: Page | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._waiting = 0  # for leave
        self._opened = self._loaded = self._crashed = self._over = False
        self._stirred = True  # it has requested something since we last looked
        self._wishes = self._requests = self._bytes = 0
        self._onward = ""

    async def run(self, context: BrowserContext) -> RenderedPage | RenderError:
        """What the page has become, or why nothing; not raised, which would make a group of it."""
        try:
            with _errors():
                return await self._open(context)
        except RenderError as error:
            return error
        finally:
            self._over = True
            for task in self._asking:
                task.cancel()

    async def _open(self, context: BrowserContext) -> RenderedPage:
        """Open the page, wait until it rests, and take what it has become."""
        page = self._page = await _answered(self._begin(context))
        page.on("load", self._on_load)
        page.on("crash", self._on_crash)
        context.on("page", self._refuse)  # every other one
        await _answered(page.goto(self._url, wait_until="commit", timeout=ANSWER * 1000))
        cut = await self._rest(page)
        try:
            async with asyncio.timeout(ANSWER):
                html = await page.content()
        except TimeoutError:
            raise RenderError("rendering: its scripts never end") from None
        body = html.encode("utf-8", "replace")
        if len(body) > LARGEST:
            raise RenderError(f"rendering: its scripts made {len(body):,} bytes of it; expected at most {LARGEST:,}")
        picture = await _answered(page.screenshot(timeout=ANSWER * 1000)) if self._renderer.pictures else b""
        kept = tuple(pair for pair in self._response.headers if pair[0].lower() not in UNTRUE)
        made = replace(self._response, body=body, headers=(*kept, ("Content-Type", "text/html; charset=utf-8")))
        return RenderedPage(made, self._requests, self._wishes - self._requests, picture, self._onward, cut)

    async def _begin(self, context: BrowserContext) -> Page:
        await context.route("**/*", self._route)
        await context.route_web_socket("**/*", self._refuse)
        await context.add_init_script(NO_RTC)
        return await context.new_page()

    async def _rest(self, page: Page) -> str:
        """Return when the page has loaded and requests nothing; or why that was not waited for."""
        clock = self._renderer.clock
        began = seen = resting = clock.now()
        spent = 0.0
        while spent < self._renderer.seconds and clock.now() - began < LONGEST:
            await clock.sleep(LOOK)
            if self._crashed or page.is_closed():
                raise RenderError("rendering: the page has crashed its tab")
            if self._wishes > MOST_WISHES:
                raise RenderError(f"rendering: it requests without end, {self._wishes:,} times in {spent:.0f} s")
            now = clock.now()
            spent += 0.0 if self._waiting else now - seen
            seen = now
            if self._asking or self._stirred or not self._loaded:
                resting, self._stirred = now, False
            elif now - resting >= QUIET:
                return "" if self._has_room else f"cut after {self._requests:,} requests and {self._bytes:,} bytes"
        return f"cut after {spent:.0f} s: it never rests"

    @property
    def _has_room(self) -> bool:
        return self._requests < MOST_REQUESTS and self._bytes < MOST_BYTES

    # What the page requests.

    def _route(self, route: Route) -> None:
        self._wishes += 1
        self._stirred = True
        if self._over or self._wishes > MOST_WISHES:
            self._left.append(route)
        else:
            self._asking.add(self._group.create_task(self._answer(route)))

    async def _answer(self, route: Route) -> None:
        self._left.append(route)
        try:
            with _errors():
                request = route.request
                if request.is_navigation_request():
                    await self._navigate(route, request)
                elif request.resource_type == "stylesheet" and not self._renderer.pictures:
                    # Scripts wait until there is one, and nobody looks.
                    await route.fulfill(status=200, content_type="text/css", body="")
                elif (response := await self._request(request)) is not None:
                    headers = _for_browser(response.headers)
                    await route.fulfill(status=response.status, headers=headers, body=response.body)
                else:
                    await route.abort("blockedbyclient")
            self._left.remove(route)
        except RenderError:  # the page is gone, and with it who waits for the answer
            self._stirred = True
        finally:
            self._asking.discard(asyncio.current_task())

    async def _navigate(self, route: Route, request: Request) -> None:
        """The page itself is here already. Where it goes from there is an address like any that it links to."""
        url = urldefrag(request.url).url
        if not self._opened:
            self._opened = True
            headers = _for_browser(self._response.headers)
            headers.pop("content-disposition", None)  # or it were a download
            self._wishes -= 1
            await route.fulfill(status=self._response.status, headers=headers, body=self._response.body)
            return
        is_own = self._page is not None and request.frame == self._page.main_frame
        if request.method == "GET" and is_own and not self._onward:
            with suppress(UrlError):
                found = normalise_url(url)
                self._onward = found if found != self._url else ""
            self._loaded = self._loaded or bool(self._onward)  # who leaves does not load the rest
        await route.abort("aborted")  # any other reason would put a page of the browser in its place

    async def _request(self, request: Request) -> HttpResponse | None:
        """The response to what a page requests; None if it is not sent."""
        wanted = MADE_WITH | (LOOKS if self._renderer.pictures else frozenset())
        if request.method not in ("GET", "HEAD") or request.resource_type not in wanted:
            return None
        headers = {
            name.lower(): value
            for name, value in request.headers.items()
            if name.lower() not in OURS and not name.lower().startswith(("sec-", ":", "proxy-", "upgrade"))
        }
        client = self._renderer.client
        url, is_own = request.url, True
        try:
            for _ in range(MOST_REDIRECTS):
                url = normalise_url(url)
                host = check_url(url, private=client.options.private)
                # What has been elsewhere is nobody's own any more.
                is_own = is_own and domain_of(host) == self._site
                sent: Headers = tuple(pair for pair in headers.items() if is_own or pair[0] in ELSEWHERE)
                asked = HttpRequest(url, request.method, sent, anonymous=not is_own)
                if not (self._has_room and self._renderer.may(url)):
                    return None
                response = await client.send(asked, await self._leave(host), follow=False)
                self._bytes += len(response.body)
                if response.location is None:
                    return response if response.outcome.ok or response.status >= 400 else None
                url = response.location
        except (Refused, CircuitOpen, ValueError):  # UrlError is one
            return None
        return None

    async def _leave(self, host: str) -> Permit:
        """Leave for a request. Raises CircuitOpen if there is none soon."""
        limiter, now = self._renderer.client.limiter, self._renderer.clock.now()
        if (due := limiter.ready_at(host)) - now > OPEN:
            raise CircuitOpen(host, due)
        self._requests += 1
        self._waiting += 1
        try:
            return await limiter.acquire(host)
        except CircuitOpen:
            self._requests -= 1
            raise
        finally:
            self._waiting -= 1

    def _on_load(self, _page: Page) -> None:
        self._loaded = True

    def _on_crash(self, _page: Page) -> None:
        self._crashed = True

    def _refuse(self, opened: Page | WebSocketRoute) -> None:
        """No other windows, and no sockets."""
        self._wishes += 1 if isinstance(opened, WebSocketRoute) else MOST_WISHES // 20
        if not self._over:
            self._group.create_task(_close(opened))


@contextmanager
def _errors() -> Iterator[None]:
    """Raise RenderError for what Playwright raises where a page, a browser or its driver has gone."""
    try:
        yield
    except Error as error:
        raise RenderError("rendering: " + (error.message.strip().splitlines() or ["it has died"])[0][:200]) from None
    except Exception as error:
        if "onnection closed" not in str(error):  # all that it says of its driver
            raise
        raise RenderError("rendering: the browser has died") from None


async def _answered(asked: Awaitable[T]) -> T:
    """What a browser answers. Raises RenderError if it does not."""
    try:
        async with asyncio.timeout(OPEN):
            return await asked
    except TimeoutError:
        raise RenderError("rendering: the browser does not answer") from None


async def _close(opened: Page | WebSocketRoute) -> None:
    with suppress(RenderError), _errors():
        await opened.close()


def _for_browser(headers: Headers) -> dict[str, str]:
    """The headers as the browser may have them; of several with one name it gets all."""
    said: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if key not in DROPPED:
            said[key] = f"{said[key]}, {value}" if key in said else value
    return said


def find_browser(named: Path | None) -> str:
    """The program of a browser. Raises OptionError if there is none."""
    found = next(filter(None, map(shutil.which, PROGRAMS if named is None else [str(named)])), None)
    if found is None and named is not None:
        raise OptionError(f"--browser: there is no program {named}")
    if found is None:
        raise OptionError("no Chromium or Chrome is on the PATH: apt install chromium, or name one with --browser")
    return found
