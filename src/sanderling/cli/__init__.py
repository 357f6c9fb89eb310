"""The command line. Each command is a file of its own, imported only when it is run, so that `--help` is quick.

Exit codes: 0 all went well, 1 the command failed, 2 it was not called as it should be, 130 Ctrl-C.
Data goes to stdout; logs, progress and errors go to stderr.
"""

import sys
from importlib.metadata import version
from typing import NoReturn

from cyclopts import App, CycloptsError

app = App(
    name="sanderling",
    version=lambda: version("sanderling"),
    help="Collect every record from APIs you do not own: as fast as each host allows, never faster, losing nothing.",
    help_format="plaintext",
    help_epilogue="Example, which needs no server: watch the limiter learn three hosts at once\n\n    sanderling demo",
    # `main` does it, also for a Ctrl-C that comes while a command is still being imported.
    suppress_keyboard_interrupt=False,
)
app.command("sanderling.cli.demo:demo", name="demo", help="Watch the limiter learn three hosts at once.")
app.command(
    "sanderling.cli.fetch:fetch", name="fetch", help="Ask a few addresses once, politely, and say how it ended."
)


class CommandError(Exception):
    """A command cannot go on, for a reason the user can act on: shown as a message, without a traceback."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def main() -> NoReturn:
    """Run the command that the process was called with, and exit."""
    try:
        app(print_error=False, exit_on_error=False)
    except CycloptsError as error:
        command = " ".join(("sanderling", *(error.command_chain or ())))
        _exit(2, f"{error}\nSee: {command} --help")
    except CommandError as error:
        _exit(error.code, str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def _exit(code: int, message: str) -> NoReturn:
    print(f"sanderling: {message}", file=sys.stderr)
    sys.exit(code)
