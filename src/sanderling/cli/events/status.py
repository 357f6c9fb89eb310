"""`sanderling status` of events: how consuming stands, or how it stood when it ended."""

from collections.abc import Iterator
from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.cli.events.words import consumer, done, errors, messages, modes, pace, queue, sent, sentiments, troubles
from sanderling.cli.published_words import line, tell
from sanderling.clock import SystemClock
from sanderling.events.status import EventsStatus, published
from sanderling.stores.status_file import is_running
from sanderling.words import printable


def show_events(folder: Path, *, as_json: bool) -> None:
    """Print how consuming stands. Raises CommandError."""
    found, wall = published(folder), SystemClock().wall()
    if found is None:
        raise CommandError(printable(f"nothing was consumed in {folder} yet; begin: sanderling events consume"), code=2)
    tell(f"Events in {folder}", found, wall, words(found, wall), as_json=as_json)


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
