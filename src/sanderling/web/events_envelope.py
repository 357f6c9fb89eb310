"""What is around every answer of `events`: that it is one, whose it is, and when it was given.

An answer is `{success, data, meta}`, a page of many has a `pagination` as well. What went wrong is a problem as
everywhere in the house, with the members that an envelope has: so it can be read by those who know the one and by those
who know the other. The id of a request is in its answer, in a header and in our log; a client may choose it.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Annotated, Any, Generic, TypeVar, cast, get_args, get_origin

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware
from msgspec import Struct
from structlog.contextvars import bound_contextvars

from sanderling.web.app import CLOCK
from sanderling.web.openapi import SCHEMA, Json
from sanderling.web.problems import MEDIA_TYPE, Handler, Problem, ProblemError, title

T = TypeVar("T")

VERSION = "1"
HEADER = "X-Request-ID"
LONGEST_ID = 128
REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DEEPEST = 1_000_000  # rows before a page: a database walks over each of them
LATEST = 253_402_300_799.0  # the last second that a calendar has

# What went wrong, for programs.
WRONG = "VAL_001"  # a parameter or a body is not as it is described, or the request is none that can be answered
MISSING = "VAL_002"  # something required is not there
BAD_DATE = "VAL_003"  # a date cannot be read, or the range ends before it begins
TOO_DEEP = "VAL_004"  # a page is too far from the first
REFUSED = "AUTH_001"
UNKNOWN = "RES_001"
TROUBLE = "SYS_001"
CODES: Mapping[int, str] = {401: REFUSED, 403: REFUSED, 404: UNKNOWN, 410: UNKNOWN}
# As `parsing` says it, and nothing that a client wrote comes before.
_MISSING = re.compile(r"(query|body): Object missing required field ")


Yes = Annotated[bool, msgspec.Meta(extra_json_schema={"const": True})]
No = Annotated[bool, msgspec.Meta(extra_json_schema={"const": False})]


class Meta(Struct, frozen=True, kw_only=True):
    """Whose answer it is, and when it was given."""

    timestamp: datetime
    request_id: str
    version: str = VERSION


class Pagination(Struct, frozen=True, kw_only=True):
    """Which page it is, and of how many. `has_next` if the next one may be asked for."""

    page: int
    page_size: int
    total_items: int
    total_pages: int
    has_next: bool
    has_prev: bool


class Answer(Struct, Generic[T], frozen=True, kw_only=True):
    """What was asked for."""

    success: Yes = True
    data: T
    meta: Meta


class Listed(Struct, Generic[T], frozen=True, kw_only=True):
    """All that was asked for, in order."""

    success: Yes = True
    data: tuple[T, ...]
    meta: Meta


class Paged(Struct, Generic[T], frozen=True, kw_only=True):
    """A page of what was asked for."""

    success: Yes = True
    data: tuple[T, ...]
    pagination: Pagination
    meta: Meta


class Fault(Struct, frozen=True, kw_only=True):
    """What went wrong: for programs, and for people."""

    code: str
    message: str


class EventsProblem(Problem, frozen=True, kw_only=True):
    """Why a request was not answered, in both forms."""

    success: No = False
    error: Fault
    meta: Meta


class Coded(Problem, frozen=True, kw_only=True):
    """A problem that knows its code, on its way to the envelope."""

    code: str = ""


def refused(code: str, detail: str) -> ProblemError:
    """The error that ends a request with status 400 and that code."""
    return ProblemError(Coded(title=title(400), status=400, detail=detail, code=code))


class PageOf(Struct, Generic[T], frozen=True, kw_only=True):
    """What a route answers that gives a page of many."""

    data: tuple[T, ...]
    page: int
    size: int
    total: int


class EventsEnvelope:
    """The envelope of every answer: one for lists, one for pages, and one for everything else."""

    def wrap(self, request: web.Request, answer: object) -> object:
        """The answer in its envelope."""
        meta = meta_of(request)
        match answer:
            case PageOf():
                pagination = pagination_of(answer.page, answer.size, answer.total)
                return Paged(data=answer.data, pagination=pagination, meta=meta)
            case list():
                return Listed(data=tuple(answer), meta=meta)
        return Answer(data=answer, meta=meta)

    def kind(self, answer: Any) -> Any:  # noqa: ANN401 - any type that a route gives
        """The type of an answer in its envelope."""
        around: Any = {PageOf: Paged, list: Listed}.get(get_origin(answer), Answer)
        return around[answer if around is Answer else get_args(answer)[0]]


def pagination_of(page: int, size: int, total: int) -> Pagination:
    """Which page of how many."""
    pages = -(-total // size)
    return Pagination(
        page=page,
        page_size=size,
        total_items=total,
        total_pages=pages,
        has_next=page < pages and page * size <= DEEPEST,
        has_prev=page > 1,
    )


def meta_of(request: web.Request) -> Meta:
    """Whose answer it will be."""
    return Meta(timestamp=moment(request.app[CLOCK].wall()), request_id=request[REQUEST_ID])


def moment(seconds: float) -> datetime:
    """A time as it is shown."""
    return EPOCH + timedelta(seconds=min(seconds, LATEST))


def code_of(told: Coded) -> str:
    """The code of a problem: its own, or that of its status."""
    if told.code:
        return told.code
    if told.status >= 500:
        return TROUBLE
    if told.status == 400 and _MISSING.match(told.detail):
        return MISSING
    return CODES.get(told.status, WRONG)


def enveloped(problem: bytes, meta: Meta) -> bytes:
    """A problem as the house writes it, with the members of an envelope."""
    told = msgspec.json.decode(problem, type=Coded)
    return msgspec.json.encode(
        EventsProblem(
            type=told.type,
            title=told.title,
            status=told.status,
            detail=told.detail,
            error=Fault(code=code_of(told), message=told.detail),
            meta=meta,
        )
    )


def request_id(given: Sequence[str], rng: Random) -> str:
    """The id that a client chose, if it is one and can be shown anywhere; otherwise a new one."""
    if len(given) == 1 and 0 < len(given[0]) <= LONGEST_ID and given[0].isascii() and given[0].isprintable():
        return given[0]
    return f"{rng.getrandbits(128):032x}"


def enveloping(rng: Random) -> Middleware:
    """A middleware around all others: it knows the id of each request, and puts problems into envelopes."""

    @web.middleware
    async def envelop(request: web.Request, handler: Handler) -> web.StreamResponse:
        request[REQUEST_ID] = request_id(request.headers.getall(HEADER, []), rng)
        with bound_contextvars(request_id=request[REQUEST_ID]):
            response = await handler(request)
        response.headers[HEADER] = request[REQUEST_ID]
        if isinstance(response, web.Response) and response.content_type == MEDIA_TYPE:
            # Whoever wrote it, a route, the parser or the door: all of them come by here.
            response.body = enveloped(cast("bytes", response.body), meta_of(request))
        return response

    return envelop


def around(described: Json) -> None:
    """Add to a description what is around every answer: the members of problems, and the id of a request."""
    (_,), schemas = msgspec.json.schema_components([EventsProblem], ref_template=SCHEMA)
    problem = schemas.pop(EventsProblem.__name__) | {"title": Problem.__name__}
    described["components"]["schemas"] |= {Problem.__name__: problem, **schemas}
    described["components"]["parameters"] = {"RequestId": _parameter()}
    for operation in (each for methods in described["paths"].values() for each in methods.values()):
        operation["parameters"].append({"$ref": "#/components/parameters/RequestId"})
        for response in operation["responses"].values():
            _with_header(response)
    for response in described["components"]["responses"].values():
        _with_header(response)


def _with_header(response: Json) -> None:
    if "$ref" not in response:
        response.setdefault("headers", {})[HEADER] = {"schema": {"type": "string", "maxLength": LONGEST_ID}}


def _parameter() -> Json:
    chosen = f"The id of the request. One of up to {LONGEST_ID} printable ASCII characters is kept; else one is made."
    return {"name": HEADER, "in": "header", "required": False, "schema": {"type": "string"}, "description": chosen}
