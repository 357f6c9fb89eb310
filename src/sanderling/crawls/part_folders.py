"""How the parts of a crawl are made, and finished together. Killed in the middle, the next run takes the rest."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sanderling.crawls.exchange import INBOX
from sanderling.crawls.parts import FOLDER, enough_parts, folders_of, make_parts, number_of_parts
from sanderling.crawls.split import SplitSystem, split_folder
from sanderling.stores.board import BoardField
from sanderling.stores.durable import check_empty
from sanderling.stores.frontier import Frontier


class BegunParts(NamedTuple):
    """A run was begun in every part."""

    resumed: bool  # whether there was one before
    shown: Sequence[Mapping[BoardField, int]]  # what each part had before, for the limits of the whole


def parts_for(out: Path, processes: int, system: SplitSystem, note: Callable[[str], object] = lambda _: None) -> int:
    """How many parts the crawl in a folder has: they are made if nothing is there, or of what one process began.

    Whoever holds the folder is told by `note` what may take long. Raises FolderError.
    """
    if system.is_one(out):
        note(f"{out} is taken apart, so that several processes can go on with it")
        for _ in split_folder(out, processes, system):
            pass
    if parts := number_of_parts(out):
        return parts
    check_empty(out, FOLDER)
    return make_parts(out, enough_parts(processes))


def finish_parts(out: Path, ledger: str) -> None:
    """All parts are complete: the crawl is finished, and what they sent each other has arrived."""
    for path in folders_of(out):
        for sent in (path / INBOX).glob("*"):
            sent.unlink()
        with closing(Frontier(path / ledger)) as frontier:
            frontier.note(finished=True)
