"""`sanderling dashboard`: all runs below a folder, in the browser."""

import asyncio
import webbrowser
from pathlib import Path

from sanderling.cli.context import Context
from sanderling.clock import SystemClock
from sanderling.files import Exit, FolderError
from sanderling.options import Options, option

PORT = 8700


class DashboardOptions(Options):
    """Options of `dashboard`."""

    home: Path = option(Path(), "The folder in which the folders of runs are.", argument="FOLDER")
    port: int = option(PORT, "The port at 127.0.0.1; 0 takes any.", low=0, high=65535)
    open: bool = option(default=False, help="Open it in the browser.")


def dashboard(options: DashboardOptions, context: Context) -> Exit:
    """Serve it until Ctrl-C. Other machines reach it by a tunnel or a proxy that asks who they are."""
    if not options.home.is_dir():
        raise FolderError(f"{options.home} is no folder", "give the folder in which the folders of your runs are")

    async def run() -> None:
        from sanderling.web.dashboard import dashboard as serve_dashboard  # noqa: PLC0415 - 100 ms: an HTTP server

        async with serve_dashboard(options.home, context.systems, options.port, SystemClock()) as url:
            context.print(f"The dashboard is at {url}/ until you press Ctrl-C. Only this machine reaches it;")
            context.print(f"from another one, type: ssh -L {options.port or PORT}:{url.removeprefix('http://')} HOST")
            if options.open:
                webbrowser.open(url)
            await asyncio.Event().wait()

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        context.print("")
    return Exit.DONE
