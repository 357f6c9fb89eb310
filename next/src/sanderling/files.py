"""Files that are on disk when we say so, the lock of a folder, and plain errors for when a disk fails.

Each system call goes through the module `os`, where tests make it fail.
"""

import contextlib
import errno
import fcntl
import os
import resource
import secrets
import socket
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Self

# A file that may not grow any more is a full disk to its writer; so is a spent quota.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
LOCK = "lock"  # the file in a folder that the process at work there has locked
DRAFT = ".draft"  # how the names of files end that are being written
ABANDONED_SECONDS = 3600.0  # nobody writes a draft for so long
FEWEST_DESCRIPTORS = 64  # with which one reader, the ledger and some connections get by
PIECE = 1 << 20  # bytes handed to the kernel at once


class Exit(IntEnum):
    """What a command's exit code says."""

    DONE = 0
    FAILED = 1  # finished: some items failed, or a check found faults
    WRONG = 2  # wrong arguments: another command is needed
    WAITING = 3  # finished: some items are still waiting
    LATER = 75  # the same command may work later (EX_TEMPFAIL of sysexits.h)
    INTERRUPTED = 130  # Ctrl-C


class FolderError(Exception):
    """A folder, a file or a database cannot be used: what was `found`, what to do (`advice`), and the exit code."""

    def __init__(self, found: str, advice: str = "", code: Exit = Exit.WRONG) -> None:
        super().__init__(f"{found}; {advice}" if advice else found)
        self.found = found
        self.advice = advice
        self.code = code


class ServiceAway(Exception):  # noqa: N818 - it says what happened
    """A database or a queue cannot be used now; the same call may work later. The message says why."""


def disk_full(path: Path) -> FolderError:
    """The error for a disk without room, whoever found it: a system call or a database."""
    return FolderError(
        f"cannot write to {path}: the disk is full",
        "nothing that was stored is lost; free some space and run the same command again",
        Exit.LATER,
    )


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn every OSError that concerns `path` into a FolderError."""
    try:
        yield
    except BrokenPipeError:
        raise  # stdout was closed: no disk has pipes
    except OSError as error:
        raise _explained(path, error) from error


def _explained(path: Path, error: OSError) -> FolderError:
    if error.errno in FULL:
        return disk_full(path)
    match error.errno:
        case errno.EIO:
            return FolderError(
                f"the disk under {path} reports an input/output error",
                "nothing that was stored is lost; check the disk and run the same command again",
                Exit.LATER,
            )
        case errno.EMFILE | errno.ENFILE:
            advice = "raise the limit with ulimit -n 65536 and run the same command again"
            return FolderError(f"cannot open {path}: too many files are open", advice, Exit.LATER)
        case errno.EROFS | errno.EACCES | errno.EPERM:
            reason = "the file system is read-only" if error.errno == errno.EROFS else "permission denied"
            return FolderError(f"cannot use {path}: {reason}", "change the rights or choose another place")
        case errno.ENOENT:
            return FolderError(f"{path} does not exist", "check the spelling")
        case errno.ENOTDIR | errno.EEXIST:
            return FolderError(f"{path} cannot be a folder: a file of that name exists", "choose another folder")
        case errno.EISDIR:
            return FolderError(f"{path} is a folder", "choose a file")
    return FolderError(f"cannot use {path}: {error.strerror or error}")


def check_descriptors() -> None:
    """Raise FolderError if so few files may be open that a run would end at once."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= most < FEWEST_DESCRIPTORS:
        advice = "raise the limit with ulimit -n 65536 and run the same command again"
        raise FolderError(f"{most} files may be open, and a run needs {FEWEST_DESCRIPTORS}", advice, Exit.LATER)


def sync(handle: int) -> None:
    """Return when the drive has stored the file."""
    if sys.platform == "darwin":
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # fsync of macOS leaves the data in the drive's cache
    else:
        os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable: a file that is on disk under no name is lost."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Create `folder` and the folders above it, durably."""
    with disk_errors(folder):
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in missing:
            sync_folder(each.parent)


def read_small(path: Path, most: int = 1 << 20) -> bytes:
    """The content of a file that a person wrote, of at most `most` bytes."""
    with disk_errors(path):
        # Without O_NONBLOCK a pipe of that name would hang us.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise FolderError(f"{path} is no regular file", "choose a file")
            content = file.read(most + 1)
    if len(content) > most:
        raise FolderError(f"{path} has more than {most:,} bytes", "choose a smaller file")
    return content


def write_file(path: Path, pieces: bytes | Iterable[bytes], *, durable: bool = True, mode: int = 0o644) -> None:
    """Make `path` hold `pieces`: all of them or what it held before, however many processes write it at once.

    What is not `durable` may be lost by a power cut, whole: a status, for one.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}{DRAFT}")
    with disk_errors(path):
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            try:
                for piece in _sized(pieces):
                    _write(handle, piece)
                if durable:
                    sync(handle)
            finally:
                os.close(handle)
            os.replace(draft, path)  # noqa: PTH105 - see the module's docstring
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)


def _sized(pieces: bytes | Iterable[bytes]) -> Iterator[bytes]:
    """Small pieces joined, so that the system calls are few."""
    if isinstance(pieces, bytes):
        yield pieces
        return
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def _write(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def remove_drafts(folder: Path, wall: float) -> None:
    """Remove what killed writers left behind; `wall` is the time in seconds since 1970."""
    with disk_errors(folder):
        for draft in folder.glob(f".*{DRAFT}"):
            with contextlib.suppress(FileNotFoundError):  # its writer lives, and has just finished
                if draft.lstat().st_mtime < wall - ABANDONED_SECONDS:
                    draft.unlink()


class AppendFile:
    """A file that only grows: the ledger says how much of it counts, and the rest is cut off when it is opened.

    After a failed `append` the file is as long as before. After a failed `sync` nobody knows what is on disk, so
    every later call raises: the process has to end, and the next one opens the file again.
    """

    def __init__(self, path: Path, length: int = 0, crc: int = 0) -> None:
        self.path = path
        self.length = length  # bytes so far
        self.crc = crc  # CRC-32 of them
        self._failed = False
        with disk_errors(path), contextlib.ExitStack() as undo:
            is_new = not path.exists()
            # Without O_NONBLOCK a pipe of that name would hang us.
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._handle = os.open(path, flags, 0o644)
            undo.callback(os.close, self._handle)
            found = os.fstat(self._handle)
            if not stat.S_ISREG(found.st_mode):
                raise FolderError(f"{path} is no regular file", "choose another folder")
            if found.st_size < length:
                raise FolderError(
                    f"{path} has {found.st_size:,} bytes, and the ledger counts {length:,}",
                    "restore it from a copy, or start in an empty folder",
                )
            if found.st_size > length:
                os.ftruncate(self._handle, length)
            if is_new:
                sync_folder(path.parent)
            undo.pop_all()

    def append(self, data: bytes) -> None:
        """Write `data` at the end; it is durable after the next `sync`."""
        self._check()
        with disk_errors(self.path):
            try:
                _write(self._handle, data)
            except BaseException:
                self._failed = True  # until the rest is cut off
                os.ftruncate(self._handle, self.length)
                self._failed = False
                raise
        self.length += len(data)
        self.crc = zlib.crc32(data, self.crc)

    def sync(self) -> None:
        """Return when all that was appended is on disk."""
        self._check()
        with disk_errors(self.path):
            try:
                sync(self._handle)
            except BaseException:
                # The kernel may have dropped the pages, and the next fsync would succeed (PostgreSQL's fsyncgate).
                self._failed = True
                raise

    def _check(self) -> None:
        if self._failed:
            raise FolderError(
                f"an earlier write to {self.path} failed", "check the disk and run the same command again", Exit.LATER
            )

    def close(self) -> None:
        """Close the file without syncing it."""
        os.close(self._handle)


class FolderLock:
    """One process at a time in a folder. The kernel unlocks it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        with disk_errors(folder), contextlib.ExitStack() as undo:
            self._handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            undo.callback(os.close, self._handle)
            while not _locks(self._handle, fcntl.LOCK_EX):
                # `lock_holder` may share it for a moment. Who has it exclusively has it for long.
                if not _locks(self._handle, fcntl.LOCK_SH):
                    raise FolderError(
                        f"{folder} is in use by {_holder(self._handle)}", "wait until it has ended", Exit.LATER
                    )
                fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Unlock the folder. The file stays: removing it would let two processes in at once."""
        os.close(self._handle)


def lock_holder(folder: Path) -> str | None:
    """Who works in `folder`, as in "process 7 on host"; None if nobody does. Needs no right to write."""
    with disk_errors(folder):
        try:
            handle = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
    try:
        return None if _locks(handle, fcntl.LOCK_SH) else _holder(handle)
    finally:
        os.close(handle)


def _locks(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: int) -> str:
    text = os.pread(handle, 300, 0).decode(errors="replace").strip()
    return text if text.isprintable() and text else "another process"
