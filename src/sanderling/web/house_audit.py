"""Who did what, and when: a line of JSON for each action, done or refused, that is on disk before it is answered."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from sanderling.stores.durable import plainly, write_pieces

FILE, EARLIER = "audit.jsonl", "audit.1.jsonl"
LARGEST = 10 << 20  # bytes; then it becomes the earlier one, and that which was goes
LONGEST = 500  # characters of each text, so that a line is short
BLOCK = 1 << 16  # bytes that are read at a time, from the end
TRIES = 10  # to be the one who writes, while others move the file aside


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An action. `at` is Unix seconds."""

    at: float
    who: str
    from_: str = msgspec.field(name="from")
    action: str
    system: str
    what: str
    done: bool
    why: str = ""  # it was not


class Audit:
    """The log in a home. Several processes may write it. Everything blocks, and raises FolderError."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.path = home / FILE

    def __repr__(self) -> str:
        return f"<Audit {self.path}>"

    def check(self) -> None:
        """See that it can be written, before something is done that has to be."""
        with plainly(self.path), self._opened():
            pass

    def write(self, entry: AuditEntry) -> None:
        """Return when it is on disk."""
        cut = {name: getattr(entry, name)[:LONGEST] for name in ("who", "from_", "action", "system", "what", "why")}
        line = msgspec.json.encode(msgspec.structs.replace(entry, **cut)) + b"\n"
        with plainly(self.path), self._opened() as handle:
            write_pieces(handle, [line])
            os.fsync(handle)

    def newest(self, limit: int) -> list[AuditEntry]:
        """The last entries, the newest first. Lines that are none are passed over."""
        with plainly(self.path):
            paths = (self.path, self._home / EARLIER)
            entries = (entry for path in paths for line in _backwards(path) for entry in _entry(line))
            return list(islice(entries, limit))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The file, for us alone; a new one if it has become too large."""
        for _ in range(TRIES):
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if not self._moved(handle):
                    yield handle
                    return
            finally:
                os.close(handle)
        raise OSError(f"{self.path} is moved aside all the time")

    def _moved(self, handle: int) -> bool:
        """Whether that is not the file any more: another process moved it aside, or we just did."""
        there = os.fstat(handle)
        try:
            named = self.path.lstat().st_ino
        except FileNotFoundError:
            return True
        if named != there.st_ino:
            return True
        if there.st_size < LARGEST:
            return False
        self.path.replace(self._home / EARLIER)
        return True


def _entry(line: bytes) -> list[AuditEntry]:
    try:
        return [msgspec.json.decode(line, type=AuditEntry)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []


def _backwards(path: Path) -> Iterator[bytes]:
    """The lines of a file, the last one first; none if there is no file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        left, rest = file.seek(0, os.SEEK_END), b""
        while left > 0:
            size = min(BLOCK, left)
            left -= size
            file.seek(left)
            first, *lines = (file.read(size) + rest).split(b"\n")
            yield from (line for line in reversed(lines) if line)
            rest = first if len(first) <= BLOCK else b""  # that long is no line of ours
        if rest:
            yield rest
