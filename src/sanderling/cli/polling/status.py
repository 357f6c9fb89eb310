"""`sanderling status` of polling: how polling stands, beside it or after it."""

from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.cli.published_words import tell
from sanderling.cli.report_words import report_lines
from sanderling.clock import SystemClock
from sanderling.polling.report import report
from sanderling.polling.status import published
from sanderling.stores.status_file import is_running
from sanderling.words import printable


def show_polling(folder: Path, *, as_json: bool) -> None:
    """Print how the polling of a folder stands. Raises CommandError."""
    found, wall = published(folder), SystemClock().wall()
    if found is None:
        raise CommandError(printable(f"nothing was polled in {folder} yet; begin: sanderling polling run"), code=2)
    tell(
        f"Polling in {folder}",
        found,
        wall,
        report_lines(report(found), running=is_running(found, wall)),
        as_json=as_json,
    )
