"""The event loop that commands run on, and how they are stopped."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, TypeVar

import uvloop

from sanderling.cli.command_error import INTERRUPTED, CommandError
from sanderling.clock import SystemClock
from sanderling.words import count, printable

T = TypeVar("T")

GRACE = 5.0  # seconds that a process may take to let go of everything, once it was told to stop at once
# Seconds in which signals count as one: `timeout` and some supervisors signal the process, and then its group.
TOGETHER = 0.5
SHOW_CURSOR = "\x1b[?25h"


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a command that asks hosts. A fetch costs a seventh to a quarter less CPU than on asyncio's own loop.

    `bench/fetch.py` measures it. Nothing below the commands knows on which loop it runs.
    """
    return uvloop.run(main)


def describe_inflight(requests: int) -> str:
    """What a crawl does that was asked to stop."""
    return f"finishing {count(requests, 'request')} in flight"


@contextmanager
def stop_on_signals(
    stop: Callable[[], object], note: Callable[[str], object], ends: Callable[[], str]
) -> Iterator[list[int]]:
    """Call `stop` at the first Ctrl-C or SIGTERM, and stop at once at the second; gives which signals came.

    `note` is told what `ends` says is coming to its end.
    """
    loop, main, clock = asyncio.get_running_loop(), asyncio.current_task(), SystemClock()
    came: list[int] = []
    first = -inf

    def heard(number: int) -> None:
        nonlocal first
        came.append(number)
        if len(came) == 1:
            first = clock.now()
            note(f"{ends()}; once more stops at once")
            stop()
        elif main is not None and clock.now() >= first + TOGETHER:
            main.cancel()
            _leave_after(GRACE)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heard, number)
    try:
        yield came
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _leave_after(seconds: float) -> None:
    """End the process after a while, whatever it still waits for: a server that is gone may never say goodbye."""

    def leave() -> None:
        if sys.stdout.isatty():
            print(SHOW_CURSOR, end="", flush=True)  # a picture that is still drawn has hidden it
        print("sanderling: stopped at once; what was kept is safe", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)

    # Not a timer of the loop: that may be what is stuck.
    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()


@contextmanager
def explain_end(onward: str, known: tuple[type[Exception], ...]) -> Iterator[None]:
    """Say in words what ends a run from outside: something of what is `known` to happen, or a second Ctrl-C.

    `onward` is the command that goes on with it.
    """
    try:
        yield
    except known as error:
        raise CommandError(printable(str(error)), getattr(error, "code", 1)) from None
    except ExceptionGroup as group:
        kinds: tuple[type[Exception], ...] = (*known, CommandError)
        wanted, rest = group.split(kinds)
        if wanted is None or rest is not None:
            raise
        first = _first(wanted)
        raise CommandError(printable(str(first)), getattr(first, "code", 1)) from None
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise CommandError(
            f"stopped at once; what was kept is safe. Go on with:\n\n    {onward}\n", INTERRUPTED
        ) from None


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
