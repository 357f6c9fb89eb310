"""What a process answers that waits to poll: that it is there, and not ready."""

from aiohttp import web

from sanderling.clock import Clock
from sanderling.web.app import OWN, furnished
from sanderling.web.problems import Handler, problem
from sanderling.web.stream import Streams

SOON = {"Retry-After": "5"}


def standby_app(clock: Clock) -> web.Application:
    """The application, to be opened by `serving`: /health is answered, and all else is for the process that polls."""
    return furnished(OWN[:1], Streams(clock), clock, _only_health)


@web.middleware
async def _only_health(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path != OWN[0].path:
        raise problem(503, "standby: another process polls, and this one waits", SOON)
    return await handler(request)
