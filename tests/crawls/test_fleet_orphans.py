"""What no commit has is deleted by whoever has the part next, and never what a commit or a snapshot names."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from fake_objects import MemoryObjects
from fleet_faults import Faults, three
from fleet_world import LEASE, PARTS, FleetWorld, Machine
from frontier_urls import fresh
from plays import seeds

from sanderling.crawls import fleet_copy
from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.crawls.fleet_log import NUMBERS, ObjectPlace, captures_of, rows_folder
from sanderling.crawls.fleet_orphans import LATER, OrphanSearch, delete_orphans, snapshot_key
from sanderling.stores.fleet import FleetCrawl, PartCommit, WorkerIdentity
from sanderling.stores.fleet_memory import FleetMemory, MemoryFleet
from sanderling.stores.leases import HeldLease, Lease, LeasesAwayError
from sanderling.stores.objects import ObjectFault
from sanderling.testing import FakeClock, run_virtual

SECONDS, ROW = 30.0, "aa"
CRAWL = FleetCrawl(
    name="web", id="1", system="pages", plan="{}", parts=2, seconds=SECONDS, ledger="1", objects="", started=0.0
)
Scene = Callable[[FleetWorld], Awaitable[None]]


# In a world of machines.


class Watched:
    """Sees that nothing is deleted that is named, and counts what is."""

    def __init__(self, world: FleetWorld) -> None:
        self.deleted: Counter[str] = Counter()  # rows, snapshots
        self._world = world
        self._delete = world.objects.delete
        world.objects.delete = self.delete  # type: ignore[method-assign]

    async def delete(self, bucket: str, key: str) -> None:
        name = key.removeprefix("shore/")
        assert name not in self.named()
        await self._delete(bucket, key)
        self.deleted[name.partition("/")[0]] += 1

    def named(self) -> set[str]:
        parts = [part for memory in self._world.memories for part in memory.crawls["shore"].parts.values()]
        return {each.key for each in parts if each.key} | {each.key for part in parts for each in part.segments}

    @property
    def there(self) -> set[str]:
        return {path.removeprefix("rows/shore/") for path in self._world.objects.there}

    def orphans(self) -> set[str]:
        return self.there - self.named()

    async def take_all_over(self) -> None:
        """Everybody is gone for long, and somebody takes each part."""
        place = ObjectPlace(cast("Any", self._world.objects), "rows", "shore/")
        await asyncio.sleep(2 * LEASE)
        for memory in self._world.memories:
            server = MemoryFleet(memory, "shore", WorkerIdentity("last", "", ""))
            await server.find("shore")
            for lease in await server.acquire(PARTS):
                await delete_orphans(server, place, lease, ())


def play(scene: Scene, seed: int = 0, servers: int = 1) -> Watched:
    async def main(folder: Path) -> Watched:
        async with FleetWorld(folder, Random(seed), servers).running() as world:
            watched = Watched(world)
            await scene(world)
            await world.until_done(3600)
            await world.rows()  # which reads all that commits have
            assert watched.named() <= watched.there
            await watched.take_all_over()
            assert watched.orphans() == set()
            await world.rows()
            return watched

    with fresh() as folder:
        return run_virtual(main(folder))


class Deaths(Faults):
    """Who is killed has mostly put rows that it could not commit."""

    async def kill(self) -> None:
        if machine := self.machine():
            lose_rows(machine)
            await asyncio.sleep(self.chance.uniform(0, LEASE))
            machine.kill()


def lose_rows(machine: Machine) -> None:
    """Have no commit of rows arrive from now on."""
    for server in machine.worker._fleet.servers:

        async def lose(made: PartCommit, commit: Any = server.commit) -> None:  # noqa: ANN401 - as it is
            await (away() if made.segment else commit(made))

        server.commit = lose  # type: ignore[assignment,method-assign]


@pytest.mark.parametrize("seed", [1 + seed for seed in seeds(8)])
def test_whoever_is_killed_nothing_that_counts_is_deleted_and_no_orphan_is_left(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(fleet_copy, "SMALLEST_LOG", 0)
    watched = play(lambda world: Deaths(world).play(14), seed, servers=1 + seed // 2 % 2)

    assert watched.deleted["snapshots"] > 0 if seed % 2 else watched.deleted["rows"] > 0


async def away(*_: object) -> Any:  # noqa: ANN401 - whatever somebody waits for
    raise LeasesAwayError("away")


def test_what_one_put_and_could_not_commit_is_gone_some_leases_after_it_died() -> None:
    async def scene(world: FleetWorld) -> None:
        world.rps = 0.1
        await three(world)
        watched, dying = Watched(world), world.machines[0]
        lose_rows(dying)
        async with asyncio.timeout(10 * LEASE):
            while not (left := watched.orphans()):  # noqa: ASYNC110 - of a world that tells nobody
                await asyncio.sleep(0.1)
        dying.kill()
        await asyncio.sleep((LATER - 0.5) * LEASE)
        assert watched.orphans() >= left  # it is not long that they are orphans
        await asyncio.sleep((LATER + 3) * LEASE)
        assert not watched.orphans() & left

    play(scene)


# By hand.


class Hand:
    """A part that changes hands, and the objects of it."""

    def __init__(self) -> None:
        self.clock, self.objects = FakeClock(), MemoryObjects()
        self.place = ObjectPlace(cast("Any", self.objects), "rows", "web/")
        self._memory = FleetMemory(self.clock.wall)
        self._owners = 0

    async def own(self) -> tuple[MemoryFleet, Lease]:
        """The next owner."""
        self._owners += 1
        server = MemoryFleet(self._memory, "web", WorkerIdentity(f"w{self._owners}", "", ""))
        await server.begin(CRAWL, range(2))
        self.clock.advance(2 * SECONDS)
        (lease,) = await server.acquire(1, [0])
        return server, lease

    async def put(self, key: str) -> str:
        await self.place.put(key, b"rows")
        return key

    async def rows(self, lease: Lease, number: int, token: str = ROW) -> str:
        return await self.put(f"{rows_folder(lease.part, number)}/{lease.epoch:06}-{number:09}-{token}")

    async def commit(self, server: MemoryFleet, lease: Lease, number: int, token: str = ROW) -> str:
        """Commits without rows up to one that has some."""
        for head in range((await server.state(lease.part)).head, number - 1):
            await server.commit(PartCommit(lease._replace(head=head), "t", b""))
        key = await self.rows(lease, number, token)
        await server.commit(PartCommit(lease._replace(head=number - 1), token, b"", key, 4))
        return key

    @property
    def there(self) -> set[str]:
        return {path.removeprefix("rows/web/") for path in self.objects.there}

    def search(self, server: MemoryFleet, lease: Lease) -> OrphanSearch:
        held = HeldLease(lease, SECONDS, self.clock.now, self.clock.now())
        return OrphanSearch(FleetStores([server], DirectStoreCaller()), held, self.place, self.clock)


@pytest.mark.parametrize("head", [1, 7, NUMBERS - 2, NUMBERS - 1, NUMBERS, 3 * NUMBERS])
def test_rows_that_an_earlier_owner_left_around_its_head_are_found_and_those_of_others_left(head: int) -> None:
    async def main() -> None:
        hand = Hand()
        one, first = await hand.own()
        kept = {await hand.commit(one, first, head)}
        left = {await hand.rows(first, head + 1), await hand.rows(first, head, "bb")}
        left.add(await hand.rows(first, head + 5))  # of commits that a server has forgotten
        left |= {await hand.put(captures_of(each)) for each in sorted(left)}
        kept |= {await hand.put(captures_of(each)) for each in sorted(kept)}
        two, second = await hand.own()
        kept.add(await hand.rows(second, head + 1))  # which it is about to commit
        kept.add(await hand.rows(second._replace(epoch=9), head + 1))
        kept.add(await hand.rows(first._replace(part=1), head + 1))
        kept.add(await hand.put(f"{rows_folder(0, head)}/notes.txt"))
        kept.add(await hand.put(f"files/0000/{first.epoch:06}-{head:09}-aa"))
        assert await delete_orphans(one, hand.place, first, ()) == 0  # who has lost the part deletes nothing

        assert await delete_orphans(two, hand.place, second, ()) == len(left)
        assert hand.there == kept

    asyncio.run(main())


def test_to_look_for_orphans_lists_no_more_where_more_rows_are() -> None:
    async def main() -> None:
        hand = Hand()
        one, first = await hand.own()
        await hand.commit(one, first, 5 * NUMBERS)
        listed: list[str] = []
        names = hand.objects.list

        def noted(bucket: str, prefix: str) -> Any:  # noqa: ANN401 - as it is
            listed.append(prefix.removeprefix("web/"))
            return names(bucket, prefix)

        hand.objects.list = noted  # type: ignore[method-assign]
        two, second = await hand.own()
        await delete_orphans(two, hand.place, second, ())

        assert sorted(listed) == [
            *(f"rows/0000/00000{folder}" for folder in (4, 5, 6)),
            "snapshots/0000",
            *(f"warc/0000/00000{folder}" for folder in (4, 5, 6)),
        ]

    asyncio.run(main())


def test_a_snapshot_goes_some_leases_after_another_took_its_place() -> None:
    """A replica that takes the server's place may still need it."""

    async def main() -> None:
        hand = Hand()
        one, first = await hand.own()
        for number in (1, 2, 3):
            await hand.commit(one, first, number)
        await one.keep_snapshot(first, 1, "a1", await hand.put(snapshot_key(first, 1, "a1")))
        left = await hand.put(snapshot_key(first, 2, "a2"))  # it died before it could say so
        two, second = await hand.own()
        search, wait = hand.search(two, second), LATER * SECONDS
        hand.clock.advance(wait - 1)
        await two.keep_snapshot(second, 3, "a3", await hand.put(snapshot_key(second, 3, "a3")))
        search.replace(snapshot_key(first, 1, "a1"))
        await search.look()
        assert left in hand.there

        hand.clock.advance(1)
        await search.look()
        assert {each for each in hand.there if "snap" in each} == {
            snapshot_key(first, 1, "a1"),
            snapshot_key(second, 3, "a3"),
        }
        hand.clock.advance(wait - 1)
        await search.look()
        assert {each for each in hand.there if "snap" in each} == {snapshot_key(second, 3, "a3")}
        assert search.deleted == 2
        asked: list[str] = []
        hand.objects.fails = asked.append
        hand.clock.advance(10 * wait)
        await search.look()
        assert asked == []

    asyncio.run(main())


@pytest.mark.parametrize("what", ["the server", "the store"])
def test_while_somebody_is_away_orphans_wait(what: str) -> None:
    async def main() -> None:
        hand = Hand()
        one, first = await hand.own()
        await hand.commit(one, first, 1)
        left = await hand.rows(first, 2)
        two, second = await hand.own()
        search = hand.search(two, second)

        unnamed, fails = two.unnamed, hand.objects.fails
        if what == "the server":
            two.unnamed = away  # type: ignore[assignment,method-assign]
        else:
            hand.objects.fails = lambda _: ObjectFault.DOWN
        hand.clock.advance(LATER * SECONDS)
        await search.look()
        assert left in hand.there

        two.unnamed, hand.objects.fails = unnamed, fails  # type: ignore[method-assign]
        hand.clock.advance(LATER * SECONDS)
        await search.look()
        assert left not in hand.there

    asyncio.run(main())


def test_the_first_owner_of_a_part_looks_for_nothing() -> None:
    async def main() -> None:
        hand = Hand()
        search = hand.search(*await hand.own())
        asked: list[str] = []
        hand.objects.fails = asked.append
        hand.clock.advance(10 * LATER * SECONDS)
        await search.look()
        assert asked == []

    asyncio.run(main())
