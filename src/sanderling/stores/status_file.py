"""How a running system stands, as status.json in its folder, for other processes."""

from pathlib import Path
from typing import TypeVar

import msgspec

from sanderling.stores.durable import plainly

FILE = "status.json"

S = TypeVar("S", bound=msgspec.Struct)


def write_status(folder: Path, now: msgspec.Struct) -> None:
    """Write it so that a reader sees all of it or the one before. Raises FolderError."""
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
