"""Routes: a method, a path and a function. The function's types say what is taken and given, its docstring what for.

    async def target(path: TargetPath) -> Target:
        \"\"\"A target, and when it is due.\"\"\"

    Route("GET", "/targets/{id}", target)

Errors are those of RFC 9457: what was found, and what was expected.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, TypeVar, get_type_hints
from urllib.parse import unquote

import msgspec
from aiohttp import web

from sanderling.files import Exit, FolderError
from sanderling.serving.access import Denied, Needs

LARGEST_BODY = 65_536
BODY_SECONDS = 10.0  # for the whole body, which is small
PROBLEM_TYPE = "application/problem+json"
_LONGEST_SHOWN = 100
# What the router has to say.
_WORDS = {
    404: "there is nothing at this path",
    405: "this path does not take that method; the header Allow has those it takes",
}
_PARAMETER = re.compile(r"\{([a-z_]+)\}")

T = TypeVar("T", bound=msgspec.Struct)


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a route takes is taken as it is described, and nothing else."""


class Problem(Exception):  # noqa: N818 - as RFC 9457 calls it
    """A request ends with this status; `detail` says what was found and what was expected."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})

    def response(self) -> web.Response:
        """As it is sent."""
        content = {"type": "about:blank", "title": HTTPStatus(self.status).phrase, "status": self.status}
        body = msgspec.json.encode({**content, "detail": str(self)[:1000]})
        return web.Response(status=self.status, body=body, content_type=PROBLEM_TYPE, headers=self.headers)


@dataclass(frozen=True)
class Route:
    """One of them. Its function takes some of `path`, `query` and `body`, each a struct, and `request`."""

    method: str
    path: str  # as in /targets/{id}
    function: Callable[..., Awaitable[object]]
    needs: Needs = Needs.READ
    status: int = 200
    problems: tuple[int, ...] = ()  # besides those that every route may end with

    @cached_property
    def types(self) -> Mapping[str, Any]:
        """By the names of what is taken, and `return`."""
        return get_type_hints(self.function)

    @property
    def help(self) -> str:
        """What it is for, in one sentence."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def pattern(self) -> str:
        """The path as aiohttp matches it: a parameter may have any character, as long as a slash is encoded."""
        return _PARAMETER.sub(r"{\1:[^/]+}", self.path)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Read what is taken, call the function, and encode what it gives."""
        given: dict[str, object] = {}
        for name, kind in self.types.items():
            match name:
                case "path":
                    given[name] = self._read_path(request, kind)
                case "query":
                    given[name] = _read_query(request, kind)
                case "body":
                    given[name] = _decode(await _read_body(request), kind)
                case "request":
                    given[name] = request
        found = await self.function(**given)
        if isinstance(found, web.StreamResponse):
            return found
        return web.Response(status=self.status, body=msgspec.json.encode(found), content_type="application/json")

    def _read_path(self, request: web.Request, kind: type[T]) -> T:
        # aiohttp decodes a path before it splits it.
        pairs = zip(self.path.split("/"), request.rel_url.raw_path.split("/"), strict=True)
        texts = {name[1:-1]: unquote(text, errors="replace") for name, text in pairs if name.startswith("{")}
        return _convert(texts, kind, "path")


def _read_query(request: web.Request, kind: type[T]) -> T:
    texts: dict[str, str] = {}
    for name, text in request.query.items():
        if name in texts:
            raise Problem(400, f"query: {_shown(name)} is there twice, expected it once")
        texts[name] = text
    texts.pop("ticket", None)  # let it in
    return _convert(texts, kind, "query")


async def _read_body(request: web.Request) -> bytes:
    if not request.can_read_body:
        return b""
    if request.content_type != "application/json":
        raise Problem(415, f"body: Content-Type is {_shown(request.content_type)}, expected application/json")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise Problem(408, f"the body was not here within {BODY_SECONDS:g} s") from None
    except web.HTTPRequestEntityTooLarge:
        raise Problem(413, f"the body is too large, expected at most {LARGEST_BODY} bytes") from None
    except (web.RequestPayloadError, ConnectionError):
        raise Problem(400, "the body ended early, or is not framed as HTTP wants it") from None


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise Problem(400, f"body: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"body: {error}; expected JSON") from None


def _convert(texts: Mapping[str, str], kind: type[T], where: str) -> T:
    try:
        # Not strict: a number is written as text here.
        return msgspec.convert(texts, kind, strict=False)
    except msgspec.ValidationError as error:
        expected = ", ".join(field.encode_name for field in msgspec.structs.fields(kind)) or "none"
        found = ", ".join(f"{_shown(name)} {_shown(text)}" for name, text in texts.items())
        raise Problem(400, f"{where}: {error}; found {found or 'nothing'}, expected {expected}") from None


def _shown(text: str) -> str:
    return ascii(text[:_LONGEST_SHOWN])


async def answer_or_problem(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """What the handler answers, or the problem that it ended with. Of a bug aiohttp tells the log, and nobody else."""
    try:
        return await handler(request)
    except Problem as problem:
        return problem.response()
    except Denied as denied:
        return Problem(denied.status, str(denied), denied.headers).response()
    except web.HTTPException as error:
        allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return Problem(error.status, _WORDS.get(error.status, error.reason), allowed).response()
    except FolderError as error:
        later = error.code is Exit.LATER
        return Problem(503 if later else 409, str(error), {"Retry-After": "5"} if later else None).response()
