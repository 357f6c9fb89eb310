"""What every target is, and the mark that it keeps."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from sanderling.records.columns import StoredColumn
from sanderling.stores.durable import FolderError, plainly

FORMAT = 1  # of marks


class TargetError(Exception):
    """A target cannot be written to. The message says what was found, and what to do."""


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a target holds: so many records of a source, up to a position."""

    origin: str
    position: str
    records: int = 0
    complete: bool = False  # the last export came to its end
    where: str = ""
    fields: tuple[str, ...] = ()
    columns: tuple[StoredColumn, ...] = ()
    # Of files and parts.
    bytes: int = 0
    parts: int = 0
    draft: str = ""  # a file that is about to take the place of the first
    format: int = FORMAT


class ExportTarget(Protocol):
    """Where records go. All methods raise TargetError."""

    @property
    def place(self) -> str:
        """In words, without secrets."""

    @property
    def notes(self) -> list[str]:
        """What people should know, such as columns that were added."""

    def open(self) -> Mark | None:
        """Begin; what it holds already. What an export that was killed left half is removed."""

    def write(self, records: Sequence[bytes], mark: Mark) -> None:
        """Take records, and the mark behind them. Both may become durable later, but in this order, and together."""

    def finish(self, mark: Mark) -> None:
        """Return when all that was taken is durable, and this mark with it."""

    def close(self) -> None:
        """Let go. What is not durable by now never will be."""


_DECODER = msgspec.json.Decoder(Mark)


def read_mark(data: bytes | str, place: object) -> Mark:
    """The mark that was written there. Raises TargetError."""
    try:
        mark = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise TargetError(f"{place} is damaged: {error}. Export to another target, from the beginning.") from None
    if mark.format > FORMAT:
        raise TargetError(f"{place} is of format {mark.format}, this version reads {FORMAT}. Use a newer version.")
    return mark


def write_mark(mark: Mark) -> bytes:
    """The mark as it is kept."""
    return msgspec.json.encode(mark)


@contextmanager
def target_errors(path: Path) -> Iterator[None]:
    """Turn whatever the disk or SQLite raises at `path` into a TargetError."""
    try:
        with plainly(path):
            yield
    except FolderError as error:
        raise TargetError(str(error)) from None


def take_lock(path: Path, what: object) -> int:
    """A handle on a lock file that is ours until it is closed. Raises TargetError if another export has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise TargetError(f"another export is writing {what}. Wait until it has ended.") from None
    return handle
