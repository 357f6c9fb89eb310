"""Runs blocking calls: in threads, or at once under virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor as Threads
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Has work done elsewhere; one with a single thread does it in the order it was asked for."""

    def __call__(self, work: Callable[..., T], /, *args: Any) -> Awaitable[T]:  # noqa: ANN401 - whatever `work` takes
        """What `work` returns."""


def in_threads(threads: Threads) -> Executor:
    """An executor in these threads."""

    async def execute(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
        return await asyncio.get_running_loop().run_in_executor(threads, work, *args)

    return execute
