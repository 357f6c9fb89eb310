"""Objects in a folder: `FOLDER/bucket/key` is a file, and its metadata are in `FOLDER/bucket/key.meta.json`.

Whoever likes may put files there by hand; they are objects without metadata.

Tricky bits:

- No symbolic link below the folder is followed, wherever it leads, and nothing but a plain file is read: each step is
  opened from the one before it, so that nobody can put a link in its place meanwhile.
- A body and its metadata are two files, which cannot change together. So the metadata name the body that they are of;
  those of another body, of a writer that died between the two, are not believed.
- What is deleted leaves the folders that it was in: somebody may be about to put something there.
- What is being written is in `FOLDER/.incoming`, which can be no bucket, until it is whole.
"""

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import msgspec

from sanderling.stores.durable import FULL, write_pieces
from sanderling.stores.objects import (
    PAGE,
    ListedObject,
    ObjectError,
    ObjectFault,
    ObjectThreads,
    StoredObject,
    check_metadata,
    shown,
    steps_below,
    steps_of,
    too_large,
)

BESIDE = ".meta.json"
INCOMING = ".incoming"
PIECE = 1 << 20
MOST_BESIDE = 64 * 1024

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, to open a pipe would wait for somebody to write into it.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
FAULTS = {
    errno.EISDIR: ObjectFault.UNUSABLE,
    errno.ENOTEMPTY: ObjectFault.UNUSABLE,
    errno.ELOOP: ObjectFault.UNUSABLE,
    errno.ENAMETOOLONG: ObjectFault.UNUSABLE,
    errno.EINVAL: ObjectFault.UNUSABLE,
    errno.ENXIO: ObjectFault.UNUSABLE,  # a socket
    errno.EACCES: ObjectFault.REFUSED,
    errno.EPERM: ObjectFault.REFUSED,
    errno.EIO: ObjectFault.FAILED,  # one sector, or the disk
}


class Beside(msgspec.Struct, frozen=True):
    """What is beside a body."""

    etag: str
    metadata: dict[str, str]


class LocalObjects:
    """Objects in `folder`, which is made where there is none."""

    def __init__(self, folder: Path) -> None:
        """Raises ObjectError."""
        self._folder = folder.absolute()
        self._hands = ObjectThreads(f"file:{self._folder}")
        with self._plainly(str(self._folder)):
            self._folder.mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"<LocalObjects {self._folder}>"

    async def make(self, bucket: str) -> None:
        """Return when there is a folder for it."""
        steps = _steps(bucket, "key")
        await self._hands(self._make, steps[:1], f"bucket {bucket} in {self._folder}")

    async def get(self, bucket: str, key: str, most: int) -> StoredObject:
        steps = _steps(bucket, key)
        return await self._hands(self._get, steps, f"{shown(bucket, key)} in {self._folder}", most)

    async def put(self, bucket: str, key: str, body: bytes, metadata: Mapping[str, str]) -> None:
        steps = _steps(bucket, key)
        check_metadata(metadata)
        await self._hands(self._put, steps, f"{shown(bucket, key)} in {self._folder}", body, dict(metadata))

    async def delete(self, bucket: str, key: str) -> None:
        steps = _steps(bucket, key)
        try:
            await self._hands(self._delete, steps, f"{shown(bucket, key)} in {self._folder}")
        except ObjectError as error:
            if error.fault is not ObjectFault.MISSING:
                raise

    async def list(self, bucket: str, prefix: str) -> AsyncIterator[ListedObject]:
        steps = _steps_below(bucket, prefix)
        found = self._walk(steps, f"{shown(bucket, prefix)} in {self._folder}")
        while page := await self._hands(tuple, islice(found, PAGE)):
            for each in page:
                yield each

    async def ping(self) -> None:
        await self._hands(self._ping)

    async def close(self) -> None:
        self._hands.let_go()

    # What follows runs in threads.

    def _get(self, steps: Sequence[str], where: str, most: int) -> StoredObject:
        *folders, name = steps
        with self._plainly(where), self._opened(folders, where) as folder:
            body = _read(folder, name, where, most)
            etag = _etag(body)
            return StoredObject(body, _metadata(folder, name + BESIDE, etag), etag)

    def _put(self, steps: Sequence[str], where: str, body: bytes, metadata: dict[str, str]) -> None:
        *folders, name = steps
        # Where a folder would have to be there is an object.
        with self._plainly(where, absent=ObjectFault.UNUSABLE), self._opened(folders, where, make=True) as folder:
            # The metadata first: an object that is there has them from the beginning.
            self._place(msgspec.json.encode(Beside(_etag(body), metadata)), folder, name + BESIDE)
            self._place(body, folder, name)
            os.fsync(folder)

    def _delete(self, steps: Sequence[str], where: str) -> None:
        *folders, name = steps
        with self._plainly(where), self._opened(folders, where) as folder:
            for file in (name, name + BESIDE):
                with suppress(FileNotFoundError, IsADirectoryError):
                    os.unlink(file, dir_fd=folder)
            os.fsync(folder)

    def _walk(self, steps: Sequence[str], where: str) -> Iterator[ListedObject]:
        """The objects below. What waits in memory are the names of folders that were not looked into yet."""
        bucket, *below = steps
        with self._plainly(where), self._opened([bucket], where):
            pass  # it is there
        waiting = ["".join(f"{step}/" for step in below)]
        while waiting:
            above = waiting.pop()
            for name, found in self._entries([bucket, *above.split("/")[:-1]], where):
                if not _usable(bucket, above + name):
                    continue
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(f"{above}{name}/")
                elif stat.S_ISREG(found.st_mode):
                    yield ListedObject(above + name, found.st_size)

    def _entries(self, folders: Sequence[str], where: str) -> Iterator[tuple[str, os.stat_result]]:
        """What is in the last of these. One that is gone has nothing in it."""
        try:
            with self._plainly(where), self._opened(folders, where) as folder, os.scandir(folder) as entries:
                yield from filter(None, map(_entry, entries))
        except ObjectError as error:
            if error.fault is not ObjectFault.MISSING:
                raise

    def _make(self, steps: Sequence[str], where: str) -> None:
        with self._plainly(where, absent=ObjectFault.UNUSABLE), self._opened(steps, where, make=True) as folder:
            os.fsync(folder)

    def _ping(self) -> None:
        where = str(self._folder)
        with self._plainly(where), self._opened((), where):
            pass

    @contextmanager
    def _opened(self, folders: Sequence[str], where: str, *, make: bool = False) -> Iterator[int]:
        """A handle on the last of these, reached step by step."""
        handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in folders:
                if make:
                    _make(name, handle)
                inner = _step_into(handle, name, where)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def _place(self, data: bytes, folder: int, name: str) -> None:
        """Make a file hold these bytes, all of them or what it held before."""
        incoming = self._folder / INCOMING
        incoming.mkdir(exist_ok=True)
        handle, path = tempfile.mkstemp(dir=incoming)
        try:
            try:
                write_pieces(handle, [data])
                os.fchmod(handle, 0o644)
                os.fsync(handle)
            finally:
                os.close(handle)
            os.rename(path, name, dst_dir_fd=folder)
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise

    @contextmanager
    def _plainly(self, where: str, absent: ObjectFault = ObjectFault.MISSING) -> Iterator[None]:
        """Turn whatever the disk raises into an ObjectError."""
        try:
            yield
        except OSError as error:
            fault = absent if error.errno in ABSENT else FAULTS.get(error.errno or 0, ObjectFault.DOWN)
            if error.errno in ABSENT and not self._folder.is_dir():
                raise ObjectError(f"{self._folder} is no folder any more", fault=ObjectFault.DOWN) from error
            raise ObjectError(f"{where}: {error.strerror or error}", fault=fault, full=error.errno in FULL) from error


def _steps(bucket: str, key: str) -> tuple[str, ...]:
    return _no_metadata(steps_of(bucket, key), shown(bucket, key))


def _steps_below(bucket: str, prefix: str) -> tuple[str, ...]:
    return _no_metadata(steps_below(bucket, prefix), shown(bucket, prefix))


def _no_metadata(steps: tuple[str, ...], where: str) -> tuple[str, ...]:
    if any(step.endswith(BESIDE) for step in steps[1:]):
        message = f"{where} has {BESIDE} in it, which are metadata of an object"
        raise ObjectError(message, fault=ObjectFault.UNUSABLE)
    return steps


def _usable(bucket: str, key: str) -> bool:
    """Whether an object can have that name: others may put there what they like."""
    try:
        _steps(bucket, key)
    except ObjectError:
        return False
    return True


def _step_into(folder: int, name: str, where: str) -> int:
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except NotADirectoryError as error:
        # The system has one word for a file and for a link that it was told not to follow.
        if not stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise
        message = f"{where} is behind a symbolic link, and none is followed"
        raise ObjectError(message, fault=ObjectFault.UNUSABLE) from error


def _entry(entry: "os.DirEntry[str]") -> tuple[str, os.stat_result] | None:
    try:
        return entry.name, entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # somebody deleted it meanwhile
        return None


def _make(name: str, folder: int) -> None:
    """Make a folder in another, durably, unless it is there."""
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
        os.fsync(folder)


def _read(folder: int, name: str, where: str, most: int) -> bytes:
    try:
        handle = os.open(name, FILE_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.ELOOP:  # which is the system's word for a link that it was told not to follow
            raise
        raise ObjectError(f"{where} is a symbolic link, and none is followed", fault=ObjectFault.UNUSABLE) from error
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise ObjectError(f"{where} is a folder, expected a file", fault=ObjectFault.MISSING)
        if not stat.S_ISREG(found.st_mode):
            raise ObjectError(f"{where} is no plain file", fault=ObjectFault.UNUSABLE)
        if found.st_size > most:
            raise too_large(where, found.st_size, most)
        body = bytearray()
        # Somebody may still be writing: what it has now counts, and not what it had when we asked.
        while piece := os.read(handle, PIECE):
            body += piece
            if len(body) > most:
                raise too_large(where, len(body), most)
        return bytes(body)
    finally:
        os.close(handle)


def _etag(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _metadata(folder: int, name: str, etag: str) -> dict[str, str]:
    """The metadata of this body; none if there are none, or they are of another."""
    try:
        beside = msgspec.json.decode(_read(folder, name, name, MOST_BESIDE), type=Beside)
    except (FileNotFoundError, ObjectError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return beside.metadata if beside.etag == etag else {}
