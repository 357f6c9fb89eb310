"""Ends a process in which one call of a user's function holds the event loop, and remembers which item it was for.

A thread counts its own wakeups during a call: each stands for one tick, however late it came. So a process that was
stopped, or whose machine slept, is not taken for a stuck one. A call that holds the interpreter's lock too (a regular
expression that backtracks for hours) starves the thread; then a timer of CPU time, which the thread sets back with each
wakeup, runs out, and its signal interrupts the call.

The item and the stack are written to `stuck.json` before the process ends with code 75. The next start takes the item
last; one that was stuck twice is ended, with the place of its last stack as the reason.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from sysconfig import get_paths
from types import FrameType, TracebackType
from typing import NoReturn, Self

import msgspec

from sanderling.clock import Clock, SystemClock
from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new
from sanderling.words import duration, printable

FILE = "stuck.json"
VERSION = 1
LONGEST = 30.0  # seconds that one call may hold the event loop
TICKS = 30  # wakeups of the thread in that time
STUCK = 75  # the exit code; EX_TEMPFAIL: run it again
DEEPEST = 50  # frames of a stack that are kept, the innermost
TWICE = 2  # after so many times an item is ended
SHOW_CURSOR = b"\x1b[?25h"
# A person who looks at a call with a debugger holds the loop for as long as that takes.
DEBUGGERS = ("bdb.py", "pydevd.py")
# No code of a user's, so no place that a user is told of.
_PATHS = (str(Path(__file__).parents[1]), *(get_paths()[each] for each in ("stdlib", "purelib", "platlib")))
ELSEWHERE = (*(each + os.sep for each in _PATHS), "<")


class Stuck(msgspec.Struct, frozen=True):
    """An item whose call held the event loop."""

    times: int
    wall: float  # when it last did, in Unix seconds
    seconds: float  # that the last call was given
    where: str  # the innermost line of the user's: file, line and function
    stack: tuple[str, ...]  # all of it, the innermost last

    @property
    def ends(self) -> bool:
        """Whether the item is ended instead of asked for once more."""
        return self.times >= TWICE

    @property
    def reason(self) -> str:
        """Why the item is ended, in words."""
        return f"held the event loop for {duration(self.seconds)}, {self.times} times, last at {self.where}"


TellStuck = Callable[[str, Path, Stuck], object]  # by the key of the item and the folder that it is of


class _File(msgspec.Struct, frozen=True):
    version: int
    items: dict[str, Stuck]


def read_stuck(folder: Path) -> dict[str, Stuck]:
    """The items of a folder that were stuck in earlier runs, by key. Raises FolderError."""
    path = folder / FILE
    with plainly(path):
        try:
            found = msgspec.json.decode(path.read_bytes(), type=_File)
        except FileNotFoundError:
            return {}
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FolderError(f"{path} is damaged ({error}). Remove it: its items are then asked for again.") from None
    if found.version != VERSION:
        raise FolderError(f"{path} has version {found.version}, expected {VERSION}: use the release that wrote it")
    return found.items


def write_stuck(folder: Path, items: dict[str, Stuck]) -> None:
    """Make these the items of the folder that were stuck; durable on return. Raises FolderError."""
    path = folder / FILE
    with plainly(path):
        if items:
            write_new(path, [msgspec.json.format(msgspec.json.encode(_File(VERSION, items)), indent=1)])
        else:
            path.unlink(missing_ok=True)
        sync_folder(folder)


class _Call:
    """A call that is under way; each is another object, so that one is told from the next."""

    __slots__ = ("folder", "key")

    def __init__(self, key: str, folder: Path) -> None:
        self.key = key
        self.folder = folder


class Watchdog:
    """Watches the calls of one event loop: `with Watchdog(folder) as dog: dog.begin(key); call(); dog.end()`.

    Enter it in the thread of the loop. Calls do not nest; of a coroutine, each step is a call.
    """

    def __init__(
        self, folder: Path, longest: float = LONGEST, clock: Clock | None = None, tell: TellStuck | None = None
    ) -> None:
        """Who else must know is told by `tell`, in a thread of its own, which has as long as a call may take."""
        if not longest > 0:
            raise ValueError(f"longest is {longest}, expected seconds above 0")
        self._folder = folder
        self._longest = longest
        self._clock = clock or SystemClock()
        self._tell = tell
        self._call: _Call | None = None
        self._over = threading.Event()
        self._loop = 0
        self._thread: threading.Thread | None = None
        self._restore: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        self._loop = threading.get_ident()
        if threading.current_thread() is threading.main_thread():  # others get no signals
            before = signal.signal(signal.SIGVTALRM, self._starved)
            self._restore = lambda: signal.signal(signal.SIGVTALRM, before)
        self._thread = threading.Thread(target=self._run, daemon=True, name="watchdog")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._restore is not None:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            self._restore()

    def begin(self, key: str, folder: Path | None = None) -> None:
        """A call for the item begins; one of another folder than ours is recorded there."""
        self._call = _Call(key, folder or self._folder)

    def end(self) -> None:
        """The call has returned."""
        self._call = None

    def _run(self) -> None:
        seen, ticks, tick = None, 0, self._longest / TICKS
        while True:
            if self._restore is not None:
                signal.setitimer(signal.ITIMER_VIRTUAL, self._longest, tick)
            if self._over.wait(tick):
                return
            call = self._call
            ticks = ticks + 1 if call is not None and call is seen else 0
            seen = call
            if call is not None and ticks >= TICKS and call is self._call:
                frame = sys._current_frames().get(self._loop)  # noqa: SLF001 - the documented way
                ticks = 0 if _is_debugged(frame) else self._end_process(call, frame)

    def _starved(self, _number: int, frame: FrameType | None) -> None:
        """For `longest` seconds of CPU time nothing else could run: one call holds the interpreter's lock."""
        call = self._call
        if call is not None and not _is_debugged(frame):
            self._end_process(call, frame)

    def _end_process(self, call: "_Call", frame: FrameType | None) -> NoReturn:
        """Write down what is stuck, say so, and end. Locks may be held by the call that is stuck, so none is taken."""
        try:
            words = self._record(call.key, call.folder, frame)
        except FolderError as error:
            words = (
                f"{call.key} has held the event loop for {duration(self._longest)}, which cannot be recorded: {error}"
            )
        try:
            os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + f"sanderling: {printable(words)}\n".encode())
        finally:  # even where nobody reads it
            os._exit(STUCK)

    def _record(self, key: str, folder: Path, frame: FrameType | None) -> str:
        stack = traceback.extract_stack(frame)[-DEEPEST:] if frame is not None else []
        lines = tuple(f"{each.filename}:{each.lineno} in {each.name}" for each in stack)
        own = [line for line in lines if not line.startswith(ELSEWHERE)]
        where = (own or lines or ("an unknown place",))[-1]
        items = read_stuck(folder)
        times = items[key].times + 1 if key in items else 1
        stuck = Stuck(times, self._clock.wall(), self._longest, where, lines)
        write_stuck(folder, items | {key: stuck})
        if self._tell is not None:
            # A lock that the stuck call may hold is waited for by a thread that nobody waits for any longer.
            told = threading.Thread(target=self._tell, args=(key, folder, stuck), daemon=True)
            told.start()
            told.join(self._longest)
        onward = "ends this item with that reason" if stuck.ends else "takes this item last"
        held = f"{key} has held the event loop for {duration(self._longest)} at {where}"
        return f"{held}. The process ends with code {STUCK}; the next start {onward} ({folder / FILE})."


class FolderWatch:
    """Watches the calls of one folder of several that share an event loop, and its watchdog."""

    def __init__(self, dog: Watchdog, folder: Path) -> None:
        self._dog = dog
        self._folder = folder

    def begin(self, key: str) -> None:
        """A call for the item begins."""
        self._dog.begin(key, self._folder)

    def end(self) -> None:
        """The call has returned."""
        self._dog.end()


def _is_debugged(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith(DEBUGGERS):
            return True
        frame = frame.f_back
    return False
