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
from sanderling.web.app import Health, caller_of, furnished, route_of
from sanderling.web.assets import INDEX, Assets
from sanderling.web.house_actions import Action, Actions, Done, Who
from sanderling.web.house_asking import Asking
from sanderling.web.house_audit import Audit, AuditEntry
from sanderling.web.house_hosts import HostPage, HostsQuery
from sanderling.web.house_items import ItemPage, Items, ItemsQuery
from sanderling.web.house_live import Live
from sanderling.web.house_past import Past, PastQuery, PastShown
from sanderling.web.house_reach import Reach
from sanderling.web.parsing import JSON
from sanderling.web.problems import Handler
from sanderling.web.routes import route, routes_of
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
class Dependencies:
    """What there is behind the routes."""

    live: Live
    actions: Actions
    items: Items
    door: Door
    streams: Streams
    assets: Assets = field(default_factory=Assets)


class DashboardRoutes:
    """They answer."""

    def __init__(self, behind: Dependencies) -> None:
        self._behind = behind

    @route("GET", "/", everyone=True)
    async def page(self, request: web.Request) -> web.Response:
        """The page."""
        return self._behind.assets.answer(INDEX, request)

    @route("GET", "/health", everyone=True)
    async def health(self) -> Health:
        """Whether the server is there."""
        return Health()

    @route("GET", "/{name}", everyone=True)
    async def asset(self, path: NamePath, request: web.Request) -> web.Response:
        """A file of the page."""
        return self._behind.assets.answer(path.name, request)

    @route("GET", "/api/session", everyone=True)
    async def session(self, request: web.Request) -> SessionShown:
        """Whether the one who asks is let in, and what its page must send along with actions."""
        door = self._behind.door
        found = door.visitor(caller_of(request), port_of(request))
        return SessionShown(secured=door.secured, in_=found is not None, csrf=None if found is None else found.csrf)

    @route("POST", "/api/login", everyone=True)
    async def login(self, body: LoginBody, request: web.Request) -> web.Response:
        """Begin a session: who has the token gets a cookie."""
        session = await self._behind.door.login(caller_of(request), body.token)
        return _json(msgspec.json.encode(LoggedIn(session.csrf)), _with_cookie(request, session))

    @route("POST", "/api/logout")
    async def logout(self, request: web.Request) -> web.Response:
        """End the session, and every stream of it."""
        self._behind.door.logout(caller_of(request), port_of(request))
        done = await self._behind.actions.logged_out(who_sent(request))
        return _json(msgspec.json.encode(done), _with_cookie(request, None))

    @route("GET", "/api/house")
    async def house(self) -> web.Response:
        """All systems as they stand, and their last ten minutes."""
        return _json(self._behind.live.house())

    @route("GET", "/api/stream")
    async def stream(self, request: web.Request) -> web.StreamResponse:
        """The same as server-sent events: `house` once, then `tick` every second, until the session is over."""
        told = self._told(caller_of(request), port_of(request))
        return await self._behind.streams.serve(request, told, lambda: alive(self._behind.live.position))

    async def _told(self, caller: Caller, port: int) -> AsyncGenerator[bytes, None]:
        """What is told for as long as the caller would be let in."""
        async with aclosing(self._behind.live.told()) as told:
            async for data in told:
                if self._behind.door.visitor(caller, port) is None:
                    return
                yield data

    @route("GET", "/api/history")
    async def history(self, query: PastQuery) -> PastShown:
        """The last hour, six hours or day of a system, as they are kept on disk."""
        return await self._behind.live.was(query)

    @route("GET", "/api/hosts")
    async def hosts(self, query: HostsQuery) -> HostPage:
        """Hosts of a system, or of all: searched, sorted by any field, and by pages."""
        return self._behind.live.hosts(query)

    @route("GET", "/api/items")
    async def items(self, query: ItemsQuery) -> ItemPage:
        """Items of a system in one state: which failed, why, and when each is next; searched, and by pages."""
        return await self._behind.items.page(self._behind.live.found(query.system), query)

    @route("POST", "/api/actions")
    async def act(self, body: Action, request: web.Request) -> Done:
        """Do something to a system."""
        return await self._behind.actions.do(body, who_sent(request))

    @route("GET", "/api/audit")
    async def audit(self, query: AuditQuery) -> list[AuditEntry]:
        """What people did, the newest first."""
        return await self._behind.actions.recorded(query.limit)


def dashboard_app(behind: Dependencies, clock: Clock) -> web.Application:
    """The application, to be opened by `serving`. It has a door of its own: people come with cookies."""
    return furnished(routes_of(DashboardRoutes(behind)), behind.streams, clock, _guarding(behind.door))


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
class DashboardOptions:
    """Where the dashboard is to be, and of what. `name`: what the holder of the token is called in the record."""

    home: Path
    host: str = "127.0.0.1"
    port: int = PORT
    token: Token | None = None
    name: str = HOLDER


@asynccontextmanager
async def dashboard(opening: DashboardOptions, reach: Reach, clock: Clock) -> AsyncIterator[Address]:
    """Serve it while the block runs. Raises AccessError and AddressError."""
    secured = opening.token is not None
    asking = Asking(reach, clock)
    async with Live(opening.home, asking, clock, version("sanderling"), secured=secured) as live:
        live.past = Past(opening.home)
        streams = Streams(clock, StreamRules(most=MOST_STREAMS))
        actions = Actions(live, reach, Audit(opening.home), clock)
        door = Door(Access(opening.token, clock), clock, opening.name)
        app = dashboard_app(Dependencies(live, actions, Items(reach, clock), door, streams), clock)
        async with serving(app, opening.host, opening.port, opening.token) as address:
            yield address
