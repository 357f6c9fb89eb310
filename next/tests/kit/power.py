"""A disk that can lose power: notes each write of SQLite and of our own files, and builds what a crash may leave.

What was not synced is kept, dropped, torn or reordered, by chance; so are names whose folder was not synced.
"""

import ctypes
import errno
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sanderling import files
from sanderling.stores import sqlite_file

SECTOR = 512
_IOERR_FSYNC = 1034
_Pointer = ctypes.c_void_p
_Open = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer, _Pointer, ctypes.c_int, _Pointer)
_Delete = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer, ctypes.c_int)
_Write = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer, ctypes.c_int, ctypes.c_int64)
_Truncate = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, ctypes.c_int64)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, ctypes.c_int)
# Places in sqlite3_vfs and sqlite3_io_methods, in words of 8 bytes.
_NAME, _OPEN, _DELETE, _VFS_WORDS = 3, 5, 6, 21
_WRITE, _TRUNCATE, _SYNC, _METHODS_WORDS = 3, 4, 5, 19


class Disk:
    """What happened below a folder, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[tuple[Any, ...]] = []
        self.fails_at = -1  # the number of the sync that fails
        self.syncs = 0

    def note(self, what: str, path: str | Path, *more: Any) -> None:
        if Path(path).is_relative_to(self.folder):
            self.events.append((what, str(path), *more))

    def sync(self, what: str, path: str | Path) -> bool:
        """Whether it went well."""
        self.syncs += 1
        if self.syncs - 1 == self.fails_at:
            return False
        self.note(what, path)
        return True

    def after(self, number: int, random: Random) -> dict[str, bytes]:
        """The files that a crash before event `number` may leave."""
        content: dict[int, bytearray] = {}
        unsynced: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        names: dict[str, int] = {}  # as processes see them
        stored: dict[str, int] = {}
        moves: list[tuple[Any, ...]] = []  # of names, not synced
        for what, path, *more in self.events[:number]:
            match what:
                case "create":
                    names[path] = len(content)
                    content[names[path]] = bytearray()
                    moves.append(("create", path, names[path]))
                case "write" | "truncate":
                    unsynced[names[path]].append((what, *more))
                case "sync" | "sync both":
                    for each in unsynced.pop(names[path], ()):
                        _apply(content[names[path]], *each)
                    if what == "sync both":
                        stored[path] = names[path]
                        moves = [each for each in moves if each[1] != path]
                case "rename":
                    names[more[0]] = names.pop(path)
                    moves.append((what, more[0], names[more[0]], path))
                case "unlink":
                    moves.append((what, path, names.pop(path)))
                case "sync folder":
                    for each in moves:
                        _move(stored, *each)
                    moves = []
        for each in moves:
            if random.random() < 0.5:
                _move(stored, *each)
        for inode, writes in unsynced.items():
            kept = random.choice([0.0, 0.3, 0.7, 1.0])
            for each in random.sample(writes, len(writes)) if random.random() < 0.2 else writes:
                if random.random() < kept:
                    _apply(content[inode], *_torn(each, random))
        return {path: bytes(content[inode]) for path, inode in stored.items()}


def _apply(content: bytearray, what: str, offset: int, data: bytes = b"") -> None:
    if what == "truncate":
        del content[offset:]
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _move(stored: dict[str, int], what: str, path: str, inode: int, before: str = "") -> None:
    if what != "unlink":
        stored[path] = inode
    elif stored.get(path) == inode:
        del stored[path]
    stored.pop(before, None)


def _torn(write: tuple[Any, ...], random: Random) -> tuple[Any, ...]:
    """A write, or some of its sectors."""
    what, offset, *data = write
    if what == "truncate" or random.random() < 0.7:
        return write
    begin = random.randrange(0, len(data[0]) + 1, SECTOR)
    end = random.randrange(begin, len(data[0]) + SECTOR + 1, SECTOR)
    return what, offset + begin, data[0][begin:end]


class _NotedOs:
    """The module `os`, noting what is written."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._paths: dict[int, Path] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        is_new = not path.exists()
        handle = os.open(path, flags, mode)
        self._paths[handle] = path
        if is_new:
            self._disk.note("create", path)
        return handle

    def write(self, handle: int, data: bytes) -> int:
        size = os.fstat(handle).st_size
        written = os.write(handle, data)
        self._disk.note("write", self._paths[handle], size, bytes(data[:written]))
        return written

    def ftruncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)
        self._disk.note("truncate", self._paths[handle], size)

    def fsync(self, handle: int) -> None:
        path = self._paths[handle]
        if not self._disk.sync("sync folder" if path.is_dir() else "sync", path):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def replace(self, before: Path, path: Path) -> None:
        before.replace(path)
        self._disk.note("rename", before, path)


class _NotedSqlite:
    """A VFS of SQLite that notes what the usual one is asked to do."""

    def __init__(self, disk: Disk) -> None:
        libraries = {
            line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libsqlite3" in line
        }
        if not libraries:
            pytest.skip("this Python has SQLite built in, so that nothing can stand below it")
        self._library = ctypes.CDLL(libraries.pop())
        find = self._library.sqlite3_vfs_find
        find.restype = _Pointer
        self._disk = disk
        self._paths: dict[int, str] = {}
        self._tables: dict[int, Any] = {}
        self._kept: list[Any] = []
        usual = (ctypes.c_uint64 * _VFS_WORDS).from_address(find(None))
        self._vfs = (ctypes.c_uint64 * _VFS_WORDS)(*usual)
        self._name = ctypes.create_string_buffer(b"noted")
        self._vfs[_NAME] = ctypes.addressof(self._name)
        self._open, self._delete = _Open(usual[_OPEN]), _Delete(usual[_DELETE])
        self._vfs[_OPEN] = self._keep(_Open(self._opened))
        self._vfs[_DELETE] = self._keep(_Delete(self._deleted))

    def __enter__(self) -> None:
        assert self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == 0

    def __exit__(self, *_: object) -> None:
        self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def _keep(self, function: Any) -> int:
        self._kept.append(function)
        address = ctypes.cast(function, _Pointer).value
        assert address
        return address

    def _opened(self, vfs: int, name: int, file: int, flags: int, out: int) -> int:
        path = ctypes.string_at(name).decode() if name else ""
        is_new = not Path(path).exists()
        code = self._open(vfs, name, file, flags, out)
        if code == 0 and path:
            self._paths[file] = path
            if is_new:
                self._disk.note("create", path)
            methods = ctypes.c_uint64.from_address(file)
            methods.value = self._noted(methods.value)
        return int(code)

    def _deleted(self, vfs: int, name: int, folder: int) -> int:
        path = ctypes.string_at(name).decode()
        is_there = Path(path).exists()
        code = self._delete(vfs, name, folder)
        if code == 0 and is_there:
            self._disk.note("unlink", path)
        return int(code)

    def _noted(self, address: int) -> int:
        if address not in self._tables:
            usual = (ctypes.c_uint64 * _METHODS_WORDS).from_address(address)
            write, truncate, sync = _Write(usual[_WRITE]), _Truncate(usual[_TRUNCATE]), _Sync(usual[_SYNC])

            def written(file: int, data: int, size: int, offset: int) -> int:
                self._disk.note("write", self._paths[file], offset, ctypes.string_at(data, size))
                return int(write(file, data, size, offset))

            def truncated(file: int, size: int) -> int:
                self._disk.note("truncate", self._paths[file], size)
                return int(truncate(file, size))

            def synced(file: int, flags: int) -> int:
                # The usual VFS syncs the folder, too, when it has made a journal.
                is_journal = self._paths[file].endswith(("-wal", "-journal"))
                went_well = self._disk.sync("sync both" if is_journal else "sync", self._paths[file])
                return int(sync(file, flags)) if went_well else _IOERR_FSYNC

            table = (ctypes.c_uint64 * _METHODS_WORDS)(*usual)
            table[_WRITE] = self._keep(_Write(written))
            table[_TRUNCATE] = self._keep(_Truncate(truncated))
            table[_SYNC] = self._keep(_Sync(synced))
            self._tables[address] = table
        return ctypes.addressof(self._tables[address])


@contextmanager
def noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Note what is written below `folder`."""
    assert sqlite3.sqlite_version
    disk = Disk(folder)
    with monkeypatch.context() as patched, _NotedSqlite(disk):
        patched.setattr(files, "os", _NotedOs(disk))
        patched.setattr(sqlite_file, "os", _NotedOs(disk))
        yield disk
