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
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.redact import redact_url
from sanderling.task import Task

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
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object per address.")] = False,
    reach: ReachFlags = ANYBODY,
    options: Options = DEFAULT,
) -> None:
    """Ask each address, following redirects and retrying what may pass, and say how it ended.

    Exit code 0 if all were fetched, 1 if some were not.

    Example: sanderling fetch https://example.org/ https://example.org/robots.txt
    """
    tasks = [_task(url) for url in urls]
    if not tasks:
        raise CommandError("no address given; try: sanderling fetch https://example.org/", code=2)
    http, limiter = (
        make_http(HttpRules(), reach.contact, private=reach.private),
        make_limiter(LimiterRules(pace=PaceRules.up_to(reach.most(RPS)))),
    )
    lines = run(_fetch_all(tasks, limiter, http, options, as_json=json))
    if not json:
        _explain(limiter)
    if not all(line.outcome in ("OK", "NOT_MODIFIED") for line in lines):
        sys.exit(1)


def _task(url: str) -> Task:
    try:
        return Task(url)
    except ValueError as error:
        raise CommandError(str(error), code=2) from None


async def _fetch_all(
    tasks: list[Task], limiter: Limiter, http: Http, options: Options, *, as_json: bool
) -> list[FetchLine]:
    lines: list[FetchLine] = []
    room = asyncio.Semaphore(TOGETHER)

    async def one(task: Task, fetcher: Fetcher) -> None:
        async with room:
            line = _line(task, await fetcher.fetch(task))
        lines.append(line)
        shown = {name: getattr(line, name) for name in FetchLine.__slots__}
        print(jsonlib.dumps(shown) if as_json else line.text(), flush=True)

    async with observe(options, expose_limiter(limiter)), http, asyncio.TaskGroup() as group:
        fetcher = Fetcher(http, limiter)
        for task in tasks:
            group.create_task(one(task, fetcher))
    return lines


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
