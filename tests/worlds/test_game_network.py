"""The simulated game in process, under virtual time: the same replies and errors that a real client would get."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from math import inf
from typing import TypeVar

import pytest

from sanderling.fetch.attempts import EXPECTED
from sanderling.fetch.classify import of_error
from sanderling.fetch.guard import GuardRules, Refused
from sanderling.fetch.http import HttpRules
from sanderling.outcome import Code
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.game import REPORT, SETTINGS, Game, GameRules
from sanderling.worlds.game_answers import Kind
from sanderling.worlds.game_hostile import Hostile
from sanderling.worlds.game_network import NAME, ORIGIN, GameNetwork
from sanderling.worlds.game_schedule import Piece, ScheduleRules
from sanderling.worlds.game_weather import WeatherRules

FIRST = 16_000_000_000
RULES = GameRules(ScheduleRules(pieces=(Piece(-100.0, inf, 10.0),), delay=1.0, spread=1.0))
T = TypeVar("T")


def visit(
    act: Callable[[GameNetwork, LoopClock], Awaitable[T]], rules: GameRules = RULES, http: HttpRules | None = None
) -> T:
    async def main() -> T:
        clock = LoopClock()
        return await act(GameNetwork(Game(rules, 1), clock, rules=http), clock)

    return run_virtual(main())


def task(number: int, **fields: object) -> Task:
    return Task(f"{ORIGIN}{REPORT}{number}/", **fields)  # type: ignore[arg-type] # fields by name


async def code(network: GameNetwork, asked: Task) -> Code:
    try:
        await network.send(asked)
    except EXPECTED as error:
        return of_error(error).code
    return Code.OK


def test_a_reply_takes_its_latency_and_the_head_moves_on_meanwhile() -> None:
    async def act(network: GameNetwork, clock: LoopClock) -> None:
        newest = network.game.head(clock.wall()) + 5

        early = await network.send(task(newest))
        took = clock.now()
        await clock.sleep(5.0)
        late = await network.send(task(newest))

        assert early.latency == pytest.approx(took)
        assert 0.05 < took < 0.5
        assert (early.status, late.status) == (404, 200)
        assert late.header("Content-Length") == str(len(late.body))

    visit(act)


def test_who_asks_on_and_on_gets_exactly_what_is_live() -> None:
    async def act(network: GameNetwork, clock: LoopClock) -> None:
        async def one(number: int) -> None:
            while (await network.send(task(number))).status != 200:
                await clock.sleep(1.0)
            had.append(number)

        async def all_of_them() -> None:
            async with asyncio.timeout(150), asyncio.TaskGroup() as group:
                for number in range(FIRST + 900, FIRST + 1200):
                    group.create_task(one(number))

        had: list[int] = []
        with pytest.raises(TimeoutError):
            await all_of_them()
        # What became visible in the last seconds may still be on its way.
        sure = set(network.game.ids(FIRST + 900, FIRST + 1200, clock.wall() - 3.0))
        assert sure <= set(had) <= set(network.game.ids(FIRST + 900, FIRST + 1200, clock.wall()))
        assert len(sure) > 150

    visit(act, replace(RULES, schedule=replace(RULES.schedule, hole_every=10)))


def test_a_reset_is_the_error_that_it_is() -> None:
    async def act(network: GameNetwork, _: LoopClock) -> list[Code]:
        return [await code(network, task(FIRST)) for _ in range(3)]

    rules = replace(RULES, weather=WeatherRules(resets=1.0))

    assert visit(act, rules) == [Code.CONNECTION_RESET] * 3


def test_who_waits_too_long_runs_out_of_time() -> None:
    async def act(network: GameNetwork, clock: LoopClock) -> tuple[Code, float]:
        return await code(network, task(FIRST)), clock.now()

    rules = replace(RULES, weather=WeatherRules(latency=60.0, jitter=0.0))

    assert visit(act, rules, HttpRules(connect=5.0, first_byte=10.0)) == (Code.TIMEOUT, 15.0)


def test_a_huge_body_is_left_off_where_the_client_has_enough() -> None:
    async def act(network: GameNetwork, _: LoopClock) -> list[Code]:
        return [await code(network, task(number)) for number in (FIRST, FIRST + 1)]

    rules = replace(RULES, hostile={FIRST: Hostile.HUGE})

    assert visit(act, rules) == [Code.TOO_LARGE, Code.OK]
    assert visit(act, RULES, HttpRules(most_raw=100)) == [Code.TOO_LARGE] * 2


def test_only_as_much_is_read_as_was_asked_for() -> None:
    async def act(network: GameNetwork, _: LoopClock) -> list[Reply]:
        return [await network.send(task(FIRST, **fields)) for fields in ({"most": 50}, {"method": "HEAD"})]

    part, head = visit(act)

    assert part.body.startswith(b'{"Response":{"period"')
    assert (len(part.body), part.status, head.body, head.status) == (50, 200, b"", 200)


def test_there_is_nobody_elsewhere() -> None:
    async def act(network: GameNetwork, _: LoopClock) -> None:
        with pytest.raises(socket.gaierror):
            await network.send(Task("http://elsewhere.example/"))
        with pytest.raises(ConnectionRefusedError):
            await network.send(Task(f"{ORIGIN}:8080/"))
        with pytest.raises(Refused):
            await GameNetwork(network.game, LoopClock(), guard=GuardRules(ports=frozenset({443}))).send(task(FIRST))
        assert (await network.send(Task(f"{ORIGIN}{SETTINGS}#here"))).status == 200
        assert (await network.send(task(FIRST, method="POST"))).status == 405

    visit(act)


def test_what_was_asked_is_tallied() -> None:
    async def act(network: GameNetwork, _: LoopClock) -> GameNetwork:
        async with asyncio.TaskGroup() as group:
            for number in (FIRST, FIRST + 1, FIRST + 10**6):
                group.create_task(network.send(task(number)))
        return network

    network = visit(act)

    assert network.tally.kinds == {Kind.REPORT: 2, Kind.MISSING: 1}
    assert network.tallies[NAME].most_inflight == 3
    assert network.tallies[NAME].answered == {200: 2, 404: 1}
