"""Whoever asks first whether a group is open is never refused."""

import asyncio

import pytest

from sanderling.engine.workers import Workers
from sanderling.testing import run_virtual


async def slow_to_go() -> None:
    try:
        await asyncio.sleep(100)
    finally:
        await asyncio.sleep(5)


async def failing() -> None:
    await asyncio.sleep(1)
    raise OSError("the disk is full")


def begun_while_open(workers: Workers) -> list[bool]:
    """Begins a task every tenth of a second for as long as it may; whether it might."""
    answers: list[bool] = []

    def begin() -> None:
        answers.append(workers.open)
        if workers.open:
            workers.create_task(asyncio.sleep(0))
        if len(answers) < 40:
            asyncio.get_running_loop().call_later(0.1, begin)

    begin()
    return answers


def test_a_group_is_open_until_a_task_fails() -> None:
    asked: list[list[bool]] = []

    async def main() -> None:
        async with Workers() as workers:
            workers.create_task(slow_to_go())
            workers.create_task(failing())
            asked.append(begun_while_open(workers))
            await asyncio.sleep(100)

    with pytest.raises(ExceptionGroup) as raised:
        run_virtual(main())

    (answers,) = asked
    assert raised.group_contains(OSError, match="the disk is full")
    assert answers == [True] * answers.count(True) + [False] * answers.count(False)
    assert 9 <= answers.count(True) <= 11
    assert len(answers) == 40


def test_a_group_is_open_until_it_is_cancelled() -> None:
    async def main() -> list[bool]:
        workers, answers = Workers(), []

        async def parent() -> None:
            async with workers:
                workers.create_task(slow_to_go())
                answers.append(begun_while_open(workers))
                await asyncio.sleep(100)

        task = asyncio.create_task(parent())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return answers[0]

    answers = run_virtual(main())
    assert 9 <= answers.count(True) <= 11
    assert len(answers) == 40


def test_tasks_may_begin_others_while_the_group_comes_to_its_end() -> None:
    async def main() -> bool:
        async with Workers() as workers:
            workers.create_task(asyncio.sleep(2))
            asyncio.get_running_loop().call_later(1, lambda: workers.create_task(asyncio.sleep(2)))
            cancelled = workers.create_task(asyncio.sleep(50))
            cancelled.cancel()
        return workers.open

    assert run_virtual(main())
