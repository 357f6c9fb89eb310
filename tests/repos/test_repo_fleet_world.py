"""A crawl of repos that machines share, under virtual time: whoever is killed, moves or is cut off, each repo once."""

import asyncio
import io
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from bad_fleet import dead, make_fleet
from fleet_crawl import inline
from fleet_faults import Faults, three
from fleet_world import LEASE, PARTS, FleetWorld, TakesTurns
from frontier_urls import fresh
from moving_accounts import MovingAccounts
from plays import seeds
from turns import TurnPool, rest
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.crawls.fleet_open import OpenedRun, OpeningPart, SharedCrawl
from sanderling.executor import in_threads
from sanderling.fetch.attempts import Sends
from sanderling.fetch.transport import Transport
from sanderling.formats.rca_reader import RcaReader
from sanderling.repos.fleet import RepoPartOpener, RepoPlan, RepoReading
from sanderling.repos.fleet_directory import SharedPages
from sanderling.repos.rules import RepoRules
from sanderling.stores.fleet import WorkerIdentity
from sanderling.stores.fleet_memory import MemoryFleet
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

Scene = Callable[["RepoWorld"], Awaitable[None]]


class TurnLock:
    """What a thread waits for by giving its turn back."""

    held = False

    def __enter__(self) -> None:
        while self.held:
            rest(0.25)
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False


class TurnOpener(TakesTurns, RepoPartOpener):
    """Opens parts whose threads take turns."""

    async def open_run(self, part: OpeningPart) -> OpenedRun:
        opened = await super().open_run(part)
        # Who closes it waits for who writes, which waits for a server.
        opened.run._progress._turn = TurnLock()  # type: ignore[attr-defined]
        return opened


class RepoWorld(FleetWorld):
    """All machines of a crawl of repos, whose accounts may move meanwhile."""

    system = "repos"

    def __init__(self, folder: Path, chance: Random, fleet: Fleet, moves: int, servers: int = 1) -> None:
        self.fleet, self.accounts = fleet, MovingAccounts(fleet, chance, moves)
        super().__init__(folder, chance, servers)
        self.rps = 2.0

    def make_web(self) -> Sends:
        return self.accounts.network(FleetNetwork(self.fleet, LoopClock()))

    def make_plan(self) -> msgspec.Struct:
        return RepoPlan(cids="strip")

    def make_opener(self, folder: Path, shared: SharedCrawl, transport: Callable[[], Transport[Any]]) -> TakesTurns:
        pages = SharedPages(self.accounts, shared, 10, in_threads(TurnPool()))
        rules = RepoRules(page_size=10, patience=30)
        return TurnOpener(folder, shared, self.clock, transport, rules, RepoReading(pages, inline, 10**6))

    async def archived(self) -> Counter[str]:
        """The DIDs that are in commits, by how often."""
        found: Counter[str] = Counter()
        for part in range(PARTS):
            for each in await (await self._server(part)).segments(part, 0):
                body = self.objects.there[f"rows/shore/{each.key}"].body
                found.update(block.did for block in RcaReader(io.BytesIO(body)))
        return found

    async def waiting(self) -> int:
        """Repos that are left to another run."""
        return sum([(await (await self._server(part)).view()).waiting for part in range(len(self.memories))])

    async def go_on(self) -> None:
        """The same command once more, for what is left."""
        for part in range(len(self.memories)):
            await (await self._server(part)).end(done=False)
        await three(self)
        await self.until_done(36_000)

    async def _server(self, part: int) -> MemoryFleet:
        server = MemoryFleet(self.memories[part % len(self.memories)], "shore", WorkerIdentity("reader", "", ""))
        await server.find("shore")
        return server


def play(scene: Scene, fleet: Fleet, seed: int = 0, moves: int = 0, servers: int = 1) -> tuple[RepoWorld, Counter[str]]:
    """Play it to its end, and have what is left asked for; no host was ever asked by two at a time."""

    async def main(folder: Path) -> tuple[RepoWorld, Counter[str]]:
        async with RepoWorld(folder, Random(seed), fleet, moves, servers).running() as world:
            await scene(world)
            await world.until_done(36_000)
            world.accounts.moves = 0
            for _ in range(3):
                if await world.waiting():
                    await world.go_on()
            assert world.two_senders() == []
            assert world.trespasses() == []
            return world, await world.archived()

    with fresh() as folder:
        return run_virtual(main(folder))


def live(fleet: Fleet) -> dict[str, int]:
    return {did: 1 for did, end in fleet.expected().items() if end.archived}


@pytest.mark.parametrize("servers", [1, 2])
def test_machines_archive_all_repos_once_and_end(servers: int) -> None:
    fleet = make_fleet(1, [12] * 12)

    world, archived = play(three, fleet, servers=servers)

    assert archived == live(fleet)
    assert len({each.machine for each in world.asked}) == 3
    assert all(each.task.result() for each in world.machines)


@pytest.mark.parametrize("seed", seeds(8))
def test_accounts_that_move_at_random_are_archived_once_whatever_happens_to_machines(seed: int) -> None:
    """Between hosts of different parts, some of which do not know them any more."""
    fleet = make_fleet(seed, [12] * 12)

    world, archived = play(lambda world: Faults(world).play(8), fleet, seed, moves=300, servers=1 + seed % 2)

    assert archived == live(fleet)
    assert world.accounts.homes != dict(fleet.directory())


def test_what_waits_for_a_host_that_is_away_is_asked_for_where_its_account_has_moved_to() -> None:
    fleet = make_fleet(2, [12] * 10, [dead(AtprotoCategory.TIMEOUT, 9)])
    well = make_fleet(2, [12] * 10, [dead(AtprotoCategory.TIMEOUT, 9)], well=True)
    away, there = fleet.pds[-1].origin, fleet.pds[0].origin

    async def scene(world: RepoWorld) -> None:
        await three(world)
        await world.until_done(36_000)
        assert await world.waiting() == 9
        world.web = world.accounts.network(FleetNetwork(well, LoopClock()))
        world.accounts.homes = {did: there if url == away else url for did, url in world.accounts.homes.items()}

    world, archived = play(scene, fleet)

    assert archived == live(well)
    assert [each.host for each in world.asked].count(fleet.pds[-1].name) < 60


def test_a_part_has_its_share_of_the_memory_of_a_machine_and_not_of_the_fleet() -> None:
    """Else a slow host with many accounts holds up the others of its part, the sooner the more parts there are."""
    shares: list[set[int]] = []

    async def scene(world: RepoWorld) -> None:
        world.rps = 0.1
        for _ in range(4):
            await world.join()
            await asyncio.sleep(2 * LEASE)
            shares.append({each.opener.part_rules().page_size for each in world.machines})  # type: ignore[attr-defined]

    play(scene, make_fleet(6, [40] * 12))

    assert shares == [{10 // 8}, {10 // 4}, {10 // 3}, {10 // 2}]


def test_machines_that_come_later_read_the_directory_as_it_was_read_first() -> None:
    fleet = make_fleet(4, [12] * 12)

    async def scene(world: RepoWorld) -> None:
        await three(world)
        await asyncio.sleep(20)
        for each in world.running_machines:
            each.kill()
        world.accounts.homes = dict.fromkeys(world.accounts.homes, fleet.pds[0].origin)
        await three(world)

    _, archived = play(scene, fleet)

    assert archived == live(fleet)
