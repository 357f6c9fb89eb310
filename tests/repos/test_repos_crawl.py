"""The crawl of repos, against a fleet with every kind of host, under virtual time."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from fleet_crawl import Crawled, crawl_fleet

from sanderling.apis.atproto import Category
from sanderling.fetch.attempts import Sends
from sanderling.repos.crawl import RepoRules
from sanderling.task import Reply, Task
from sanderling.worlds.pds import Fleet
from sanderling.worlds.pds_network import FleetNetwork


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Crawled]:
    fleet = Fleet.make(1, hosts=6, repos=150)
    return fleet, crawl_fleet(tmp_path_factory.mktemp("fleet") / "out", fleet)


def test_every_live_repo_is_in_the_archive_exactly_once(done: tuple[Fleet, Crawled]) -> None:
    fleet, crawled = done

    live = {did for did, end in fleet.expected().items() if end.archived}
    assert crawled.complete
    assert set(crawled.archive) == live
    assert set(crawled.archive.values()) == {1}


def test_every_dead_one_is_in_its_category(done: tuple[Fleet, Crawled]) -> None:
    fleet, crawled = done

    dead = [end.category for end in fleet.expected().values() if end.category is not None]
    expected = {category.value: dead.count(category) for category in set(dead)}
    assert crawled.view.failed == expected


def test_the_cursor_ends_behind_the_last(done: tuple[Fleet, Crawled]) -> None:
    fleet, crawled = done

    assert crawled.view.cursor == max(did for did, _ in fleet.directory())


def test_stopped_and_run_again_it_goes_on(tmp_path: Path) -> None:
    fleet = Fleet.make(2, hosts=4, repos=120, others=())

    first = crawl_fleet(tmp_path / "out", fleet, stop_after=4)
    second = crawl_fleet(tmp_path / "out", fleet)

    assert not first.complete
    assert 0 < len(first.archive) < 120
    assert second.complete
    assert set(second.archive.values()) == {1}
    assert len(second.archive) == sum(end.archived for end in fleet.expected().values())


def test_a_host_that_is_down_for_a_while_is_blocked_and_comes_back_in_a_later_pass(tmp_path: Path) -> None:
    fleet = Fleet.make(3, hosts=1, repos=60, others=())

    class Outage:
        def __init__(self, network: FleetNetwork) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            if 5 <= asyncio.get_running_loop().time() < 60:
                raise ConnectionResetError
            return await self._network.send(task)

    crawled = crawl_fleet(tmp_path / "out", fleet, through=Outage)

    assert len(crawled.archive) == sum(end.archived for end in fleet.expected().values())


def test_one_slow_host_stalls_nobody(tmp_path: Path) -> None:
    """With four workers, and one host that takes a minute for each answer."""
    fleet = Fleet.make(4, hosts=5, repos=100, others=())
    slow = max(fleet.pds, key=lambda host: host.size).name
    ends: dict[str, float] = {}

    class Slow:
        def __init__(self, network: FleetNetwork) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            if task.host == slow:
                await asyncio.sleep(20)
            reply = await self._network.send(task)
            ends[task.host] = asyncio.get_running_loop().time()
            return reply

    crawl_fleet(tmp_path / "out", fleet, through=Slow, rules=RepoRules(workers=14, per_host=10))

    assert max(when for name, when in ends.items() if name != slow) < 60


def test_nothing_is_asked_faster_than_the_size_of_a_host_allows(tmp_path: Path) -> None:
    fleet = Fleet.make(5, hosts=3, repos=90, others=())
    asked: dict[str, list[float]] = {}

    class Timed:
        def __init__(self, network: FleetNetwork) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            asked.setdefault(task.host, []).append(asyncio.get_running_loop().time())
            return await self._network.send(task)

    crawl_fleet(tmp_path / "out", fleet, through=Timed)

    for times in asked.values():
        assert all(later - earlier > 0.49 for earlier, later in pairwise(times))


def test_a_repo_of_another_did_is_not_kept(tmp_path: Path) -> None:
    fleet = Fleet.make(6, hosts=1, repos=3, others=())
    dids = sorted(did for did, end in fleet.expected().items() if end.archived)

    class Swapped:
        def __init__(self, network: FleetNetwork) -> None:
            self._network: Sends = network

        async def send(self, task: Task) -> Reply:
            other = Task(task.url.replace(dids[0], dids[1]), headers=task.headers)
            reply = await self._network.send(other)
            return Reply(reply.status, reply.headers, reply.body, task.url, reply.latency)

    crawled = crawl_fleet(tmp_path / "out", fleet, through=Swapped)

    assert dids[0] not in crawled.archive
    assert crawled.view.failed[Category.DID_MISMATCH] == 1


def test_hosts_that_are_gone_for_good_do_not_hold_up_the_end(tmp_path: Path) -> None:
    """Each pass waits for them once, and not once for each of their repos."""
    fleet = Fleet.make(8, hosts=1, repos=10, others=("dead", "nameless"))

    crawled = crawl_fleet(tmp_path / "out", fleet)

    assert crawled.complete
    assert crawled.view.failed[Category.CONNECTION_ERROR] == crawled.view.failed[Category.DNS_ERROR] == 4
    assert crawled.seconds < 200
