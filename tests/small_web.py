"""A web in a dictionary, and a crawl of it under virtual time."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from sanderling.crawls.kept import Keep
from sanderling.engine.handover import HandOver
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.pages.crawl import Crawl
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.stores.control_file import Control
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

T = TypeVar("T")
Answer = Reply | Exception
PACE = PaceRules(initial_rps=10, max_rps=10)


def page(*links: str, title: str = "A page", status: int = 200, **headers: str) -> Reply:
    """An HTML page with these links."""
    anchors = "".join(f'<p>to <a href="{link}">{link}</a></p>' for link in links)
    body = f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>{anchors}</main></body></html>"
    return reply(status, body.encode(), Content_Type="text/html; charset=utf-8", **headers)


def reply(status: int = 200, body: bytes = b"", **headers: str) -> Reply:
    """Any reply; underscores in header names become hyphens."""
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, pairs, body, "http://set.later/", 0.1)


@dataclass(slots=True)
class Web:
    """Answers each URL with the next of its answers, the last one again and again; 404 for what it does not know."""

    answers: dict[str, list[Answer]]
    latency: float = 0.1
    asked: list[tuple[float, str]] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)

    async def send(self, task: Task) -> Reply:
        """The next answer."""
        self.asked.append((asyncio.get_running_loop().time(), task.url))
        self.tasks.append(task)
        await asyncio.sleep(self.latency)
        known = self.answers.get(task.url) or [reply(404)]
        answer = known.pop(0) if len(known) > 1 else known[0]
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer.status, answer.headers, answer.body[: task.most], task.url, self.latency)

    def times(self, url: str) -> list[float]:
        """When a URL was asked for."""
        return [when for when, asked in self.asked if asked == url]

    @property
    def urls(self) -> list[str]:
        """What was asked for, without robots.txt."""
        return [url for _, url in self.asked if not url.endswith("/robots.txt")]


def web(**answers: Any) -> Web:  # noqa: ANN401 - answers or lists of them
    """`web(**{"http://a.example/": page("/b")})`."""
    return Web({url: answer if isinstance(answer, list) else [answer] for url, answer in answers.items()})


@dataclass(slots=True)
class Crawled:
    """What came of a crawl."""

    complete: bool
    counts: Mapping[End, int]
    rows: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    seconds: float
    crawl: Crawl
    reasons: dict[str, str]  # by host: why what waits for it was left to the next run

    def row(self, url: str) -> dict[str, Any]:
        """The one row of a URL."""
        (row,) = [row for row in (*self.rows, *self.failed) if row["url"] == url]
        return row

    @property
    def fetched(self) -> list[str]:
        """URLs by the order of their rows."""
        return [row["url"] for row in self.rows]


async def inline(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk at which everything is done at once."""
    return work(*args)


def crawl(
    folder: Path,
    of: Any,  # noqa: ANN401 - whatever sends
    *seeds: str,
    allow: Sequence[str] = (),
    depth: int = 16,
    rules: CrawlRules | None = None,
    limits: LimiterRules | None = None,
    resume: bool = False,
    stop_after: float | None = None,
    hand_over: HandOver[bytes] | None = None,
    wanted: Mapping[float, Control] | None = None,
    heard: Callable[[Crawl], object] = lambda _: None,
    memory: Memory | None = None,
    epoch: float = 1_800_000_000.0,
    keep: Keep | None = None,
) -> Crawled:
    """Crawl to the end under virtual time, from `epoch` on; `heard` is called before it is told what is wanted."""

    async def main() -> Crawled:
        clock = LoopClock(epoch)
        plan = CrawlPlan(seeds, tuple(allow), depth, keep) if seeds else None
        visits = None if rules is None else rules.visits
        with CrawlFolder.open(folder, plan, resume=resume, wall=clock.wall(), visits=visits) as opened:
            limiter = Limiter(limits or LimiterRules(pace=PACE), clock=clock, rng=Random(1))
            transport = Transport(of, limiter, memory or Memory(2**30))
            one = Crawl(opened, transport, inline, rules=rules or CrawlRules(), clock=clock, hand_over=hand_over)
            for after, control in (wanted or {}).items():
                asyncio.get_running_loop().call_later(after, heard, one)
                asyncio.get_running_loop().call_later(after, one.control, control)
            if stop_after is not None:
                asyncio.get_running_loop().call_later(stop_after, one.stop)
            complete = await one.run()
            seconds = clock.now()
            opened.finish(clock.wall(), complete)
            rows, failed = lines(folder / "pages.jsonl"), lines(folder / "failed.jsonl")
            assert_adds_up(one.counts, opened.ledger.counts())
            assert not complete or not opened.ledger.counts()[End.WAITING]
            aside = opened.ledger.aside()
            early = stop_after is not None or one.wanted.ending
            assert early or one.set_aside == opened.ledger.counts()[End.WAITING]
            return Crawled(complete, one.counts, rows, failed, seconds, one, {each.host: each.code for each in aside})

    return run_virtual(main())


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def assert_adds_up(counted: Mapping[End, int], kept: Mapping[End, int]) -> None:
    """What the crawl counted is what the ledger holds."""
    ends = [end for end in End if end is not End.WAITING]
    assert {end: counted.get(end, 0) for end in ends} == {end: kept.get(end, 0) for end in ends}


def twice(urls: Sequence[str]) -> list[str]:
    """What is there more than once."""
    return [url for url, number in Counter(urls).items() if number > 1]
