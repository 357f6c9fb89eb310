"""A host that is throttled, dead or failing costs its own repos time, and those of other hosts none."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from fleet_crawl import Crawled, crawl_fleet
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.attempts import Sends
from sanderling.repos.rules import RepoRules
from sanderling.stores.ports import FIRST
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.task import Reply, Task
from sanderling.worlds.pds import Fleet

RULES = RepoRules()


class Sick:
    """A network at which one host answers as it is told to, and the others as they are."""

    def __init__(self, host: str, dids: frozenset[str] | None, kind: str) -> None:
        self.last = 0.0  # when another host has answered for the last time
        self._host, self._dids, self._kind = host, dids, kind
        self._chance = Random(1)
        self._network: Sends

    def through(self, network: FleetNetwork) -> Sends:
        self._network = network
        return self

    async def send(self, task: Task) -> Reply:
        if task.host != self._host:
            reply = await self._network.send(task)
            self.last = asyncio.get_running_loop().time()
            return reply
        if self._dids is not None and task.url.partition("did=")[2] not in self._dids:
            return await self._network.send(task)
        await asyncio.sleep(0.05)
        if self._kind == "dead":
            raise ConnectionRefusedError
        if self._kind == "half" and self._chance.random() < 0.5:
            return await self._network.send(task)
        if self._kind == "429":
            return Reply(429, (("Retry-After", "60"),), b"", task.url, 0.05)
        return Reply(500, (), b"", task.url, 0.05)


def crawled(folder: Path, fleet: Fleet, sick: Sick) -> Crawled:
    done = crawl_fleet(folder, fleet, rules=RULES, through=sick.through)
    assert done.complete
    assert set(done.archive.values()) == {1}
    return done


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """A host, and twenty others."""
    return Fleet.make(1, hosts=21, repos=160, others=())


@pytest.fixture(scope="module")
def alone(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> float:
    """When the other hosts are done if nothing is wrong with the one."""
    well = Sick(fleet.pds[2].name, frozenset(), "429")
    crawled(tmp_path_factory.mktemp("alone") / "out", fleet, well)
    return well.last


@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_host_that_throttles_five_repos_for_ever_holds_up_nobody(
    tmp_path: Path,
    fleet: Fleet,
    alone: float,
    all_of_it: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Or refuses everything. They are listed as rate limited, with a due time, and the crawl ends."""
    host = fleet.pds[2]
    dids = frozenset(host.expected() if all_of_it else sorted(host.expected())[:5])
    sick = Sick(host.name, dids, "429")

    done = crawled(tmp_path / "out", fleet, sick)

    live = {did for did, end in fleet.expected().items() if end.archived}
    assert set(done.archive) == live - dids
    assert sick.last <= 1.1 * alone
    assert done.seconds <= 1800
    assert (
        done.view.failed[AtprotoCategory.RATE_LIMITED] == done.view.scheduled == done.crawl.set_aside == len(dids) >= 5
    )
    progress = SqliteProgress(tmp_path / "out" / "progress.db")
    assert {each.did for each in progress.due(FIRST, 2**40, 1000)} == dids
    progress.close()


def test_a_dead_host_is_set_aside_with_its_reason_and_the_next_run_asks_for_its_repos(
    tmp_path: Path, fleet: Fleet, alone: float
) -> None:
    host = fleet.pds[2]
    sick = Sick(host.name, None, "dead")

    done = crawled(tmp_path / "out", fleet, sick)

    live = {did for did, end in fleet.expected().items() if end.archived}
    assert set(done.archive) == live - set(host.expected())
    assert sick.last <= 1.1 * alone
    assert done.seconds <= alone + 120
    assert done.view.hosts_aside == 1
    assert done.view.failed[AtprotoCategory.CONNECTION_ERROR] == len(host.expected())
    assert done.crawl.hosts[host.name].reason is AtprotoCategory.CONNECTION_ERROR

    again = crawled(tmp_path / "out", fleet, Sick(host.name, frozenset(), "dead"))
    assert set(again.archive) == live
    assert (again.view.scheduled, again.view.hosts_aside) == (0, 0)


def test_a_host_that_fails_half_of_the_requests_gives_all_its_repos(tmp_path: Path, fleet: Fleet) -> None:
    done = crawled(tmp_path / "out", fleet, Sick(fleet.pds[2].name, None, "half"))

    assert set(done.archive) == {did for did, end in fleet.expected().items() if end.archived}
    assert done.view.scheduled == 0
