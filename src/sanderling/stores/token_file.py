"""A refresh token that a host has exchanged for another, in a file that only its owner may read."""

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from sanderling.clock import Clock
from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new

FILE = "tokens.json"
LOOK = 0.1  # seconds between two looks whether another process has its token


class _Kept(msgspec.Struct):
    owner: str
    token: str


class TokenFile:
    """The latest refresh token of one owner. A rotated token that is lost locks us out, so it is durable at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @asynccontextmanager
    async def held(self, clock: Clock) -> AsyncIterator[None]:
        """One at a time, of all processes that share the file: of two that exchange one token, one is locked out.

        The system lets go of it when the process ends. Raises FolderError.
        """
        with plainly(self._path):
            handle = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _is_locked(handle):
                await clock.sleep(LOOK)
            yield
        finally:
            os.close(handle)

    def load(self, owner: str) -> str | None:
        """The token that was kept for this owner; None if there is none, or one of another. Raises FolderError."""
        with plainly(self._path):
            data = self._path.read_bytes() if self._path.exists() else None
        if data is None:
            return None
        try:
            kept = msgspec.json.decode(data, type=_Kept)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # The message is without what was found: it may be a secret.
            raise FolderError(
                f"{self._path} has no token in it. Remove it, and configure a new refresh token."
            ) from None
        return kept.token if kept.owner == owner else None

    def save(self, owner: str, token: str) -> None:
        """Keep it instead of the one before; on disk when this returns. Raises FolderError."""
        with plainly(self._path):
            write_new(self._path, [msgspec.json.encode(_Kept(owner, token))], mode=0o600)
            sync_folder(self._path.parent)


def _is_locked(handle: int) -> bool:
    """Whether the lock is ours now."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
