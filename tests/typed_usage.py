"""How the library is used, for the type checker: `make lint` has mypy read it, and nobody runs it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import assert_type

import sanderling
from sanderling import CircuitOpen, Client, Code, Limiter, LimiterRules, Outcome, PaceRules, RcaReader, Reply, Task


async def ask(url: str) -> bytes:
    limiter = Limiter(LimiterRules(pace=PaceRules.up_to(4.0)))
    try:
        async with limiter.attempt(sanderling.host_of(url)) as attempt:
            attempt.report(200, {"Retry-After": "1"})
    except CircuitOpen as closed:
        assert_type(closed.until, float)
    async with Client(rps=2.0, contact="https://example.org/") as client:
        fetched = await client.fetch(Task(url))
        assert_type(fetched.reply, Reply | None)
        assert_type(fetched.outcome, Outcome)
        return b"" if fetched.reply is None or fetched.outcome.code is not Code.OK else fetched.reply.body


def read(path: Path) -> int:
    with path.open("rb") as file:
        records = sum(len(list(repo.records("app.bsky.feed.post"))) for repo in RcaReader(file))
    repo = sanderling.parse_repo(path.read_bytes(), cids="strip")
    assert_type(repo.did, str)
    posts, errors = sanderling.read_batch(path.read_bytes(), platform="web")
    return records + len(posts) + sum(error.code == Code.TIMEOUT for error in errors) + len(posts[0].text)


async def collect(url: str) -> AsyncIterator[int]:
    crawled = await sanderling.crawl_pages([url], "site", depth=1)
    assert_type(crawled.rows, Path)
    async with sanderling.following(lambda number: Task(f"{url}{number}"), len_of, "ids", first=1) as records:
        async for record in records:
            assert_type(record.id, int)
            yield record.id


def len_of(reply: Reply) -> int | None:
    return len(reply.body) or None
