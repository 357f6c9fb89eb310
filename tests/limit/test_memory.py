"""How much may be held at once, and that everyone comes to an end."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit.memory import Memory
from sanderling.testing import run_virtual


def test_who_would_hold_too_much_waits_until_another_lets_go() -> None:
    async def main() -> list[str]:
        memory, order = Memory(100), list[str]()

        async def second() -> None:
            await memory.hold("b", 50)
            order.append("b holds")

        await memory.hold("a", 80)
        async with asyncio.TaskGroup() as group:
            group.create_task(second())
            await asyncio.sleep(1)
            order.append("a lets go")
            memory.release("a")
        return order

    assert run_virtual(main()) == ["a lets go", "b holds"]


def test_the_first_never_waits() -> None:
    async def main() -> int:
        memory = Memory(100)
        await memory.hold("a", 50)
        async with asyncio.timeout(1):
            await memory.hold("a", 500)
        return memory.total

    assert run_virtual(main()) == 500


def test_holding_more_counts_what_was_held_before() -> None:
    async def main() -> int:
        memory = Memory(100)
        await memory.hold("a", 30)
        await memory.hold("a", 60)
        memory.release("a")
        memory.release("a")
        return memory.total

    assert run_virtual(main()) == 0


def test_there_must_be_some() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Memory(0)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 60), min_size=1, max_size=30))
def test_bodies_of_any_size_all_arrive_and_the_limit_is_passed_by_one_at_most(seed: int, sizes: list[int]) -> None:
    rng, largest = Random(seed), max(sizes)

    async def main() -> tuple[int, int]:
        memory, most = Memory(100), 0

        async def body(who: str, size: int) -> None:
            nonlocal most
            for part in range(1, size + 1):
                await memory.hold(who, part)
                most = max(most, memory.total - sum(1 for _ in memory._held))  # each may have asked for one more
                await asyncio.sleep(rng.random())
            memory.release(who)

        async with asyncio.TaskGroup() as group:
            for number, size in enumerate(sizes):
                group.create_task(body(str(number), size))
        return memory.total, most

    total, most = run_virtual(main())
    assert total == 0
    assert most <= 100 + largest
