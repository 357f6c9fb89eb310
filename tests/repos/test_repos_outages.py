"""A host that was good and goes away is probed every half a minute, and its repos are asked for once it is back."""

import asyncio
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from fleet_crawl import Listed, inline

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.attempts import PROBE_WAIT
from sanderling.fetch.transport import Transport
from sanderling.formats.car import write_car
from sanderling.formats.cid import Cid
from sanderling.limit import BreakerRules, Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Segments
from sanderling.stores.ports import ProgressView
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual

SICK, SLOW, GONE = "sick.example", "slow.example", "gone.example"
EMPTY = write_car([Cid.of(b"\xa0")], [(Cid.of(b"\xa0"), b"\xa0")])  # a CAR without a commit, which is no repo for good
START = 20.0
EVERY = 30.0  # seconds between two requests at most
RATE = 10.0  # requests a second to a large host
LIMITS = LimiterRules(pace=PaceRules(initial_rps=RATE, max_rps=RATE), breaker=BreakerRules(consecutive=10))


class Hosts:
    """Send what is no repo: one at once but for an outage, one after ten seconds, one never."""

    def __init__(self, kind: str, lasts: float) -> None:
        self.kind = kind
        self.end = START + lasts
        self.asked: dict[str, list[float]] = {SICK: [], SLOW: [], GONE: []}
        self.good: list[float] = []
        self.ended = 0.0  # when the crawl was

    async def send(self, task: Task) -> Reply:
        now = asyncio.get_running_loop().time()
        self.asked[task.host].append(now)
        if task.host == GONE:
            raise ConnectionRefusedError
        if task.host == SLOW:
            await asyncio.sleep(10)
        elif START <= now < self.end:
            return await self._away(task)
        else:
            await asyncio.sleep(0.1)
            self.good.append(now)
        return Reply(200, (), EMPTY, task.url, 0.1)

    async def _away(self, task: Task) -> Reply:
        if self.kind == "silence":
            await asyncio.sleep(min(40.0, task.wait or 40.0))
            raise TimeoutError("first byte")
        await asyncio.sleep(0.05)
        if self.kind == "reset":
            raise ConnectionResetError
        if self.kind == "refused":
            raise ConnectionRefusedError
        return Reply(int(self.kind), (), b"", task.url, 0.05)

    @property
    def gaps(self) -> list[float]:
        """Seconds between the starts of two requests, while the host is away."""
        since = START + (41 if self.kind == "silence" else 0)  # a first row of requests runs into its timeout
        return [other - one for one, other in pairwise(self.asked[SICK]) if since <= one < self.end]

    def rate(self, since: float) -> float:
        """Requests a second in the half a minute from then."""
        return sum(since <= at < since + 30 for at in self.asked[SICK]) / 30


def crawl(
    folder: Path, hosts: Hosts, sizes: dict[str, int], stop_after: float | None = None
) -> tuple[bool, ProgressView, RepoCrawl]:
    async def main() -> tuple[bool, ProgressView, RepoCrawl]:
        clock = LoopClock()
        with (
            closing(SqliteProgress(folder / "progress.db")) as progress,
            Segments(folder / "rca", size=1000, created_at=lambda: 0) as segments,
        ):
            limiter = Limiter(LIMITS, clock=clock)
            named = [(f"did:plc:{n:06}{host}", f"https://{host}") for host in sizes for n in range(sizes[host])]
            stores = Stores(Listed(named), progress, segments)
            rules = RepoRules(page_size=100_000)
            transport = Transport(hosts, limiter, Memory(1000))
            crawling = RepoCrawl(stores, transport, inline, inline, rules=rules, clock=clock)
            if stop_after is not None:
                clock.call_later(stop_after, crawling.stop)
            complete = await crawling.run()
            hosts.ended = clock.now()
            return complete, progress.view(), crawling

    return run_virtual(main())


# A bare 503 for less than a minute may be a quota, which is not for the breaker to say.
@pytest.mark.parametrize(
    ("kind", "lasts"),
    [("500", 25.0), ("reset", 300.0), ("refused", 25.0), ("silence", 590.0), ("503", 590.0), ("silence", 25.0)],
)
def test_the_only_host_is_waited_for_and_all_its_repos_are_asked_for(tmp_path: Path, kind: str, lasts: float) -> None:
    hosts = Hosts(kind, lasts)

    complete, view, crawling = crawl(tmp_path, hosts, {SICK: 2000})

    assert complete
    assert view.failed == {AtprotoCategory.PARSE_ERROR: 2000}
    assert max(hosts.gaps, default=0.0) <= EVERY
    assert min(at for at in hosts.good if at >= hosts.end) <= hosts.end + EVERY + PROBE_WAIT
    assert hosts.rate(hosts.end + 60) >= 0.9 * RATE
    assert crawling.waiting == 0


@pytest.mark.parametrize("kind", ["503", "silence"])
def test_a_host_that_was_given_up_is_probed_as_long_as_others_are_asked(tmp_path: Path, kind: str) -> None:
    hosts = Hosts(kind, 900.0)

    complete, view, _ = crawl(tmp_path, hosts, {SICK: 2000, SLOW: 1500})

    assert complete
    assert view.failed == {AtprotoCategory.PARSE_ERROR: 3500}
    assert max(hosts.gaps) <= EVERY
    assert hosts.rate(hosts.end + 60) >= 0.9 * RATE


@pytest.mark.parametrize("lasts", [1e9])
def test_a_host_that_stays_away_is_left_after_our_patience(tmp_path: Path, lasts: float) -> None:
    hosts = Hosts("500", lasts)

    complete, view, _ = crawl(tmp_path, hosts, {SICK: 2000, GONE: 5})

    assert complete
    assert view.failed[AtprotoCategory.UNAVAILABLE] > 1700
    assert view.failed[AtprotoCategory.CONNECTION_ERROR] == 5
    assert hosts.ended < START + RepoRules().patience + 300
    assert len(hosts.asked[GONE]) < 60, "who never answered is not waited for"


def test_what_a_stop_leaves_is_asked_for_in_the_next_run(tmp_path: Path) -> None:
    hosts = Hosts("500", 300.0)

    complete, _, _ = crawl(tmp_path, hosts, {SICK: 2000}, stop_after=200.0)
    assert not complete
    hosts.end = 0.0
    complete, view, _ = crawl(tmp_path, hosts, {SICK: 2000})

    assert complete
    assert view.failed == {AtprotoCategory.PARSE_ERROR: 2000}
