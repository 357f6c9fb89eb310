"""Which pages need a browser, how one is found, and what it makes of a page. The browser itself is `fetch/browser.py`.

The page has been fetched already, as any other is. A browser gets it handed, and has no network: whatever the page asks
for goes through a `PageNetwork`, which is our own client behind our own limiter.
"""

import re
import shutil
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sanderling.clock import Clock
from sanderling.extras import have, load, missing
from sanderling.limit import Permit
from sanderling.task import Reply, Task

AUTO = "auto"
USE = "--render"  # what needs a browser
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
# What counts visitors or shows them advertisements, by host and all below it: never asked. More of them: --leave-out.
_TRACKERS = (
    "2mdn.net adnxs.com adsrvr.org amazon-adsystem.com bat.bing.com chartbeat.com clarity.ms connect.facebook.net"
    " criteo.com criteo.net crwdcntrl.net demdex.net doubleclick.net google-analytics.com googleadservices.com"
    " googlesyndication.com googletagmanager.com googletagservices.com hotjar.com mc.yandex.ru moatads.com"
    " mixpanel.com newrelic.com nr-data.net omtrdc.net outbrain.com pubmatic.com quantserve.com rubiconproject.com"
    " scorecardresearch.com segment.io sentry.io taboola.com"
)
TRACKERS = frozenset(_TRACKERS.split())


UNCACHED = ("no-store", "no-cache", "private")


class RenderError(Exception):
    """A page could not be rendered, or there is nothing to render it with; the message says why."""


@dataclass(frozen=True, slots=True)
class RenderRules:
    """Which pages are rendered, and what that may cost. Times in seconds, sizes in bytes."""

    chosen: tuple[str, ...] = ()  # addresses, with * for anything
    auto: bool = False  # also pages that are empty without their scripts
    screenshots: bool = False
    browser: str = ""  # the program; if it is not named, the first that is found
    tabs: int = 4  # pages at once
    quiet: float = 0.5  # after the page has loaded, without a request
    scripts: float = 30.0  # for a page that never rests; the time that its requests wait for leave does not count
    longest: float = 600.0  # with that
    most_requests: int = 200  # of one page; those of scripts that ask without end
    most_bytes: int = 64 * 2**20  # of all answers to one page
    cached: int = 64 * 2**20  # of scripts that many pages share
    pages: int = 100  # that one browser renders; then it is replaced, since browsers only grow
    trackers: frozenset[str] = TRACKERS
    _chosen: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        each = (".*".join(map(re.escape, pattern.split("*"))) for pattern in self.chosen)
        object.__setattr__(self, "_chosen", re.compile("|".join(each) or r"(?!)", re.DOTALL))

    @classmethod
    def of(cls, wanted: Iterable[str], *, screenshots: bool = False, browser: str = "") -> "RenderRules | None":
        """The rules for these patterns, of which `auto` is a word; None if there are none. Raises ValueError."""
        named = tuple(dict.fromkeys(wanted))
        for each in named:
            if each != AUTO and not re.match(r"https?://|\*", each):
                raise ValueError(f"{each!r} is no pattern; expected auto, or one like https://app.example/*")
        if not named:
            return None
        chosen = tuple(each for each in named if each != AUTO)
        return cls(chosen=chosen, auto=AUTO in named, screenshots=screenshots, browser=browser)

    def chooses(self, url: str) -> bool:
        """Whether a page is rendered by its address."""
        return self._chosen.fullmatch(url) is not None

    def tracks(self, host: str) -> bool:
        """Whether a host, or one that it is below of, is among the trackers."""
        parts = host.partition(":")[0].split(".")
        return any(".".join(parts[start:]) in self.trackers for start in range(len(parts)))


class RenderedPage(NamedTuple):
    """What a browser made of a page."""

    reply: Reply  # as the page was answered, with the document that its scripts have made
    requests: int  # that were sent for it
    blocked: int  # that were not
    screenshot: bytes | None = None  # PNG
    onward: str | None = None  # where a script, or a refresh, wanted to go
    cut: str = ""  # why it was not waited for any longer


class ScriptCache:
    """Scripts and styles that were answered before, the longest unused first: routed pages do without a cache."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._known: OrderedDict[str, Reply] = OrderedDict()

    def get(self, url: str) -> Reply | None:
        """The answer, if it is there."""
        if (reply := self._known.get(url)) is not None:
            self._known.move_to_end(url)
        return reply

    def put(self, url: str, reply: Reply) -> None:
        """Keep a good answer that may be kept."""
        said = (reply.header("Cache-Control") or "").lower()
        if reply.status != 200 or url in self._known or any(word in said for word in UNCACHED):
            return
        self._known[url] = reply
        self._held += len(reply.body)
        while self._held > self._most:
            self._held -= len(self._known.popitem(last=False)[1].body)


class PageNetwork(Protocol):
    """What a page asks with."""

    async def admit(self, task: Task) -> Permit | None:
        """Leave of the task's host, when there is; None if it may not be asked at all."""

    async def send(self, task: Task, permit: Permit) -> Reply | None:
        """The answer, after redirects; None if there was none."""


class Renderer(AbstractAsyncContextManager["Renderer"], Protocol):
    """A browser, or a fake, for as long as the context lasts."""

    rules: RenderRules

    async def render(self, reply: Reply, network: PageNetwork) -> RenderedPage:
        """What the scripts of a page make of it. Raises RenderError."""


def find_browser(named: str = "", use: str = USE) -> str:
    """The program of a browser, for this use. Raises RenderError if there is none."""
    if named:
        if found := shutil.which(named):
            return found
        raise RenderError(f"--browser: there is no program {named}")
    found = next(filter(None, map(shutil.which, (*PROGRAMS, *APPLICATIONS))), None)
    if found is None:
        raise RenderError(
            f"{use} needs Chromium or Chrome, and none is on the PATH: apt install chromium, brew install chromium,"
            " or name it with --browser PATH"
        )
    return found


def make_renderer(rules: RenderRules, clock: Clock, use: str = USE) -> Renderer:
    """A browser, for this use. Raises RenderError, with what to install, if nothing can be rendered here."""
    if not have("playwright"):
        raise RenderError(missing("playwright", use))
    program = find_browser(rules.browser, use)
    made: Renderer = load("sanderling.fetch.browser", use).BrowserRenderer(rules, program, clock)
    return made
