"""What came of a run of `sanderling events consume`, in words and as JSON."""

from collections.abc import Iterator
from typing import Any

import msgspec

from sanderling.cli import command_line
from sanderling.cli.events.flags import ConsumeFlags
from sanderling.events.report import EventsFacts
from sanderling.observe.report import Report
from sanderling.words import duration


def summarise(flags: ConsumeFlags, last: Report[EventsFacts]) -> dict[str, Any]:
    """What `--json` prints."""
    facts = last.facts
    messages: dict[str, Any] = msgspec.to_builtins(facts.messages)
    return {
        "seconds": round(last.process.seconds, 3),
        "messages": messages,
        "batches": facts.batches,
        "posts": facts.posts,
        "errors": facts.errors,
        "categories": facts.categories,
        "codes": facts.codes,
        "sentiments": facts.sentiments,
        "skipped": facts.skipped,
        "sent": facts.sent,
        "outbox": facts.outbox,
        "queue": facts.queue,
        "trouble": list(last.texts()),
        "out": str(flags.folder.out),
    }


def words(flags: ConsumeFlags, last: Report[EventsFacts], onward: str) -> Iterator[str]:
    """The summary as lines, with the command to go on with; those that are indented must not be broken."""
    facts, said = last.facts, dict(last.lines)
    yield ""
    yield f"Consumed for {duration(last.process.seconds)}: {facts.rows()}."
    yield f"Messages: {said['messages']}; the queue: {said['queue']}."
    if facts.posts:
        yield f"Posts: {said['sentiment']}."
    if facts.errors:
        yield f"Errors: {said['errors']}."
    yield from last.texts()
    if facts.queue and facts.queue["dead"]:
        yield ""
        yield "Why they were given up, and how to try again:"
        yield ""
        yield f"    {command_line.again('dead list', flags.folder.out, flags.letters)}"
    yield ""
    yield "Go on with:"
    yield ""
    yield f"    {onward}"
    yield ""
