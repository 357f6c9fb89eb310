"""What waits for a host that is away is on disk, holds neither memory nor the cursor, and comes back with the host."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import pytest
from bad_fleet import make_fleet
from fleet_crawl import Listed, crawl_fleet, inline
from moving_accounts import MovingAccounts

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.transport import Transport
from sanderling.formats.car import write_car
from sanderling.formats.cid import Cid
from sanderling.limit import BreakerRules, Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.repos import feeding
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Segments
from sanderling.stores.control_file import Control
from sanderling.stores.ports import FIRST, HostAside, ProgressView, Unfinished
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

AWAY, BUSY = "away.example", "busy.example"
EMPTY = write_car([Cid.of(b"\xa0")], [(Cid.of(b"\xa0"), b"\xa0")])  # a CAR without a commit, which is no repo for good
LIMITS = LimiterRules(pace=PaceRules(initial_rps=10, max_rps=10), breaker=BreakerRules(consecutive=10))
RULES = RepoRules(page_size=20, patience=60.0)  # fifty pages are read ahead, of so few hosts


@dataclass
class Network:
    """One host is away now and then, another takes its time."""

    outages: list[tuple[float, float]]
    asked: list[tuple[float, str]] = field(default_factory=list)

    async def send(self, task: Task) -> Reply:
        now = asyncio.get_running_loop().time()
        self.asked.append((now, task.url.partition("did=")[2]))
        if task.host == BUSY:
            await asyncio.sleep(5)
        elif any(start <= now < end for start, end in self.outages):
            raise ConnectionResetError
        return Reply(200, (), EMPTY, task.url, 0.1)


def did(number: int, host: str) -> str:
    return f"did:plc:{number:06}{host}"


def entries(away: int, busy: int) -> list[tuple[str, str]]:
    return [(did(n, host), f"https://{host}") for host, many in ((AWAY, away), (BUSY, busy)) for n in range(many)]


def crawl(
    folder: Path,
    network: Network,
    directory: list[tuple[str, str]],
    look: dict[float, Callable[[RepoCrawl, SqliteProgress], object]] | None = None,
) -> tuple[bool, ProgressView, RepoCrawl]:
    async def main() -> tuple[bool, ProgressView, RepoCrawl]:
        clock = LoopClock()
        with (
            closing(SqliteProgress(folder / "progress.db")) as progress,
            Segments(folder / "rca", size=1000, created_at=lambda: 0) as segments,
        ):
            stores = Stores(Listed(directory), progress, segments)
            transport = Transport(network, Limiter(LIMITS, clock=clock), Memory(1000))
            crawling = RepoCrawl(stores, transport, inline, inline, rules=RULES, clock=clock)
            for at, what in (look or {}).items():
                clock.call_later(at, partial(what, crawling, progress))
            complete = await crawling.run()
            return complete, progress.view(), crawling

    return run_virtual(main())


@dataclass
class Seen:
    """How it stood while the host was away."""

    waiting: int = 0
    held: int = 0
    stored: int = 0
    cursor: str = ""
    aside: list[HostAside] = field(default_factory=list)
    categories: dict[str, int] = field(default_factory=dict)

    def __call__(self, crawling: RepoCrawl, progress: SqliteProgress) -> None:
        source = crawling.source
        self.waiting, self.held, self.stored = source.waiting, len(source._held), source.stored
        self.cursor, self.aside = progress.cursor(), progress.aside(9)
        self.categories = progress.view().failed


def test_what_waits_for_a_host_that_is_away_is_on_disk_and_comes_back_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is read from the directory while it is away, and also when it goes away a second time."""
    monkeypatch.setattr(feeding, "AT_ONCE", 37)
    monkeypatch.setattr(feeding, "FEW", 20)
    network, seen = Network([(5.0, 400.0), (410.0, 700.0)]), Seen()

    complete, view, crawling = crawl(tmp_path, network, entries(1500, 2500), {350.0: seen})

    assert complete
    assert view.failed == {AtprotoCategory.PARSE_ERROR: 4000}
    assert (view.scheduled, view.hosts_aside, crawling.waiting, crawling.set_aside) == (0, 0, 0, 0)
    assert len(crawling.source._held) == 0
    assert len({each for _, each in network.asked}) == 4000
    assert seen.stored == seen.categories[AtprotoCategory.CONNECTION_ERROR] > 900
    assert 900 < seen.waiting <= 1020, "of the other host, fifty pages"
    assert seen.held < 50
    assert [(each.host, each.category) for each in seen.aside] == [(AWAY, "connection_error")]
    assert seen.cursor > did(200, AWAY), "what has a due time is settled"


def test_the_next_run_asks_for_what_is_due_first_and_what_has_moved_where_it_is(tmp_path: Path) -> None:
    network = Network([(0.0, 1e9)])
    directory = entries(30, 30)
    complete, view, _ = crawl(tmp_path, network, directory)
    assert complete
    assert (view.failed[AtprotoCategory.CONNECTION_ERROR], view.scheduled, view.hosts_aside) == (30, 30, 1)

    moved = [(each, f"https://{BUSY}" if each == did(3, AWAY) else url) for each, url in directory]
    moved += [(did(n, f"new{host}"), f"https://{host}") for host in (AWAY, BUSY) for n in range(20)]
    again = Network([])
    with closing(SqliteProgress(tmp_path / "progress.db")) as progress:
        progress.record([], [], cursor="", segment=1)
    complete, view, _ = crawl(tmp_path, again, moved)

    assert complete
    assert view.failed == {AtprotoCategory.PARSE_ERROR: 100}
    first = [each for _, each in again.asked if AWAY in each and "new" not in each]
    assert len(first) == len(set(first)) == 30
    of_host = [each for _, each in again.asked if each.endswith(AWAY) and each != did(3, AWAY)]
    assert all("new" not in each for each in of_host[:29])


def test_failures_in_a_row_are_known_to_the_next_run(tmp_path: Path) -> None:
    """One that has failed three times has one try left, at a host that is well."""
    bad = did(0, AWAY)

    class Bad(Network):
        async def send(self, task: Task) -> Reply:
            if bad in task.url:
                self.asked.append((0.0, bad))
                return Reply(500, (), b"", task.url, 0.1)
            return await super().send(task)

    with closing(SqliteProgress(tmp_path / "progress.db")) as progress:
        progress.record(
            [], [Unfinished(bad, "unavailable", permanent=False, failures=3, due=7)], cursor=None, segment=0
        )
    network = Bad([])

    crawl(tmp_path, network, entries(50, 0))

    assert [each for _, each in network.asked].count(bad) == 1
    with closing(SqliteProgress(tmp_path / "progress.db")) as progress:
        (left,) = progress.due(FIRST, 2**40, 9)
    assert (left.did, left.failures) == (bad, 4)
    assert left.due > 1e9


def test_drained_it_ends_with_what_it_has_and_the_next_run_does_the_rest(tmp_path: Path) -> None:
    network = Network([])

    def drain(crawling: RepoCrawl, _: object) -> None:
        crawling.control(Control(ending="drain"))

    complete, view, _ = crawl(tmp_path, network, entries(0, 4000), {10.0: drain})
    assert not complete
    assert 1000 <= view.completed < 1200
    complete, view, _ = crawl(tmp_path, network, entries(0, 4000))

    assert complete
    assert view.completed == 4000
    assert len(network.asked) == 4000


@pytest.mark.parametrize("seed", range(3))
def test_accounts_that_move_while_they_wait_are_asked_for_at_their_new_host_in_the_same_run(
    tmp_path: Path, seed: int
) -> None:
    fleet = make_fleet(seed, [12] * 12)
    accounts = MovingAccounts(fleet, Random(seed), moves=150)

    crawled = crawl_fleet(tmp_path / "one", fleet, directory=accounts, through=accounts.network)

    expected = fleet.expected()
    assert crawled.archive == {did: 1 for did, end in expected.items() if end.archived}
    gone = dict(Counter(end.category.value for end in expected.values() if end.category is not None))
    assert (crawled.complete, crawled.view.scheduled, crawled.view.failed) == (True, 0, gone)
    assert {end: number for end, number in crawled.crawl.ended.items() if end != "archived"} == gone
