"""The simulated web in process: what a real client would return or raise, under virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from random import Random
from typing import TypeVar

import pytest
from world_networks import SiteNetwork

from sanderling.fetch.attempts import EXPECTED, Fetcher, moves
from sanderling.fetch.classify import of_error, retry_soon
from sanderling.fetch.http import HttpRules
from sanderling.limit import Limiter
from sanderling.outcome import Code
from sanderling.stores.frontier_rows import End
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.site import World
from sanderling.worlds.weather import TransportFault

T = TypeVar("T")


def visit(act: Callable[[SiteNetwork], Awaitable[T]], rules: HttpRules | None = None) -> tuple[T, SiteNetwork, float]:
    """What came of it, the network with its tallies, and how many virtual seconds it took."""

    async def main() -> tuple[T, SiteNetwork, float]:
        clock = LoopClock()
        network = SiteNetwork(World.make(1, ordinary=2, pages=20), clock, rules=rules)
        return await act(network), network, clock.now()

    return run_virtual(main())


def send(url: str, *, method: str = "GET", rules: HttpRules | None = None, **headers: str) -> Reply:
    said = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return visit(lambda network: network.send(Task(url, method=method, headers=said)), rules)[0]


def failure(url: str, rules: HttpRules | None = None) -> tuple[Code, str]:
    with pytest.raises(EXPECTED) as caught:
        send(url, rules=rules)
    outcome = of_error(caught.value)
    return outcome.code, outcome.detail


def test_a_page_takes_as_long_as_its_latency() -> None:
    reply, _, took = visit(lambda network: network.send(Task("http://ordinary-1.example/")))

    assert (reply.status, reply.url) == (200, "http://ordinary-1.example/")
    assert b"<h1>" in reply.body
    assert reply.latency == pytest.approx(took)
    assert reply.header("Content-Length") == str(len(reply.body))


@pytest.mark.parametrize(
    "url", ["http://ordinary-1.example", "http://ordinary-1.example:80/#top", "HTTP://Ordinary-1.EXAMPLE/"]
)
def test_a_url_is_read_as_a_client_would(url: str) -> None:
    assert send(url).status == 200


def test_a_packed_body_arrives_unpacked() -> None:
    reply = send("http://documents.example/packed.html")

    assert reply.header("Content-Encoding") == "gzip"
    assert reply.body.startswith(b"<!DOCTYPE html>")


def test_a_head_has_no_body_and_other_methods_are_not_allowed() -> None:
    head = send("http://ordinary-1.example/", method="HEAD")

    assert (head.status, head.body) == (200, b"")
    assert head.header("Content-Length") != "0"
    assert send("http://ordinary-1.example/", method="POST").status == 405


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://dead.example/", Code.CONNECTION_REFUSED),
        ("https://ordinary-1.example/", Code.CONNECTION_REFUSED),
        ("http://ordinary-1.example:8080/", Code.CONNECTION_REFUSED),
        ("http://nowhere.example/", Code.DNS_ERROR),
        ("http://10.0.0.1/", Code.REFUSED),
        ("http://documents.example/garbled.html", Code.BAD_ENCODING),
    ],
)
def test_what_fails_raises_what_the_classifier_understands(url: str, code: Code) -> None:
    assert failure(url)[0] is code


def test_the_rules_of_the_client_hold() -> None:
    assert failure("http://ordinary-1.example/", HttpRules(most_raw=100))[0] is Code.TOO_LARGE
    assert failure("http://documents.example/packed.html", HttpRules(most_decoded=5000))[0] is Code.TOO_LARGE
    hasty = HttpRules(connect=0.001, first_byte=0.001)
    assert failure("http://ordinary-1.example/", hasty) == (Code.TIMEOUT, "timeout: first byte")
    assert failure("http://ordinary-1.example/", HttpRules(total=0.001)) == (Code.TIMEOUT, "timeout: total")


async def ends_of(network: SiteNetwork, url: str, times: int) -> list[Code]:
    codes = []
    for _ in range(times):
        try:
            await network.send(Task(url))
            codes.append(Code.OK)
        except EXPECTED as error:
            codes.append(of_error(error).code)
    return codes


@pytest.mark.parametrize(
    ("word", "faults"),
    [
        ("resets", {Code.CONNECTION_RESET: TransportFault.RESET, Code.TRUNCATED: TransportFault.CUT}),
        ("truncating", {Code.TRUNCATED: TransportFault.TRUNCATED}),
    ],
)
def test_what_goes_wrong_on_the_way_is_what_the_host_is_said_to_do(
    word: str, faults: dict[Code, TransportFault]
) -> None:
    found, network, _ = visit(lambda network: ends_of(network, f"http://{word}.example/", 60))

    assert set(found) == {Code.OK, *faults}
    tally = network.tallies[f"{word}.example"]
    assert tally.faults == {fault: found.count(code) for code, fault in faults.items()}


def test_a_slow_body_takes_its_time_and_is_given_up_after_the_idle_limit() -> None:
    found, _, took = visit(lambda network: ends_of(network, "http://stalling.example/", 40))

    assert set(found) == {Code.OK, Code.TIMEOUT}
    # Those that arrive pause three times, for two seconds at most.
    assert 15 * found.count(Code.TIMEOUT) < took < 15 * found.count(Code.TIMEOUT) + 7 * found.count(Code.OK)


def test_each_host_is_tallied() -> None:
    async def act(network: SiteNetwork) -> None:
        clock = LoopClock()
        async with asyncio.TaskGroup() as group:
            for wait, path in ((0.0, "/"), (0.001, "/private/page"), (0.004, "/no")):
                await clock.sleep(wait)
                group.create_task(network.send(Task(f"http://robots.example{path}")))
        await network.send(Task("http://robots.example/"))

    _, network, _ = visit(act)
    tally, other = network.tallies["robots.example"], network.tallies["ordinary-1.example"]

    assert (tally.asked, tally.forbidden, tally.inflight, tally.most_inflight) == (4, 1, 0, 3)
    assert tally.answered == {200: 3, 404: 1}
    assert tally.shortest == pytest.approx(0.001)
    assert (other.asked, other.shortest) == (0, inf)


def test_a_request_that_is_cancelled_is_no_longer_under_way() -> None:
    async def act(network: SiteNetwork) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await network.send(Task("http://ordinary-1.example/"))

    assert visit(act)[1].tallies["ordinary-1.example"].inflight == 0


async def crawled(world: World, network: SiteNetwork, clock: LoopClock) -> dict[str, dict[str, End]]:
    """Every URL that may be asked for, with a patience that real crawls have too: until the host is well."""
    fetcher = Fetcher(network, Limiter(clock=clock, rng=Random(1)), clock=clock, follow=False)
    ends: dict[str, dict[str, End]] = {host.name: {} for host in world.hosts}

    async def one(name: str, path: str) -> End:
        fetched = await fetcher.fetch(Task(f"http://{name}{path}"))
        while name != "dead.example" and (fetched.outcome.code is Code.DEFERRED or retry_soon(fetched.outcome)):
            await clock.sleep(10.0)
            fetched = await fetcher.fetch(Task(f"http://{name}{path}"))
        if fetched.reply is not None and moves(fetched.reply):
            return End.MOVED  # those of a loop too: no single answer shows one
        if name == "dead.example":
            return End.WAITING  # its robots.txt would not be answered either
        return End.FETCHED if fetched.outcome.ok else End.FAILED

    async def some(name: str, paths: list[str]) -> None:
        for path in paths:
            ends[name][path] = await one(name, path)

    async with asyncio.TaskGroup() as group:
        for host in world.hosts:
            paths = [path for path, _ in host.ends() if not host.forbids(path)]
            for part in range(4):
                group.create_task(some(host.name, paths[part::4]))
    return ends


# The two URLs that close a loop, as far as their own answers go.
LOOPS = {"redirecting.example": {"/loop/b": End.MOVED, "/itself": End.MOVED}}


def test_who_is_patient_gets_what_is_expected() -> None:
    async def main() -> tuple[World, SiteNetwork, dict[str, dict[str, End]]]:
        clock = LoopClock()
        world = World.make(1, ordinary=4, pages=60)
        network = SiteNetwork(world, clock)
        return world, network, await crawled(world, network, clock)

    world, network, ends = run_virtual(main())

    for host in world.hosts:
        expected = {path: end for path, end in host.ends() if not host.forbids(path)}
        assert ends[host.name] == expected | LOOPS.get(host.name, {}), host.name
    assert sum(tally.forbidden for tally in network.tallies.values()) == 0
    assert max(tally.most_inflight for tally in network.tallies.values()) == 4
    assert network.tallies["lying.example"].answered[429] > 0
    assert network.tallies["failing.example"].answered[500] > 0
