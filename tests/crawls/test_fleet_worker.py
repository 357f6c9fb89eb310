"""Machines that share a crawl: each page once, never two that ask a host, whatever happens to whom."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fleet_faults import Faults, three
from fleet_world import HOSTS, LEASE, PAGES, PARTS, START, FleetWorld, shore
from frontier_urls import fresh
from plays import seeds
from small_web import Web, crawl, page, reply, twice, web

from sanderling.crawls import fleet_copy, fleet_part, fleet_worker
from sanderling.crawls.fleet_pace import WorkerLateness
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.stores.fleet import WorkerPace
from sanderling.stores.fleet_memory import MemoryFleet
from sanderling.stores.leases import Lease
from sanderling.testing import run_virtual

ALL = HOSTS * PAGES + 1
FEW = 60  # pages of two hosts
Scene = Callable[[FleetWorld], Awaitable[None]]


def play(scene: Scene, seed: int = 0, servers: int = 1) -> FleetWorld:
    """Play it to its end: all that was there is kept, once, and no host was ever asked by two."""

    async def main(folder: Path) -> FleetWorld:
        async with FleetWorld(folder, Random(seed), servers).running() as world:
            await scene(world)
            await world.until_done(3600)
            rows = [each["url"] for each in await world.rows()]
            assert twice(rows) == []
            assert len(rows) == ALL
            assert world.two_senders() == []
            assert world.trespasses() == []
            return world

    with fresh() as folder:
        return run_virtual(main(folder))


def asked_twice(world: FleetWorld) -> int:
    pages = Counter(each.url for each in world.asked if not each.url.endswith("/robots.txt"))
    return sum(number - 1 for number in pages.values())


@pytest.mark.parametrize("servers", [1, 2])
def test_machines_fetch_all_pages_once_and_end(servers: int) -> None:
    world = play(three, servers=servers)

    assert asked_twice(world) == 0
    assert len({each.machine for each in world.asked}) == 3
    assert all(each.task.result() for each in world.machines)


RULES = "http://rules.example/robots.txt"


def ruled() -> Web:
    """Hosts whose robots.txt is that of another host."""
    site = shore()
    for number in range(HOSTS):
        site.answers[f"http://h{number}.example/robots.txt"] = [reply(301, Location=RULES)]
    site.answers[RULES] = [reply(200, b"User-agent: *\nDisallow: /3\n", Content_Type="text/plain")]
    return site


class RuledWorld(FleetWorld):
    """All machines that crawl them."""

    def make_web(self) -> Web:
        return ruled()


def test_robots_txt_that_is_at_another_host_is_asked_by_who_has_that_host(tmp_path: Path) -> None:
    alone = crawl(tmp_path / "one", ruled(), START, allow=("*.example",))

    async def main() -> RuledWorld:
        async with RuledWorld(tmp_path / "many", Random(1)).running() as world:
            await three(world)
            await world.until_done(3600)
            assert sorted(each["url"] for each in await world.rows()) == sorted(alone.fetched)
            return world

    world = run_virtual(main())

    times = sorted(each.begun for each in world.asked if each.url == RULES)
    assert len(times) == HOSTS
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.99 / world.rps
    assert (world.two_senders(), world.trespasses()) == ([], [])


def test_one_machine_is_enough() -> None:
    async def scene(world: FleetWorld) -> None:
        await world.join()

    assert asked_twice(play(scene)) == 0


def test_a_machine_that_joins_has_its_share_within_two_leases() -> None:
    """And so have those that stay, when others leave or are killed."""

    async def scene(world: FleetWorld) -> None:
        world.rps = 0.05
        await world.join()
        await asyncio.sleep(LEASE)
        assert world.shares() == {"m0": PARTS}
        for number in (2, 3, 4):
            await world.join()
            await asyncio.sleep(2 * LEASE)
            assert_fair(world, number)
        world.machines[1].leave()
        await asyncio.sleep(2 * LEASE)
        assert_fair(world, 3)
        world.machines[0].kill()
        await asyncio.sleep(2 * LEASE)
        assert_fair(world, 2)

    play(scene)


class LateWith(WorkerLateness):
    """The lateness of a machine that keeps up with one part."""

    def __init__(self, worker: FleetWorker) -> None:
        super().__init__()
        self._worker = worker

    def measure(self) -> WorkerPace:
        self.ran(1.0, max(1.0, len(self._worker.parts)))
        return super().measure()


def test_a_machine_that_does_not_keep_up_gives_parts_to_the_others() -> None:
    async def main(folder: Path) -> dict[str, int]:
        async with FleetWorld(folder, Random(1)).running() as world:
            world.rps = 0.05
            await three(world)
            slow = world.machines[0].worker
            slow.lateness = LateWith(slow)
            await asyncio.sleep(4 * LEASE)
            return world.shares()

    with fresh() as folder:
        shares = run_virtual(main(folder))

    assert shares["m0"] <= 2
    assert min(shares["m1"], shares["m2"]) >= 3


def assert_fair(world: FleetWorld, machines: int) -> None:
    shares = world.shares()
    assert len(shares) == machines
    assert sum(shares.values()) == PARTS
    assert max(shares.values()) - min(shares.values()) <= 1


def test_a_part_that_comes_back_while_it_is_closed_is_opened_after_that() -> None:
    """It was lost, which is noticed at every beat, and to close it takes longer than to get it back."""

    async def scene(world: FleetWorld) -> None:
        world.rps = 0.05
        lost, other = await world.join(), await world.join()
        await asyncio.sleep(2 * LEASE)
        lost.opener.closing, lost.link.cut = 1.5 * LEASE, True
        await asyncio.sleep(1.5 * LEASE)
        lost.link.cut = False
        await asyncio.sleep(0.3 * LEASE)
        other.leave()

    world = play(scene)

    assert world.machines[0].worker.figures.lost == PARTS // 2
    assert [each.worker.figures.failures for each in world.machines] == [{}, {}]


def test_a_part_that_is_lost_while_it_is_given_back_is_closed_all_the_same() -> None:
    async def scene(world: FleetWorld) -> None:
        world.rps = 0.05
        lost = await world.join()
        await asyncio.sleep(2 * LEASE)
        lost.opener.closing = 4 * LEASE
        other = await world.join()
        await asyncio.sleep(LEASE / 3)
        lost.link.cut = True
        await asyncio.sleep(1.5 * LEASE)
        lost.link.cut = False
        await asyncio.sleep(LEASE / 3)
        other.leave()

    assert [each.worker.figures.failures for each in play(scene).machines] == [{}, {}]


# The last have found that a ledger was written in the event loop, which then waited for a server.
@pytest.mark.parametrize("seed", [*seeds(10), 117, 140, 199])
def test_whatever_happens_nothing_is_missing_and_nothing_twice(seed: int) -> None:
    play(lambda world: Faults(world).play(12), seed, servers=1 + seed % 2)


@pytest.mark.parametrize("seed", seeds(4))
def test_a_part_goes_on_from_its_snapshot(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots all the time: whoever has a part next begins with one, and the log behind it."""
    monkeypatch.setattr(fleet_copy, "SMALLEST_LOG", 0)
    made = 0
    keep = fleet_copy.LedgerCopy.keep_snapshot

    def counted(copy: fleet_copy.LedgerCopy, lease: Lease) -> str:
        nonlocal made
        made += 1
        return keep(copy, lease)

    monkeypatch.setattr(fleet_copy.LedgerCopy, "keep_snapshot", counted)
    play(lambda world: Faults(world).play(12), seed, servers=1 + seed % 2)

    assert made > 10


def test_the_same_seed_is_the_same_run() -> None:
    runs = [play(lambda world: Faults(world).play(8), 5).asked for _ in range(2)]

    assert runs[0] == runs[1]


def test_who_has_asked_for_as_much_as_is_wanted_still_keeps_what_others_find_for_it() -> None:
    """Else what is on its way to it would be waited for, by all."""

    async def main(folder: Path) -> None:
        async with FleetWorld(folder, Random(1)).running() as world:
            world.rules = replace(world.rules, max_pages=20)
            await three(world)
            await world.until_done(600)
            rows = [each["url"] for each in await world.rows()]
            assert twice(rows) == []
            assert 20 <= len(rows) < ALL

    with fresh() as folder:
        run_virtual(main(folder))


def few_hosts() -> Web:
    """Two hosts, of which one leads to the other, when that has come to its end."""
    pages = [f"http://h{int(number > 6)}.example/{number}" for number in range(FEW)]
    site = web(**{START: page(*pages)})
    for number, url in enumerate(pages):
        late = [f"http://h0.example/late/{number}"] if number % 10 == 9 else []
        site.answers[url] = [page(*late)]
        site.answers |= {each: [page()] for each in late}
    return site


def test_who_has_nothing_to_do_asks_servers_rarely_and_the_end_is_seen_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight machines of which two have hosts: the others wait, and then all end."""
    asked: Counter[str] = Counter()

    def counted(name: str) -> None:
        real = getattr(MemoryFleet, name)

        def ask(server: MemoryFleet, *args: Any) -> Any:  # noqa: ANN401 - as it is
            asked[name] += 1
            return real(server, *args)

        monkeypatch.setattr(MemoryFleet, name, ask)

    async def main(folder: Path) -> float:
        async with FleetWorld(folder, Random(3)).running() as world:
            world.web = few_hosts()
            for _ in range(PARTS):
                await world.join()
            await world.until_done(3600)
            assert len(await world.rows()) == 1 + FEW + FEW // 10
            return world.clock.now()

    def play_it() -> tuple[float, Counter[str]]:
        asked.clear()
        with fresh() as folder:
            return run_virtual(main(folder)), asked.copy()

    counted("receive")
    counted("view")
    counted("keep_limiter")
    seconds, often = play_it()
    monkeypatch.setattr(fleet_worker, "IDLE_LISTENS", 1.0)  # of eight machines: each every eight seconds
    monkeypatch.setattr(fleet_worker, "IDLE_LOOKS", 0.1)
    later, rarely = play_it()

    assert later < seconds + 3 * LEASE
    assert rarely["receive"] < often["receive"] / 2
    assert rarely["view"] < often["view"] / 2
    assert rarely["keep_limiter"] < PARTS * later / fleet_part.KEEP_EVERY / 2  # they have learned nothing
