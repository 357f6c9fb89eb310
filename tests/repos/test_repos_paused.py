"""A crawl of repos that rests, and one that leaves a host alone, lose nothing by it."""

import asyncio
from pathlib import Path

from fleet_crawl import crawl_fleet

from sanderling.fetch.attempts import Sends
from sanderling.stores.control_file import NOTHING, Control
from sanderling.task import Reply, Task
from sanderling.worlds.pds import Fleet
from sanderling.worlds.pds_network import FleetNetwork

PAUSE, GO_ON = 2.0, 3_000.0


class Watched(Sends):
    """Remembers when each host was asked."""

    def __init__(self, network: FleetNetwork) -> None:
        self.network = network
        self.asked: list[tuple[float, str]] = []

    async def send(self, task: Task) -> Reply:
        self.asked.append((asyncio.get_running_loop().time(), task.url))
        return await self.network.send(task)


def crawled(folder: Path, wanted: Control) -> tuple[Fleet, Watched, set[str]]:
    fleet = Fleet.make(2, hosts=4, repos=200, others=())
    made: list[Watched] = []

    def through(network: FleetNetwork) -> Sends:
        made.append(Watched(network))
        return made[0]

    done = crawl_fleet(folder, fleet, through=through, wanted={PAUSE: wanted, GO_ON: NOTHING})
    assert done.complete
    assert set(done.archive.values()) == {1}
    return fleet, made[0], set(done.archive)


def test_nothing_is_asked_while_it_is_paused_and_everything_afterwards(tmp_path: Path) -> None:
    fleet, watched, archive = crawled(tmp_path / "out", Control(paused=True))

    assert not [when for when, _ in watched.asked if PAUSE + 5 < when < GO_ON]
    assert archive == {did for did, end in fleet.expected().items() if end.archived}


def test_a_host_that_is_left_alone_is_not_asked_and_the_others_are(tmp_path: Path) -> None:
    url = min(host for _, host in Fleet.make(2, hosts=4, repos=200, others=()).directory())
    name = url.partition("//")[2].partition(":")[0]

    fleet, watched, archive = crawled(tmp_path / "out", Control(hosts=frozenset({name})))

    later = [asked for when, asked in watched.asked if PAUSE + 5 < when < GO_ON]
    assert not [asked for asked in later if asked.startswith(url)]
    assert later
    assert archive == {did for did, end in fleet.expected().items() if end.archived}
