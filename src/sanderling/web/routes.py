"""The table of routes: a method, a path, and the function that answers.

What a route takes and gives is said by the types of its function, and what it is for by the function's docstring. The
checking of requests and the description for others both come from there, so neither can differ from what is done.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar, get_type_hints

import msgspec
from aiohttp import web

from sanderling.web.parsing import JSON, Nothing, read_body, read_json, read_path, read_query

F = TypeVar("F", bound=Callable[..., Awaitable[object]])


class RouteTypes(NamedTuple):
    """What a route takes, and what it answers."""

    path: type[msgspec.Struct]
    query: type[msgspec.Struct]
    body: type[msgspec.Struct]
    answer: Any


class Envelope(Protocol):
    """What is around every answer of an API."""

    def wrap(self, request: web.Request, answer: Any) -> object:  # noqa: ANN401 - whatever a route answers
        """The answer as it is sent."""

    def kind(self, answer: Any) -> Any:  # noqa: ANN401 - whatever type a function returns
        """The type of that, for an answer of this type."""


@dataclass(frozen=True, slots=True)
class Route:
    """One of them. `answers` takes some of `path`, `query`, `body` and `request`, each checked by its type."""

    method: str
    path: str
    answers: Callable[..., Awaitable[object]]
    status: int = 200
    problems: tuple[int, ...] = ()  # besides those that every route may end with
    everyone: bool = False  # whether no token is needed
    hook: bool = False  # whether the token may come in a header of its own
    body_rule: Mapping[str, object] = field(default_factory=dict)  # what a type cannot say of it, as JSON Schema
    envelope: Envelope | None = None

    @property
    def name(self) -> str:
        """What it is called: as its function."""
        return self.answers.__name__

    @property
    def words(self) -> tuple[str, str]:
        """What it is for: the first line of the function's docstring, and the rest of it."""
        first, _, rest = (inspect.getdoc(self.answers) or "").partition("\n")
        return first, rest.strip().replace("\n", " ")

    @property
    def types(self) -> RouteTypes:
        """What it takes and gives."""
        hints = get_type_hints(self.answers)
        answer = hints["return"] if self.envelope is None else self.envelope.kind(hints["return"])
        path, query, body = (hints.get(name, Nothing) for name in ("path", "query", "body"))
        return RouteTypes(path, query, body, answer)


def route(  # noqa: PLR0913 - all that a route may be
    method: str,
    path: str,
    *,
    status: int = 200,
    problems: tuple[int, ...] = (),
    everyone: bool = False,
    hook: bool = False,
    body_rule: Mapping[str, object] | None = None,
) -> Callable[[F], F]:
    """Mark a method as the one that answers a route; `routes_of` finds it."""

    def mark(function: F) -> F:
        function.__dict__["route"] = Route(method, path, function, status, problems, everyone, hook, body_rule or {})
        return function

    return mark


def routes_of(holder: object, envelope: Envelope | None = None) -> tuple[Route, ...]:
    """The routes that the methods of an object answer, in their order. Where two paths match, the first one counts."""
    marked = [each.route for each in vars(type(holder)).values() if hasattr(each, "route")]
    return tuple(replace(each, answers=getattr(holder, each.name), envelope=envelope) for each in marked)


def handler(route: Route, body_seconds: float) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The route as aiohttp calls it."""
    types, taken = route.types, inspect.signature(route.answers).parameters

    async def handle(request: web.Request) -> web.StreamResponse:
        given = {
            "path": read_path(request.rel_url.raw_path, route.path, types.path),
            "query": read_query(request.rel_url.raw_query_string, types.query),
            "body": read_json(await read_body(request, body_seconds), types.body),
            "request": request,
        }
        answer = await route.answers(**{name: given[name] for name in taken})
        if isinstance(answer, web.StreamResponse):
            return answer
        if route.envelope is not None:
            answer = route.envelope.wrap(request, answer)
        return web.Response(status=route.status, body=msgspec.json.encode(answer), content_type=JSON)

    return handle
