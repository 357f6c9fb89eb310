"""Work that is done elsewhere."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sanderling.executor import in_threads


def test_work_is_done_in_another_thread_and_in_order() -> None:
    done: list[int] = []

    async def main() -> int:
        with ThreadPoolExecutor(1) as threads:
            desk = in_threads(threads)
            async with asyncio.TaskGroup() as group:
                for number in range(5):
                    group.create_task(_asked(desk(done.append, number)))
            return await desk(threading.get_ident)

    assert asyncio.run(main()) != threading.get_ident()
    assert done == [0, 1, 2, 3, 4]


async def _asked(work: object) -> None:
    await work  # type: ignore[misc] # what a desk returns can be awaited


def test_what_it_raises_is_raised_here() -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1) as threads:
            await in_threads(threads)(int, "no number")

    with pytest.raises(ValueError, match="no number"):
        asyncio.run(main())
