"""The simulated game over real sockets, asked by the real client; its time stands still unless it is moved."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp
import pytest

from sanderling.fetch.attempts import EXPECTED
from sanderling.fetch.classify import of_error
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.outcome import Code
from sanderling.task import Reply, Task
from sanderling.testing import FakeClock
from sanderling.worlds.game import REPORT, SETTINGS, Game, GameRules
from sanderling.worlds.game_answers import Kind
from sanderling.worlds.game_hostile import Hostile
from sanderling.worlds.game_network import ORIGIN, GameNetwork
from sanderling.worlds.game_schedule import Hole, Span
from sanderling.worlds.game_server import GameServer
from sanderling.worlds.game_weather import Contest, Refusal, WeatherRules

FIRST = 16_000_000_000
OWN = GuardRules(private=True, raw_addresses=True)
RULES = GameRules(weather=WeatherRules(latency=0.0))
T = TypeVar("T")


class Still(FakeClock):
    """Stands still; who sleeps is woken at once."""

    async def sleep(self, _seconds: float) -> None:
        await asyncio.sleep(0)


def visit(
    act: Callable[[GameServer, Http], Awaitable[T]], rules: GameRules = RULES, clock: FakeClock | None = None
) -> T:
    async def main() -> T:
        server = GameServer(Game(rules, 1), clock or Still())
        async with asyncio.timeout(300), server, Http(HttpRules(), OWN) as http:
            return await act(server, http)

    return asyncio.run(main())


async def code(http: Http, url: str) -> Code:
    try:
        await http.send(Task(url))
    except EXPECTED as error:
        return of_error(error).code
    return Code.OK


def test_a_stranger_gets_a_report_over_http() -> None:
    async def act(server: GameServer, _: Http) -> None:
        async with aiohttp.ClientSession(server.url()) as session:
            async with session.get(f"{REPORT}{FIRST + 7}/", headers={"X-API-Key": "any"}) as answer:
                report = await answer.json()
                assert (answer.status, report["ErrorCode"]) == (200, 1)
                assert report["Response"]["activityDetails"]["instanceId"] == str(FIRST + 7)
            async with session.get(f"{REPORT}{FIRST + 10**7}/") as answer:
                assert (answer.status, (await answer.json())["ErrorCode"]) == (404, 1653)
            async with session.get(SETTINGS) as answer:
                assert (await answer.json())["Response"]["systems"]["Destiny2"]["enabled"] is True
        assert server.tally.kinds == {Kind.REPORT: 1, Kind.MISSING: 1, Kind.SETTINGS: 1}

    visit(act)


def test_the_head_goes_by_the_clock_on_the_wall() -> None:
    async def act(server: GameServer, http: Http) -> list[int]:
        url = f"{server.url()}{REPORT}{server.game.head(clock.wall()) + 1}/"
        early = await http.send(Task(url))
        clock.set_wall(clock.wall() + 60.0)
        return [early.status, (await http.send(Task(url))).status]

    clock = Still()
    assert visit(act, clock=clock) == [404, 200]


def test_connections_are_kept_and_cut_where_the_weather_says_so() -> None:
    async def act(server: GameServer, http: Http) -> set[Code]:
        return {await code(http, f"{server.url()}{REPORT}{FIRST}/") for _ in range(40)}

    rules = replace(RULES, weather=WeatherRules(latency=0.0, resets=0.3))

    assert visit(act, rules) == {Code.OK, Code.CONNECTION_RESET}


def test_a_huge_body_is_sent_until_the_client_has_enough() -> None:
    async def act(server: GameServer, http: Http) -> list[Code]:
        return [await code(http, f"{server.url()}{REPORT}{number}/") for number in (FIRST, FIRST + 1)]

    assert visit(act, replace(RULES, hostile={FIRST: Hostile.HUGE})) == [Code.TOO_LARGE, Code.OK]


def test_a_server_and_a_network_give_the_same_answers() -> None:
    weather = WeatherRules(
        latency=0.0,
        quota=300.0,
        refusals=tuple(Refusal),
        retry_after=3.0,
        maintenance=(Span(50.0, 10.0),),
        contests=(Contest(-3600.0, 3000.0, 100.0),),
        bad_gateway=0.05,
    )
    hostile = {FIRST + at: kind for at, kind in enumerate(Hostile) if kind is not Hostile.HUGE}
    schedule = replace(RULES.schedule, holes=(Hole(FIRST + 60, 20),), hole_every=30)
    rules = replace(RULES, weather=weather, schedule=schedule, hostile=hostile, late=0.1, changed=0.1)
    paths = [*(f"{REPORT}{FIRST + at}/" for at in range(100)), SETTINGS, "/", f"{REPORT}x/", f"{REPORT}{2**63}/"]

    async def over_http(server: GameServer, http: Http) -> list[Reply]:
        return [await http.send(Task(f"{server.url()}{path}")) for path in each(clock)]

    async def in_process() -> list[Reply]:
        network = GameNetwork(Game(rules, 1), clock)
        return [await network.send(Task(f"{ORIGIN}{path}")) for path in each(clock)]

    def each(clock: FakeClock) -> Iterator[str]:
        """All paths at three times."""
        for since in (0.0, 55.0, 120.0):
            clock.set_wall(1_800_000_000.0 + since)
            yield from paths * 4

    clock = Still()
    served = visit(over_http, rules, clock)
    known = asyncio.run(in_process())

    assert len(served) == len(known) > 1000
    for one, other in zip(served, known, strict=True):
        assert (one.status, one.headers, one.body) == (other.status, other.headers, other.body), urlsplit(one.url).path
    assert {reply.status for reply in known} == {200, 400, 403, 404, 502, 503}


def test_a_body_that_is_no_report_is_json_all_the_same() -> None:
    async def act(server: GameServer, http: Http) -> Reply:
        return await http.send(Task(f"{server.url()}{REPORT}{FIRST}/"))

    reply = visit(act, replace(RULES, hostile={FIRST: Hostile.NULL}))

    assert json.loads(reply.body)["Response"] is None


def test_the_port_can_be_chosen() -> None:
    async def main() -> tuple[str, str]:
        game = Game(RULES, 1)
        async with GameServer(game, Still()) as first:
            port = urlsplit(first.url()).port or 0
        async with GameServer(game, Still(), port=port) as second:
            return first.url(), second.url()

    one, other = asyncio.run(main())
    assert one == other


@pytest.mark.parametrize("path", ["/%ff", f"{REPORT}{'1' * 5000}/"])
def test_odd_paths_do_no_harm(path: str) -> None:
    async def act(server: GameServer, http: Http) -> int:
        return (await http.send(Task(f"{server.url()}{path}"))).status

    assert visit(act) in (400, 404)
