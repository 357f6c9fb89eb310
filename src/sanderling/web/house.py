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

from sanderling.events.report import EventsFacts
from sanderling.jobs.report import JobFacts
from sanderling.observe import logs
from sanderling.observe.report import AnyReport, Process, Report
from sanderling.pages.report import PagesFacts
from sanderling.polling.report import PollingFacts
from sanderling.repos.report import ReposFacts
from sanderling.sequence.report import SequenceFacts
from sanderling.stores import control_file
from sanderling.stores.control_file import NOTHING, Control, read_control
from sanderling.stores.status_file import FILE, SILENT, StatusError, decode_status, is_gone, status_files

log = logs.get(__name__)

KINDS: dict[str, type[AnyReport]] = {
    "pages": Report[PagesFacts],
    "jobs": Report[JobFacts],
    "sequence": Report[SequenceFacts],
    "repos": Report[ReposFacts],
    "polling": Report[PollingFacts],
    "events": Report[EventsFacts],
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


class _Said(msgspec.Struct, frozen=True):
    """What every report says, whatever its facts are."""

    system: str
    process: Process | None = None


class Stamp(NamedTuple):
    """By what a file is known to be the same; a new one with every write, since they are renamed into their place."""

    changed: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Found:
    """A process of a system: what its files say."""

    name: str  # its folder within the home; behind a colon the number of the process, if there are several
    folder: Path
    file: str  # of its status
    system: str
    stamp: Stamp
    process: Process | None = None
    report: AnyReport | None = None
    trouble: str = ""  # why there is no report
    control: Control = NOTHING
    control_trouble: str = ""

    def age(self, wall: float) -> float:
        """Seconds since it said something: by the file and by itself, since either's clock may be ahead of ours."""
        said = self.process.wall if self.process is not None else wall
        return max(0.0, wall - self.stamp.changed / 1e9, wall - said)

    def running(self, wall: float) -> bool:
        """Whether it runs, as far as can be told."""
        process = self.process
        return process is not None and process.running and self.age(wall) < SILENT and not is_gone(process)


@dataclass(slots=True)
class HouseReader:
    """Reads a home again and again, and of its files only those that were written since."""

    home: Path
    _known: dict[Path, Found] = field(default_factory=dict)  # by file
    _controls: dict[Path, tuple[Stamp | None, Control, str]] = field(default_factory=dict)  # by folder

    def read(self) -> list[Found]:
        """All processes of all systems, by name. Blocks, so it is for a thread; one at a time."""
        found = [each for folder in folders(self.home) for each in self.processes(folder)]
        self._known = {each.folder / each.file: each for each in found}
        self._controls = {each.folder: self._controls[each.folder] for each in found}
        return sorted(found, key=lambda each: each.name)

    def system(self, folder: Path) -> Found | None:
        """The process of a folder that was last heard of; None if there is none."""
        return max(self.processes(folder), key=lambda each: each.process.wall if each.process else 0.0, default=None)

    def processes(self, folder: Path) -> Iterator[Found]:
        """What each process of a folder says."""
        for name in status_files(folder)[:MOST_PROCESSES]:
            path = folder / name
            try:
                stamp = stamp_of(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                found = self._broken(path, Stamp(0, 0, 0), f"{name} cannot be read: {error.strerror or error}")
            else:
                known = self._known.get(path)
                found = known if known is not None and known.stamp == stamp else self._read(path, stamp)
            yield self._controlled(found)

    def _read(self, path: Path, stamp: Stamp) -> Found:
        said = None
        try:
            data = contents(path, LARGEST)
            said = decode_status(data, _Said, path.name)
            kind = KINDS.get(said.system)
            if kind is None:
                expected = ", ".join(KINDS)
                return self._broken(path, stamp, f"{path.name} is of {said.system!a:.60}, expected one of {expected}")
            report = decode_status(data, kind, path.name)
        except (StatusError, *UNSOUND) as error:
            unread = isinstance(error, OSError) and f"{path.name} makes no sense: {error.strerror or error}"
            broken = self._broken(path, stamp, unread or str(error))
            return broken if said is None else replace(broken, process=said.process, system=said.system)
        return Found(name_of(path, self.home), path.parent, path.name, said.system, stamp, said.process, report)

    def _broken(self, path: Path, stamp: Stamp, trouble: str) -> Found:
        return Found(name_of(path, self.home), path.parent, path.name, UNKNOWN, stamp, trouble=trouble[:LONGEST])

    def _controlled(self, found: Found) -> Found:
        """The same with what is wanted of it now."""
        stamp = None
        with suppress(OSError):
            stamp = stamp_of(found.folder / control_file.FILE)
        known = self._controls.get(found.folder)
        if known is None or known[0] != stamp:
            known = self._controls[found.folder] = (stamp, *_wanted(found.folder))
        _, control, trouble = known
        if (control, trouble) == (found.control, found.control_trouble):
            return found
        return replace(found, control=control, control_trouble=trouble)


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


def name_of(path: Path, home: Path) -> str:
    """What a process is called by its status file: the folder within the home, as text that can be sent."""
    name = path.parent.relative_to(home).as_posix().encode("utf-8", "backslashreplace").decode()
    return name if path.name == FILE else f"{name}:{path.stem.removeprefix('status-')}"


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
