"""The table of routes: a method, a path, and the function that answers.

What a route takes and gives is said by the types of its function, and what it is for by the function's docstring. The
checking of requests and the description for others both come from there, so neither can differ from what is done.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec
from aiohttp import web

from sanderling.web.parsing import JSON, read_body, read_json, read_path, read_query

P = TypeVar("P", bound=msgspec.Struct)
Q = TypeVar("Q", bound=msgspec.Struct)
B = TypeVar("B", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Asked(Generic[P, Q, B]):
    """A request that is as it should be: the parameters of its path and of its query, and its body."""

    path: P
    query: Q
    body: B
    request: web.Request


class Types(NamedTuple):
    """What a route takes, and what it answers."""

    path: type[msgspec.Struct]
    query: type[msgspec.Struct]
    body: type[msgspec.Struct]
    answer: Any


@dataclass(frozen=True, slots=True)
class Route:
    """One of them. `answers` is a function of one argument, an `Asked`."""

    method: str
    path: str
    answers: Callable[[Any], Awaitable[object]]
    status: int = 200
    problems: tuple[int, ...] = ()  # besides those that every route may end with
    everyone: bool = False  # whether no token is needed
    hook: bool = False  # whether the token may come in a header of its own
    example: object = None  # of an answer
    body_example: msgspec.Struct | None = None
    body_rule: Mapping[str, object] = field(default_factory=dict)  # what a type cannot say of it, as JSON Schema

    @property
    def name(self) -> str:
        """What it is called: as its function."""
        return self.answers.__name__

    @property
    def summary(self) -> str:
        """What it is for, in the first line of the function's docstring."""
        return (inspect.getdoc(self.answers) or "").partition("\n")[0]

    @property
    def description(self) -> str:
        """The rest of the docstring."""
        return (inspect.getdoc(self.answers) or "").partition("\n")[2].strip().replace("\n", " ")

    @property
    def types(self) -> Types:
        """What it takes and gives."""
        hints = get_type_hints(self.answers)
        path, query, body = get_args(hints["asked"])
        return Types(path, query, body, hints["return"])


def handler(route: Route, body_seconds: float) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The route as aiohttp calls it."""
    types = route.types

    async def handle(request: web.Request) -> web.StreamResponse:
        asked = Asked(
            read_path(request.rel_url.raw_path, route.path, types.path),
            read_query(request.rel_url.raw_query_string, types.query),
            read_json(await read_body(request, body_seconds), types.body),
            request,
        )
        answer = await route.answers(asked)
        if isinstance(answer, web.StreamResponse):
            return answer
        return web.Response(status=route.status, body=msgspec.json.encode(answer), content_type=JSON)

    return handle
