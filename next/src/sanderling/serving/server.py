"""A server: its routes behind one guard, and what each has besides: /health, /ready, /openapi.json and /tickets."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import msgspec
from aiohttp import web

from sanderling.files import Exit, FolderError
from sanderling.serving.access import Access, Needs
from sanderling.serving.openapi import describe
from sanderling.serving.routes import LARGEST_BODY, Problem, Route, answer_or_problem
from sanderling.serving.stream import Streams

# For every answer that has none of its own. Nothing here is a page: it may not run, be guessed at, or be kept.
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Referrer-Policy": "no-referrer",
}
_log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CLOSING = 5.0  # seconds for requests that are under way when it ends


class Health(msgspec.Struct, frozen=True):
    """That it is there."""

    ok: bool = True


class Ticket(msgspec.Struct, frozen=True):
    """A token that only reads, for a URL: `?ticket=…`. `until` is in seconds since 1970."""

    ticket: str
    until: float


@asynccontextmanager
async def serve(
    title: str,
    routes: Iterable[Route],
    access: Access,
    streams: Streams,
    *,
    bind: str,
    port: int,
    troubles: Callable[[], Sequence[str]] = tuple,
) -> AsyncIterator[str]:
    """Serve routes while the block runs, and give the URL. Port 0 takes any; with `troubles` it is not ready."""
    table = list(routes)
    table += _own_routes(title, access, table, troubles)
    app = web.Application(middlewares=[_guard(access)], client_max_size=LARGEST_BODY)
    app.on_response_prepare.append(_headers(access))
    for route in table:
        app.router.add_route(route.method, route.pattern, route.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSING)
    await runner.setup()
    try:
        try:
            site = web.TCPSite(runner, bind, port)
            await site.start()
        except OSError as error:
            raise FolderError(
                f"cannot serve at {bind}:{port}: {error.strerror or error}", "choose another port", Exit.WRONG
            ) from None
        host, taken = runner.addresses[0][:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{taken}"
        _log.info("serving at %s", url)
        yield url
    finally:
        await streams.close()
        await runner.cleanup()


def _own_routes(title: str, access: Access, table: list[Route], troubles: Callable[[], Sequence[str]]) -> list[Route]:
    @cache
    def document() -> dict[str, Any]:
        return describe(title, version("sanderling"), table)

    async def health() -> Health:
        """Whether the server is there."""
        return Health()

    async def ready() -> Health:
        """Whether it can do its work; if not, why."""
        if found := troubles():
            raise Problem(503, "; ".join(found), {"Retry-After": "5"})
        return Health()

    async def openapi() -> dict[str, Any]:
        """The document that describes this server."""
        return document()

    async def ticket() -> Ticket:
        """A token that only reads, for ten minutes, that can stand in a URL as ?ticket=…"""
        return Ticket(*access.ticket())

    return [
        Route("GET", "/health", health, Needs.NOTHING),
        Route("GET", "/ready", ready, Needs.NOTHING),
        Route("GET", "/openapi.json", openapi),
        Route("POST", "/tickets", ticket),
    ]


def _guard(access: Access) -> Any:  # noqa: ANN401 - aiohttp's type for it
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        route = getattr(request.match_info.handler, "__self__", None)  # none: nothing is at this path
        access.check(request, route.needs if isinstance(route, Route) else Needs.NOTHING)
        return await handler(request)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "OPTIONS" and access.cors(request):
            return web.Response(status=204)
        return await answer_or_problem(request, partial(check, handler=handler))

    return guard


def _headers(access: Access) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    async def add(request: web.Request, response: web.StreamResponse) -> None:
        for name, value in (SAFE_HEADERS | access.cors(request)).items():
            response.headers.setdefault(name, value)

    return add
