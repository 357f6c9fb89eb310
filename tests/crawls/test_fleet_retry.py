"""What failed in a crawl that machines share is asked for again when somebody wants that: once, whoever has a part."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from fleet_faults import three
from fleet_world import HOSTS, START, FleetWorld
from frontier_urls import fresh
from small_web import Web, page, web

from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.stores.fleet import WorkerIdentity
from sanderling.stores.fleet_memory import MemoryFleet
from sanderling.testing import run_virtual

GONE = [f"http://h{number}.example/gone" for number in range(HOSTS)]


class BrokenWorld(FleetWorld):
    """Machines, and a page with broken links to all hosts; to read its own host takes a minute."""

    def make_web(self) -> Web:
        chain = {f"{START}{number}": page(f"/{number + 1}") for number in range(30)}
        return web(**{START: page(*GONE, "/0"), **chain})

    def asked_for(self) -> Counter[str]:
        return Counter(each.url for each in self.asked if each.url in GONE)

    async def stores(self) -> FleetStores:
        """The servers, as somebody sees them who does not work."""
        servers = [MemoryFleet(memory, "shore", WorkerIdentity("operator", "here", "1.0")) for memory in self.memories]
        for each in servers:
            await each.find("shore")
        return FleetStores(servers, DirectStoreCaller())


@pytest.mark.parametrize("servers", [1, 2])
def test_machines_that_work_ask_again_for_what_has_failed_so_far(servers: int) -> None:
    async def main(folder: Path) -> None:
        async with BrokenWorld(folder, Random(3), servers).running() as world:
            await three(world)
            await asyncio.sleep(20)
            assert world.asked_for() == Counter(GONE)
            await (await world.stores()).retry(1)
            await world.until_done(600)
            assert world.asked_for() == Counter(GONE * 2)
            assert world.two_senders() == []

    with fresh() as folder:
        run_virtual(main(folder))


@pytest.mark.parametrize(("seed", "servers"), [(0, 1), (1, 2), (2, 1)])
def test_what_failed_is_asked_for_once_more_by_whoever_opens_its_part(seed: int, servers: int) -> None:
    async def main(folder: Path) -> None:
        async with BrokenWorld(folder, Random(seed), servers).running() as world:
            await three(world)
            await world.until_done(600)
            assert world.asked_for() == Counter(GONE)

            await (await world.stores()).retry(1)
            killed = await world.join()
            await asyncio.sleep(world.chance.uniform(0.1, 5.0))
            killed.kill()
            await three(world)
            await world.until_done(600)
            assert min((world.asked_for() - Counter(GONE)).get(url, 0) for url in GONE) >= 1
            assert max(world.asked_for().values()) <= 3  # what was not committed when one was killed

            before = world.asked_for()
            await (await world.stores()).end(done=False)
            await three(world)
            await world.until_done(600)
            assert world.asked_for() == before
            assert world.two_senders() == []

    with fresh() as folder:
        run_virtual(main(folder))
