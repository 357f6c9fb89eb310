"""The gate that is shut while the API is switched off: who shuts it, what opens it, and what does not."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from sequence_parts import DAY, Asker, JumpingClock, NumbersApi, Upstream

from sanderling.apis.numbered import Status
from sanderling.observe.alerts import Alert
from sanderling.sequence.inquiries import LOOK_EVERY, Availability
from sanderling.testing import run_virtual

SOON = 2.0  # a request, its leave, and what the client tries again


class Gate:
    """The gate of an upstream, watched by `run`."""

    def __init__(self, *, asks: bool) -> None:
        self.clock = JumpingClock()
        self.upstream = Upstream(self.clock, on=False, usual=Status.DISABLED)
        self.said: list[Alert] = []
        self.opened: list[float] = []
        api = NumbersApi(asks=asks)
        self.availability = Availability(api, Asker(self.upstream, api, self.clock), self.clock, self.said.append)

    @property
    def kinds(self) -> list[str]:
        """What people were told."""
        return [alert.kind for alert in self.said]


def play(script: Callable[[Gate], Coroutine[Any, Any, None]], *, asks: bool = True) -> Gate:
    async def main() -> Gate:
        gate = Gate(asks=asks)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(gate.availability.run(lambda: gate.opened.append(gate.clock.now())))
            await script(gate)
            watching.cancel()
        return gate

    return run_virtual(main())


def test_it_is_open_until_an_answer_says_otherwise_and_nobody_is_asked() -> None:
    async def script(gate: Gate) -> None:
        await gate.clock.sleep(DAY)
        assert gate.availability.open

    gate = play(script)

    assert (gate.upstream.looked, gate.said, gate.opened) == ([], [], [])


def test_one_answer_shuts_it_and_people_are_told_once() -> None:
    async def script(gate: Gate) -> None:
        for number in (5, 6, 7):
            gate.availability.shut(number)
        assert not gate.availability.open

    assert play(script).kinds == ["api_disabled"]


def test_it_is_looked_at_every_45_seconds_and_opens_when_the_api_says_so() -> None:
    async def script(gate: Gate) -> None:
        gate.availability.shut(5)
        await gate.clock.sleep(4.5 * LOOK_EVERY)
        assert not gate.availability.open
        gate.upstream.on = True
        await gate.clock.sleep(LOOK_EVERY + SOON)
        assert gate.availability.open

    gate = play(script)

    assert gate.upstream.looked == pytest.approx([45, 90, 135, 180, 225], abs=SOON)
    assert gate.opened == pytest.approx([225], abs=SOON)
    assert gate.kinds == ["api_disabled", "api_back"]
    assert gate.upstream.asked == {}  # its own word is enough


@pytest.mark.parametrize(
    "failure",
    [ConnectionResetError("cut"), TimeoutError(), b"<html>maintenance</html>", b""],
    ids=["cut", "timeout", "a page", "nothing"],
)
def test_a_look_that_fails_leaves_it_shut(failure: Exception | bytes) -> None:
    async def script(gate: Gate) -> None:
        gate.availability.shut(5)
        gate.upstream.on = failure
        await gate.clock.sleep(20 * LOOK_EVERY)
        assert not gate.availability.open
        gate.upstream.on = True
        await gate.clock.sleep(10 * LOOK_EVERY)  # the client, too, stands back from a host that fails
        assert gate.availability.open

    gate = play(script)

    assert len(gate.opened) == 1


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.SKIPPED, Status.NOT_FOUND, Status.HIDDEN])
def test_an_api_without_such_a_question_is_asked_the_id_that_told_us(status: Status) -> None:
    async def script(gate: Gate) -> None:
        gate.availability.shut(5)
        await gate.clock.sleep(2.5 * LOOK_EVERY)
        assert not gate.availability.open
        gate.upstream.says[5] = [status]
        await gate.clock.sleep(LOOK_EVERY + SOON)
        assert gate.availability.open

    gate = play(script, asks=False)

    assert gate.upstream.asked.keys() == {5}
    assert gate.upstream.asked[5] == pytest.approx([45, 90, 135], abs=SOON)
    assert gate.upstream.looked == []


@pytest.mark.parametrize("status", [Status.DISABLED, Status.ERROR, Status.RATE_LIMITED])
def test_an_id_that_says_nothing_of_the_api_leaves_it_shut(status: Status) -> None:
    async def script(gate: Gate) -> None:
        gate.availability.shut(5)
        gate.upstream.usual = status
        await gate.clock.sleep(20 * LOOK_EVERY)
        assert not gate.availability.open

    play(script, asks=False)


def test_an_answer_that_makes_no_sense_is_checked_by_an_id() -> None:
    async def script(gate: Gate) -> None:
        gate.availability.shut(5)
        gate.upstream.on = b"?"
        gate.upstream.usual = Status.NOT_FOUND
        await gate.clock.sleep(LOOK_EVERY + SOON)
        assert gate.availability.open

    gate = play(script)

    assert len(gate.upstream.looked) == 1
    assert list(gate.upstream.asked) == [5]


def test_it_shuts_and_opens_as_often_as_need_be() -> None:
    async def script(gate: Gate) -> None:
        for _ in range(3):
            gate.upstream.on = False
            gate.availability.shut(5)
            await gate.clock.sleep(1.5 * LOOK_EVERY)
            gate.upstream.on = True
            await gate.clock.sleep(LOOK_EVERY)
            assert gate.availability.open

    gate = play(script)

    assert gate.kinds == ["api_disabled", "api_back"] * 3
    assert len(gate.opened) == 3


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_jump_of_the_clock_neither_opens_it_nor_keeps_it_shut(jump: float) -> None:
    async def script(gate: Gate) -> None:
        gate.availability.shut(5)
        await gate.clock.sleep(LOOK_EVERY / 2)
        gate.clock.ahead = jump
        await gate.clock.sleep(LOOK_EVERY)
        assert not gate.availability.open
        gate.upstream.on = True
        await gate.clock.sleep(LOOK_EVERY)
        assert gate.availability.open

    gate = play(script)

    assert gate.said[-1].fields[1].value == "1m 30.1s"  # by the clock that nobody sets
