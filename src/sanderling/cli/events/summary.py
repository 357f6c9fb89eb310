"""What came of a run of `sanderling events consume`, in words and as JSON."""

from collections.abc import Iterator
from typing import Any

from sanderling.cli import command_line
from sanderling.cli.events.flags import ConsumeFlags
from sanderling.events.report import describe_rows, report
from sanderling.events.status import EventsStatus
from sanderling.words import duration


def summarise(flags: ConsumeFlags, last: EventsStatus) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "seconds": round(last.seconds, 3),
        "messages": {
            "received": last.received,
            "processed": last.processed,
            "duplicates": last.duplicates,
            "postponed": last.postponed,
            "failed": last.failed,
        },
        "batches": last.batches,
        "posts": last.posts,
        "errors": last.errors,
        "categories": last.categories,
        "codes": last.codes,
        "sentiments": last.sentiments,
        "skipped": last.skipped,
        "sent": last.sent,
        "outbox": last.outbox,
        "queue": None
        if last.queue is None
        else {
            "ready": last.queue.ready,
            "taken": last.queue.taken,
            "delayed": last.queue.delayed,
            "dead": last.queue.dead,
        },
        "trouble": list(report(last).texts()),
        "out": str(flags.folder.out),
    }


def words(flags: ConsumeFlags, last: EventsStatus, onward: str) -> Iterator[str]:
    """The summary as lines, with the command to go on with; those that are indented must not be broken."""
    made = report(last)
    said = dict(made.lines)
    yield ""
    yield f"Consumed for {duration(last.seconds)}: {describe_rows(last)}."
    yield f"Messages: {said['messages']}; the queue: {said['queue']}."
    if last.posts:
        yield f"Posts: {said['sentiment']}."
    if last.errors:
        yield f"Errors: {said['errors']}."
    yield from made.texts()
    if last.queue is not None and last.queue.dead:
        yield ""
        yield "Why they were given up, and how to try again:"
        yield ""
        yield f"    {command_line.again('dead list', flags.folder.out, flags.letters)}"
    yield ""
    yield "Go on with:"
    yield ""
    yield f"    {onward}"
    yield ""
