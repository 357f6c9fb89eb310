"""A SQLite file in a thread of its own: opened with checks, every error in plain words, every write on disk."""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sanderling.files import Exit, FolderError, disk_errors, disk_full, sync_folder

T = TypeVar("T")

# File systems whose locks and shared memory SQLite's WAL cannot rely on.
_NETWORK = frozenset("nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs fuse.sshfs fuse.glusterfs fuse.s3fs".split())
_MOUNTS = Path("/proc/self/mounts")
# Enough for the inner pages of every table at a hundred million URLs; the file system caches the rest.
_CACHE_KIB = 65_536
# Pages of the WAL before they are moved into the file: commits that dirty the same pages share one move.
_CHECKPOINT_PAGES = 8_000


class SqliteFile:
    """One connection, used by one thread in the order of the calls."""

    def __init__(self, path: Path, application: int, *, read_only: bool = False) -> None:
        self.path = path
        self.db: sqlite3.Connection  # the thread's
        self._application = application
        self._read_only = read_only
        self._broken = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")

    async def open(self) -> None:
        """Connect. Raises FolderError if this is no place for a ledger, or a file of something else."""
        try:
            await self.call(self._connect)
        except BaseException:
            self._thread.shutdown()
            raise

    async def call(self, function: Callable[[], T]) -> T:
        """Run `function` in the thread. It runs to its end even if the caller is cancelled."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, function))

    def post(self, function: Callable[[], object]) -> None:
        """Run `function`, which cannot fail, in the thread before whatever is called next."""
        self._thread.submit(function)

    async def close(self) -> None:
        """Close the file after everything that was called."""
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self.db.close))
        self._thread.shutdown()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything or nothing, on disk when this returns."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield self.db
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def _guarded(self, function: Callable[[], T]) -> T:
        if self._broken:
            raise FolderError(
                f"an earlier write to {self.path} failed", "check the disk and run the same command again", Exit.LATER
            )
        try:
            return function()
        except sqlite3.Error as error:
            # After a failed fsync nobody knows what is on disk: the next process reads it anew.
            self._broken = "FSYNC" in getattr(error, "sqlite_errorname", "")
            raise explained(self.path, error) from error

    def _connect(self) -> None:
        check_mount(self.path, self._read_only)
        if self._read_only and not self.path.exists():
            raise FolderError(f"{self.path} does not exist", "check the spelling")
        with disk_errors(self.path):
            # Closing a file drops all of this process's locks on it: another process that closes the database then
            # removes the WAL that a connection of ours still writes to.
            if not self._read_only:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644))
        mode = "ro" if self._read_only else "rw"
        if self._read_only and not os.access(self.path.parent, os.W_OK) and not _has_content(Path(f"{self.path}-wal")):
            mode += "&immutable=1"  # SQLite would have to make files beside it
        uri = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
        self.db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256)
        try:
            self._prepare(self.db)
        except BaseException:
            self.db.close()
            raise

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA cell_size_check = ON")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        ((found,),) = db.execute("PRAGMA application_id")
        ((objects,),) = db.execute("SELECT count(*) FROM sqlite_schema")
        if found != self._application and (found or objects or self._read_only):
            raise FolderError(f"{self.path} is a SQLite file of something else", "choose another folder")
        if self._read_only:
            return
        # Debian's SQLite overwrites what is deleted; `forget` asks for that itself.
        db.execute("PRAGMA secure_delete = OFF")
        if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise FolderError(f"{self.path} lies where SQLite cannot use its WAL", "choose a folder on a local disk")
        if not objects:
            # Its journal of that switch is gone: if it came back after a power cut, it would undo all that followed.
            with disk_errors(self.path):
                sync_folder(self.path.parent)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")  # of macOS
        db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        db.execute(f"PRAGMA journal_size_limit = {_CHECKPOINT_PAGES * 4096}")


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def check_mount(path: Path, read_only: bool, mounts: Path = _MOUNTS) -> None:  # noqa: FBT001 - its one flag
    """Raise FolderError if `path` lies on a file system of another machine and is to be written."""
    if read_only or not mounts.exists():
        return
    absolute = path.absolute().resolve()
    best, kind = -1, ""
    with disk_errors(mounts):
        lines = mounts.read_text(errors="replace").splitlines()
    for line in lines:
        _, point, found, *_ = line.split(" ")
        at = Path(point.replace("\\040", " "))
        if absolute.is_relative_to(at) and len(at.parts) >= best:
            best, kind = len(at.parts), found
    if kind in _NETWORK:
        raise FolderError(
            f"{path} lies on a network file system ({kind})",
            "choose a folder on a local disk, or a database: --database postgres://…",
        )


def explained(path: Path, error: sqlite3.Error) -> FolderError:
    """What SQLite found, in plain words."""
    name = getattr(error, "sqlite_errorname", "")
    kind = "_".join(name.split("_")[:2])
    match kind:
        case "SQLITE_FULL":
            return disk_full(path)
        case "SQLITE_CORRUPT" | "SQLITE_FORMAT":
            return FolderError(
                f"{path} is damaged ({error})", "restore the folder from a copy, or start in an empty one"
            )
        case "SQLITE_NOTADB":
            return FolderError(f"{path} is no ledger, or its beginning is damaged", "choose another folder")
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return FolderError(f"{path} is in use by another process", "wait until it has ended", Exit.LATER)
        case "SQLITE_READONLY" | "SQLITE_PERM" | "SQLITE_AUTH":
            return FolderError(f"cannot write to {path}: it is read-only", "change the rights or choose another folder")
        case "SQLITE_CANTOPEN":
            advice = "check the rights of the folder, raise the limit with ulimit -n 65536, and run the command again"
            return FolderError(f"cannot open {path} or the files beside it", advice, Exit.LATER)
        case "SQLITE_NOMEM":
            return FolderError(f"no memory left for {path}", "free some and run the same command again", Exit.LATER)
        case "SQLITE_IOERR":
            return FolderError(
                f"the disk under {path} reports an error ({name.removeprefix('SQLITE_')})",
                "nothing that was stored is lost; check the disk and run the same command again",
                Exit.LATER,
            )
    return FolderError(f"cannot use {path}: {error}")
