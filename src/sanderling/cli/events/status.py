"""`sanderling events status`: how consuming stands, or how it stood when it ended."""

from collections.abc import Iterator

from sanderling.cli.command_line import AsJson
from sanderling.cli.events.place import USUAL, Folder
from sanderling.cli.events.words import consumer, done, errors, messages, modes, pace, queue, sent, sentiments, troubles
from sanderling.cli.published_words import line, nothing, tell
from sanderling.clock import SystemClock
from sanderling.events.status import EventsStatus, published
from sanderling.stores.status_file import is_running


def status(*, json: AsJson = False, folder: Folder = USUAL) -> None:
    """Say how consuming stands."""
    found, wall = published(folder.out), SystemClock().wall()
    if found is None:
        raise nothing("nothing was consumed", folder.out, "--out", "sanderling events consume")
    tell(f"Events in {folder.out}", found, wall, words(found, wall), as_json=json)


def words(found: EventsStatus, wall: float) -> Iterator[str]:
    """The same as lines."""
    yield line("rows", f"{done(found)}, written by this run")
    yield line("now" if is_running(found, wall) else "at the end", f"{found.doing}; {pace(found)}")
    yield line("queue", queue(found))
    yield line("messages", messages(found))
    yield line("sentiment", sentiments(found))
    yield line("errors", errors(found))
    yield line("modes", modes(found))
    yield line("sent", sent(found))
    for trouble in troubles(found):
        yield line("trouble", trouble)
    for each in found.consumers:
        yield line("consumer", consumer(each, wall))
