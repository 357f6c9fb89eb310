"""Pages that need a browser: which they are, and what their scripts may ask for."""

import re

from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.render import RenderedPage, Renderer
from sanderling.limit import CircuitOpen, Limiter, Permit
from sanderling.limit.memory import Memory
from sanderling.pages.kinds import ContentKind, kind_of
from sanderling.pages.permissions import Permissions
from sanderling.pages.urls import origin_of
from sanderling.task import Reply, Task

# Characters of text: with fewer, and where scripts have put up a place to draw in, a page is taken to be empty; with
# next to none, any script will do.
LITTLE, NEXT_TO_NONE = 400, 40
LOOKED_AT = 2**18  # bytes of a page, for those
_SCRIPT = re.compile(rb"<script[\s>]", re.IGNORECASE)
# Where frameworks draw: what they call the element themselves, and what they leave in a page.
_ROOT = re.compile(
    rb"""<(?:div|main|body|section)\b[^>]{0,200}\bid\s*=\s*["']?
         (?:root|app|__next|__nuxt|___gatsby|svelte|q-app|react-root|app-root|main-app|ember\d*)["'\s>/]
    |<app-root[\s>]|\b(?:data-reactroot|data-server-rendered|ng-app|ng-version|data-v-app)\b
    |<noscript>[^<]{0,400}(?:<[^<]{0,400}){0,5}?\bjava\s?script\b""",
    re.IGNORECASE | re.VERBOSE,
)


def needs_scripts(text: str, body: bytes) -> bool:
    """Whether a page with this text seems to be empty without its scripts."""
    shown = len(text.strip())
    head = body[:LOOKED_AT]
    if shown >= LITTLE or _SCRIPT.search(head) is None:
        return False
    return shown < NEXT_TO_NONE or _ROOT.search(head) is not None


class PageRendering:
    """Renders pages of a crawl. What they ask for has leave of its host, as far as robots.txt is known to allow it."""

    def __init__(
        self, renderer: Renderer, fetcher: Fetcher, limiter: Limiter, permissions: Permissions, memory: Memory
    ) -> None:
        self.rules = renderer.rules
        self._renderer = renderer
        self._fetcher = fetcher
        self._limiter = limiter
        self._permissions = permissions
        self._memory = memory

    async def render(self, reply: Reply) -> RenderedPage:
        """What the scripts of a page make of it. Raises RenderError."""
        return await self._renderer.render(reply, self)

    def chooses(self, url: str, reply: Reply) -> bool:
        """Whether a page is rendered by its address."""
        return self.rules.chooses(url) and self.renders(reply)

    @staticmethod
    def renders(reply: Reply) -> bool:
        """Whether it is a page at all."""
        return kind_of(reply.header("Content-Type"), reply.body) is ContentKind.HTML

    async def admit(self, task: Task) -> Permit | None:
        """Leave of the task's host, when there is; None if it may not be asked at all."""
        known = self._permissions.known(origin_of(task.url))
        if known is not None and not known.allows(task.url):
            return None
        try:
            return await self._limiter.acquire(task.host)
        except CircuitOpen:
            return None

    async def send(self, task: Task, permit: Permit) -> Reply | None:
        """The answer, after redirects; None if there was none."""
        try:
            return (await self._fetcher.fetch(task, permit)).reply
        finally:
            self._memory.release(task.holder)
