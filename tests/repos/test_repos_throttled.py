"""A host that refuses us holds up no other host, and the crawl for no longer than its patience."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from fleet_crawl import Crawled, crawl_fleet
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory
from sanderling.fetch.attempts import Sends
from sanderling.repos.rules import RepoRules
from sanderling.stores.control_file import NOTHING, Control
from sanderling.task import Reply, Task
from sanderling.worlds.pds import Fleet

PATIENCE = 600.0
RULES = RepoRules(patience=PATIENCE)
IN_A_MINUTE, IN_AN_HOUR = (("Retry-After", "60"),), (("Retry-After", "3600"),)


class Refusing:
    """A network at which some hosts or DIDs are refused up to `until`; other DIDs fail when first asked for."""

    def __init__(
        self,
        hosts: set[str],
        reply: tuple[int, tuple[tuple[str, str], ...]] = (429, IN_A_MINUTE),
        *,
        dids: frozenset[str] = frozenset(),
        fail_once: frozenset[str] = frozenset(),
        until: float = float("inf"),
    ) -> None:
        self.asked: Counter[str] = Counter()  # by host
        self.answered = 0.0  # when a host last did anything but refuse
        self._hosts, self._reply = hosts, reply
        self._dids = dids  # those that are refused, at any host
        self._failing = set(fail_once)
        self._until = until

    def through(self, network: FleetNetwork) -> Sends:
        self._network = network
        return self

    async def send(self, task: Task) -> Reply:
        did, now = task.url.partition("did=")[2], asyncio.get_running_loop().time()
        self.asked[task.host] += 1
        if (task.host in self._hosts or did in self._dids) and now < self._until:
            await asyncio.sleep(0.05)
            return Reply(*self._reply, b"", task.url, 0.05)
        if did in self._failing:
            self._failing.discard(did)
            reply = Reply(403, (), b"", task.url, 0.05)
        else:
            reply = await self._network.send(task)
        self.answered = asyncio.get_running_loop().time()
        return reply


def crawled(folder: Path, fleet: Fleet, network: Refusing, rules: RepoRules = RULES, **options: object) -> Crawled:
    done = crawl_fleet(folder, fleet, rules=rules, through=network.through, **options)  # type: ignore[arg-type]
    assert done.complete
    return done


def fleet_of_22() -> tuple[Fleet, set[str], frozenset[str]]:
    """A fleet, two of its hosts, and one DID of every other."""
    fleet = Fleet.make(1, hosts=22, repos=70, others=())
    two = {host.name for host in fleet.pds[2:4]}
    return fleet, two, frozenset(next(iter(host.expected())) for host in fleet.pds if host.name not in two)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> float:
    """When the hosts that answer have done so for the last time, where none refuses us."""
    fleet, _, once = fleet_of_22()
    network = Refusing(set(), fail_once=once)
    crawled(tmp_path_factory.mktemp("fleet") / "alone", fleet, network)
    return network.answered


@pytest.mark.parametrize(
    "reply",
    [(429, IN_A_MINUTE), (429, ()), (429, IN_AN_HOUR), (503, IN_A_MINUTE)],
    ids=["429-60", "429", "429-3600", "503-60"],
)
def test_two_hosts_that_refuse_everything_hold_up_no_other_and_the_end_for_our_patience(
    tmp_path: Path, alone: float, reply: tuple[int, tuple[tuple[str, str], ...]]
) -> None:
    fleet, two, once = fleet_of_22()
    network = Refusing(two, reply, fail_once=once)

    done = crawled(tmp_path / "out", fleet, network)

    refused = {did for host in fleet.pds if host.name in two for did in host.expected()}
    assert len(refused) >= 5
    assert done.view.failed[AtprotoCategory.RATE_LIMITED] == len(refused)
    live = {did for did, end in fleet.expected().items() if end.archived}
    assert set(done.archive) == live - refused, "what failed once at the other hosts too"
    assert network.answered < alone + 5
    assert done.seconds < network.answered + PATIENCE + 5


@pytest.mark.parametrize(("patience", "asks"), [(2.0, 5), (8.0, 5), (20.0, 5), (8.0, 1)])
def test_patience_counts_once_and_not_for_each_pass(tmp_path: Path, patience: float, asks: int) -> None:
    fleet = Fleet.make(1, hosts=1, repos=6, others=())
    network = Refusing({fleet.pds[0].name}, (429, (("Retry-After", str(asks)),)))

    done = crawled(tmp_path / "out", fleet, network, RepoRules(patience=patience))

    assert done.view.failed[AtprotoCategory.RATE_LIMITED] == len(fleet.expected())
    # What is refused is tried twice more within seconds, before the crawl hears of it.
    assert done.seconds < patience + 3 * asks


def test_a_host_that_fails_is_not_called_throttled(tmp_path: Path) -> None:
    fleet = Fleet.make(1, hosts=1, repos=4, others=())

    class Resetting(Refusing):
        async def send(self, task: Task) -> Reply:
            raise ConnectionResetError(task.url)

    done = crawled(tmp_path / "out", fleet, Resetting(set()), RepoRules(patience=20.0))

    assert done.view.failed == {AtprotoCategory.CONNECTION_ERROR: len(fleet.expected())}


def test_a_host_with_a_quota_is_waited_for_as_long_as_it_answers(tmp_path: Path) -> None:
    """It allows 15 requests in 500 seconds: all of it comes, and what failed at it is asked for again."""
    fleet = Fleet.make(1, hosts=1, repos=60, others=())
    (host,) = fleet.pds

    class Quota(Refusing):
        allowed = 0

        async def send(self, task: Task) -> Reply:
            period, gone = divmod(asyncio.get_running_loop().time(), 500)
            if self.allowed >= 15 * (period + 1):
                return Reply(429, (("Retry-After", f"{501 - gone:.0f}"),), b"", task.url, 0.05)
            self.allowed += 1
            return await super().send(task)

    done = crawled(tmp_path / "out", fleet, Quota(set(), fail_once=frozenset(list(host.expected())[:20])))

    assert set(done.archive) == {did for did, end in fleet.expected().items() if end.archived}
    assert 2_000 < done.seconds < 3_500


def test_one_did_that_is_always_refused_costs_no_other(tmp_path: Path) -> None:
    """The host has to be left alone for a minute each time, but what is asked next is another DID."""
    fleet = Fleet.make(1, hosts=1, repos=12, others=())
    first = min(fleet.expected())

    done = crawled(tmp_path / "out", fleet, Refusing(set(), dids=frozenset({first})))

    assert set(done.archive) == {did for did, end in fleet.expected().items() if end.archived} - {first}
    assert done.view.failed[AtprotoCategory.RATE_LIMITED] == 1
    assert done.seconds < 2 * PATIENCE


def test_a_host_that_is_well_again_within_our_patience_is_archived(tmp_path: Path) -> None:
    fleet, two, once = fleet_of_22()

    done = crawled(tmp_path / "out", fleet, Refusing(two, fail_once=once, until=PATIENCE / 2))

    assert set(done.archive) == {did for did, end in fleet.expected().items() if end.archived}


def test_a_pause_does_not_count(tmp_path: Path) -> None:
    """Refused just before an hour's rest, the host is given all our patience after it."""
    fleet, two, _ = fleet_of_22()
    network = Refusing(two, until=3_700 + PATIENCE / 2)

    done = crawled(tmp_path / "out", fleet, network, wanted={10.0: Control(paused=True), 3_700.0: NOTHING})

    assert set(done.archive) == {did for did, end in fleet.expected().items() if end.archived}


def test_what_was_refused_is_asked_for_by_the_next_run(tmp_path: Path) -> None:
    fleet, two, _ = fleet_of_22()
    crawled(tmp_path / "out", fleet, Refusing(two))

    done = crawled(tmp_path / "out", fleet, Refusing(set()))

    assert set(done.archive) == {did for did, end in fleet.expected().items() if end.archived}
    assert AtprotoCategory.RATE_LIMITED not in done.view.failed
