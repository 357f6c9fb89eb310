"""Files that are on disk when we say so, and plain words for when they cannot be."""

import errno
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# A file that may not grow any more is a full disk to whoever writes it; so is a spent quota.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
AGAIN = "Nothing is lost: all that was committed is safe, and the rest will be asked for again."
# Rows are handed to the kernel in pieces of this many bytes: large enough to be few, small beside the rows themselves.
PIECE = 1 << 20
DRAFT = ".tmp"  # how the names end of files that are being written
ABANDONED = 3600.0  # seconds after which nobody writes one any more

# macOS has no fdatasync.
sync_data = getattr(os, "fdatasync", os.fsync)


class FolderError(Exception):
    """The folder of a crawl cannot be used, or not now. The message says what was `found` and what to do.

    The latter is for those who end with it: who tries again by itself says only the former.
    """

    def __init__(self, found: str, advice: str = "") -> None:
        super().__init__(f"{found}. {advice}" if advice else found)
        self.found = found
        self.full = False  # there is no room on the disk, and nothing wrong with the folder


@contextmanager
def plainly(place: Path) -> Iterator[None]:
    """Turn whatever the disk or SQLite raises at `place` into a FolderError."""
    try:
        yield
    except BrokenPipeError:
        raise  # of whoever reads what we print: no disk has pipes
    except OSError as error:
        raise _of_disk(place, error) from error
    except sqlite3.ProgrammingError:
        raise  # ours, and loud
    except sqlite3.Error as error:
        raise _of_sqlite(place, error) from error
    except UnicodeDecodeError as error:  # SQLite's message quotes a damaged schema, which is no text any more
        raise _damaged(place, error) from error


def _of_disk(place: Path, error: OSError) -> FolderError:
    where = error.filename if isinstance(error.filename, str) else place
    if error.errno in FULL:
        return _full(place)
    if error.errno == errno.EIO:
        found = f"the disk under {where} reports an error ({error.strerror})"
        return FolderError(found, f"{AGAIN} Look at the disk, then run again.")
    return FolderError(f"cannot use {where}: {error.strerror or error}")


def _of_sqlite(place: Path, error: sqlite3.Error) -> FolderError:
    # What the sqlite3 module itself finds, a text that is no UTF-8 for one, has no code; it means damage.
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return _full(place)
        case sqlite3.SQLITE_IOERR:
            # SQLite has one word for a failing disk and for a file that may not grow.
            found = f"cannot write to {place} ({error}). Make sure that the disk is well and not full"
            return FolderError(found, f"{AGAIN} Then run again.")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            found = f"{place} is in use by another program"
            return FolderError(found, f"{AGAIN} Run again when that has ended.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return FolderError(f"cannot use {place}: {error}")
    return _damaged(place, error)


def _damaged(place: Path, error: Exception) -> FolderError:
    found = f"{place} is damaged, or not one of ours ({error})"
    return FolderError(found, "Restore it from a copy, or choose an empty folder.")


def _full(place: Path) -> FolderError:
    error = FolderError(f"cannot write to {place}: the disk is full", f"{AGAIN} Free some space and run again.")
    error.full = True
    return error


# What a run that was killed before its ledger stood may have left, and what some file systems put in every folder.
NOTHING = ("lock", "*.draft*", "lost+found")


def check_empty(path: Path, *markers: str) -> None:
    """Raise FolderError for what is no folder, or somebody else's: neither empty, nor with one of our markers."""
    if path.exists() and not path.is_dir():
        raise FolderError(f"{path} is a file, expected a folder. Choose another.")
    if not path.exists() or any((path / marker).exists() for marker in markers):
        return
    others = sorted(each.name for each in path.iterdir() if not any(map(each.match, NOTHING)))
    if others:
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise FolderError(f"{path} holds files of something else: {shown}; choose an empty folder")


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable: a file that is on disk under no name is lost."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_pieces(handle: int, pieces: Iterable[bytes]) -> int:
    """Write all of `pieces` where `handle` stands; say how many bytes they were."""
    waiting: list[bytes] = []
    size = total = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE:
            total += _write(handle, b"".join(waiting))
            waiting, size = [], 0
    return total + _write(handle, b"".join(waiting))


def _write(handle: int, data: bytes) -> int:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    return len(data)


def write_new(path: Path, pieces: Iterable[bytes], *, sync: bool = True, mode: int = 0o644) -> None:
    """Make `path` hold `pieces`, all of them or what it held before, however many write it at once.

    Its name is durable after `sync_folder`. Without `sync`, a machine that fails may lose all of it.
    """
    draft = draft_of(path)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            write_pieces(handle, pieces)
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def draft_of(path: Path) -> Path:
    """Where to write what shall become `path`: beside it, under a name that no other writer has."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}{DRAFT}")


def remove_drafts(folder: Path, wall: float) -> None:
    """Remove what writers left behind that were killed at it; `wall` is the time, in Unix seconds."""
    for draft in folder.glob(f".*{DRAFT}"):
        with suppress(FileNotFoundError):  # its writer lives, and is done with it
            if draft.lstat().st_mtime < wall - ABANDONED:
                draft.unlink()


class Lock:
    """One process at a time in a folder. The system lets go of it when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(self._handle, 20, 0).decode(errors="replace").strip()
            os.close(self._handle)
            raise FolderError(f"another crawl is running in {path.parent} (process {holder or 'unknown'})") from None
        except BaseException:
            os.close(self._handle)
            raise

    def release(self) -> None:
        """Let others in. The file stays: to remove it would let two in at once."""
        os.close(self._handle)
