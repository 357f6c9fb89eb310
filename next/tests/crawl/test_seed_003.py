"""Tests 10 and 11 of seed 003's section 14, and its retries, through a crawl of pages with the policy aimd."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from crawl.sites import HTML, Answer, Site, pages_options, rows, served

from sanderling.clock import SystemClock
from sanderling.crawl.run import CrawlRun
from sanderling.crawl.system import open_run
from sanderling.files import Exit
from sanderling.limit import LimitOptions

pytestmark = pytest.mark.real


class Script:
    """A host that answers each page by a script of statuses, one a request, and what the limiter then allows."""

    def __init__(self, *statuses: int, headers: dict[str, str] | None = None) -> None:
        self.statuses = list(statuses)
        self.headers = headers or {}
        self.run: CrawlRun | None = None
        self.rates: list[float] = []
        self.times: list[float] = []

    def __call__(self, request: web.Request) -> Answer:
        self.times.append(SystemClock().now())
        if self.run is not None:
            self.rates.append(self.run.parts.limiter.snapshot(1).hosts[0].fill_rate)
        status = self.statuses.pop(0) if self.statuses else 200
        return status, {**HTML, **(self.headers if status != 200 else {})}, f"<title>{len(self.times)}</title>"


async def play(folder: Path, script: Script, urls: int = 1, **limits: Any) -> tuple[Exit, CrawlRun, Site]:
    """Crawl so many pages, one after the other, of a host without a robots.txt."""
    site = Site({"*": script})
    async with served(site):
        options = pages_options(
            folder, *(f"{site.base}/{n}" for n in range(urls)), policy="aimd",
            limits=LimitOptions(retry_base_delay=0.02, retry_max_delay=0.05, token_bucket_capacity=1, **limits),
        )  # fmt: skip
        async with open_run(options, SystemClock()) as run:
            script.run = run
            code = await run.run()
    return code, run, site


async def test_10_a_scripted_host_moves_the_rate_and_opens_the_circuit(tmp_path: Path) -> None:
    script = Script(200, 200, 200, 429, 200, 200, *[503] * 4)
    given = {"initial_rps": 50, "max_rps": 100, "min_rps": 5, "aimd_increase": 10, "latency_target": 0.5}

    code, run, _ = await play(
        tmp_path, script, 12, consecutive_fail_threshold=4, open_state_duration=0.5, half_open_probes=1, **given
    )

    assert code == Exit.DONE
    assert all(later > before for before, later in pairwise(script.rates[:4]))  # each fast success adds
    assert script.rates[4] < script.rates[3]  # the refusal takes half
    pause = max(later - before for before, later in pairwise(script.times))
    assert 0.45 < pause < 2.0  # the open circuit let nothing through
    assert run.parts.limiter.snapshot(1).hosts[0].state == "closed"


async def test_11_a_slow_limit_slows_the_crawl_and_says_so(tmp_path: Path) -> None:
    _, run, _ = await play(tmp_path, script := Script(), 6, initial_rps=5, max_rps=5, min_rps=5, throttled_after=0.1)

    assert min(later - before for before, later in pairwise(script.times)) > 0.15
    assert run.parts.limiter.snapshot(1).hosts[0].requests == 7  # with robots.txt


@pytest.mark.parametrize(
    ("statuses", "headers", "requests", "outcome"),
    [
        ((503, 503, 200), {}, 3, "OK"),
        ((503,) * 9, {}, 3, "HOST_UNAVAILABLE"),  # attempts
        ((500,) * 9, {}, 1, "HOST_UNAVAILABLE"),  # no transient code
        ((404,), {}, 1, "CONTENT_NOT_FOUND"),
        ((429,) * 5, {"Retry-After": "0"}, 6, "OK"),  # a Retry-After uses up no attempt
        ((429,) * 9, {}, 3, "RATE_LIMITED"),
    ],
)
async def test_a_page_is_retried_as_the_fields_say(
    tmp_path: Path, statuses: tuple[int, ...], headers: dict[str, str], requests: int, outcome: str
) -> None:
    script = Script(*statuses, headers=headers)
    limits = {"initial_rps": 100, "max_rps": 100, "min_rps": 50, "consecutive_fail_threshold": 50}

    _, _, site = await play(tmp_path, script, 1, min_samples_to_trip=50, **limits)

    file = "pages.jsonl" if outcome == "OK" else "failed.jsonl"
    assert len(site.requests) == requests
    assert [row["outcome"] for row in rows(tmp_path, file).values()] == [outcome]
