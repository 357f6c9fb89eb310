"""`sanderling polling status`: how polling stands, beside it or after it."""

from collections.abc import Iterator

from sanderling.cli.command_line import AsJson
from sanderling.cli.polling.place import OWN_FOLDER, Folder
from sanderling.cli.polling.words import host, now, punctual, runs, targets, told, troubles
from sanderling.cli.published_words import line, nothing, tell
from sanderling.clock import SystemClock
from sanderling.polling.status import PollingStatus, published
from sanderling.stores.status_file import is_running


def status(*, json: AsJson = False, folder: Folder = OWN_FOLDER) -> None:
    """Say how the polling of a folder stands."""
    found, wall = published(folder.out), SystemClock().wall()
    if found is None:
        raise nothing("nothing was polled", folder.out, "--out", "sanderling polling run")
    tell(f"Polling in {folder.out}", found, wall, words(found, wall), as_json=json)


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
