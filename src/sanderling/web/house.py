"""Finds and reads the systems of a home: a folder in which, or below which, every system has a folder with status.json.

What is there was written by other processes: by other versions of ours, by one that was killed half-way, or by nobody
we know. So every file is read within bounds, and one that makes no sense is a system with a trouble.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from sanderling.events.status import EventsStatus, together
from sanderling.jobs.status import JobStatus
from sanderling.observe import logs
from sanderling.pages.status import Status as PagesStatus
from sanderling.polling.status import PollingStatus
from sanderling.repos.status import RepoStatus
from sanderling.sequence.status import SequenceStatus
from sanderling.stores import control_file
from sanderling.stores.control_file import NOTHING, Control, read_control
from sanderling.stores.process_identity import ProcessIdentity, has_ended
from sanderling.stores.status_file import FILE, SILENT, status_files

log = logs.get(__name__)

AnyStatus = PagesStatus | JobStatus | SequenceStatus | RepoStatus | PollingStatus | EventsStatus

KINDS: dict[str, type[AnyStatus]] = {
    "pages": PagesStatus,
    "jobs": JobStatus,
    "sequence": SequenceStatus,
    "repos": RepoStatus,
    "polling": PollingStatus,
    "events": EventsStatus,
}
UNKNOWN = "unknown"  # of a file that does not say which system it is of
HERE = "."  # the name of the home itself
LARGEST = 64 << 20  # bytes of a status; one with 10,000 hosts has 5 MB
DEEPEST = 2  # folders below the home
MOST_PROCESSES = 100  # of one folder
MOST_FOLDERS, MOST_ENTRIES = 200, 2_000  # that are looked at, in all and in one of them
LONGEST = 300  # characters of what is said about a file

# What reading, or making something of, what a stranger wrote can raise.
UNSOUND = (OSError, ValueError, ArithmeticError, LookupError, TypeError, RecursionError, msgspec.MsgspecError)


class Said(msgspec.Struct, frozen=True):
    """What every status says, of any version."""

    system: str
    wall: float
    pid: int = 0
    started: float = 0.0
    running: bool = True
    process: ProcessIdentity | None = None


class Stamp(NamedTuple):
    """By what a file is known to be the same; a new one with every write, since they are renamed into their place."""

    changed: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Found:
    """A system: what its files say."""

    name: str  # its folder within the home
    folder: Path
    system: str
    stamp: Stamp
    said: Said | None = None
    status: AnyStatus | None = None
    trouble: str = ""  # why there is no status
    control: Control = NOTHING
    control_trouble: str = ""

    def age(self, wall: float) -> float:
        """Seconds since it said something: by the file and by itself, since either's clock may be ahead of ours."""
        said = self.said.wall if self.said is not None else wall
        return max(0.0, wall - self.stamp.changed / 1e9, wall - said)

    def running(self, wall: float) -> bool:
        """Whether it runs, as far as can be told."""
        said = self.said
        heard = said is not None and said.running and self.age(wall) < SILENT
        return heard and said is not None and not has_ended(said.pid, said.process)


@dataclass(slots=True)
class Reader:
    """Reads a home again and again, and of its files only those that were written since."""

    home: Path
    _known: dict[Path, Found] = field(default_factory=dict)
    _controls: dict[Path, Stamp | None] = field(default_factory=dict)

    def read(self) -> list[Found]:
        """All systems there are, by name. Blocks, so it is for a thread; one at a time."""
        found = {folder: each for folder in folders(self.home) if (each := self.system(folder)) is not None}
        self._known = found
        self._controls = {folder: stamp for folder, stamp in self._controls.items() if folder in found}
        return sorted(found.values(), key=lambda each: each.name)

    def system(self, folder: Path) -> Found | None:
        """The system of a folder; None if there is none."""
        try:
            stamp = _stamp(folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            return self._broken(folder, Stamp(0, 0, 0), f"{FILE} cannot be read: {error.strerror or error}")
        known = self._known.get(folder)
        if known is None or known.stamp != stamp:
            known = self._read(folder, stamp)
        return self._controlled(known)

    def _read(self, folder: Path, stamp: Stamp) -> Found:
        said = None
        try:
            data = contents(folder / FILE, LARGEST)
            said = msgspec.json.decode(data, type=Said)
            kind = KINDS.get(said.system)
            if kind is None:
                expected = ", ".join(KINDS)
                return self._broken(folder, stamp, f"{FILE} is of {said.system!a:.60}, expected one of {expected}")
            status = msgspec.json.decode(data, type=kind)
            if isinstance(status, EventsStatus):
                status = together([status, *_others(folder)])
                said = Said(said.system, status.wall, status.pid, status.started, status.running, status.process)
        except UNSOUND as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            broken = self._broken(folder, stamp, f"{FILE} makes no sense: {why}")
            return broken if said is None else replace(broken, said=said, system=said.system)
        return Found(name_of(folder, self.home), folder, said.system, stamp, said, status)

    def _broken(self, folder: Path, stamp: Stamp, trouble: str) -> Found:
        return Found(name_of(folder, self.home), folder, UNKNOWN, stamp, trouble=trouble[:LONGEST])

    def _controlled(self, found: Found) -> Found:
        """The same with what is wanted of it now."""
        stamp = None
        with suppress(OSError):
            stamp = stamp_of(found.folder / control_file.FILE)
        known = self._known.get(found.folder)
        if known is not None and found.folder in self._controls and self._controls[found.folder] == stamp:
            control, trouble = known.control, known.control_trouble
        else:
            control, trouble = _wanted(found.folder)
            self._controls[found.folder] = stamp
        if (control, trouble) == (found.control, found.control_trouble):
            return found
        return replace(found, control=control, control_trouble=trouble)


def _stamp(folder: Path) -> Stamp:
    """By what the status files of a folder are known to be the same. Raises OSError if there is not the first."""
    first, others = stamp_of(folder / FILE), []
    for name in status_files(folder)[1:MOST_PROCESSES]:
        with suppress(OSError):  # removed just now
            others.append(stamp_of(folder / name))
    if not others:
        return first
    all_of_them = (first, *others)
    return Stamp(max(each.changed for each in all_of_them), sum(each.size for each in all_of_them), hash(all_of_them))


def _others(folder: Path) -> Iterator[EventsStatus]:
    """What the other consumers of a folder say, as far as it makes sense."""
    for name in status_files(folder)[1:MOST_PROCESSES]:
        with suppress(*UNSOUND):
            yield msgspec.json.decode(contents(folder / name, LARGEST), type=EventsStatus)


def _wanted(folder: Path) -> tuple[Control, str]:
    path = folder / control_file.FILE
    try:
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            return NOTHING, f"{path.name} is no file"  # a pipe would hold us up for good
        return read_control(folder), ""
    except UNSOUND as error:
        return NOTHING, str(error)[:LONGEST] or f"{path.name}: {type(error).__name__}"


def stamp_of(path: Path) -> Stamp:
    """By what the file is known to be the same. A link counts for itself. Raises OSError."""
    there = path.lstat()
    return Stamp(there.st_mtime_ns, there.st_size, there.st_ino)


def contents(path: Path, most: int) -> bytes:
    """What a file has, if it is one, and not a link to another or something that never ends. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:  # noqa: PTH123 - of a handle
        there = os.fstat(handle)
        if not stat.S_ISREG(there.st_mode):
            raise OSError("it is no file")
        if there.st_size > most:
            raise OSError(f"it has {there.st_size:,} bytes, expected at most {most:,}")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"it has more than {most:,} bytes")
    return data


def name_of(folder: Path, home: Path) -> str:
    """What a system is called: its folder within the home, as text that can be sent."""
    return folder.relative_to(home).as_posix().encode("utf-8", "backslashreplace").decode()


def folders(home: Path) -> Iterator[Path]:
    """The home and the folders below it, the higher ones first, within bounds.

    What is in a system's own folder comes last: there may be thousands, and hardly another system.
    """
    left, level = MOST_FOLDERS, [home]
    for depth in range(DEEPEST + 1):
        below: list[tuple[bool, Path]] = []
        for folder in level:
            if left == 0:
                log.debug("home_too_large", home=str(home), folders=MOST_FOLDERS)
                return
            left -= 1
            yield folder
            if depth < DEEPEST:
                inner = depth > 0 and os.path.lexists(folder / FILE)
                below += [(inner, each) for each in _within(folder)]
        level = [each for _, each in sorted(below)]


def _within(folder: Path) -> Iterator[Path]:
    """The folders directly in a folder. Links are left alone: they lead out of the home, or to what is met anyway."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MOST_ENTRIES):
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)
