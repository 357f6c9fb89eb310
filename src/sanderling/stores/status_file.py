"""How a running system stands, as status.json in its folder, for other processes; and whether it runs at all."""

from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from sanderling.stores.durable import plainly

FILE = "status.json"
SILENT = 10.0  # seconds after which one that should say something every second or two has ended, or hangs

S = TypeVar("S")


class Published(Protocol):
    """What the status of every system says of its process."""

    @property
    def running(self) -> bool:
        """As far as it could say: one that was killed did not."""

    @property
    def pid(self) -> int:
        """Who wrote it."""

    @property
    def wall(self) -> float:
        """When, in Unix seconds."""

    @property
    def seconds(self) -> float:
        """How long it had run by then."""


def write_status(folder: Path, now: object) -> None:
    """Write it, a struct or a dataclass, so that a reader sees all of it or the one before. Raises FolderError."""
    with plainly(folder):
        draft = folder / f".{FILE}.tmp"
        draft.write_bytes(msgspec.json.encode(now))
        draft.replace(folder / FILE)


def read_status(folder: Path, kind: type[S]) -> S | None:
    """The one that was last written there; None if there is none that can be read."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def age(found: Published, wall: float) -> float:
    """Seconds since it was said; what was said by a clock that is ahead of ours was said just now."""
    return max(0.0, wall - found.wall)


def is_running(found: Published, wall: float) -> bool:
    """Whether whoever wrote it still runs, as far as can be told."""
    return found.running and age(found, wall) < SILENT
