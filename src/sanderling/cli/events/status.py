"""`sanderling events status`: how consuming stands, or how it stood when it ended."""

from sanderling.cli.command_line import AsJson
from sanderling.cli.events.place import USUAL, Folder
from sanderling.cli.published_words import nothing, tell
from sanderling.cli.report_words import report_lines
from sanderling.clock import SystemClock
from sanderling.events.report import report
from sanderling.events.status import published
from sanderling.stores.status_file import is_running


def status(*, json: AsJson = False, folder: Folder = USUAL) -> None:
    """Say how consuming stands."""
    found, wall = published(folder.out), SystemClock().wall()
    if found is None:
        raise nothing("nothing was consumed", folder.out, "--out", "sanderling events consume")
    tell(
        f"Events in {folder.out}",
        found,
        wall,
        report_lines(report(found), running=is_running(found, wall)),
        as_json=json,
    )
