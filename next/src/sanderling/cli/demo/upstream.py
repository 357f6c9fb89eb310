"""What the upstreams of the demo have in common."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from sanderling.clock import Clock

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Upstream:
    """A server that a system is shown on, and what is true of it."""

    system: str
    shows: str  # in one sentence
    app: web.Application
    words: Callable[[str, Path], tuple[str, ...]]  # the command for a URL and a folder
    truth: Callable[[str], set[str]]  # the keys of all records there must be, for a URL
    key: str = "url"  # the field of a record that is its key
    limit: "HiddenLimit | None" = None
    watch: Callable[[str], str] | None = None  # where a browser sees it, for a URL
    before: Callable[[str, Path], tuple[str, ...]] | None = None  # a command whose end is waited for


@dataclass
class HiddenLimit:
    """A limit that the server tells nobody: more requests within a second get 429."""

    clock: Clock
    most: int
    taken: deque[float] = field(default_factory=deque)
    served: int = 0
    refused: int = 0

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what is too much."""
        now = self.clock.now()
        while self.taken and self.taken[0] <= now - 1:
            self.taken.popleft()
        if len(self.taken) >= self.most:
            self.refused += 1
            return web.Response(status=429, text="slow down")
        self.taken.append(now)
        self.served += 1
        return await handler(request)


def page(title: str, text: str, links: Iterable[str]) -> web.Response:
    """A page of HTML with links."""
    listed = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    body = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{text}</p><ul>{listed}</ul>"
    return web.Response(text=body, content_type="text/html")
