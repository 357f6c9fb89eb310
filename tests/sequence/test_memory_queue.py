"""The queue in memory, with which crawls are tested, does what the real one does."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sequence_parts import MemoryQueue, desk

from sanderling.stores.queue import Delivery, Letter
from sanderling.stores.sqlite_queue import SqliteQueue
from sanderling.testing import LoopClock, run_virtual

MOVES = st.lists(
    st.tuples(
        st.sampled_from(["publish", "take", "done", "later", "bury", "replay", "close", "wait"]), st.integers(0, 5)
    ),
    max_size=30,
)


async def _moved(queue: Any, moves: list[tuple[str, int]]) -> list[object]:  # noqa: ANN401 - either queue
    seen: list[object] = []
    held: list[Delivery] = []
    for move, number in moves:
        match move:
            case "publish":
                await queue.publish([Letter(f"{number}", bytes([number])), Letter("same", b"")])
            case "take":
                some = await queue.take(number + 1, 1.5)
                held += some
                seen.append([(each.key, each.body, each.tries) for each in some])
            case "done" if held:
                await queue.done([held.pop(number % len(held))])
            case "later" if held:
                await queue.later(held.pop(number % len(held)), number + 0.5, "busy")
            case "bury" if held:
                await queue.bury(held.pop(number % len(held)), f"why {number}")
            case "replay":
                seen.append(await queue.replay([f"{number}"] if number else None))
            case "wait":
                await asyncio.sleep(number)
        seen.append([(dead.key, dead.body, dead.why, dead.tries) for dead in await queue.dead(100)])
    seen.append((await queue.depth()).dead)
    await queue.close()
    return seen


@settings(max_examples=40)
@given(moves=MOVES)
def test_the_queue_in_memory_is_a_twin_of_the_one_on_disk(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("twin") / "queue.db"

    async def both() -> tuple[list[object], list[object]]:
        in_memory = await _moved(MemoryQueue(LoopClock()), moves)
        return in_memory, await _moved(SqliteQueue(path, LoopClock(), desk), moves)

    in_memory, on_disk = run_virtual(both())

    assert in_memory == on_disk
