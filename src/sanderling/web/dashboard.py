"""The dashboard: all systems of a home on one page, what they do every second, and what people may do to them.

The page itself is static files (`assets`); this is what they ask: the house as it stands (`house_live`), its hosts, and
actions (`house_actions`). Who may ask is in `sessions`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware
from msgspec import Meta

from sanderling.clock import Clock
from sanderling.web.access import Access, Caller, Token
from sanderling.web.app import caller_of, furnished, health, route_of
from sanderling.web.assets import INDEX, Assets
from sanderling.web.house_actions import Action, Actions, Done, Who
from sanderling.web.house_asking import Asking
from sanderling.web.house_audit import Audit, Entry
from sanderling.web.house_hosts import HostPage, HostsQuery
from sanderling.web.house_items import ItemPage, Items, ItemsQuery
from sanderling.web.house_live import Live
from sanderling.web.house_past import Past, PastQuery, PastShown
from sanderling.web.house_reach import Reach
from sanderling.web.parsing import JSON, Nothing
from sanderling.web.problems import Handler
from sanderling.web.routes import Asked, Route
from sanderling.web.serve import Address, serving
from sanderling.web.sessions import Door, Session, Visitor, cookie_for
from sanderling.web.stream import StreamRules, Streams, alive

PORT = 8700
MOST_STREAMS = 100  # pages that are open at once
HOLDER = "the token's holder"
VISITOR: web.RequestKey[Visitor] = web.RequestKey("visitor", Visitor)


class NamePath(msgspec.Struct, frozen=True):
    """The name of a file."""

    name: str


class LoginBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The token."""

    token: Annotated[str, Meta(max_length=2000)]


class LoggedIn(msgspec.Struct, frozen=True):
    """What the page must send along with every action."""

    csrf: str


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks."""

    secured: bool  # whether there is a token
    in_: bool = msgspec.field(name="in")  # whether they may see anything
    csrf: str | None  # None if they may not, or came with the token itself


class AuditQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


@dataclass(frozen=True, slots=True)
class Behind:
    """What there is behind the routes."""

    live: Live
    actions: Actions
    items: Items
    door: Door
    streams: Streams
    assets: Assets = field(default_factory=Assets)


class DashboardRoutes:
    """They answer."""

    def __init__(self, behind: Behind) -> None:
        self._live = behind.live
        self._actions = behind.actions
        self._items = behind.items
        self._door = behind.door
        self._streams = behind.streams
        self._assets = behind.assets

    async def page(self, asked: Asked[Nothing, Nothing, Nothing]) -> web.Response:
        """The page."""
        return self._assets.answer(INDEX, asked.request)

    async def asset(self, asked: Asked[NamePath, Nothing, Nothing]) -> web.Response:
        """A file of the page."""
        return self._assets.answer(asked.path.name, asked.request)

    async def session(self, asked: Asked[Nothing, Nothing, Nothing]) -> SessionShown:
        """Whether the one who asks is let in, and what its page must send along with actions."""
        found = self._door.visitor(caller_of(asked.request), port_of(asked.request))
        csrf = None if found is None else found.csrf
        return SessionShown(secured=self._door.secured, in_=found is not None, csrf=csrf)

    async def login(self, asked: Asked[Nothing, Nothing, LoginBody]) -> web.Response:
        """Begin a session: who has the token gets a cookie."""
        session = await self._door.login(caller_of(asked.request), asked.body.token)
        return _json(msgspec.json.encode(LoggedIn(session.csrf)), _with_cookie(asked.request, session))

    async def logout(self, asked: Asked[Nothing, Nothing, Nothing]) -> web.Response:
        """End the session, and every stream of it."""
        request = asked.request
        self._door.logout(caller_of(request), port_of(request))
        done = await self._actions.logged_out(who_sent(request))
        return _json(msgspec.json.encode(done), _with_cookie(request, None))

    async def house(self, asked: Asked[Nothing, Nothing, Nothing]) -> web.Response:  # noqa: ARG002 - as all routes
        """All systems as they stand, and their last ten minutes."""
        return _json(self._live.house())

    async def stream(self, asked: Asked[Nothing, Nothing, Nothing]) -> web.StreamResponse:
        """The same as server-sent events: `house` once, then `tick` every second, until the session is over."""
        told = self._told(caller_of(asked.request), port_of(asked.request))
        return await self._streams.serve(asked.request, told, lambda: alive(self._live.position))

    async def _told(self, caller: Caller, port: int) -> AsyncGenerator[bytes, None]:
        """What is told for as long as the caller would be let in."""
        async with aclosing(self._live.told()) as told:
            async for data in told:
                if self._door.visitor(caller, port) is None:
                    return
                yield data

    async def hosts(self, asked: Asked[Nothing, HostsQuery, Nothing]) -> HostPage:
        """Hosts of a system, or of all: searched, sorted by any field, and by pages."""
        return self._live.hosts(asked.query)

    async def history(self, asked: Asked[Nothing, PastQuery, Nothing]) -> PastShown:
        """The last hour, six hours or day of a system, as they are kept on disk."""
        return await self._live.was(asked.query)

    async def items(self, asked: Asked[Nothing, ItemsQuery, Nothing]) -> ItemPage:
        """Items of a system in one state: which failed, why, and when each is next; searched, and by pages."""
        return await self._items.page(self._live.found(asked.query.system), asked.query)

    async def act(self, asked: Asked[Nothing, Nothing, Action]) -> Done:
        """Do something to a system."""
        return await self._actions.do(asked.body, who_sent(asked.request))

    async def audit(self, asked: Asked[Nothing, AuditQuery, Nothing]) -> list[Entry]:
        """What people did, the newest first."""
        return await self._actions.recorded(asked.query.limit)


def dashboard_routes(behind: Behind) -> tuple[Route, ...]:
    """The table. Where two paths match, the first one counts."""
    routes = DashboardRoutes(behind)
    return (
        Route("GET", "/", routes.page, everyone=True),
        Route("GET", "/health", health, everyone=True),
        Route("GET", "/{name}", routes.asset, everyone=True),
        Route("GET", "/api/session", routes.session, everyone=True),
        Route("POST", "/api/login", routes.login, everyone=True),
        Route("POST", "/api/logout", routes.logout),
        Route("GET", "/api/house", routes.house),
        Route("GET", "/api/stream", routes.stream),
        Route("GET", "/api/history", routes.history),
        Route("GET", "/api/hosts", routes.hosts),
        Route("GET", "/api/items", routes.items),
        Route("POST", "/api/actions", routes.act),
        Route("GET", "/api/audit", routes.audit),
    )


def dashboard_app(behind: Behind, clock: Clock) -> web.Application:
    """The application, to be opened by `serving`. It has a door of its own: people come with cookies."""
    return furnished(dashboard_routes(behind), behind.streams, clock, _guarding(behind.door))


def _guarding(door: Door) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        caller, route = caller_of(request), route_of(request)
        door.knock(caller)
        if route is None or not route.everyone:
            request[VISITOR] = await door.enter(caller, port_of(request), changes=request.method != "GET")
        return await handler(request)

    return guard


def port_of(request: web.Request) -> int:
    """At which port it came in."""
    name = None if request.transport is None else request.transport.get_extra_info("sockname")
    return int(name[1]) if isinstance(name, tuple) and len(name) > 1 else 0


def who_sent(request: web.Request) -> Who:
    """Who it is from, of those who were let in."""
    return Who(request[VISITOR].who, request.remote or "")


def _with_cookie(request: web.Request, session: Session | None) -> Mapping[str, str]:
    # A proxy says so; whoever else does makes only their own cookie stricter.
    secure = request.headers.get("X-Forwarded-Proto", "").lower() == "https"
    return {"Set-Cookie": cookie_for(session, port_of(request), secure=secure)}


def _json(body: bytes, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=body, content_type=JSON, headers=headers)


@dataclass(frozen=True, slots=True)
class Opening:
    """Where the dashboard is to be, and of what. `name`: what the holder of the token is called in the record."""

    home: Path
    host: str = "127.0.0.1"
    port: int = PORT
    token: Token | None = None
    name: str = HOLDER


@asynccontextmanager
async def dashboard(opening: Opening, reach: Reach, clock: Clock) -> AsyncIterator[Address]:
    """Serve it while the block runs. Raises AccessError and AddressError."""
    secured = opening.token is not None
    asking = Asking(reach, clock)
    async with Live(opening.home, asking, clock, version("sanderling"), secured=secured) as live:
        live.past = Past(opening.home)
        streams = Streams(clock, StreamRules(most=MOST_STREAMS))
        actions = Actions(live, reach, Audit(opening.home), clock)
        door = Door(Access(opening.token, clock), clock, opening.name)
        app = dashboard_app(Behind(live, actions, Items(reach, clock), door, streams), clock)
        async with serving(app, opening.host, opening.port, opening.token) as address:
            yield address
