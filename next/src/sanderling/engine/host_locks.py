"""Which of several crawls of one machine may request a host: whoever locked it first, until it lets go or ends."""

import fcntl
import os
from hashlib import blake2b
from pathlib import Path

from sanderling.files import disk_errors, make_folder

FOLDER = ".host-locks"  # below the home of the crawls
FILES = 16  # the kernel looks through all locks of a file: with 10,000 in one, 300 µs a lock instead of 5

# The kernel's locks are a process's, and closing a file gives all of its locks up. So a process has each file open
# once, to its end, and what it has locked is noted here for the other crawls in it.
_handles: dict[Path, list[int]] = {}
_locked: set[tuple[Path, str]] = set()


class HostLocks:
    """A host is one byte in a file below `home`; the kernel unlocks it when its process ends, however it ends."""

    def __init__(self, home: Path) -> None:
        self._folder = home.resolve() / FOLDER
        if self._folder not in _handles:
            make_folder(self._folder)
            with disk_errors(self._folder):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                _handles[self._folder] = [os.open(self._folder / f"{n:02}", flags, 0o644) for n in range(FILES)]
        self._own: set[str] = set()

    def __repr__(self) -> str:
        return f"<HostLocks {self._folder}, {len(self._own)} of ours>"

    def acquire(self, host: str) -> bool:
        """Whether the host is ours now."""
        if host in self._own:
            return True
        if (self._folder, host) in _locked:
            return False
        handle, place = self._place(host)
        with disk_errors(self._folder):
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except (BlockingIOError, PermissionError):  # POSIX allows both
                return False
        _locked.add((self._folder, host))
        self._own.add(host)
        return True

    def release(self, host: str) -> None:
        """Others may have the host; harmless for one that is not ours."""
        if host in self._own:
            handle, place = self._place(host)
            fcntl.lockf(handle, fcntl.LOCK_UN, 1, place)
            _locked.discard((self._folder, host))
            self._own.discard(host)

    def _place(self, host: str) -> tuple[int, int]:
        number = int.from_bytes(blake2b(host.encode(), digest_size=8).digest()) >> 2
        return _handles[self._folder][number % FILES], number // FILES
