"""What stands beside the ledger of an archive in `repos.json`, and the ledger that it leads to."""

from pathlib import Path
from typing import Any, Protocol

import msgspec

from sanderling.clock import Clock
from sanderling.files import FolderError, read_small
from sanderling.options import OptionError
from sanderling.redact import Secret
from sanderling.stores import Ledger, RowFile, open_ledger

LEDGER, NOTES = "repos.db", "repos.json"


class TextOutput(Protocol):
    """What a command prints by."""

    def print(self, text: str) -> None:
        """Print a line."""

    def warn(self, text: str) -> None:
        """Print what a person should know."""


class RepoNotes(msgspec.Struct):
    """What stands beside the ledger: how the archive was begun, for people and for us."""

    plan: dict[str, Any]
    directory: str = ""
    ledger: str = ""  # where it is, if not in the folder; a secret as env:NAME or file:PATH
    name: str = ""
    redis: str = ""  # where the progress is as well
    processes: tuple[int, ...] = (0,)  # under which numbers the ledger knows who wrote into this folder


def read_notes(folder: Path) -> RepoNotes:
    """What an earlier run has noted. Raises FolderError."""
    path = folder / NOTES
    try:
        return msgspec.json.decode(read_small(path), type=RepoNotes)
    except msgspec.DecodeError as error:
        raise FolderError(f"{path} is damaged: {error}", "restore it from a copy, or choose another folder") from None


def ledger_of(folder: Path, notes: RepoNotes, clock: Clock, *, read_only: bool = False) -> Ledger:
    """The ledger of an archive, in its folder or in the database that its notes name."""
    if not notes.ledger:
        return open_ledger(folder / LEDGER, plan=notes.plan, clock=clock, read_only=read_only)
    url = Secret(notes.ledger).reveal() if notes.ledger.startswith(("env:", "file:")) else notes.ledger
    if not url.startswith(("postgres://", "postgresql://")):
        raise OptionError("--ledger: found another text; expected postgresql://HOST/DATABASE")
    return open_ledger(url, name=notes.name, plan=notes.plan, clock=clock, read_only=read_only)


async def own_files(folder: Path, ledger: Ledger) -> list[RowFile]:
    """How far the files of this folder count, by all that wrote into it; of each file the last that did."""
    processes = read_notes(folder).processes
    found = [each for each in await ledger.row_files() if each.process in processes]
    return list({each.file: each for each in sorted(found, key=lambda each: processes.index(each.process))}.values())
