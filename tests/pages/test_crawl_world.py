"""A crawl of the simulated web, under virtual time: everything that can go wrong at once, and a day and more of it."""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_web import Crawled, crawl, twice
from world_networks import SiteNetwork

from sanderling.limit import LimiterRules, PaceRules
from sanderling.pages.verify import verify
from sanderling.stores.frontier_rows import End
from sanderling.testing import LoopClock
from sanderling.worlds.site import World

DAY = 86_400.0
MEMORY = Path("/dev/shm")  # noqa: S108 - where there is one: thousands of commits need no real disk here


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as made:
        yield Path(made) / "out"
        shutil.rmtree(Path(made) / "out", ignore_errors=True)


def ends(done: Crawled) -> dict[str, dict[str, End]]:
    """By host and path, how each URL ended."""
    found: dict[str, dict[str, End]] = defaultdict(dict)
    for row in done.rows:
        end = End.MOVED if "moved_to" in row else End.FETCHED
        _, _, host, path = row["url"].split("/", 3)
        found[host][f"/{path}"] = end
    for row in done.failed:
        _, _, host, path = row["url"].split("/", 3)
        found[host][f"/{path}"] = End[row["end"].upper()]
    return found


def everything(network: SiteNetwork, folder: Path, **more: object) -> Crawled:
    hosts = [host.name for host in network.world.hosts]
    return crawl(folder, network, f"http://{hosts[0]}/", allow=hosts[1:], **more)  # type: ignore[arg-type] # passed on


def test_every_url_of_every_kind_of_host_ends_as_it_should(folder: Path) -> None:
    network = SiteNetwork(World.make(1, ordinary=4, pages=60), LoopClock())

    done = everything(network, folder, depth=12)

    found = ends(done)
    for host in network.world.hosts:
        expected = {path: End[end.name] for path, end in host.ends() if end is not End.WAITING}
        if host.endless:
            assert expected.items() <= found[host.name].items(), host.name
        else:
            assert found[host.name] == expected, host.name
    assert twice([row["url"] for row in (*done.rows, *done.failed)]) == []
    waiting = sum(host.expected()[End.WAITING] for host in network.world.hosts)
    assert (done.complete, done.crawl.set_aside) == (False, waiting)
    assert verify(folder).problems == []


def test_no_host_is_asked_for_what_it_forbids_or_faster_than_it_may_be(folder: Path) -> None:
    network = SiteNetwork(World.make(2, ordinary=4, pages=60), LoopClock())

    everything(network, folder, depth=8, limits=LimiterRules(pace=PaceRules(initial_rps=2, max_rps=4)))

    for name, tally in network.tallies.items():
        assert tally.forbidden == 0, name
        assert tally.shortest >= 0.2, name
        assert tally.most_inflight <= 8, name
    assert network.tallies["robots.example"].shortest >= 1.99


def test_a_day_and_more_in_which_nothing_is_lost(folder: Path) -> None:
    """One page in ten minutes of each host: the largest takes more than a day, and is fetched to its end."""
    network = SiteNetwork(World.make(3, ordinary=3, pages=150, others=["failing", "resets", "silent"]), LoopClock())
    pace = PaceRules(initial_rps=1 / 600, min_rps=1 / 600, max_rps=1 / 600)

    done = everything(network, folder, depth=100, limits=LimiterRules(pace=pace))

    assert done.seconds >= DAY
    assert done.complete
    assert done.counts[End.FETCHED] == sum(host.pages for host in network.world.hosts)
    proof = verify(folder)
    assert (proof.ok, proof.problems) == (True, [])
