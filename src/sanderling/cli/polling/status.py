"""`sanderling status` of polling: how polling stands, beside it or after it."""

from collections.abc import Iterator
from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.cli.polling.words import host, now, punctual, runs, targets, told, troubles
from sanderling.cli.published_words import line, tell
from sanderling.clock import SystemClock
from sanderling.polling.status import PollingStatus, published
from sanderling.stores.status_file import is_running
from sanderling.words import printable


def show_polling(folder: Path, *, as_json: bool) -> None:
    """Print how the polling of a folder stands. Raises CommandError."""
    found, wall = published(folder), SystemClock().wall()
    if found is None:
        raise CommandError(printable(f"nothing was polled in {folder} yet; begin: sanderling polling run"), code=2)
    tell(f"Polling in {folder}", found, wall, words(found, wall), as_json=as_json)


def words(found: PollingStatus, wall: float) -> Iterator[str]:
    """The same as lines."""
    yield line("source", f"{found.source} at {found.host}" if found.host else f"{found.source}, not asked yet")
    yield line("targets", targets(found))
    yield line("now" if is_running(found, wall) else "at the end", now(found))
    yield line("runs", runs(found))
    yield line("late", punctual(found))
    yield line("changes", f"{told(found)}; the newest is number {found.newest:,}")
    yield line("host", host(found))
    for trouble in troubles(found):
        yield line("trouble", trouble)
