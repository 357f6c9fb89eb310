"""Errors as JSON, in the form of RFC 9457: what went wrong, and what was expected."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import msgspec
from aiohttp import web

from sanderling.observe import logs

log = logs.get(__name__)

MEDIA_TYPE = "application/problem+json"
LONGEST_DETAIL = 1_000

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# What an error of a system means to a client; None if it means nothing to them.
Translate = Callable[[Exception], "ProblemError | None"]

# What the router and the server itself have to say.
WORDS: Mapping[int, str] = {
    404: "there is nothing at this path",
    405: "this path does not take that method; the Allow header has those it takes",
    413: "the body is too large",
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was not answered."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str


class ProblemError(Exception):
    """A request ends with this problem."""

    def __init__(self, problem: Problem, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = dict(headers or {})


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> ProblemError:
    """The error that ends a request with that status; `detail` says what was found and what was expected."""
    return ProblemError(Problem(title=title(status), status=status, detail=detail[:LONGEST_DETAIL]), headers)


def title(status: int) -> str:
    """What a status is called."""
    return HTTPStatus(status).phrase


def answer(error: ProblemError) -> web.Response:
    """The problem as it is sent."""
    return web.Response(
        status=error.problem.status,
        body=msgspec.json.encode(error.problem),
        content_type=MEDIA_TYPE,
        headers=error.headers,
    )


async def answered(request: web.Request, handler: Handler, translate: Translate) -> web.StreamResponse:
    """What the handler answers, or the problem that it ended with. A bug is told in the log, and to nobody else."""
    try:
        return await _translated(request, handler, translate)
    except ProblemError as error:
        if request.writer.output_size > 0:
            # Half an answer has left, and a second one would be taken for the rest of it.
            raise ConnectionResetError("the answer ended early") from error
        return answer(error)


async def _translated(request: web.Request, handler: Handler, translate: Translate) -> web.StreamResponse:
    try:
        return await handler(request)
    except ProblemError:
        raise
    except web.HTTPException as error:
        allow = error.headers.get("Allow")
        raise problem(
            error.status, WORDS.get(error.status, title(error.status)), {"Allow": allow} if allow else None
        ) from None
    except Exception as error:
        known = translate(error)
        if known is None:
            log.exception("request_failed", method=request.method, path=request.rel_url.raw_path)
            known = problem(500, "this is a mistake of ours; the log has more")
        raise known from error
