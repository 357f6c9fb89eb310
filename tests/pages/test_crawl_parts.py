"""A crawl in parts, under virtual time: as much is fetched as by one, each page once, whoever is killed."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from small_web import PACE, Web, crawl, inline, lines, page, reply, twice, web

from sanderling.crawls.exchange import EndOfParts, PartExchange
from sanderling.crawls.parts import make_parts, part_folder, part_of
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter, LimiterRules
from sanderling.limit.memory import Memory
from sanderling.pages.crawl import Crawl
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.pages.verify import verify
from sanderling.stores.board import Board
from sanderling.stores.frontier_rows import FoundUrl
from sanderling.testing import LoopClock, run_virtual

START = "http://start.example/"


class Parts:
    """All parts of a crawl in one event loop."""

    def __init__(self, root: Path, of: Web, *seeds: str, rules: CrawlRules | None = None) -> None:
        self.root, self.web, self.rules = root, of, rules or CrawlRules()
        self.plan = CrawlPlan(seeds, ("*.example",), 16)
        root.mkdir(exist_ok=True)
        self.number = make_parts(root, 2)
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.complete: dict[int, bool] = {}

    def run(self, kills: Mapping[float, int] | None = None, stop_after: float | None = None) -> None:
        """To the end; at each of these times the part is killed, and starts again."""
        run_virtual(self._run(kills or {}, stop_after))

    async def _run(self, kills: Mapping[float, int], stop_after: float | None) -> None:
        clock, board = LoopClock(), Board(self.root / "board", self.number, make=True)
        end, self.crawls = EndOfParts(board), dict[int, Crawl]()
        for part in range(self.number):
            self.tasks[part] = asyncio.create_task(self._part(part, board, clock))
        for at, part in sorted(kills.items()):
            await asyncio.sleep(max(0.0, at - clock.now()))
            if not self.tasks[part].done():
                self.tasks[part].cancel()
                await asyncio.wait([self.tasks[part]])
                self.tasks[part] = asyncio.create_task(self._part(part, board, clock))
        while any(not task.done() for task in self.tasks.values()):
            await asyncio.sleep(0.1)
            board.over = board.over or end.is_reached()
            if stop_after is not None and clock.now() >= stop_after:
                for each in self.crawls.values():
                    each.stop()
        await asyncio.gather(*self.tasks.values())

    async def _part(self, part: int, board: Board, clock: LoopClock) -> None:
        path = part_folder(self.root, part)
        folder = CrawlFolder.open(path, self.plan, resume=False, wall=clock.wall())
        folder.join(PartExchange(self.root, part, board, FoundUrl, folder.ledger.meta))
        limiter = Limiter(LimiterRules(pace=PACE), clock=clock, rng=Random(1))
        one = Crawl(folder, Transport(self.web, limiter, Memory(2**30)), inline, rules=self.rules, clock=clock)
        self.crawls[part] = one
        try:
            self.complete[part] = await one.run()
        except asyncio.CancelledError:  # as if it were killed: nothing is closed in order
            folder.ledger._db.close()
            folder._lock.release()
            raise
        folder.finish(clock.wall(), self.complete[part])
        folder.__exit__()

    @property
    def fetched(self) -> list[str]:
        return [
            row["url"] for part in range(self.number) for row in lines(part_folder(self.root, part) / "pages.jsonl")
        ]


def shore(hosts: int = 24, pages: int = 6) -> Web:
    """Hosts that lead to each other, half of all links."""
    site = web(**{START: page(*(f"http://h{number}.example/" for number in range(3)))})
    for host in range(hosts):
        for number in range(pages):
            path = f"/{number}" if number else "/"
            inside = [f"/{(number * 2 + step) % pages or ''}" for step in (1, 2)]
            across = [f"http://h{(host * 5 + number + step) % hosts}.example{path}" for step in (1, 2)]
            site.answers[f"http://h{host}.example{path}"] = [page(*inside, *across)]
    return site


def test_the_hosts_are_not_all_of_one_part() -> None:
    assert len({part_of(f"h{number}.example", 8) for number in range(24)}) > 4


def test_parts_fetch_what_one_process_fetches(tmp_path: Path) -> None:
    alone = crawl(tmp_path / "one", shore(), START, allow=("*.example",))
    site = shore()
    parts = Parts(tmp_path / "many", site, START)
    parts.run()

    assert sorted(parts.fetched) == sorted(alone.fetched)
    assert twice(site.urls) == []
    assert set(parts.complete.values()) == {True}
    assert all(verify(part_folder(tmp_path / "many", part)).ok for part in range(parts.number))


@pytest.mark.parametrize("seed", range(6))
def test_whoever_is_killed_nothing_is_missing_and_nothing_twice(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    parts = Parts(tmp_path, shore(), START)
    parts.run({chance.uniform(0.1, 6): chance.randrange(8) for _ in range(12)})

    assert len(parts.fetched) == 24 * 6 + 1
    assert twice(parts.fetched) == []
    assert set(parts.complete.values()) == {True}


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    site = shore()
    parts = Parts(tmp_path, site, START)
    parts.run(stop_after=0.8)
    before = len(parts.fetched)
    assert 0 < before < 24 * 6
    parts.run()

    assert len(parts.fetched) == 24 * 6 + 1
    assert twice(site.urls) == []


def test_a_limit_of_pages_is_that_of_all_parts(tmp_path: Path) -> None:
    parts = Parts(tmp_path, shore(), START, rules=CrawlRules(max_pages=50))
    parts.run()

    assert len(parts.fetched) == 50


def test_where_a_first_address_lives_is_known_to_all_parts(tmp_path: Path) -> None:
    """It moved to a host that no flag allows, which another part has."""
    home = next(f"http://w{n}.test" for n in range(99) if part_of(f"w{n}.test", 8) != part_of("start.example", 8))
    other = next(
        f"http://o{n}.example"
        for n in range(99)
        if part_of(f"o{n}.example", 8) not in (part_of(home[7:], 8), part_of("start.example", 8))
    )
    site = web(**{START: reply(301, Location=f"{home}/")})
    site.answers |= {f"{home}/": [page("/a", f"{other}/")], f"{home}/a": [page()], f"{home}/b": [page()]}
    site.answers[f"{other}/"] = [page(f"{home}/b")]
    parts = Parts(tmp_path, site, START)
    parts.run()

    assert sorted(site.urls) == sorted([START, f"{home}/", f"{home}/a", f"{home}/b", f"{other}/"])


def test_a_finished_crawl_in_parts_is_crawled_again(tmp_path: Path) -> None:
    site = shore()
    parts = Parts(tmp_path, site, START)
    parts.run()
    parts.run()

    assert len(parts.fetched) == 24 * 6 + 1
    assert len(site.urls) == 2 * (24 * 6 + 1)
