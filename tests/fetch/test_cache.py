"""What is kept, what is asked again, and that no secret reaches a file."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from sanderling.clock import SystemClock
from sanderling.fetch.attempts import Fetched
from sanderling.fetch.cache import Cache, CachingFetcher
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.outcome import Code, Outcome
from sanderling.task import Reply, Task
from sanderling.testing.scripted import ScriptedServer

OWN = GuardRules(private=True, raw_addresses=True)
SLOW = LimiterRules(pace=PaceRules(initial_rps=1, max_rps=1))
URL = "https://api.example.org/posts?page=1"
SECRET = "hunter2hunter2"  # noqa: S105 - to be looked for


def reply(body: bytes = b"{}", url: str = URL, headers: Sequence[tuple[str, str]] = (), status: int = 200) -> Reply:
    return Reply(status, tuple(headers), body, url, 0.1)


def files(folder: Path) -> list[Path]:
    return [each for each in folder.glob("*/*") if each.is_file()]


def fetch(folder: Path, script: dict[str, list[bytes]], paths: Sequence[str]) -> tuple[list[Fetched], int, Limiter]:
    """What comes of asking for these paths one after the other, and how many requests were sent."""

    async def main() -> tuple[list[Fetched], int, Limiter]:
        limiter = Limiter(SLOW)
        async with ScriptedServer(dict(script)) as server, Http(guard=OWN) as http:
            fetcher = CachingFetcher(
                http, limiter, clock=SystemClock(), job="", retry=False, cache=Cache(folder, server.url().rstrip("/"))
            )
            found = [await fetcher.fetch(Task(server.url(path)), None, refuses) for path in paths]
            return found, len(server.requests), limiter

    return asyncio.run(main())


def refuses(reply: Reply, outcome: Outcome) -> Outcome:
    return Outcome(Code.RATE_LIMITED) if b"too fast" in reply.body else outcome
