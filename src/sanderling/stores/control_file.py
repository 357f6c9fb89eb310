"""What people want of a running system, as control.json in its folder: pause, leave hosts alone, stop, drain.

Whoever wants something writes the file, and the system looks every second. So it does not matter who writes, a command,
the dashboard or an editor, nor whether the system runs at that moment: one that is started later finds the file. Only
an ending is for the process that runs: the one that is started next takes it out of the file (`clear_ending`).
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from sanderling.clock import Clock
from sanderling.stores.disk_room import DiskRoom
from sanderling.stores.durable import plainly, sync_folder, write_new

FILE = "control.json"
EVERY = 1.0  # seconds between looks
MOST_BYTES = 4 << 20
MOST_HOSTS = 100_000

T = TypeVar("T")
# Stop: ask for nothing more. Drain: take nothing new from outside, and end what is known and due.
Ending = Literal["", "stop", "drain"]
Wish = Literal["pause", "resume", "leave", "let-go", "stop", "drain"]  # what people say; a host goes with two of them


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wanted."""

    paused: bool = False  # that nothing new is begun
    hosts: frozenset[str] = frozenset()  # that are left alone
    ending: Ending = ""  # that the process which runs comes to its end
    disk_trouble: str = ""  # why the process paused itself; never in the file

    def __post_init__(self) -> None:
        if len(self.hosts) > MOST_HOSTS:
            raise ValueError(f"{len(self.hosts):,} hosts, expected at most {MOST_HOSTS:,}")

    def after(self, wish: Wish, host: str = "") -> "Control":
        """What is wanted after a wish."""
        match wish:
            case "pause" | "resume":
                return msgspec.structs.replace(self, paused=wish == "pause")
            case "leave":
                return msgspec.structs.replace(self, hosts=self.hosts | {host})
            case "let-go":
                return msgspec.structs.replace(self, hosts=self.hosts - {host})
            case "stop" | "drain":
                # Who stops has nothing left to drain.
                return self if self.ending == "stop" else msgspec.structs.replace(self, ending=wish)


NOTHING = Control()
# Where nobody knows what is wanted: somebody may have paused it, or wanted hosts to be left alone.
UNKNOWN = Control(paused=True)


def read_control(folder: Path) -> Control:
    """What is wanted; nothing if nobody has said anything. Raises ValueError for a file that makes no sense."""
    try:
        found = read_wish(folder / FILE, Control) or NOTHING
        return msgspec.structs.replace(found, disk_trouble="") if found.disk_trouble else found
    except ValueError as error:
        expected = 'expected paused (true or false), hosts (a list) and ending ("stop" or "drain")'
        raise ValueError(f"{error}; {expected}. A newer release may have written it") from None


def read_wish(path: Path, kind: type[T]) -> T | None:
    """What a small file says that people write for a process that runs; None if there is none. Raises ValueError."""
    try:
        # Not waiting for a pipe that somebody put there: whoever reads it has work to do.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - a descriptor
            return msgspec.json.decode(file.read(MOST_BYTES), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None


def write_control(folder: Path, control: Control) -> None:
    """Want this from now on. Raises FolderError."""
    named: dict[str, object] = {"paused": control.paused, "hosts": sorted(control.hosts)}
    if control.ending:  # releases that know no ending read the file as long as there is none
        named["ending"] = control.ending
    with plainly(folder):
        write_new(folder / FILE, [msgspec.json.encode(named), b"\n"])
        sync_folder(folder)


def change_control(folder: Path, change: Callable[[Control], Control], *, anew: bool = False) -> Control:
    """Change what is wanted, one writer at a time; what is wanted then. Raises FolderError or ValueError.

    With `anew`, a file that makes no sense is replaced: what it said is forgotten, and all is paused, then changed.
    """
    with plainly(folder), _alone(folder):
        before: Control | None = None
        try:
            before = read_control(folder)
        except ValueError:
            if not anew:
                raise
        control = change(before or UNKNOWN)
        if control != before:
            write_control(folder, control)
    return control


def clear_ending(folder: Path) -> Ending:
    """A process begins: an ending that somebody wanted of an earlier one is over. Which it was.

    Raises FolderError or ValueError.
    """
    ending: Ending = ""

    def clear(control: Control) -> Control:
        nonlocal ending
        ending = control.ending
        return msgspec.structs.replace(control, ending="")

    change_control(folder, clear)
    return ending


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder itself: a file for it would be one more that people wonder about."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@dataclass(slots=True)
class LiveControl:
    """What is wanted of the system in a folder; `apply` is told when that changes.

    A file that makes no sense leaves everything as it was; at the start, that is paused.
    """

    folder: Path
    apply: Callable[[Control], object]
    clock: Clock
    room: DiskRoom | None = None  # the disk, which pauses the system as well
    now: Control | None = None  # what people want; None before the first look
    trouble: str = ""  # why the file is not heeded, if it is not
    _applied: Control = NOTHING

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.look()
            await self.clock.sleep(EVERY)

    def look(self) -> None:
        """Look now."""
        try:
            self.now = read_control(self.folder)
            self.trouble = ""
        except ValueError as error:
            self.now = self.now or UNKNOWN
            self.trouble = str(error)
        full = "" if self.room is None else self.room.trouble
        wanted = msgspec.structs.replace(self.now, paused=True, disk_trouble=full) if full else self.now
        if wanted != self._applied:
            self._applied = wanted
            self.apply(wanted)
