"""How a running system stands, as status.json in its folder, for other processes; and whether it runs at all.

Where several processes may run in one folder, each has a file of its own (`StatusFile`): the first status.json, another
beside it status-2.json, and so on. Locks say which are taken; the system lets go of a lock when its process ends.
"""

import dataclasses
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import msgspec

from sanderling.stores.durable import FolderError, Lock, plainly, remove_drafts, write_new
from sanderling.stores.process_identity import ProcessIdentity, has_ended, own_process

FILE = "status.json"
OTHERS = re.compile(r"status-([1-9]\d{0,4})\.json", re.ASCII)
SILENT = 10.0  # seconds after which one that should say something every second or two has ended, or hangs

S = TypeVar("S")


class Published(Protocol):
    """What the status of every system says of its process."""

    @property
    def running(self) -> bool:
        """As far as it could say: one that was killed did not."""

    @property
    def pid(self) -> int:
        """Who wrote it."""

    @property
    def process(self) -> ProcessIdentity | None:
        """By what its end is known; None where that is not."""

    @property
    def wall(self) -> float:
        """When, in Unix seconds."""

    @property
    def seconds(self) -> float:
        """How long it had run by then."""

    @property
    def disk_trouble(self) -> str:
        """Why it paused itself, while it does: its disk has no room."""


def write_status(folder: Path, now: object, name: str = FILE) -> None:
    """Write it, a struct or a dataclass, so that a reader sees all of it or the one before. Raises FolderError."""
    if getattr(now, "pid", 0) == os.getpid():
        now = _identified(now)
    with plainly(folder):
        write_new(folder / name, [msgspec.json.encode(now)], sync=False)


def _identified(now: object) -> object:
    if isinstance(now, msgspec.Struct):
        return msgspec.structs.replace(now, process=own_process())
    return dataclasses.replace(cast("Any", now), process=own_process())


def read_status(folder: Path, kind: type[S], name: str = FILE) -> S | None:
    """The one that was last written there; None if there is none that can be read."""
    try:
        return msgspec.json.decode((folder / name).read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def read_statuses(folder: Path, kind: type[S]) -> list[S]:
    """Those of all processes of the folder that can be read, in the order of their files."""
    return [found for name in status_files(folder) if (found := read_status(folder, kind, name)) is not None]


def status_files(folder: Path) -> list[str]:
    """The files that processes of the folder have for their status; the first need not be there."""
    return [FILE, *map(_name, _others(folder))]


def _others(folder: Path) -> list[int]:
    """The numbers of status files beside the first."""
    with suppress(OSError):
        return sorted(int(found[1]) for each in folder.iterdir() if (found := OTHERS.fullmatch(each.name)))
    return []


class StatusFile:
    """A status file that is ours alone: `with StatusFile.of(folder, wall) as file: file.write(…)`."""

    def __init__(self, folder: Path, name: str, *, alone: bool) -> None:
        self.folder = folder
        self.name = name
        self.alone = alone  # whether nobody else had one when we took it

    @classmethod
    @contextmanager
    def of(cls, folder: Path, wall: float) -> Iterator["StatusFile"]:
        """The first that nobody has; those behind it that nobody has are removed. Raises FolderError."""
        with plainly(folder):
            remove_drafts(folder, wall)
            number, lock = _first_free(folder)
        try:
            alone = _remove_free(folder, number) and number == 1
            yield cls(folder, _name(number), alone=alone)
        finally:
            lock.release()

    def write(self, now: object) -> None:
        """Write how we stand. Raises FolderError."""
        write_status(self.folder, now, self.name)


def _name(number: int) -> str:
    return FILE if number == 1 else f"status-{number}.json"


def _lock_of(folder: Path, number: int) -> Path:
    return folder / f".status-{number}.lock"


def _first_free(folder: Path) -> tuple[int, Lock]:
    for number in count(1):
        with suppress(FolderError):  # somebody has it
            return number, Lock(_lock_of(folder, number))
    raise AssertionError("numbers do not end")


def _remove_free(folder: Path, above: int) -> bool:
    """Remove what processes left behind that have ended; whether all have.

    Whoever takes one of them meanwhile writes it anew.
    """
    others = [each for each in _others(folder) if each > above]
    removed = 0
    for number in others:
        with suppress(FolderError), plainly(folder):
            lock = Lock(_lock_of(folder, number))
            (folder / _name(number)).unlink(missing_ok=True)
            lock.release()
            removed += 1
    return removed == len(others)


def age(found: Published, wall: float) -> float:
    """Seconds since it was said; what was said by a clock that is ahead of ours was said just now."""
    return max(0.0, wall - found.wall)


def is_running(found: Published, wall: float) -> bool:
    """Whether whoever wrote it still runs, as far as can be told."""
    return found.running and age(found, wall) < SILENT and not has_ended(found.pid, found.process)
