"""The simulated game and race day, over real sockets and in process: the same answers, by the clock on the wall."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from math import inf
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
from hostile_game import Hostile, HostileGame, HostileRules
from world_networks import GameNetwork, Network, RaceNetwork

from sanderling.fetch.attempts import EXPECTED
from sanderling.fetch.classify import of_error
from sanderling.fetch.guard import GuardRules, Refused
from sanderling.fetch.http import Http, HttpRules
from sanderling.outcome import Code
from sanderling.task import Reply, Task
from sanderling.testing import FakeClock, LoopClock, run_virtual
from sanderling.worlds import game as games
from sanderling.worlds import race as races
from sanderling.worlds.game import REPORT, SETTINGS, Game, GameRules, GameServer
from sanderling.worlds.game_answers import GameKind
from sanderling.worlds.game_schedule import Hole, Piece, ScheduleRules, TimeSpan
from sanderling.worlds.game_weather import Contest, GameRefusal, WeatherRules
from sanderling.worlds.race import BEGAN, DocumentChange, RaceDay, RaceRules, RaceServer, RaceWeather, demo
from sanderling.worlds.race_documents import CHANNELS
from sanderling.worlds.server import OneHost, OneHostServer

FIRST = 16_000_000_000
OWN = GuardRules(private=True, raw_addresses=True)
RULES = GameRules(ScheduleRules(pieces=(Piece(-100.0, inf, 10.0),), delay=1.0, spread=1.0))
AT_ONCE = WeatherRules(latency=0.0)
T = TypeVar("T")


class Still(FakeClock):
    """Stands still; who sleeps is woken at once."""

    async def sleep(self, _seconds: float) -> None:
        await asyncio.sleep(0)


def over_http(server: OneHostServer, act: Callable[[Http], Awaitable[T]]) -> T:
    async def main() -> T:
        async with asyncio.timeout(300), server, Http(HttpRules(), OWN) as http:
            return await act(http)

    return asyncio.run(main())


def played(act: Callable[[GameNetwork], Awaitable[T]], rules: GameRules = RULES, http: HttpRules | None = None) -> T:
    async def main() -> T:
        return await act(GameNetwork(Game(rules, 1), LoopClock(), rules=http))

    return run_virtual(main())


def raced(act: Callable[[RaceNetwork, LoopClock], Awaitable[T]], rules: RaceRules | None = None) -> T:
    async def main() -> T:
        clock = LoopClock()
        return await act(RaceNetwork(RaceDay(1, rules or demo(), clock.wall()), clock), clock)

    return run_virtual(main())


def task(number: int, **fields: object) -> Task:
    return Task(f"{games.ORIGIN}{REPORT}{number}/", **fields)  # type: ignore[arg-type] # fields by name


async def code(client: Http | Network[OneHost], asked: Task) -> Code:
    try:
        await client.send(asked)
    except EXPECTED as error:
        return of_error(error).code
    return Code.OK


def seen(reply: Reply) -> tuple[object, ...]:
    # The real client spells the names of some headers in its own way.
    return urlsplit(reply.url).path, reply.status, [(name.lower(), value) for name, value in reply.headers], reply.body


def games_at_three_times(clock: FakeClock) -> Iterator[str]:
    paths = [*(f"{REPORT}{FIRST + at}/" for at in range(100)), SETTINGS, "/", f"{REPORT}x/", f"{REPORT}{2**63}/"]
    for since in (0.0, 55.0, 120.0):
        clock.set_wall(BEGAN + since)
        yield from paths * 4


def test_a_game_gives_the_same_answers_over_http_and_in_process() -> None:
    weather = WeatherRules(
        latency=0.0,
        quota=300.0,
        refusals=tuple(GameRefusal),
        retry_after=3.0,
        maintenance=(TimeSpan(50.0, 10.0),),
        contests=(Contest(-3600.0, 3000.0, 100.0),),
        bad_gateway=0.05,
    )
    hostile = {FIRST + at: kind for at, kind in enumerate(Hostile) if kind is not Hostile.HUGE}
    schedule = ScheduleRules(holes=(Hole(FIRST + 60, 20),), hole_every=30)
    rules, clock = HostileRules(schedule, weather, late=0.1, changed=0.1, hostile=hostile), Still()
    server = GameServer(HostileGame(rules, 1), clock)

    async def asked(http: Http) -> list[Reply]:
        return [await http.send(Task(f"{server.url()}{path}")) for path in games_at_three_times(clock)]

    async def in_process() -> list[Reply]:
        network = GameNetwork(HostileGame(rules, 1), clock)
        return [await network.send(Task(f"{games.ORIGIN}{path}")) for path in games_at_three_times(clock)]

    known = asyncio.run(in_process())
    assert [seen(reply) for reply in over_http(server, asked)] == [seen(reply) for reply in known]
    assert {reply.status for reply in known} == {200, 400, 403, 404, 502, 503}


def test_a_race_day_gives_the_same_answers_over_http_and_in_process() -> None:
    shares = {
        races.RaceKind.ERROR: 0.1,
        races.RaceKind.SLOW: 0.1,
        races.RaceKind.EMPTY: 0.1,
        races.RaceKind.WRONG: 0.1,
    }
    rules = replace(demo(), weather=RaceWeather(quota=18.0, half_written=2.0, faults=shares), etag=True)
    clock = Still()
    server = RaceServer(RaceDay(1, rules), clock)

    def each(day: RaceDay) -> Iterator[str]:
        for at in range(0, int(day.over), 3):
            clock.set_wall(BEGAN + at)
            yield from ("/", *day.paths, "/none", f"{CHANNELS}?again") * 2

    async def asked(http: Http) -> list[Reply]:
        return [await http.send(Task(server.url(path=path))) for path in each(server.day)]

    async def in_process() -> list[Reply]:
        network = RaceNetwork(RaceDay(1, rules), clock)
        return [await network.send(Task(f"{races.ORIGIN}{path}")) for path in each(network.day)]

    known = asyncio.run(in_process())
    assert [seen(reply) for reply in over_http(server, asked)] == [seen(reply) for reply in known]
    assert {reply.status for reply in known} == {200, 404, 429, 500}


def test_a_game_goes_by_the_clock_on_the_wall_at_a_port_that_can_be_chosen() -> None:
    clock, game = Still(), Game(replace(RULES, weather=AT_ONCE), 1)

    async def asked(http: Http) -> list[int]:
        url = f"{server.url()}{REPORT}{game.head(clock.wall()) + 1}/"
        early = await http.send(Task(url))
        clock.set_wall(clock.wall() + 60.0)
        return [early.status, (await http.send(Task(url))).status, (await http.send(Task(url))).status]

    server = GameServer(game, clock)
    assert over_http(server, asked) == [404, 200, 200]
    again = GameServer(game, clock, port=int(server.host.rpartition(":")[2]))
    assert over_http(again, asked) == [404, 200, 200]
    assert again.host == server.host
    assert game.tally.kinds == {GameKind.REPORT: 4, GameKind.MISSING: 2}


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (races.RaceKind.RESET, Code.CONNECTION_RESET),
        (races.RaceKind.HANG, Code.TIMEOUT),
        (races.RaceKind.HUGE, Code.TOO_LARGE),
        (races.RaceKind.SLOW, Code.OK),
        (races.RaceKind.EMPTY, Code.OK),
    ],
)
def test_a_client_gets_each_fault_as_the_error_that_it_is(kind: races.RaceKind, outcome: Code) -> None:
    rules = RaceRules(demo().day, RaceWeather(faults={kind: 1.0}))

    async def asked(network: RaceNetwork, _: LoopClock) -> Code:
        return await code(network, Task(f"{races.ORIGIN}{CHANNELS}"))

    assert raced(asked, rules) is outcome
    if kind in (races.RaceKind.RESET, races.RaceKind.HUGE):
        server = RaceServer(RaceDay(1, rules), Still())
        assert over_http(server, lambda http: code(http, Task(server.url(path=CHANNELS)))) is outcome


def test_a_reply_takes_its_latency_and_is_tallied() -> None:
    async def asked(network: GameNetwork) -> GameNetwork:
        async with asyncio.TaskGroup() as group:
            for number in (FIRST, FIRST + 1, FIRST + 10**6):
                group.create_task(network.send(task(number)))
        began = network._clock.now()
        reply = await network.send(task(FIRST))
        assert reply.latency == pytest.approx(network._clock.now() - began)
        assert 0.05 < reply.latency < 0.5
        return network

    network = played(asked)
    assert network.tally.kinds == {GameKind.REPORT: 3, GameKind.MISSING: 1}
    assert network.tallies[games.NAME].most_inflight == 3
    assert network.tallies[games.NAME].answered == {200: 3, 404: 1}


def test_who_asks_on_and_on_gets_exactly_what_is_live() -> None:
    async def asked(network: GameNetwork) -> None:
        async def one(number: int) -> None:
            while (await network.send(task(number))).status != 200:
                await network._clock.sleep(1.0)
            had.append(number)

        async def all_of_them() -> None:
            async with asyncio.timeout(150), asyncio.TaskGroup() as group:
                for number in range(FIRST + 900, FIRST + 1200):
                    group.create_task(one(number))

        had: list[int] = []
        with pytest.raises(TimeoutError):
            await all_of_them()
        # What became visible in the last seconds may still be on its way.
        wall = network._clock.wall()
        sure = set(network.game.ids(FIRST + 900, FIRST + 1200, wall - 3.0))
        assert sure <= set(had) <= set(network.game.ids(FIRST + 900, FIRST + 1200, wall))
        assert len(sure) > 150

    played(asked, replace(RULES, schedule=replace(RULES.schedule, hole_every=10)))


def test_who_waits_too_long_runs_out_of_time() -> None:
    async def asked(network: GameNetwork) -> tuple[Code, float]:
        return await code(network, task(FIRST)), network._clock.now()

    rules = replace(RULES, weather=WeatherRules(latency=60.0, jitter=0.0))
    assert played(asked, rules, HttpRules(connect=5.0, first_byte=10.0)) == (Code.TIMEOUT, 15.0)


def test_a_client_reads_no_more_than_it_wants() -> None:
    async def codes(network: GameNetwork) -> list[Code]:
        return [await code(network, task(number)) for number in (FIRST, FIRST + 1)]

    async def parts(network: GameNetwork) -> list[Reply]:
        return [await network.send(task(FIRST, **fields)) for fields in ({"most": 50}, {"method": "HEAD"})]

    part, head = played(parts)
    assert part.body.startswith(b'{"Response":{"period"')
    assert (len(part.body), part.status, head.body, head.status) == (50, 200, b"", 200)
    assert played(codes, RULES, HttpRules(most_raw=100)) == [Code.TOO_LARGE] * 2
    server = GameServer(HostileGame(HostileRules(weather=AT_ONCE, hostile={FIRST: Hostile.HUGE}), 1), Still())
    assert over_http(server, lambda http: code(http, Task(f"{server.url()}{REPORT}{FIRST}/"))) is Code.TOO_LARGE


def test_there_is_nobody_elsewhere() -> None:
    async def asked(network: GameNetwork) -> None:
        with pytest.raises(OSError, match=r"elsewhere\.example"):
            await network.send(Task("http://elsewhere.example/"))
        with pytest.raises(ConnectionRefusedError):
            await network.send(Task(f"{games.ORIGIN}:8080/"))
        with pytest.raises(Refused):
            await GameNetwork(network.game, LoopClock(), guard=GuardRules(ports=frozenset({443}))).send(task(FIRST))
        assert (await network.send(Task(f"{games.ORIGIN}{SETTINGS}#here"))).status == 200
        assert (await network.send(task(FIRST, method="POST"))).status == 405

    played(asked)


def test_who_asks_every_200_ms_sees_every_change_in_time() -> None:
    async def asked(network: RaceNetwork, clock: LoopClock) -> tuple[list[float], tuple[DocumentChange, ...]]:
        day, last, found = network.day, b"", []
        path, started = day.race_path(day.heats[0].id), clock.now()
        while clock.wall() - day.began < day.heats[0].end / 1000 + 1:
            at = clock.wall() - day.began
            reply = await network.send(Task(f"{races.ORIGIN}{path}"))
            if reply.body != last:
                last = reply.body
                found.append(at)
            # On a grid: what an answer takes does not add up.
            await clock.sleep(0.2 - (clock.now() - started) % 0.2)
        return found, tuple(change for change in day.changes(0.0, found[-1]) if change.path == path)

    found, changes = raced(asked)

    assert len(changes) > 50
    for change in changes:
        assert min(at for at in found if at >= change.at) - change.at < 0.21


@pytest.mark.parametrize("path", ["/%ff", f"/events/{'1' * 5000}/Event.json", "/events/../../etc"])
def test_odd_paths_do_no_harm(path: str) -> None:
    server = RaceServer(RaceDay(1, demo()), Still())

    async def asked(http: Http) -> int:
        return (await http.send(Task(server.url(path=path)))).status

    assert over_http(server, asked) in (400, 404)
