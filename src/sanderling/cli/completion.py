"""`sanderling completion install` and `show`: the script with which a shell completes our commands."""

from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.completion.detect import ShellDetectionError

from sanderling.cli import app
from sanderling.cli.command_error import CommandError
from sanderling.words import printable

Shell = Literal["bash", "zsh", "fish"]


def install(
    shell: Annotated[Shell | None, Parameter(help="Which; by default the one that this is called from.")] = None, /
) -> None:
    """Write the script where the shell finds it."""
    try:
        path = app.install_completion(shell=shell)
    except (ShellDetectionError, ValueError):
        known = "the shell is not known; name it, bash, zsh or fish, as in: sanderling completion install zsh"
        raise CommandError(known, code=2) from None
    except OSError as error:
        raise CommandError(printable(f"{error.filename}: cannot be written: {error.strerror}")) from None
    print(printable(f"{path} is written; a new shell completes sanderling"))


def show(shell: Annotated[Shell, Parameter(help="Which.")], /) -> None:
    """Print the script."""
    print(app.generate_completion(shell=shell), end="")
