"""Nights on a site that changes: what is requested, what says 304, what is new."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from crawl.sites import HTML, Answer, Site, lines, page, pages_options, served

from sanderling.clock import SystemClock
from sanderling.crawl import system
from sanderling.crawl.sink import next_interval
from sanderling.crawl.system import open_run
from sanderling.records.selection import Selection
from sanderling.stores import PageMemory

DAY = 86_400.0


class Night(SystemClock):
    """The clock of some night."""

    def __init__(self, number: float) -> None:
        self._shift = number * DAY

    def wall(self) -> float:
        return super().wall() + self._shift


async def at_night(out: Path, number: float, site: Site, wanted: int, *urls: str) -> list[str]:
    """What is requested in a night, until so many requests came and what came of them is stored."""
    site.requests.clear()
    async with open_run(pages_options(out, *urls, every=DAY), Night(number)) as run:
        working = asyncio.create_task(run.run())
        async with asyncio.timeout(60):
            while len(site.requests) < wanted:
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # more would come by now
        run.stop()
        await working
    return sorted(site.requests)


@pytest.mark.real
async def test_what_changes_is_visited_sooner(tmp_path: Path) -> None:
    night = 0

    def tagged(request: web.Request) -> Answer:
        if request.headers.get("If-None-Match") == '"1"':
            return 304, {}, ""
        return 200, {**HTML, "ETag": '"1"'}, page("Front", links=["/news", "/same"])

    def news(request: web.Request) -> Answer:
        words = ["one", "two", "three", "four"]
        return 200, HTML, page("News", f"It is night {words[night]}.", [f"/story-{words[night]}"] if night < 2 else [])

    site = Site({"/": tagged, "/news": news, "/same": page("Same"), "*": page("Story")})
    async with served(site):
        assert await at_night(tmp_path, 0, site, 4, site.base + "/") == ["/", "/news", "/same", "/story-one"]
        night = 1
        again = ["/", "/news", "/same", "/story-one", "/story-two"]
        assert await at_night(tmp_path, 1.01, site, 5) == again
        night = 2
        assert await at_night(tmp_path, 2.02, site, 2) == ["/news", "/story-two"]
        night = 3
        assert await at_night(tmp_path, 3.03, site, 4) == ["/", "/news", "/same", "/story-one"]

    rows = [row["url"].removeprefix(site.base) for row in lines(tmp_path / "pages.jsonl")]
    assert sorted(rows) == ["/", "/news", "/news", "/news", "/news", "/same", "/story-one", "/story-two"]
    assert not (await system.verify(tmp_path)).faults
    since = lines(tmp_path / "pages.jsonl")[4]["stored"]
    with system.records(tmp_path) as found:
        new = [msgspec.json.decode(line)["url"] for line in Selection(since=since).lines(found)]
    assert sorted(url.removeprefix(site.base) for url in new) == ["/news", "/news", "/news", "/story-two"]


@pytest.mark.parametrize(
    ("before", "same", "after"),
    [
        (0.0, True, DAY),
        (DAY, True, 2 * DAY),
        (DAY, False, DAY / 2),
        (16 * DAY, True, 16 * DAY),
        (DAY / 16, False, DAY / 16),
    ],
)
def test_intervals(before: float, same: bool, after: float) -> None:
    memory = PageMemory(bytes(16), interval=before)
    assert next_interval(DAY, memory, same=same) == after
    assert next_interval(DAY, None, same=same) == DAY
