"""`sanderling dashboard`: all systems of a home in a browser; and the same beside a command that runs one of them."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import run
from sanderling.cli.serving import THIS_MACHINE, read_token, serve_at
from sanderling.clock import SystemClock
from sanderling.observe import logs
from sanderling.web.access import VARIABLE
from sanderling.web.dashboard import PORT, DashboardOptions
from sanderling.web.dashboard import dashboard as served
from sanderling.web.house_reach import Reach
from sanderling.words import printable


def dashboard(
    *,
    home: Annotated[Path, Parameter(help="The folder in which, or below which, systems keep what they have.")] = Path(),
    port: Annotated[
        int, Parameter(validator=Number(gte=0, lte=65535), help="The port to serve it on; 0 takes any free one.")
    ] = PORT,
    bind: Annotated[
        str, Parameter(help="The address to serve it on; any other than this machine's own needs a token.")
    ] = THIS_MACHINE,
    token_file: Annotated[
        Path | None, Parameter(help="A file that holds the token for it, instead of SANDERLING_TOKEN.")
    ] = None,
) -> None:
    """Serve the dashboard of a home, until Ctrl-C."""
    if not home.is_dir():
        raise CommandError(printable(f"--home: {home} is no folder; choose another"), code=2)
    logs.configure(None, "warning")
    if run(_serve(home.absolute(), port, bind, token_file)) == signal.SIGINT:
        sys.exit(130)


async def _serve(home: Path, port: int, bind: str, token_file: Path | None) -> int:
    """Serve until a signal comes; say which."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Queue[int]()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopped.put_nowait, each)
    async with dashboard_beside(port, home, flag="--port", bind=bind, token_file=token_file) as address:
        print(address, flush=True)
        print(printable(f"dashboard of {home}; Ctrl-C ends it"), file=sys.stderr)
        return await stopped.get()


@asynccontextmanager
async def dashboard_beside(  # noqa: PLR0913 - a flag each
    port: int | None,
    home: Path,
    reach: Reach | None = None,
    *,
    bind: str = THIS_MACHINE,
    token_file: Path | None = None,
    say: Callable[[str], object] | None = None,
    flag: str = "--dashboard",
) -> AsyncIterator[str | None]:
    """The dashboard of `home` while the block runs, and its address, which `say` is told; nothing without a port.

    `reach` has what this command holds open: without it, what is on a server can be seen and not changed. Raises
    CommandError, about `flag`. What the block raises comes out as it was.
    """
    if port is None:
        yield None
        return
    opening = DashboardOptions(home, bind, port, read_token(token_file), _name(token_file))
    async with serve_at(served(opening, reach or Reach(), SystemClock()), flag) as address:
        if say is not None:
            say(f"dashboard: {address.url}")
        yield address.url


def _name(file: Path | None) -> str:
    """What the holder of the token is called in the record."""
    return f"the token in {VARIABLE if file is None else file.name}"
