"""`sanderling status` of events: how consuming stands, or how it stood when it ended."""

from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.cli.published_words import tell
from sanderling.cli.report_words import report_lines
from sanderling.clock import SystemClock
from sanderling.events.report import report
from sanderling.events.status import published
from sanderling.stores.status_file import is_running
from sanderling.words import printable


def show_events(folder: Path, *, as_json: bool) -> None:
    """Print how consuming stands. Raises CommandError."""
    found, wall = published(folder), SystemClock().wall()
    if found is None:
        raise CommandError(printable(f"nothing was consumed in {folder} yet; begin: sanderling events consume"), code=2)
    tell(
        f"Events in {folder}",
        found,
        wall,
        report_lines(report(found), running=is_running(found, wall)),
        as_json=as_json,
    )
