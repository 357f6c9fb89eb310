"""The simulated fleet over real sockets, asked by the real client; its hosts' time stands still unless it is moved."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

from world_networks import FleetNetwork

from sanderling.apis.atproto import AtprotoCategory, get_repo, why_not, why_unsound
from sanderling.fetch.attempts import EXPECTED
from sanderling.fetch.classify import of_error, of_reply
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.formats.repo import RepoError, parse_repo
from sanderling.task import Reply, Task
from sanderling.testing import FakeClock
from sanderling.worlds.pds import Fleet, FleetServer
from sanderling.worlds.pds_hosts import Expected, PdsHost

OWN = GuardRules(private=True, raw_addresses=True)
RULES = HttpRules(first_byte=0.3, connect=0.3, most_decoded=8 * 2**20)
T = TypeVar("T")


class Still(FakeClock):
    """Stands still; who sleeps is woken at once, and who sleeps longer than any client waits is never woken."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0 if seconds < 15 else 1000)


def visit(act: Callable[[FleetServer, Http], Awaitable[T]], clock: FakeClock | None = None) -> T:
    async def main() -> T:
        server = FleetServer(Fleet.make(1, hosts=3, repos=40), clock or Still())
        async with asyncio.timeout(300), server, Http(RULES, OWN) as http:
            return await act(server, http)

    return asyncio.run(main())


def host(server: FleetServer, word: str) -> PdsHost:
    return next(host for host in server.fleet.pds if host.character.word == word)


async def ask(server: FleetServer, http: Http, word: str, index: int = 0) -> Reply:
    asked = host(server, word)
    return await http.send(get_repo(asked.origin, list(asked.expected())[index]))


async def end_of(http: Http, task: Task, did: str) -> Expected:
    """What an archive makes of one answer."""
    try:
        reply = await http.send(task)
        if location := reply.header("Location"):
            reply = await http.send(Task(location))
    except EXPECTED as error:
        return Expected(why_not(of_error(error), None))
    outcome = of_reply(reply.status, reply.headers, wall=0.0)
    if not outcome.ok:
        return Expected(why_not(outcome, reply))
    try:
        repo = parse_repo(reply.body)
    except RepoError as error:
        return Expected(why_unsound(error))
    if repo.did != did:
        return Expected(AtprotoCategory.DID_MISMATCH)
    return Expected(None, repo.rev, {kept.name: kept.count for kept in repo.collections})


# Hosts whose answers do not depend on when, how often or with what luck they are asked.
STEADY = ("healthy", "small", "slow", "walled", "lying", "gone", "leading", "mute", "dead", "nameless")


def test_every_repo_comes_to_what_is_expected_of_it() -> None:
    async def act(server: FleetServer, http: Http) -> tuple[dict[str, Expected], dict[str, Expected]]:
        hosts = [host for host in server.fleet.pds if host.character.word in STEADY]
        expected = {did: end for host in hosts for did, end in host.expected().items()}
        origins = dict(server.fleet.directory())
        return {did: await end_of(http, get_repo(origins[did], did), did) for did in expected}, expected

    found, expected = visit(act)

    assert found == expected
    assert {end.category for end in expected.values()} >= {
        None,
        AtprotoCategory.CONNECTION_ERROR,
        AtprotoCategory.TIMEOUT,
        AtprotoCategory.REFUSED,
        AtprotoCategory.TOO_LARGE,
    }


def test_relay_and_directory_have_addresses_of_their_own_and_name_those_of_the_hosts() -> None:
    async def act(server: FleetServer, http: Http) -> None:
        listed = await http.send(Task(server.url("relay.example", "/xrpc/com.atproto.sync.listHosts")))
        names = [row["hostname"] for row in json.loads(listed.body)["hosts"]]
        export = await http.send(Task(server.url("plc.example", "/export?after=0&count=1")))
        first = json.loads(export.body)["operation"]["service"]
        did, origin = next(iter(server.fleet.directory()))
        through_relay = await end_of(http, get_repo(server.fleet.relay.origin, did), did)

        assert names == [urlsplit(host.origin).netloc for host in server.fleet.pds]
        assert first == origin == server.url(server.fleet.pds[0].name, "")
        assert len({server.url(host.name) for host in server.fleet.hosts}) == len(server.fleet.hosts)
        assert through_relay.archived

    visit(act)


def test_both_fronts_say_the_same_and_count_alike() -> None:
    paths = [
        "/",
        "//[",
        "/xrpc/com.atproto.sync.listRepos?limit=2",
        "/xrpc/com.atproto.sync.getRepo?did=%ff",
        "/export?count=2",
        "/xrpc/com.atproto.server.describeServer",
    ]

    async def act(server: FleetServer, http: Http) -> None:
        network = FleetNetwork(server.fleet, Still())
        for name in ("healthy-1.example", "relay.example", "plc.example"):
            for path in paths:
                over_http, within = (
                    await http.send(Task(server.url(name, path))),
                    await network.send(Task(f"http://{name}{path}")),
                )
                assert (over_http.status, over_http.body) == (within.status, within.body)
            assert server.tallies[name].asked == network.tallies[name].asked == len(paths)
            assert server.tallies[name].answered == network.tallies[name].answered

    visit(act)
