"""The simulated race day over real sockets, asked by the real client; its time stands still unless it is moved."""

import asyncio
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
from sanderling.worlds.race import BEGAN, Kind, RaceDay, RaceRules, RaceWeather, demo
from sanderling.worlds.race_documents import CHANNELS
from sanderling.worlds.race_network import ORIGIN, RaceNetwork
from sanderling.worlds.race_server import RaceServer

OWN = GuardRules(private=True, raw_addresses=True)
T = TypeVar("T")


class Still(FakeClock):
    """Stands still; who sleeps is woken at once."""

    async def sleep(self, _seconds: float) -> None:
        await asyncio.sleep(0)


def visit(
    act: Callable[[RaceServer, Http], Awaitable[T]], rules: RaceRules | None = None, clock: FakeClock | None = None
) -> T:
    async def main() -> T:
        server = RaceServer(RaceDay(1, rules or demo()), clock or Still())
        async with asyncio.timeout(300), server, Http(HttpRules(), OWN) as http:
            return await act(server, http)

    return asyncio.run(main())


def test_a_stranger_finds_the_event_and_its_races_over_http() -> None:
    async def act(server: RaceServer, _: Http) -> None:
        async with aiohttp.ClientSession(server.url()) as session:
            async with session.get("/") as answer:
                event = (await answer.text()).split('EventManager("events/')[1].split('"')[0]
            async with session.get(f"/events/{event}/Event.json") as answer:
                listed = await answer.json()
            async with session.get(f"/events/{event}/{listed[0]['Races'][0]}/Race.json") as answer:
                race = (await answer.json())[0]
            async with session.get(f"/events/{event}/Results.json") as answer:
                assert (answer.status, await answer.read()) == (200, b"")
        assert (listed[0]["ID"], race["Event"], race["RaceNumber"]) == (event, event, 1)
        assert server.tally.kinds == {Kind.PAGE: 1, Kind.DOCUMENT: 3}

    visit(act)


def test_the_day_goes_by_the_clock_on_the_wall() -> None:
    async def act(server: RaceServer, http: Http) -> list[int]:
        heat, says = server.day.heats[0], []
        for at in (heat.start - 1, heat.start, heat.end):
            clock.set_wall(BEGAN + at / 1000)
            reply = await http.send(Task(server.url(path=server.day.race_path(heat.id))))
            says.append(reply.body.count(b"0001/01/01 0:00:00"))
        return says

    clock = Still()
    assert visit(act, clock=clock) == [2, 1, 0]


def test_a_server_and_a_network_give_the_same_answers() -> None:
    shares = {Kind.ERROR: 0.1, Kind.SLOW: 0.1, Kind.EMPTY: 0.1, Kind.WRONG: 0.1}
    weather = RaceWeather(quota=18.0, half_written=2.0, faults=shares)
    rules = replace(demo(), weather=weather, etag=True)

    def each(day: RaceDay, clock: FakeClock) -> Iterator[str]:
        """All paths at many times, and twice at each."""
        for at in range(0, int(day.over), 3):
            clock.set_wall(BEGAN + at)
            yield from ("/", *day.paths, "/none", f"{CHANNELS}?again") * 2

    async def over_http(server: RaceServer, http: Http) -> list[Reply]:
        return [await http.send(Task(server.url(path=path))) for path in each(server.day, clock)]

    async def in_process() -> list[Reply]:
        network = RaceNetwork(RaceDay(1, rules), clock)
        return [await network.send(Task(f"{ORIGIN}{path}")) for path in each(network.day, clock)]

    clock = Still()
    served = visit(over_http, rules, clock)
    known = asyncio.run(in_process())

    def seen(reply: Reply) -> tuple[object, ...]:
        # The real client spells the names of some headers in its own way.
        headers = [(name.lower(), value) for name, value in reply.headers]
        return urlsplit(reply.url).path, reply.status, headers, reply.body

    assert len(known) > 500
    assert [seen(reply) for reply in served] == [seen(reply) for reply in known]
    assert {reply.status for reply in known} == {200, 404, 429, 500}


@pytest.mark.parametrize(("kind", "outcome"), [(Kind.RESET, Code.CONNECTION_RESET), (Kind.HUGE, Code.TOO_LARGE)])
def test_a_client_gets_each_fault_as_the_error_that_it_is(kind: Kind, outcome: Code) -> None:
    async def act(server: RaceServer, http: Http) -> Code:
        try:
            await http.send(Task(server.url(path=CHANNELS)))
        except EXPECTED as error:
            return of_error(error).code
        return Code.OK

    assert visit(act, RaceRules(demo().day, RaceWeather(faults={kind: 1.0}))) is outcome


def test_the_port_can_be_chosen() -> None:
    async def main() -> tuple[str, str]:
        day = RaceDay(1, demo())
        async with RaceServer(day, Still()) as first:
            port = urlsplit(first.url()).port or 0
        async with RaceServer(day, Still(), port=port) as second:
            return first.url(), second.url()

    one, other = asyncio.run(main())
    assert one == other


@pytest.mark.parametrize("path", ["/%ff", f"/events/{'1' * 5000}/Event.json", "/events/../../etc"])
def test_odd_paths_do_no_harm(path: str) -> None:
    async def act(server: RaceServer, http: Http) -> int:
        return (await http.send(Task(server.url(path=path)))).status

    assert visit(act) in (400, 404)
