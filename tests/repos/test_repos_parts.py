"""A crawl of repos in parts, under virtual time: whoever is killed, moves or hangs, every DID ends once."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from bad_fleet import dead, make_fleet
from fleet_crawl import Listed, crawl_fleet
from hypothesis import given
from hypothesis import strategies as st
from moving_accounts import MovingAccounts
from parts_crawl import RULES, CrawledParts, VirtualParts
from plays import seeds
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.crawls.parts import folders_of
from sanderling.repos.directory import DirectoryEntry, DirectoryError
from sanderling.repos.hand_out import PartLookup
from sanderling.repos.parts import settle_moves, share_slots
from sanderling.stores.ports import FIRST, HostAside, Unfinished
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.task import Reply, Task
from sanderling.worlds.pds import Fleet

FAR = 2**40


def live(fleet: Fleet) -> dict[str, int]:
    return {did: 1 for did, end in fleet.expected().items() if end.archived}


def categories(fleet: Fleet) -> dict[str, int]:
    dead = Counter(end.category.value for end in fleet.expected().values() if end.category is not None)
    return dict(sorted(dead.items()))


@pytest.mark.parametrize("seed", seeds(4))
def test_whoever_is_killed_every_repo_is_archived_once_and_each_host_asked_by_one_part(
    tmp_path: Path, seed: int
) -> None:
    rng, fleet = Random(seed), Fleet.make(seed, hosts=20, repos=300)
    kills = {rng.uniform(0.2, 40): rng.randrange(8) for _ in range(12)}

    crawled = VirtualParts(tmp_path / "out", fleet, kills=kills).run()

    assert crawled.complete
    assert crawled.archive == live(fleet)
    assert crawled.view.failed == categories(fleet)
    assert crawled.view.cursor == ""
    assert crawled.view.total_crawled == len(live(fleet))
    assert {len(parts) for parts in crawled.senders.values()} == {1}
    assert len(set().union(*crawled.senders.values())) > 4, "hardly any part had hosts"


@pytest.mark.parametrize("seed", seeds(3))
def test_all_killed_again_and_again_it_goes_on(tmp_path: Path, seed: int) -> None:
    rng, fleet = Random(seed), Fleet.make(seed, hosts=12, repos=200, others=())
    for _ in range(4):
        left = VirtualParts(tmp_path / "out", fleet, die_at=rng.uniform(0.5, 6)).run()
        assert not left.complete

    crawled = VirtualParts(tmp_path / "out", fleet).run()

    assert crawled.archive == live(fleet)
    assert crawled.view.failed == categories(fleet)


def test_what_one_process_began_is_gone_on_with_in_parts(tmp_path: Path) -> None:
    fleet, out = Fleet.make(5, hosts=12, repos=300), tmp_path / "out"
    crawl_fleet(tmp_path / "one", fleet, stop_after=20)
    (tmp_path / "one" / "rca").rename(out)
    (tmp_path / "one" / "progress.db").rename(out / "progress.db")
    with_due = SqliteProgress(out / "progress.db")
    before, scheduled = with_due.view(), len(with_due.due(FIRST, FAR, 1000))
    with_due.record([], [], cursor=None, segment=before.segment, hosts=[HostAside("away.example", "timeout", 5)])
    with_due.close()
    assert 0 < before.total_crawled < len(live(fleet))
    assert scheduled

    crawled = VirtualParts(out, fleet).run()

    assert crawled.archive == live(fleet)
    assert crawled.view.failed == categories(fleet)
    left = SqliteProgress(out / "progress.db").view()
    assert (left.scheduled, left.hosts_aside) == (0, 0), "what one process had set aside is said for ever"


class Elsewhere:
    """A network where a repo can be had at whatever host the directory says."""

    def __init__(self, network: FleetNetwork) -> None:
        self._network = network
        self._home = dict(network.fleet.directory())

    async def send(self, task: Task) -> Reply:
        did = task.url.partition("did=")[2].partition("&")[0].replace("%3A", ":")
        path = "/" + task.url.split("/", 3)[3]
        return await self._network.send(replace(task, url=self._home[did] + path))


def shuffled(fleet: Fleet, seed: int) -> list[tuple[str, str]]:
    """The same DIDs, at other hosts of the fleet."""
    entries = list(fleet.directory())
    hosts = [host for _, host in entries]
    Random(seed).shuffle(hosts)
    return [(did, host) for (did, _), host in zip(entries, hosts, strict=True)]


def test_accounts_that_move_between_runs_are_archived_once_and_asked_only_where_they_are(tmp_path: Path) -> None:
    fleet = make_fleet(1, [20] * 12, [dead(AtprotoCategory.TIMEOUT, 15)])
    bad = fleet.pds[-1].origin
    first = VirtualParts(tmp_path / "out", fleet, through=Elsewhere).run()
    assert first.view.failed["timeout"] == 15
    well = make_fleet(1, [20] * 12, [dead(AtprotoCategory.TIMEOUT, 15)], well=True)
    moved = [entry for entry in shuffled(well, 2) if entry[1] != bad]
    moved += [(did, fleet.pds[0].origin) for did, host in shuffled(well, 2) if host == bad]

    second = VirtualParts(tmp_path / "out", well, Listed(moved), through=Elsewhere).run()

    assert second.archive == live(well)
    assert (second.view.failed, second.view.scheduled, second.complete) == (categories(well), 0, True)
    assert sum(second.sent.values()) == 15, "what was archived before was asked for again"


@pytest.mark.parametrize("seed", seeds(8))
def test_accounts_that_move_at_random_are_archived_once_whoever_is_killed(tmp_path: Path, seed: int) -> None:
    """Also all of them, again and again: what a part was handed then may be at a host of another in the next run."""
    rng, fleet, out = Random(seed), make_fleet(seed, [12] * 12), tmp_path / "out"
    accounts = MovingAccounts(fleet, rng, moves=0)

    def crawl(moves: int, die_at: float | None) -> CrawledParts:
        accounts.moves, kills = moves, {rng.uniform(0.2, 10): rng.randrange(8) for _ in range(4)}
        rules = replace(RULES, page_size=12)
        return VirtualParts(
            out, fleet, accounts, rules=rules, through=accounts.network, kills=kills, die_at=die_at
        ).run()

    for _ in range(4):
        crawl(60, rng.uniform(0.5, 3))
    if seed % 2:
        crawl(200, None)
    crawled = crawl(0, None)

    assert crawled.archive == live(fleet)
    assert (crawled.complete, crawled.view.scheduled, crawled.view.failed) == (True, 0, categories(fleet))


class Failing(Listed):
    """A directory one page of which cannot be read."""

    def __init__(self, entries: Sequence[tuple[str, str]], fails: int) -> None:
        super().__init__(entries)
        self._left = fails

    def page(self, after: str, limit: int) -> list[DirectoryEntry]:
        self._left -= 1
        if self._left == 0:
            raise DirectoryError("the server is away")
        return super().page(after, limit)


def test_a_page_of_the_directory_that_fails_ends_it_and_nothing_is_lost(tmp_path: Path) -> None:
    fleet = Fleet.make(6, hosts=12, repos=300, others=())
    failing = Failing(list(fleet.directory()), 3)
    with pytest.raises(ExceptionGroup) as failed:
        VirtualParts(tmp_path / "out", fleet, failing, rules=replace(RULES, page_size=40)).run()
    assert failed.group_contains(DirectoryError)

    crawled = VirtualParts(tmp_path / "out", fleet).run()

    assert crawled.archive == live(fleet)


def test_a_host_with_nearly_all_repos_holds_up_no_other(tmp_path: Path) -> None:
    """Neither its own part's hosts nor those of others wait for it, nor for one that never answers."""
    fleet = make_fleet(7, [990, *[1] * 10], [dead(AtprotoCategory.TIMEOUT, 3)])
    ends: dict[str, float] = {}

    class Timed:
        def __init__(self, network: FleetNetwork) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            reply = await self._network.send(task)
            ends[task.host] = asyncio.get_running_loop().time()
            return reply

    rules = replace(RULES, page_size=4)  # of which fifty are in memory at most
    crawled = VirtualParts(tmp_path / "out", fleet, rules=rules, through=Timed).run()

    big = fleet.pds[0].name
    assert crawled.archive == live(fleet)
    assert crawled.view.failed == categories(fleet)
    assert ends.pop(big) > 60
    assert max(ends.values()) < 10


def test_parts_that_have_nothing_to_do_wait_for_a_directory_that_is_slow(tmp_path: Path) -> None:
    fleet = make_fleet(11, [5] * 12)

    crawled = VirtualParts(tmp_path / "out", fleet, rules=replace(RULES, page_size=15), reading=20).run()

    assert crawled.seconds > 100
    assert crawled.archive == live(fleet)


def test_a_host_that_comes_back_while_other_parts_are_busy_is_asked_in_the_same_run(tmp_path: Path) -> None:
    fleet = make_fleet(8, [400, 12])
    away = fleet.pds[1].name
    lookup = PartLookup(8)
    assert lookup(fleet.pds[0].origin) != lookup(fleet.pds[1].origin)

    class Outage:
        def __init__(self, network: FleetNetwork) -> None:
            self._network = network

        async def send(self, task: Task) -> Reply:
            if task.host == away and asyncio.get_running_loop().time() < 45:
                raise ConnectionRefusedError
            return await self._network.send(task)

    crawled = VirtualParts(tmp_path / "out", fleet, through=Outage).run()

    assert crawled.archive == live(fleet)
    assert crawled.view.failed == categories(fleet)


def test_what_is_scheduled_goes_to_the_part_of_its_host_as_it_is(tmp_path: Path) -> None:
    """Also where all cursors are behind it, so that no walk of the directory comes by."""
    stores = [SqliteProgress(tmp_path / f"{part}.db") for part in range(8)]
    hosts = [f"https://host{number}.example" for number in range(40)]
    entries = [(f"did:plc:{number:03}", host) for number, host in enumerate(hosts)]
    lookup = PartLookup(8)
    for number, (did, host) in enumerate(entries):
        scheduled(stores[lookup(host) if number % 2 else 3], did, failures=number)
    scheduled(stores[3], "did:plc:nowhere")

    moved = settle_moves(stores, 8, Listed(entries))

    assert moved == sum(1 for _, host in entries[::2] if lookup(host) != 3)
    for part, store in enumerate(stores):
        own = {did: number for number, (did, host) in enumerate(entries) if lookup(host) == part}
        own |= {"did:plc:nowhere": 2} if part == 3 else {}
        assert {each.did: each.failures for each in store.due(FIRST, FAR, 100)} == own
        assert store.reasons(list(own)) == dict.fromkeys(own, "timeout")
    assert settle_moves(stores, 8, Listed(entries)) == 0


def test_what_is_scheduled_twice_since_a_move_was_cut_short_ends_once(tmp_path: Path) -> None:
    """It was recorded in the new part, and the old one has not let go of it."""
    fleet = make_fleet(9, [10] * 12)
    VirtualParts(tmp_path / "out", fleet, die_at=0.05).run()
    (did, home), *_ = fleet.directory()
    stores = [SqliteProgress(each / "progress.db") for each in folders_of(tmp_path / "out")]
    own = PartLookup(8)(home)
    for part in (own, (own + 1) % 8):
        scheduled(stores[part], did)

    crawled = VirtualParts(tmp_path / "out", fleet).run()

    assert crawled.archive == live(fleet)
    assert (crawled.view.scheduled, crawled.view.failed) == (0, categories(fleet))


def scheduled(store: SqliteProgress, did: str, failures: int = 2) -> None:
    failed = Unfinished(did, "timeout", permanent=False, failures=failures, due=5)
    store.record([], [failed], cursor=None, segment=0)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(1, 200))
def test_slots_are_shared_and_what_one_does_not_use_the_others_get(inflight: list[int], most: int) -> None:
    shares = share_slots(inflight, most)

    assert all(share >= max(1, most // len(inflight)) for share in shares)
    if sum(inflight) <= most:
        for own, share in zip(inflight, shares, strict=True):
            assert share >= own
            assert share - own <= max(1, most // len(inflight), most - sum(inflight))
