"""The simulated fleet in process, asked by a patient archive: what it ends with is what the fleet says it should."""

import asyncio
from random import Random

import pytest
from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory, get_latest_commit, get_repo, list_repos, why_not, why_unsound
from sanderling.fetch.attempts import EXPECTED, Fetched, Fetcher
from sanderling.fetch.classify import of_error
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import HttpRules
from sanderling.formats.repo import RepoError, parse_repo
from sanderling.limit import Limiter
from sanderling.outcome import Code
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet
from sanderling.worlds.pds_hosts import Expected, PdsHost

RULES = HttpRules(most_decoded=8 * 2**20)  # so that a bomb costs little
PASSES = 6


def make() -> Fleet:
    return Fleet.make(1, hosts=5, repos=60)


def filed(fetched: Fetched, did: str) -> Expected:
    """What an archive makes of an answer."""
    if not fetched.outcome.ok or fetched.reply is None:
        return Expected(why_not(fetched.outcome, fetched.reply))
    try:
        repo = parse_repo(fetched.reply.body)
    except RepoError as error:
        return Expected(why_unsound(error))
    if repo.did != did:
        return Expected(AtprotoCategory.DID_MISMATCH)
    return Expected(None, repo.rev, {kept.name: kept.count for kept in repo.collections})


async def archived(fleet: Fleet, network: FleetNetwork, clock: LoopClock) -> dict[str, Expected]:
    fetcher = Fetcher(network, Limiter(clock=clock, rng=Random(1)), clock=clock)
    ends: dict[str, Expected] = {}

    async def one(host: PdsHost, did: str) -> Expected:
        passes = 0
        while True:
            fetched = await fetcher.fetch(get_repo(host.origin, did))
            if fetched.outcome.code is Code.DEFERRED:
                await clock.sleep(fetched.outcome.retry_after or 1.0)
                continue
            end, passes = filed(fetched, did), passes + 1
            if end.category is None or end.category.permanent or passes == PASSES:
                return end
            await clock.sleep(10.0)

    async def some(host: PdsHost) -> None:
        for did in host.expected():
            ends[did] = await one(host, did)

    async with asyncio.TaskGroup() as group:
        for host in fleet.pds:
            group.create_task(some(host))
    return ends


def test_a_patient_archive_ends_with_what_is_expected() -> None:
    async def main() -> tuple[Fleet, FleetNetwork, dict[str, Expected]]:
        clock, fleet = LoopClock(), make()
        network = FleetNetwork(fleet, clock, rules=RULES)
        return fleet, network, await archived(fleet, network, clock)

    fleet, network, ends = run_virtual(main())

    assert ends == fleet.expected()
    assert network.tallies["limited.example"].answered[200] == 90
    assert network.tallies["nameless.example"].asked == 0
    # Once each, but for what was a lie and therefore final.
    assert all(fleet.sent[did] == 1 for did, end in ends.items() if end.archived)


def send(word: str, rules: HttpRules = RULES, guard: GuardRules | None = None, path: str = "") -> Reply:
    async def main() -> Reply:
        fleet = make()
        host = next(host for host in fleet.pds if host.character.word == word)
        network = FleetNetwork(fleet, LoopClock(), rules=rules, guard=guard)
        did = next(iter(host.expected()))
        return await network.send(Task(host.origin + path) if path else get_repo(host.origin, did))

    return run_virtual(main())


@pytest.mark.parametrize(
    ("word", "code"),
    [("dead", Code.CONNECTION_REFUSED), ("nameless", Code.DNS_ERROR), ("mute", Code.TIMEOUT)],
)
def test_what_cannot_be_reached_raises_what_the_classifier_understands(word: str, code: Code) -> None:
    with pytest.raises(EXPECTED) as caught:
        send(word)

    assert of_error(caught.value).code is code


@pytest.mark.parametrize("guard", [GuardRules(), GuardRules(private=True, raw_addresses=True)])
def test_where_it_is_led_nobody_may_go(guard: GuardRules) -> None:
    reply = send("leading", guard=guard)

    with pytest.raises(EXPECTED) as caught:
        run_virtual(FleetNetwork(make(), LoopClock(), guard=guard).send(Task(reply.header("Location") or "")))
    assert (reply.status, of_error(caught.value).code) == (302, Code.REFUSED)


def test_a_repo_arrives_unpacked() -> None:
    reply = send("healthy")

    assert reply.header("Content-Encoding") == "gzip"
    assert reply.header("Content-Type") == "application/vnd.ipld.car"
    assert parse_repo(reply.body).did.startswith("did:plc:")


def test_tasks_as_the_rest_of_the_code_makes_them_are_understood() -> None:
    async def main() -> list[int]:
        fleet = make()
        network, host = FleetNetwork(fleet, LoopClock()), fleet.pds[0]
        did = next(iter(host.expected()))
        tasks = [list_repos(host.origin), list_repos(fleet.relay.origin, "3", 5), get_latest_commit(host.origin, did)]
        return [(await network.send(task)).status for task in tasks]

    assert run_virtual(main()) == [200, 200, 200]
