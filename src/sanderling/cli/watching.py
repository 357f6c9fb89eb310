"""Whoever looks while a system runs: people at a screen, others at status.json, and the next run at limiter.json."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Never, TypeVar

from sanderling.cli.screen import ScreenOf
from sanderling.clock import SystemClock
from sanderling.flow.desk import Desk
from sanderling.limit import Limiter
from sanderling.stores.limiter_file import keep
from sanderling.stores.status_file import write_status

PUBLISH_EVERY = 1.0  # seconds between two status.json
KEEP_EVERY = 5.0  # seconds that what the limiter learned may be old after a crash, and longer with many hosts:
BREATH = 0.01  # seconds between two pieces of it, each a millisecond's work, so that it never takes a tenth of the time

S = TypeVar("S")
T = TypeVar("T")
Look = Coroutine[Any, Any, object]


async def watched(system: Awaitable[T], *looks: Look) -> T:
    """What comes of the system; the looks go on beside it, and end with it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in looks]
        try:
            return await system
        finally:
            for task in tasks:
                task.cancel()


async def every(seconds: float, look: Callable[[], Awaitable[object]]) -> None:
    """Look at once, and again after so many seconds, until cancelled."""
    clock = SystemClock()  # people's time, also where ours is scaled
    while True:
        await look()
        await clock.sleep(seconds)


def drawn(screen: ScreenOf[S, Never], take: Callable[[], S]) -> Look:
    """The look of people: frame by frame, what `take` says."""

    async def look() -> None:
        screen.show(take())

    return every(screen.every, look)


def told(folder: Path, take: Callable[[], object], desk: Desk) -> Look:
    """The look of other processes: what `take` says is published in the folder."""
    return every(PUBLISH_EVERY, lambda: desk(write_status, folder, take()))


def kept(limiter: Limiter, folder: Path, desk: Desk) -> Look:
    """The look of the next run: what the limiter learned is kept in the folder."""
    clock = SystemClock()

    async def look() -> None:
        pieces: list[bytes] = []
        for piece in limiter.saving():
            if pieces:
                await clock.sleep(BREATH)
            pieces.append(piece)
        await desk(keep, folder, pieces)

    return every(KEEP_EVERY, look)
