"""How a command says that it cannot go on."""

from pathlib import Path

from sanderling.stores.durable import FolderError
from sanderling.words import printable

INTERRUPTED = 130  # the exit code after Ctrl-C


class CommandError(Exception):
    """A command cannot go on, for a reason the user can act on: shown as a message, without a traceback."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def not_opened(error: FolderError) -> CommandError:
    """That a folder cannot be used; a disk without room is no mistake of who runs the command."""
    return CommandError(str(error), code=1 if error.full else 2)


def not_begun(what: str, folder: Path | str, flag: str, begin: str) -> CommandError:
    """That there is nothing to tell of: `what` never was in the folder, which `flag` names."""
    return CommandError(printable(f"{what} in {folder}; choose another folder with {flag}, or begin: {begin}"), code=2)
