"""What runs beside a system: it draws the screen, writes status.json and limiter.json, and reads control.json."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Protocol, TypeVar

from sanderling.cli.screen import ScreenOf
from sanderling.clock import SystemClock
from sanderling.executor import Executor
from sanderling.limit import Limiter
from sanderling.stores.control_file import Control, LiveControl, clear_ending, read_control
from sanderling.stores.disk_room import DiskRoom
from sanderling.stores.durable import FolderError
from sanderling.stores.limiter_file import add_news, keep

PUBLISH_EVERY = 1.0  # seconds between two status.json
KEEP_EVERY = 5.0  # seconds that what the limiter learned may be old after a crash, and longer with many hosts
BREATH = 0.01  # seconds between two pieces of all of it, each a millisecond's work: never a tenth of the time

S = TypeVar("S")
T = TypeVar("T")
Beside = Coroutine[Any, Any, object]


async def run_beside(system: Awaitable[T], *others: Beside) -> T:
    """What comes of the system; the others run beside it, and end with it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in others]
        try:
            return await system
        finally:
            for task in tasks:
                task.cancel()


async def repeat(seconds: float, call: Callable[[], Awaitable[object]]) -> None:
    """Call at once, and again after so many seconds, until cancelled."""
    clock = SystemClock()  # people's time, also where ours is scaled
    while True:
        await call()
        await clock.sleep(seconds)


def draw(screen: ScreenOf[S, Any], take: Callable[[], S]) -> Beside:
    """Show what `take` says, frame by frame."""

    async def show() -> None:
        screen.show(take())

    return repeat(screen.every, show)


def publish_status(
    write: Callable[[S], object], take: Callable[[], S], executor: Executor = asyncio.to_thread
) -> Beside:
    """Have what `take` says written every second, for other processes.

    Not by the executor of the system, which may wait for a database that somebody has locked.
    """
    return repeat(PUBLISH_EVERY, lambda: executor(write, take()))


class LimiterKeeper(Protocol):
    """Where what a limiter learned is kept for the next run."""

    async def keep(self, saved: Sequence[bytes], news: Sequence[bytes] = ()) -> None:
        """Keep all of it, in pieces, and the news that some of these lack."""

    async def add_news(self, news: bytes) -> None:
        """Keep what it has learned since."""


class FolderLimiterKeeper:
    """Keeps it in the folder of the system. Both raise FolderError."""

    def __init__(self, folder: Path, executor: Executor) -> None:
        self._folder = folder
        self._executor = executor

    async def keep(self, saved: Sequence[bytes], news: Sequence[bytes] = ()) -> None:
        """As in the port."""
        await self._executor(keep, self._folder, saved, news)

    async def add_news(self, news: bytes) -> None:
        """As in the port."""
        await self._executor(add_news, self._folder, news)


def save_limiter(limiter: Limiter, keeper: LimiterKeeper) -> Beside:
    """Keep what the limiter learned every few seconds, and penalties at once, for the next run."""
    clock, told = SystemClock(), asyncio.Event()

    async def add() -> list[bytes]:
        added: list[bytes] = []
        while news := limiter.take_news(told.set):
            added.append(news)
            await keeper.add_news(news)
        return added

    async def save() -> None:
        pieces: list[bytes] = []
        late: list[bytes] = []  # which some of the pieces lack
        for piece in limiter.saving():
            if pieces:
                await clock.sleep(BREATH)
                late += await add()
            pieces.append(piece)
        await keeper.keep(pieces, late)
        with suppress(TimeoutError):
            async with asyncio.timeout(KEEP_EVERY):
                while True:
                    told.clear()
                    await add()
                    await told.wait()

    return repeat(0.0, save)


def follow_control(
    folder: Path,
    control: Callable[[Control], object],
    note: Callable[[str], object],
    room: DiskRoom,
    *,
    alone: bool = True,
) -> Beside:
    """Tell `control` what people want, and whether the disk has room, on every change. Call it when the folder is ours.

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

    room.look()  # both before anything is begun
    live = LiveControl(folder, heard, clock, room)
    live.look()

    async def follow() -> None:
        await run_beside(live.run(), room.run(clock))

    return follow()


def rewriting(folder: Path) -> str:
    """What to do about a control.json that makes no sense."""
    resume = f"sanderling control {quote(str(folder))} resume --replace"
    return f"Repair the file, or forget what it says and go on: {resume}"


def _begin(folder: Path, note: Callable[[str], object], *, alone: bool) -> None:
    """Take out what was wanted of an earlier process, and say what is wanted of this one."""
    try:
        ending = clear_ending(folder) if alone else ""
        wanted = read_control(folder)
    except FolderError as error:
        note(f"what people want is not heeded: {error}")
        return
    except ValueError as error:
        note(f"paused, since nobody knows what is wanted: {error}. {rewriting(folder)}")
        return
    if ending:
        note(f"an earlier process was told to {ending}; that is over, and this one goes on")
    if wanted.ending:
        note(f"others that run in {folder} were told to {wanted.ending}, and so is this one")
    if wanted.paused:
        note(f"paused: nothing is begun until somebody says: sanderling control {quote(str(folder))} resume")
