"""Who is to blame for a failure: a broken page costs itself only, and what was not asked for has not failed."""

import asyncio
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest
from small_web import Web, crawl, page, reply, web

from sanderling.limit import LimiterRules, PaceRules
from sanderling.outcome import Code
from sanderling.pages.rules import CrawlRules
from sanderling.pages.verify import verify
from sanderling.stores.frontier import Frontier
from sanderling.task import Reply, Task

A = "http://a.example"
USUAL = LimiterRules(pace=PaceRules.up_to(8))  # as the command has it
CLEAN = 21.0  # seconds that the site takes without broken pages

# How a page is broken: what it ends with, after how many seconds, and as which code.
BROKEN: dict[str, tuple[Reply | Exception, float, Code]] = {
    "cut short": (aiohttp.ClientPayloadError("the body ended early"), 0.1, Code.TRUNCATED),
    "500": (reply(500), 0.1, Code.HTTP_ERROR),
    "reset": (ConnectionResetError(), 0.1, Code.CONNECTION_RESET),
    "a byte a second": (TimeoutError("total"), 300.0, Code.TIMEOUT),
    "never answers": (TimeoutError("first byte"), 40.0, Code.TIMEOUT),
    "no length": (reply(999), 0.1, Code.INVALID_RESPONSE),
}


class Site(Web):
    """A home page that links to 120 pages, of which some are broken."""

    def __init__(self, kind: str, broken: range) -> None:
        links = [f"{A}/{number}" for number in range(120)]
        self.bad = [links[number] for number in broken]
        self.good = [link for link in links if link not in self.bad]
        self._answer, self._after, self.code = BROKEN[kind]
        super().__init__({f"{A}/": [page(*links)], **{link: [page()] for link in self.good}})

    async def send(self, task: Task) -> Reply:
        """The answer of a good page soon, of a broken one in its own time."""
        if task.url not in self.bad:
            return await super().send(task)
        self.asked.append((asyncio.get_running_loop().time(), task.url))
        await asyncio.sleep(self._after)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    @property
    def good_by(self) -> float:
        """When the last good page was first asked for."""
        return max(self.times(url)[0] for url in self.good if self.times(url))


@pytest.mark.parametrize(("number", "first", "more"), [(2, 50, 2.0), (20, 0, 200.0), (20, 100, 200.0)])
@pytest.mark.parametrize("kind", BROKEN)
def test_broken_pages_cost_themselves_only(tmp_path: Path, kind: str, number: int, more: float, first: int) -> None:
    """Twenty in a row look like a host that is down: it is left alone until it has shown that it is not."""
    site = Site(kind, range(first, first + number))

    done = crawl(tmp_path / "out", site, f"{A}/", limits=USUAL)

    assert sorted(done.fetched) == sorted([f"{A}/", *site.good])
    assert {row["url"]: row["outcome"] for row in done.failed} == dict.fromkeys(site.bad, site.code)
    assert done.complete
    assert site.good_by < CLEAN + more


def test_a_page_that_is_always_throttled_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    links = [f"{A}/{number}" for number in range(50)]
    site = web(**{f"{A}/": page(f"{A}/x", *links), f"{A}/x": reply(429), **{link: page() for link in links}})

    done = crawl(tmp_path / "out", site, f"{A}/")

    assert sorted(done.fetched) == sorted([f"{A}/", *links])
    assert (done.complete, done.failed, done.crawl.set_aside) == (False, [], 1)
    assert len(site.times(f"{A}/x")) < 30, "a closed host is probed every 20 s at most, for ten minutes"


def test_a_scheme_that_nobody_listens_at_keeps_nothing_from_the_other(tmp_path: Path) -> None:
    """Old links begin with http, and port 80 is closed: those wait, and all that begins with https is fetched."""
    secure = "https://a.example"
    old, new = [f"{A}/{number}" for number in range(5)], [f"{secure}/{number}" for number in range(30)]
    site = web(**{f"{secure}/": page(*old, *new), **{link: page() for link in new}})
    site.answers[f"{A}/robots.txt"] = [ConnectionRefusedError()]

    done = crawl(tmp_path / "out", site, f"{secure}/")

    assert sorted(done.fetched) == sorted([f"{secure}/", *new])
    assert (done.failed, done.crawl.set_aside, done.reasons) == ([], 5, {"a.example": Code.CONNECTION_REFUSED})
    assert done.seconds < 120


def test_a_body_that_trickles_in_does_not_keep_a_short_patience_from_asking_others(tmp_path: Path) -> None:
    site = Site("a byte a second", range(1))

    done = crawl(tmp_path / "out", site, f"{A}/", limits=USUAL, rules=CrawlRules(patience=30))

    assert (len(done.fetched), done.complete) == (120, True)
    assert site.good_by < CLEAN + 2
    assert verify(tmp_path / "out").ok


def test_a_host_that_gives_only_its_front_page_is_set_aside_with_what_it_said(tmp_path: Path) -> None:
    """It is probed with that page, and answers: what it said of the others is the reason all the same."""
    pages = {f"{A}/{number}": reply(429) for number in range(11)}
    done = crawl(tmp_path, web(**{f"{A}/": page(*pages)}, **pages), f"{A}/", rules=CrawlRules(patience=60.0))

    with closing(Frontier(tmp_path / "ledger.db")) as ledger:
        (aside,) = ledger.aside()
    assert not done.complete
    assert aside.waiting == 11
    assert aside.status == 429
