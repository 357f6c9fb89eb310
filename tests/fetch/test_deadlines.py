"""Each exchange ends when its own limit has run out, whatever the others do."""

import asyncio
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looping import in_loop

from sanderling.fetch.deadlines import Deadlines
from sanderling.testing.clock import FakeClock

TOTAL = 100.0
SECONDS = st.integers(1, 50).map(float)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


# Of each exchange: when it begins, how long its first phase may take, and when the second comes and how long that may.
@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS, SECONDS), min_size=1, max_size=8))
@in_loop
async def test_each_ends_at_its_own_time_and_says_which_limit_it_was(plans: list[tuple[float, ...]]) -> None:
    clock = FakeClock()
    deadlines = Deadlines(clock, TOTAL)
    ended: dict[int, tuple[str, float]] = {}

    async def exchange(number: int, first: float, comes: float, second: float) -> None:
        try:
            with deadlines.begin("first byte", first) as deadline:
                await clock.sleep(comes)
                deadline.allow("idle", second)
                await clock.sleep(inf)
        except TimeoutError as error:
            ended[number] = str(error), clock.now()

    async with asyncio.TaskGroup() as group:
        for second in range(300):
            for number, (begins, *plan) in enumerate(plans):
                if begins == second:
                    group.create_task(exchange(number, *plan))
            await settle()
            clock.advance(1.0)
            await settle()

    def expected(begins: float, first: float, comes: float, second: float) -> tuple[str, float]:
        if first <= comes:
            return "first byte", begins + first
        if comes + second < TOTAL:
            return "idle", begins + comes + second
        return "total", begins + TOTAL

    assert ended == {number: expected(*plan) for number, plan in enumerate(plans)}
    assert not deadlines
    assert deadlines.looks_at == inf


@in_loop
async def test_what_we_wait_for_ourselves_takes_no_time() -> None:
    clock = FakeClock()
    deadlines = Deadlines(clock, 10.0)

    async def exchange() -> float:
        try:
            with deadlines.begin("first byte", 5.0) as deadline:
                await deadline.without(clock.sleep(60.0))
                deadline.allow("idle", 20.0)
                await clock.sleep(inf)
        except TimeoutError:
            return clock.now()
        return inf

    task = asyncio.create_task(exchange())
    for _ in range(100):
        await settle()
        clock.advance(1.0)
    assert await task == 70.0


@in_loop
async def test_somebody_elses_cancellation_is_no_timeout() -> None:
    clock = FakeClock()
    deadlines = Deadlines(clock, 10.0)

    async def exchange() -> None:
        with deadlines.begin("first byte", 5.0):
            await clock.sleep(inf)

    task = asyncio.create_task(exchange())
    await settle()
    task.cancel()
    clock.advance(6.0)  # in the same turn of the loop
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not deadlines
