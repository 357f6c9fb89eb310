"""How a running system stands, as status.json in its folder, for other processes; and whether it runs at all.

Where several processes may run in one folder, each has a file of its own (`StatusFile`): the first status.json, another
beside it status-2.json, and so on. Locks say which are taken; the system lets go of a lock when its process ends.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from sanderling.stores.durable import FolderError, Lock, plainly, remove_drafts, write_new
from sanderling.stores.process_identity import ProcessIdentity, has_ended

FILE = "status.json"
OTHERS = re.compile(r"status-([1-9]\d{0,4})\.json", re.ASCII)
SILENT = 10.0  # seconds after which one that should say something every second or two has ended, or hangs
EARLIER = "was written by another version; a system that runs by this one writes it anew"

S = TypeVar("S")


class Published(Protocol):
    """What a report says of its process."""

    @property
    def running(self) -> bool:
        """As far as it could say: one that was killed did not."""

    @property
    def pid(self) -> int:
        """Who wrote it."""

    @property
    def space(self) -> str:
        """Where the pid counts; empty where its end is not known at once."""

    @property
    def start(self) -> str:
        """When that process began, by which it is known from one that has its pid later."""

    @property
    def wall(self) -> float:
        """When, in Unix seconds."""


class StatusError(ValueError):
    """A status makes no sense; the message says what it is instead."""


class _Earlier(msgspec.Struct):
    """What a status said of its process before it was a report."""

    system: str
    pid: int
    wall: float


def write_status(folder: Path, report: msgspec.Struct, name: str = FILE) -> None:
    """Write it so that a reader sees all of it or the one before. Raises FolderError."""
    with plainly(folder):
        write_new(folder / name, [msgspec.json.encode(report)], sync=False)


def decode_status(data: bytes, kind: type[S], name: str = FILE) -> S:
    """The report that a status is. Raises StatusError."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            msgspec.json.decode(data, type=_Earlier)
            raise StatusError(f"{name} {EARLIER}") from None
        raise StatusError(f"{name} makes no sense: {error}") from None


def read_status(folder: Path, kind: type[S], name: str = FILE) -> S | None:
    """The one that was last written there; None if there is none that can be read."""
    with suppress(OSError, StatusError):
        return decode_status((folder / name).read_bytes(), kind, name)
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

    def write(self, report: msgspec.Struct) -> None:
        """Write how we stand. Raises FolderError."""
        write_status(self.folder, report, self.name)


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


def age(process: Published, wall: float) -> float:
    """Seconds since it was said; what was said by a clock that is ahead of ours was said just now."""
    return max(0.0, wall - process.wall)


def is_running(process: Published, wall: float) -> bool:
    """Whether whoever wrote it still runs, as far as can be told."""
    return process.running and age(process, wall) < SILENT and not is_gone(process)


def is_gone(process: Published) -> bool:
    """Whether that process is known to have ended."""
    return bool(process.space) and has_ended(process.pid, ProcessIdentity(process.space, process.start))
