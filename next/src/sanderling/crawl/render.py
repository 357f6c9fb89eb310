"""Which pages a browser renders, and the browser of a crawl."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from sanderling.crawl.scope import UrlPattern
from sanderling.options import OptionError

if TYPE_CHECKING:  # reader processes need none of it
    from sanderling.clock import Clock
    from sanderling.crawl.options import CrawlOptions
    from sanderling.fetch.browser import BrowserRenderer
    from sanderling.fetch.client import Client
    from sanderling.fetch.messages import HttpResponse

AUTO = "auto"
PAGES = frozenset({"text/html", "application/xhtml+xml"})
# Characters of text: with fewer, and where scripts have put up a place to draw in, a page is taken to be empty; with
# next to none, any script will do.
LITTLE, NEXT_TO_NONE = 400, 40
LOOKED_AT = 1 << 18  # bytes of a page, for those
_SCRIPT = re.compile(rb"<script[\s>]", re.IGNORECASE)
# Where frameworks draw: what they call the element themselves, and what they leave in a page.
_ROOT = re.compile(
    rb"""\bid\s{0,9}=\s{0,9}["']?(?:root|app|__next|__nuxt|___gatsby|svelte|q-app|react-root|app-root|main-app)["'\s>/]
    |<app-root[\s>]|\b(?:data-reactroot|data-server-rendered|ng-app|ng-version|data-v-app)\b|<noscript[\s>]""",
    re.IGNORECASE | re.VERBOSE,
)


def needs_scripts(text: str, body: bytes) -> bool:
    """Whether a page with this text seems to be empty without its scripts."""
    shown = len(text.strip())
    head = body[:LOOKED_AT]
    if shown >= LITTLE or _SCRIPT.search(head) is None:
        return False
    return shown < NEXT_TO_NONE or _ROOT.search(head) is not None


class RenderRules:
    """Which pages are rendered: by pattern, by the function that reads them, or those that are empty without."""

    def __init__(self, patterns: Iterable[str] = (), functions: Collection[str] = ()) -> None:
        wanted = set(patterns)
        self.auto = AUTO in wanted
        self._functions = functions
        try:
            self._patterns = [UrlPattern(each) for each in sorted(wanted - {AUTO})]
        except ValueError as error:
            raise OptionError(f"--render: {error}, or auto") from None

    def __bool__(self) -> bool:
        return bool(self.auto or self._patterns or self._functions)

    def choose(self, url: str, function: str, response: "HttpResponse") -> bool:
        """Whether this response is rendered before anybody reads it."""
        if response.content_type not in PAGES or not response.body:
            return False
        return function in self._functions or any(each.match(url) is not None for each in self._patterns)


def open_renderer(
    options: "CrawlOptions", client: "Client", clock: "Clock", may: Callable[[str], bool]
) -> "BrowserRenderer":
    """The browser of a crawl, to be entered. Raises OptionError if there is none."""
    try:
        from sanderling.fetch.browser import BrowserRenderer  # noqa: PLC0415 - an extra, and only where it is wanted
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "playwright":
            raise
        raise OptionError("to render pages Playwright is needed: pip install 'sanderling[render]'") from None
    return BrowserRenderer(
        client, clock, program=options.browser, sandbox=options.sandbox, pictures=options.screenshots, may=may
    )
