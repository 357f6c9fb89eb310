"""The simulated fleet over real sockets, asked by the real client; its hosts' time stands still unless it is moved."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
from world_networks import FleetNetwork

from sanderling.apis.atproto import Category, get_repo, why_not, why_unsound
from sanderling.fetch.attempts import EXPECTED
from sanderling.fetch.classify import of_error, of_reply
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.formats.repo import RepoError, parse_repo
from sanderling.outcome import Code
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
        return Expected(Category.DID_MISMATCH)
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
        Category.CONNECTION_ERROR,
        Category.TIMEOUT,
        Category.REFUSED,
        Category.TOO_LARGE,
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


def test_nobody_listens_where_the_dead_are_and_nobody_else_can() -> None:
    async def act(server: FleetServer, _http: Http) -> None:
        for word in ("dead", "nameless"):
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", urlsplit(host(server, word).origin).port))

    visit(act)


def test_quotas_refuse_and_say_so_or_not() -> None:
    async def act(server: FleetServer, http: Http) -> list[list[Reply]]:
        return [
            [await ask(server, http, word) for _ in range(times)] for word, times in (("limited", 31), ("silent", 16))
        ]

    limited, silent = visit(act)

    assert [reply.status for reply in limited[29:]] == [200, 429]
    assert (limited[-1].header("Retry-After"), limited[-1].header("RateLimit-Policy")) == ("10", "30;w=10")
    assert [reply.status for reply in silent[14:]] == [200, 429]
    assert not [name for name, _ in silent[-1].headers if "R" in name]


def test_the_failing_host_fails_for_a_while() -> None:
    async def act(server: FleetServer, http: Http) -> list[int]:
        statuses = []
        for seconds in (0, 19, 2):
            clock.advance(seconds)
            statuses.append((await ask(server, http, "failing")).status)
        return statuses

    clock = Still()
    assert visit(act, clock) == [503, 503, 200]


def test_connections_are_cut() -> None:
    async def act(server: FleetServer, http: Http) -> set[Code]:
        found = set()
        for index in range(40):
            try:
                await ask(server, http, "cutting", index)
                found.add(Code.OK)
            except EXPECTED as error:
                found.add(of_error(error).code)
        return found

    assert visit(act) == {Code.OK, Code.CONNECTION_RESET, Code.TRUNCATED}


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
