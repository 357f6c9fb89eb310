"""What links and redirects lead to, as far as it belongs to the crawl."""

from pathlib import Path

from small_web import inline, reply

from sanderling.outcome import Outcome
from sanderling.pages.discovery import MOST_COUNTED, LinkDiscovery, MovedUrl
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.stores.frontier_rows import QueuedUrl
from sanderling.testing import run_virtual

A = "http://a.example"


def queued(number: int, depth: int = 1) -> QueuedUrl:
    return QueuedUrl(number, f"{A}/{number}", "a.example", depth)


def test_redirects_to_what_is_known_are_counted_only_so_far(tmp_path: Path) -> None:
    """What had its end long ago never ends again, so its count would stay for ever."""

    async def main() -> int:
        with CrawlFolder.open(tmp_path / "out", CrawlPlan((f"{A}/",), (), 16), resume=False, wall=0) as folder:
            discovery = LinkDiscovery(folder, inline, lambda _found: None)
            for number in range(MOST_COUNTED + 50):
                moved = await discovery.resolve(queued(number), reply(302, Location=f"/to/{number}"))
                assert isinstance(moved, MovedUrl)
                discovery.move(queued(number), moved)
            return len(discovery._hops)

    assert run_virtual(main()) == MOST_COUNTED


def test_links_beyond_the_depth_are_not_offered(tmp_path: Path) -> None:
    async def main() -> list[list[str]]:
        with CrawlFolder.open(tmp_path / "out", CrawlPlan((f"{A}/",), (), 2), resume=False, wall=0) as folder:
            discovery = LinkDiscovery(folder, inline, lambda _found: None)
            return [discovery.follow(["/x", "ftp://a.example/", "http://b.example/"], f"{A}/", n) for n in range(4)]

    assert run_virtual(main()) == [[f"{A}/x"], [f"{A}/x"], [], []]


def test_a_redirect_that_leads_nowhere_is_an_outcome(tmp_path: Path) -> None:
    async def main() -> list[bool]:
        with CrawlFolder.open(tmp_path / "out", CrawlPlan((f"{A}/",), (), 2), resume=False, wall=0) as folder:
            discovery = LinkDiscovery(folder, inline, lambda _found: None)
            targets = ("ftp://a.example/", "/1", "/2")
            return [isinstance(await discovery.resolve(queued(1), reply(302, Location=to)), Outcome) for to in targets]

    assert run_virtual(main()) == [True, True, False]
