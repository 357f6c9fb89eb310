"""The whole road over real sockets: server, client, limiter, frontier, folder, thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer, Step, answer, reset
from small_web import lines

from sanderling.clock import SystemClock
from sanderling.executor import in_threads
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import Transport
from sanderling.limit import BackoffRules, BreakerRules, Limiter, LimiterRules, PaceRules, Snapshot
from sanderling.limit.memory import Memory
from sanderling.outcome import Code
from sanderling.pages.crawl import Crawl
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.pages.verify import verify
from sanderling.stores.frontier_rows import End

OWN = GuardRules(private=True, raw_addresses=True)
QUICK = BackoffRules(base=0.01, longest=0.05, attempts=3)
FAST = LimiterRules(pace=PaceRules(initial_rps=500, max_rps=500), backoff=QUICK)
SOON = CrawlRules(again=(0.05, 0.1), patience=5.0, first_patience=1.0)
Script = dict[str, list[bytes | list[Step]]]


@dataclass(slots=True)
class Run:
    """What came of it."""

    counts: dict[End, int]
    rows: dict[str, dict[str, Any]]
    limiter: Limiter
    paths: list[str]

    @property
    def snapshot(self) -> Snapshot:
        return self.limiter.snapshot()


def html(*links: str) -> bytes:
    body = "".join(f'<a href="{link}">{link}</a> ' for link in links).encode()
    return answer(200, b"<html><body><main>words " + body + b"</main></body></html>", Content_Type="text/html")


def crawl(folder: Path, script: Script, limits: LimiterRules = FAST, http_rules: HttpRules | None = None) -> Run:
    """Crawl what the script serves, from `/` on."""

    async def main() -> Run:
        clock, limiter = SystemClock(), Limiter(limits)
        with ThreadPoolExecutor(1) as thread:
            memory = Memory(2**20)
            whole = Http(http_rules, OWN, memory=memory)
            async with asyncio.timeout(300), ScriptedServer(script) as server, whole as http:
                plan = CrawlPlan((server.url("/"),), (), 16)
                with CrawlFolder.open(folder, plan, resume=False, wall=clock.wall()) as opened:
                    one = Crawl(opened, Transport(http, limiter, memory), in_threads(thread), rules=SOON, clock=clock)
                    assert await one.run()
                    assert memory.total == 0
                    opened.finish(clock.wall(), complete=True)
                    rows = [*lines(folder / "pages.jsonl"), *lines(folder / "failed.jsonl")]
                    by_path = {row["url"].removeprefix(server.url("")): row for row in rows}
                    return Run(dict(one.counts), by_path, limiter, [request.path for request in server.requests])

    return asyncio.run(main())


def test_good_slow_refused_and_good_again(tmp_path: Path) -> None:
    """200, a slow 200, 429, 200: all are fetched, the refusal lowers the rate, and no circuit opens over it."""
    script: Script = {
        "/": [html("/a", "/b", "/c")],
        "/a": [html()],
        "/b": [[0.3, html()]],
        "/c": [answer(429), html()],
    }

    run = crawl(tmp_path / "out", script)

    assert {path: row["status"] for path, row in run.rows.items()} == dict.fromkeys(["/", "/a", "/b", "/c"], 200)
    (host,) = run.snapshot.top
    assert (host.rejected, host.state) == (1, "closed")
    assert host.rate <= 500  # one refusal after a handful of requests may be chance
    assert verify(tmp_path / "out").ok


def test_a_retry_after_is_waited_for(tmp_path: Path) -> None:
    script: Script = {"/": [html("/a")], "/a": [answer(429, Retry_After="1"), html()]}

    run = crawl(tmp_path / "out", script)

    assert run.rows["/a"]["outcome"] == Code.OK
    assert run.paths.count("/a") == 2
    assert run.snapshot.rejected == 1


def test_the_limiter_slows_the_crawl_down(tmp_path: Path) -> None:
    """Nine requests at twenty a second, one after the other: each but the first waited for its turn."""
    paths = [f"/{number}" for number in range(8)]
    script: Script = {"/": [html(*paths)], **{path: [html()] for path in paths}}
    limits = LimiterRules(pace=PaceRules(initial_rps=20, max_rps=20), backoff=QUICK)
    clock = SystemClock()

    started = clock.now()
    run = crawl(tmp_path / "out", script, limits)

    assert run.counts[End.FETCHED] == 9
    assert clock.now() - started >= 9 / 20  # a bound that the pace itself sets, robots.txt included


def test_a_circuit_opens_and_closes_again(tmp_path: Path) -> None:
    paths = [f"/{number}" for number in range(4)]
    script: Script = {"/": [html(*paths)], **{path: [answer(500), html()] for path in paths}}
    limits = LimiterRules(pace=FAST.pace, backoff=QUICK, breaker=BreakerRules(consecutive=2, open_for=0.2))

    run = crawl(tmp_path / "out", script, limits)

    # Whether the last answers were enough to close it again depends on how many were asked as probes.
    assert run.counts[End.FETCHED] == 5
    assert run.snapshot.top[0].state in ("closed", "half-open")


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([reset], Code.CONNECTION_RESET),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", reset], Code.TRUNCATED),
        ([answer(200, b"\x1f\x8bnot gzip", Content_Encoding="gzip")], Code.BAD_ENCODING),
        ([answer(200, b"x" * 5000)], Code.TOO_LARGE),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"x", 5.0, b"x"], Code.TIMEOUT),
        ([b"no http at all\r\n\r\n"], Code.INVALID_RESPONSE),
    ],
)
def test_one_bad_page_is_one_outcome_and_the_others_are_fetched(tmp_path: Path, steps: list[Step], code: Code) -> None:
    script: Script = {"/": [html("/bad", "/good")], "/bad": [steps], "/good": [html()]}

    run = crawl(tmp_path / "out", script, http_rules=HttpRules(idle=0.2, most_decoded=4000))

    assert run.rows["/bad"]["outcome"] == code
    assert run.rows["/good"]["outcome"] == Code.OK


def test_a_crawl_with_nothing_to_do_ends(tmp_path: Path) -> None:
    """Resumed when all is decided: it must not wait for what will never come."""
    crawl(tmp_path / "out", {"/": [answer(404)]})

    proof = verify(tmp_path / "out")
    assert (proof.ok, proof.known) == (True, 1)
