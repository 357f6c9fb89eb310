"""`sanderling fetch`: ask a few addresses once, politely, and see what the limiter made of the answers."""

import asyncio
import json as jsonlib
import sys
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.client import make_http
from sanderling.cli.command_error import CommandError
from sanderling.cli.flags import ReachFlags
from sanderling.cli.limits import make_limiter
from sanderling.cli.loop import run
from sanderling.cli.options import DEFAULT, Options, expose_limiter, observe
from sanderling.fetch.attempts import Fetched, Fetcher
from sanderling.fetch.http import Http, HttpRules
from sanderling.jobs.elements import check_selector
from sanderling.jobs.page import Page
from sanderling.jobs.request import Request
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.redact import redact_url
from sanderling.task import Task
from sanderling.words import printable

RPS = 8.0  # to each host at most
ANYBODY = ReachFlags()
TOGETHER = 32  # more callers than that would only stand in line


@dataclass(frozen=True, slots=True)
class FetchLine:
    """What is said about one address."""

    url: str
    outcome: str
    status: int
    bytes: int
    seconds: float | None
    requests: int
    detail: str
    host: str

    def text(self) -> str:
        """For people: the status or what there was instead, the size, the time, the address."""
        took = "" if self.seconds is None else f"{1000 * self.seconds:.0f} ms"
        words = f"  ({self.detail})" if self.detail else ""
        return f"{self.status or '-':>3} {self.outcome:20} {self.bytes:>10,} B {took:>8}  {redact_url(self.url)}{words}"


def fetch(
    *urls: str,
    css: Annotated[
        str | None, Parameter(help="Print what this CSS selector finds, as in 'h1' or 'a::attr(href)'; a line each.")
    ] = None,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object per address.")] = False,
    reach: ReachFlags = ANYBODY,
    options: Options = DEFAULT,
) -> None:
    """Ask each address, following redirects and retrying what may pass, and say how it ended.

    Exit code 0 if all were fetched, 1 if some were not.

    Example: sanderling fetch https://example.org/ https://example.org/robots.txt
    """
    if css is not None:
        try:
            check_selector(css)
        except ValueError as error:
            raise CommandError(f"--css: {error}", code=2) from None
    tasks = [_task(url) for url in urls]
    if not tasks:
        raise CommandError("no address given; try: sanderling fetch https://example.org/", code=2)
    http, limiter = (
        make_http(HttpRules(), reach.contact, private=reach.private),
        make_limiter(LimiterRules(pace=PaceRules.up_to(reach.most(RPS)))),
    )
    lines = run(_fetch_all(tasks, limiter, http, options, css, as_json=json))
    if not json and css is None:
        _explain(limiter)
    if not all(line.outcome in ("OK", "NOT_MODIFIED") for line in lines):
        sys.exit(1)


def _task(url: str) -> Task:
    try:
        return Task(url)
    except ValueError as error:
        raise CommandError(str(error), code=2) from None


async def _fetch_all(
    tasks: list[Task], limiter: Limiter, http: Http, options: Options, css: str | None, *, as_json: bool
) -> list[FetchLine]:
    lines: list[FetchLine] = []
    room = asyncio.Semaphore(TOGETHER)

    async def one(task: Task, fetcher: Fetcher) -> None:
        async with room:
            fetched = await fetcher.fetch(task)
        lines.append(line := _line(task, fetched))
        shown = {name: getattr(line, name) for name in FetchLine.__slots__}
        texts = None if css is None else _select(fetched, css)
        if isinstance(texts, list):
            shown["found"] = texts
        if as_json:
            print(jsonlib.dumps(shown), flush=True)
        elif isinstance(texts, list):
            print("".join(f"{printable(text)}\n" for text in texts), end="", flush=True)
        else:
            print(f"{line.text()}{f'  ({texts})' if texts else ''}", file=sys.stdout if css is None else sys.stderr)

    async with observe(options, expose_limiter(limiter)), http, asyncio.TaskGroup() as group:
        fetcher = Fetcher(http, limiter)
        for task in tasks:
            group.create_task(one(task, fetcher))
    return lines


def _select(fetched: Fetched, css: str) -> list[str] | str | None:
    """What a selector finds in a page; why it could not be asked, or None if there is no page."""
    if fetched.reply is None or not fetched.outcome.ok:
        return None
    try:
        return Page(fetched.reply, Request(fetched.reply.url), {}).css(css).texts
    except ValueError as error:
        return str(error)


def _line(task: Task, fetched: Fetched) -> FetchLine:
    reply, outcome = fetched.reply, fetched.outcome
    return FetchLine(
        url=task.url,
        outcome=outcome.code,
        status=outcome.status,
        bytes=0 if reply is None else len(reply.body),
        seconds=None if reply is None else round(reply.latency, 4),
        requests=fetched.requests,
        detail=outcome.detail,
        host=task.host,
    )


def _explain(limiter: Limiter) -> None:
    """What the limiter made of each host, to stderr: it is about the run and not its data."""
    snapshot = limiter.snapshot()
    for view in (*snapshot.top, *snapshot.shared):
        print(f"{view.host}: {view.requests} requests, {view.rate:.2f} a second now; {view.why}", file=sys.stderr)
