"""Tests that are coroutines: on a loop of their own, or under virtual time."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

from sanderling.testing.virtual import run_virtual

Test = Callable[..., Coroutine[Any, Any, None]]


def in_loop(test: Test) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def virtual(test: Test) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        run_virtual(test(*args, **kwargs))

    return run
