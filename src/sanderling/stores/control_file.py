"""What people want of a running system, as control.json in its folder: that it pauses, or leaves some hosts alone.

Whoever wants something writes the file, and the system looks every second. So it does not matter who writes, a command,
the dashboard or an editor, nor whether the system runs at that moment: one that is started later finds the file.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from sanderling.clock import Clock
from sanderling.stores.durable import plainly, write_new

FILE = "control.json"
EVERY = 1.0  # seconds between looks
MOST_BYTES = 4 << 20
MOST_HOSTS = 100_000

T = TypeVar("T")


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wanted."""

    paused: bool = False  # that nothing new is begun
    hosts: frozenset[str] = frozenset()  # that are left alone

    def __post_init__(self) -> None:
        if len(self.hosts) > MOST_HOSTS:
            raise ValueError(f"{len(self.hosts):,} hosts, expected at most {MOST_HOSTS:,}")


NOTHING = Control()


def read_control(folder: Path) -> Control:
    """What is wanted; nothing if nobody has said anything. Raises ValueError for a file that makes no sense."""
    return read_wish(folder / FILE, Control) or NOTHING


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
    named = {"paused": control.paused, "hosts": sorted(control.hosts)}
    with plainly(folder):
        write_new(folder / FILE, [msgspec.json.encode(named), b"\n"])


@dataclass(slots=True)
class LiveControl:
    """What is wanted of the system in a folder; `apply` is told when that changes."""

    folder: Path
    apply: Callable[[Control], object]
    clock: Clock
    now: Control = NOTHING
    trouble: str = ""  # why the file is not heeded, if it is not

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.look()
            await self.clock.sleep(EVERY)

    def look(self) -> None:
        """Look now. A file that makes no sense leaves everything as it was."""
        try:
            found = read_control(self.folder)
        except ValueError as error:
            self.trouble = str(error)
            return
        self.trouble = ""
        if found != self.now:
            self.now = found
            self.apply(found)
