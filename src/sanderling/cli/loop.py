"""The event loop that commands run on, and how they are stopped."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a command that asks hosts. A fetch costs a seventh to a quarter less CPU than on asyncio's own loop.

    `bench/fetch.py` measures it. Nothing below the commands knows on which loop it runs.
    """
    return uvloop.run(main)


@contextmanager
def stoppable(
    stop: Callable[[], object], note: Callable[[str], object], ends: Callable[[], str]
) -> Iterator[list[int]]:
    """The first Ctrl-C stops, the second stops at once; gives which signals came.

    `note` is told what `ends` says is coming to its end.
    """
    loop, main = asyncio.get_running_loop(), asyncio.current_task()
    came: list[int] = []

    def heard(number: int) -> None:
        came.append(number)
        if len(came) == 1:
            note(f"{ends()}; once more stops at once")
            stop()
        elif main is not None:
            main.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heard, number)
    try:
        yield came
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
