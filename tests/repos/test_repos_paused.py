"""A crawl of repos that rests, and one that leaves a host alone, lose nothing by it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from fleet_crawl import Crawled, crawl_fleet
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.attempts import Sends
from sanderling.stores.control_file import NOTHING, Control
from sanderling.task import Reply, Task
from sanderling.worlds.pds import Fleet

PAUSE, GO_ON = 2.0, 3_000.0


class Watched(Sends):
    """Remembers when each host was asked."""

    def __init__(self, network: FleetNetwork) -> None:
        self.network = network
        self.asked: list[tuple[float, str]] = []

    async def send(self, task: Task) -> Reply:
        self.asked.append((asyncio.get_running_loop().time(), task.url))
        return await self.network.send(task)


FLEET = Fleet.make(2, hosts=4, repos=200, others=())


def crawl(folder: Path, wanted: Mapping[float, Control]) -> tuple[Crawled, Watched]:
    made: list[Watched] = []

    def through(network: FleetNetwork) -> Sends:
        made.append(Watched(network))
        return made[0]

    done = crawl_fleet(folder, Fleet.make(2, hosts=4, repos=200, others=()), through=through, wanted=wanted)
    assert done.complete
    return done, made[0]


def test_nothing_is_asked_while_it_is_paused_and_everything_afterwards(tmp_path: Path) -> None:
    done, watched = crawl(tmp_path / "out", {PAUSE: Control(paused=True), GO_ON: NOTHING})

    assert not [when for when, _ in watched.asked if PAUSE + 5 < when < GO_ON]
    assert set(done.archive.values()) == {1}
    assert set(done.archive) == {did for did, end in FLEET.expected().items() if end.archived}


def test_a_host_that_is_left_alone_is_not_asked_and_the_others_are(tmp_path: Path) -> None:
    url = min(host for _, host in FLEET.directory())
    name = url.partition("//")[2].partition(":")[0]

    done, watched = crawl(tmp_path / "out", {PAUSE: Control(hosts=frozenset({name}))})

    later = [asked for when, asked in watched.asked if when > PAUSE + 5]
    assert not [asked for asked in later if asked.startswith(url)]
    assert later
    assert done.seconds < GO_ON, "and the crawl does not wait for it"
    assert done.view.failed[AtprotoCategory.LEFT_ALONE] == done.view.scheduled > 1, "which repos status says"
    assert done.crawl.set_aside == done.view.scheduled
    assert done.view.hosts_aside == 1
    again, _ = crawl(tmp_path / "out", {})
    assert set(again.archive) == {did for did, end in FLEET.expected().items() if end.archived}


def test_a_host_that_is_let_go_is_asked_for_what_went_to_disk_meanwhile(tmp_path: Path) -> None:
    first, second = sorted({host.partition("//")[2].partition(":")[0] for _, host in FLEET.directory()})[:2]
    wanted = {PAUSE: Control(hosts=frozenset({first, second})), PAUSE + 3: Control(hosts=frozenset({second}))}

    done, _ = crawl(tmp_path / "out", {**wanted, PAUSE + 5: NOTHING})

    assert done.crawl.set_aside == done.view.scheduled == done.view.hosts_aside == 0
    assert set(done.archive) == {did for did, end in FLEET.expected().items() if end.archived}
    assert set(done.archive.values()) == {1}
