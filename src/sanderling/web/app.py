"""The house put together: the door, the routes, the same care for every answer, and a line in the log for each request.

What every API has besides its own routes: `/health` and `/openapi.json`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.web.access import SAFE_HEADERS, Access, Caller
from sanderling.web.openapi import About, document
from sanderling.web.parsing import LARGEST_BODY
from sanderling.web.problems import Handler, Translate, answered
from sanderling.web.routes import Route, handler
from sanderling.web.stream import Streams

log = logs.get(__name__)

ACCESS: web.AppKey[Access] = web.AppKey("access", Access)  # set when the door is opened: until then nobody comes in
ROUTES: web.AppKey[Sequence[Route]] = web.AppKey("routes", Sequence[Route])
STREAMS: web.AppKey[Streams] = web.AppKey("streams", Streams)
CLOCK: web.AppKey[Clock] = web.AppKey("clock", Clock)
DESCRIPTION: web.AppKey[Callable[..., dict[str, Any]]] = web.AppKey("description")

LONGEST_PATH = 200  # characters of one that is logged
_PARAMETER = re.compile(r"\{([a-z_]+)\}")


class Health(msgspec.Struct, frozen=True):
    """That it is there."""

    ok: bool = True


@dataclass(frozen=True, slots=True)
class AppRules:
    """Bounds of requests."""

    body_seconds: float = 10.0  # for the whole body, which is small


async def health() -> Health:
    """Whether the server is there."""
    return Health()


async def openapi(request: web.Request) -> dict[str, Any]:
    """What there is here, as OpenAPI: the document that you read."""
    return request.app[DESCRIPTION](secured=request.app[ACCESS].token is not None)


OWN = (Route("GET", "/health", health, everyone=True), Route("GET", "/openapi.json", openapi))


def application(
    about: About,
    routes: Iterable[Route],
    streams: Streams,
    clock: Clock,
    *,
    translate: Translate = lambda _: None,
    rules: AppRules | None = None,
) -> web.Application:
    """An application with these routes, to be opened by `serving`. `translate`: the errors of the system behind it."""
    table = (*OWN, *routes)
    app = furnished(table, streams, clock, _admitting, translate=translate, rules=rules)
    describe: Callable[..., dict[str, Any]] = cache(partial(document, about, table))
    app[DESCRIPTION] = describe  # made once: it takes longer than anything else here
    return app


def furnished(
    routes: Sequence[Route],
    streams: Streams,
    clock: Clock,
    door: Middleware,
    *,
    translate: Translate = lambda _: None,
    rules: AppRules | None = None,
) -> web.Application:
    """An application with a door of its own: `door` lets a request pass to its route, or raises ProblemError."""
    rules = rules or AppRules()
    app = web.Application(middlewares=[_watching(clock, translate), door], client_max_size=LARGEST_BODY)
    app[ROUTES], app[STREAMS], app[CLOCK] = routes, streams, clock
    for route in routes:
        # By default a parameter takes no braces; ids may have any character, as long as a slash is encoded.
        path = _PARAMETER.sub(r"{\1:[^/]+}", route.path)
        app.router.add_route(route.method, path, handler(route, rules.body_seconds), expect_handler=_expected)
    app.on_response_prepare.append(_with_safe_headers)
    app.on_shutdown.append(_close_streams)
    return app


def _watching(clock: Clock, translate: Translate) -> Middleware:
    @web.middleware
    async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = clock.now()
        response = await answered(request, handler, translate)
        log.debug(
            "request",
            method=request.method,
            path=request.rel_url.raw_path[:LONGEST_PATH],  # without the query: some put secrets there
            status=response.status,
            seconds=clock.now() - started,
            peer=request.remote,
        )
        return response

    return watch


@web.middleware
async def _admitting(request: web.Request, handler: Handler) -> web.StreamResponse:
    route = route_of(request)
    request.app[ACCESS].check(
        caller_of(request),
        everyone=route is not None and route.everyone,
        hook=route is not None and route.hook,
    )
    return await handler(request)


def caller_of(request: web.Request) -> Caller:
    """Who sent it, as far as it says."""
    return Caller(request.remote or "", request.headers)


def route_of(request: web.Request) -> Route | None:
    """The route that a request goes to."""
    resource = request.match_info.route.resource
    if resource is None:
        return None
    place = (request.method, resource.canonical)
    return next(route for route in request.app[ROUTES] if (route.method, route.path) == place)


async def _expected(request: web.Request) -> None:
    """Do nothing yet: whether the body is wanted is clear only when the rest of the request is."""


async def _with_safe_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in SAFE_HEADERS.items():
        # The files of a page have their own, with which they may run; the server's name is never theirs.
        if name == "Server" or name not in response.headers:
            response.headers[name] = value


async def _close_streams(app: web.Application) -> None:
    app[STREAMS].close()
