"""`sanderling polling status`: how polling stands, beside it or after it."""

from sanderling.cli.command_line import AsJson
from sanderling.cli.polling.place import OWN_FOLDER, Folder
from sanderling.cli.published_words import nothing, tell
from sanderling.cli.report_words import report_lines
from sanderling.clock import SystemClock
from sanderling.polling.report import report
from sanderling.polling.status import published
from sanderling.stores.status_file import is_running


def status(*, json: AsJson = False, folder: Folder = OWN_FOLDER) -> None:
    """Say how the polling of a folder stands."""
    found, wall = published(folder.out), SystemClock().wall()
    if found is None:
        raise nothing("nothing was polled", folder.out, "--out", "sanderling polling run")
    tell(
        f"Polling in {folder.out}",
        found,
        wall,
        report_lines(report(found), running=is_running(found, wall)),
        as_json=json,
    )
