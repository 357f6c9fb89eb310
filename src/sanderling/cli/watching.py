"""Whoever looks while a system runs: people at a screen, others at status.json, and the next run at limiter.json.

And the system itself at control.json, for what people want of it.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from shlex import quote
from typing import Any, Never, TypeVar

from sanderling.cli.screen import ScreenOf
from sanderling.clock import SystemClock
from sanderling.flow.desk import Desk
from sanderling.limit import Limiter
from sanderling.stores.control_file import Control, LiveControl, clear_ending, read_control
from sanderling.stores.disk_room import DiskRoom
from sanderling.stores.durable import FolderError
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


def obey(
    folder: Path,
    control: Callable[[Control], object],
    note: Callable[[str], object],
    room: DiskRoom,
    *,
    alone: bool = True,
) -> Look:
    """The look at what people want, and at the disk: `control` is told of changes. Call it when the folder is ours.

    To be told to stop is the same as SIGTERM. An ending that an earlier process was told is over, unless others of the
    folder are still ending, so that we are not `alone`: then it is for us as well.
    """
    _begin(folder, note, alone=alone)
    stopping, full, clock = False, False, SystemClock()

    def heard(wanted: Control) -> None:
        nonlocal stopping, full
        if full != bool(wanted.disk_trouble):
            full = not full
            note(f"paused: {wanted.disk_trouble}" if full else "the disk has room again")
        control(wanted)
        if wanted.ending == "stop" and not stopping:
            stopping = True  # a second signal would end it at once
            signal.raise_signal(signal.SIGTERM)

    async def look() -> None:
        await watched(LiveControl(folder, heard, clock, room).run(), room.run(clock))

    return look()


def _begin(folder: Path, note: Callable[[str], object], *, alone: bool) -> None:
    """Take out what was wanted of an earlier process, and say what is wanted of this one."""
    try:
        ending = clear_ending(folder) if alone else ""
        wanted = read_control(folder)
    except (FolderError, ValueError) as error:
        note(f"what people want is not heeded: {error}")
        return
    if ending:
        note(f"an earlier process was told to {ending}; that is over, and this one goes on")
    if wanted.ending:
        note(f"others that run in {folder} were told to {wanted.ending}, and so is this one")
    if wanted.paused:
        note(f"paused: nothing is begun until somebody says: sanderling control {quote(str(folder))} resume")
