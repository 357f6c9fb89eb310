"""The simulated race day in process, under virtual time: a whole day of polling takes seconds."""

import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from sanderling.fetch.attempts import EXPECTED
from sanderling.fetch.classify import of_error
from sanderling.fetch.http import HttpRules
from sanderling.outcome import Code
from sanderling.task import Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.race import Change, Kind, RaceDay, RaceRules, RaceWeather, demo
from sanderling.worlds.race_documents import CHANNELS
from sanderling.worlds.race_network import NAME, ORIGIN, RaceNetwork

T = TypeVar("T")


def visit(
    act: Callable[[RaceNetwork, LoopClock], Awaitable[T]], rules: RaceRules | None = None, http: HttpRules | None = None
) -> T:
    async def main() -> T:
        clock = LoopClock()
        return await act(RaceNetwork(RaceDay(1, rules or demo(), clock.wall()), clock, rules=http), clock)

    return run_virtual(main())


async def code(network: RaceNetwork, path: str) -> Code:
    try:
        await network.send(Task(f"{ORIGIN}{path}"))
    except EXPECTED as error:
        return of_error(error).code
    return Code.OK


def meeting(kind: Kind) -> RaceRules:
    return RaceRules(demo().day, RaceWeather(faults={kind: 1.0}))


def test_who_asks_every_200_ms_sees_every_change_in_time() -> None:
    async def act(network: RaceNetwork, clock: LoopClock) -> tuple[list[float], tuple[Change, ...]]:
        day, last, seen = network.day, b"", []
        path, started = day.race_path(day.heats[0].id), clock.now()
        while clock.wall() - day.began < day.heats[0].end / 1000 + 1:
            asked = clock.wall() - day.began
            reply = await network.send(Task(f"{ORIGIN}{path}"))
            if reply.body != last:
                last = reply.body
                seen.append(asked)
            # On a grid: what an answer takes does not add up.
            await clock.sleep(0.2 - (clock.now() - started) % 0.2)
        return seen, tuple(change for change in day.changes(0.0, seen[-1]) if change.path == path)

    seen, changes = visit(act)

    assert len(changes) > 50
    for change in changes:
        assert min(at for at in seen if at >= change.at) - change.at < 0.21


def test_laps_arrive_while_a_race_runs() -> None:
    async def act(network: RaceNetwork, clock: LoopClock) -> list[int]:
        heat, counts = network.day.heats[0], []
        for at in range(heat.start, heat.end + 5000, 5000):
            await clock.sleep(network.day.began + at / 1000 - clock.wall())
            reply = await network.send(Task(f"{ORIGIN}{network.day.race_path(heat.id)}"))
            counts.append(len(json.loads(reply.body)[0]["Laps"]))
        return counts

    counts = visit(act)

    assert counts[0] == 0
    assert counts == sorted(counts)
    assert len(set(counts)) > 5


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (Kind.RESET, Code.CONNECTION_RESET),
        (Kind.HANG, Code.TIMEOUT),
        (Kind.HUGE, Code.TOO_LARGE),
        (Kind.SLOW, Code.OK),
        (Kind.EMPTY, Code.OK),
    ],
)
def test_a_client_gets_each_fault_as_the_error_that_it_is(kind: Kind, outcome: Code) -> None:
    async def act(network: RaceNetwork, _: LoopClock) -> Code:
        return await code(network, CHANNELS)

    assert visit(act, meeting(kind)) is outcome


def test_who_is_answered_late_waits_so_long() -> None:
    async def act(network: RaceNetwork, clock: LoopClock) -> float:
        await code(network, "/")
        return clock.now()

    assert 0.8 <= visit(act, meeting(Kind.SLOW)) < 0.9


def test_headers_are_heeded_however_they_are_spelled() -> None:
    async def act(network: RaceNetwork, _: LoopClock) -> int:
        first = await network.send(Task(f"{ORIGIN}{CHANNELS}"))
        etag = first.header("ETag") or ""
        return (await network.send(Task(f"{ORIGIN}{CHANNELS}", headers=(("If-None-Match", etag),)))).status

    assert visit(act, RaceRules(demo().day, etag=True)) == 304


def test_what_was_asked_is_tallied() -> None:
    async def act(network: RaceNetwork, _: LoopClock) -> RaceNetwork:
        for path in ("/", CHANNELS, CHANNELS, "/none"):
            await network.send(Task(f"{ORIGIN}{path}"))
        return network

    network = visit(act)

    assert network.tally.paths == {"/": 1, CHANNELS: 2, "other": 1}
    assert network.tallies[NAME].answered == {200: 3, 404: 1}


def test_there_is_nobody_elsewhere() -> None:
    async def act(network: RaceNetwork, _: LoopClock) -> None:
        with pytest.raises(OSError, match=r"elsewhere\.example"):
            await network.send(Task("http://elsewhere.example/"))

    visit(act)
