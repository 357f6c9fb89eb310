"""Where slow work is done: in threads, or at once under virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Desk(Protocol):
    """Has work done elsewhere."""

    def __call__(self, work: Callable[..., T], /, *args: Any) -> Awaitable[T]:  # noqa: ANN401 - whatever `work` takes
        """What `work` returns."""


def desk_in(threads: Executor) -> Desk:
    """A desk in these threads. With one of them, things are done in the order they were asked for."""

    async def desk(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
        return await asyncio.get_running_loop().run_in_executor(threads, work, *args)

    return desk
