"""What a limiter must not forget, as limiter.json in the folder of the system that it works for.

Who asks us to stay away for an hour means the next process too.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sanderling.stores.durable import plainly, write_new

FILE = "limiter.json"


class Restores(Protocol):
    """What takes up what it knew: a limiter."""

    def restore(self, saved: bytes) -> None:
        """Take it up. Raises ValueError for what it did not save itself, and is then as it was."""


def recall(limiter: Restores, folder: Path) -> None:
    """Have the limiter take up what an earlier process kept there, if anything."""
    # Not there, torn, or written by another version: what it knew is learned again.
    with suppress(OSError, ValueError):
        limiter.restore((folder / FILE).read_bytes())


def keep(folder: Path, saved: Iterable[bytes]) -> None:
    """Keep what the limiter saved, in pieces; there is all of it or what was kept before. Raises FolderError."""
    with plainly(folder):
        write_new(folder / FILE, saved)
