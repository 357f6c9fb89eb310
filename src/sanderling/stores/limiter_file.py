"""What a limiter must not forget, as limiter.json in the folder of the system that it works for.

Who asks us to stay away for an hour means the next process too. All of it is written every few seconds, and of very
many hosts that takes a while: what must not be forgotten by a process that is killed meanwhile is in limiter.news, a
line for each time that hosts were penalised since.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sanderling.stores.durable import plainly, write_new

FILE, NEWS = "limiter.json", "limiter.news"


class Restores(Protocol):
    """What takes up what it knew: a limiter."""

    def restore(self, saved: bytes) -> None:
        """Take it up. Raises ValueError for what it did not save itself, and is then as it was."""


def recall(limiter: Restores, folder: Path) -> None:
    """Have the limiter take up what an earlier process kept there, if anything."""
    # Not there, torn, or written by another version: what it knew is learned again.
    with suppress(OSError, ValueError):
        limiter.restore((folder / FILE).read_bytes())
    with suppress(OSError):
        for line in (folder / NEWS).read_bytes().splitlines():
            with suppress(ValueError):
                limiter.restore(line)


def keep(folder: Path, saved: Iterable[bytes], news: Iterable[bytes] = ()) -> None:
    """Keep what the limiter saved, in pieces; there is all of it or what was kept before. Raises FolderError.

    Of the news, only these are newer than that.
    """
    with plainly(folder):
        write_new(folder / FILE, saved)
        if lines := [each + b"\n" for each in news]:
            write_new(folder / NEWS, lines, sync=False)
        else:
            (folder / NEWS).unlink(missing_ok=True)


def add_news(folder: Path, news: bytes) -> None:
    """Keep what the limiter has learned since. Raises FolderError."""
    with plainly(folder), (folder / NEWS).open("ab") as file:  # not synced: a machine that fails has forgotten little
        file.write(news + b"\n")
