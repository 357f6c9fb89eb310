"""`sanderling events publish`: files of items, or of rows of our crawlers, become batches and messages.

Each file has batches of its own, which depend on its lines and on nothing else. So it may be published again, alone or
beside others, and the same events come of it.
"""

import asyncio
import json as jsonlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson, again
from sanderling.cli.events.place import (
    KNOWN,
    OWN_BODIES,
    OWN_LETTERS,
    OWN_ROWS,
    USUAL,
    EventsDatabase,
    EventsFolder,
    EventsObjects,
    EventsQueue,
)
from sanderling.cli.events.sink import EventsLocations, outlet, source_of
from sanderling.cli.loop import explain_end, run
from sanderling.cli.progress_line import ProgressLine
from sanderling.cli.reach import reached
from sanderling.clock import SystemClock
from sanderling.events.handover import Outlet
from sanderling.events.producer import BatchSink, BatchSource, SinkRules
from sanderling.events.publish import MOST_PROBLEMS, PublishedFile, publish_file, publish_piped
from sanderling.observe import logs
from sanderling.words import count, printable

TRIES = 8  # of a batch at a store that can be reached and fails; they take about a minute
SHOW_EVERY = 0.25  # seconds between two looks, on a terminal
STDIN, TASK = Path("-"), "research_and_crawl"


@dataclass(slots=True)
class PublishedTotal:
    """What came of all files."""

    items: int = 0
    batches: int = 0
    left_out: int = 0
    bad: int = 0
    problems: list[str] = field(default_factory=list)
    sent: int = 0  # messages
    unsent: str = ""  # why they were not

    def add(self, path: Path, found: PublishedFile, sink: BatchSink) -> None:
        """What came of one more."""
        self.items += found.items
        self.batches += sink.tally.batches
        self.left_out += found.left_out
        self.bad += found.bad
        self.problems += [f"{path}, {problem}" for problem in found.problems]
        del self.problems[MOST_PROBLEMS:]


async def _watch(line: ProgressLine, path: Path, sink: BatchSink) -> None:
    """Show how a file goes, until cancelled."""
    while True:
        tally = sink.tally
        waits = f"; waiting: {tally.trouble}" if tally.trouble else ""
        line.show(f"{path.name}: {count(tally.items, 'item')} in {_batches(tally.batches)}{waits}")
        await asyncio.sleep(SHOW_EVERY)


def publish(  # noqa: PLR0913 - a flag each
    *files: Annotated[
        Path,
        Parameter(
            allow_leading_hyphen=True,
            help="Files of JSON lines: items, pages.jsonl, failed.jsonl or reports; - is the input.",
        ),
    ],
    job: Annotated[str, Parameter(help="The id of the job that they are of, as in spring-campaign-brand-0.")],
    platform: Annotated[str, Parameter(help="Where they are from, in one short word, as in web.")],
    project: Annotated[str, Parameter(help="The project; by default the one that the id of the job names.")] = "",
    brand: Annotated[str, Parameter(help="The brand that was searched for.")] = "",
    keyword: Annotated[str, Parameter(help="The keyword that was searched for.")] = "",
    task_type: Annotated[str, Parameter(help="What sort of a crawl it was.")] = TASK,
    batch: Annotated[
        int | None,
        Parameter(
            validator=Number(gte=1, lte=500), help="Items of a batch; by default what is usual for the platform."
        ),
    ] = None,
    json: AsJson = False,
    folder: EventsFolder = USUAL,
    rows: EventsDatabase = OWN_ROWS,
    bodies: EventsObjects = OWN_BODIES,
    letters: EventsQueue = OWN_LETTERS,
) -> None:
    """Publish files, and send the messages that say so."""
    _check(files)
    where = EventsLocations(folder, rows, bodies, letters)
    said = {"job_id": job, "platform": platform, "project_id": project, "brand_name": brand, "keyword": keyword}
    source = source_of(where, **said, task_type=task_type)
    flags = {"--job": job, "--platform": platform, "--project": project, "--brand": brand, "--keyword": keyword}
    flags |= {"--task-type": task_type if task_type != TASK else "", "--batch": str(batch or "")}
    words = [word for flag, value in flags.items() if value for word in (flag, value)]
    onward = again("events publish", *files, *words, folder, rows, bodies, letters)
    with ProgressLine(shown=not json) as progress, explain_end(onward, KNOWN):
        # What keeps it waiting is in the line, or else in the log.
        logs.configure(level="error" if progress.is_drawn else "warning")
        total = run(_publish(files, source, SinkRules(items=batch, tries=TRIES), where, progress))
    _tell(total, source, where, as_json=json)
    if total.unsent:
        safe = (
            "The batches are safe, and so are their messages, in the outbox: whoever publishes or consumes sends them."
        )
        raise CommandError(f"{total.unsent.rstrip('.')}. {safe}")
    if total.bad:
        sys.exit(1)


def _check(files: tuple[Path, ...]) -> None:
    """Raise CommandError for what cannot be published, before anything is."""
    if not files:
        raise CommandError("no file given; try: sanderling events publish pages.jsonl --job … --platform web", code=2)
    for path in files:
        if path != STDIN and not os.access(path, os.R_OK):
            found = "may not be read" if path.exists() else "is not there"
            raise CommandError(printable(f"{path} {found}"), code=2)
        if path.is_dir():
            raise CommandError(printable(f"{path} is a folder, expected a file of JSON lines"), code=2)


async def _publish(
    files: tuple[Path, ...], source: BatchSource, rules: SinkRules, where: EventsLocations, progress: ProgressLine
) -> PublishedTotal:
    total = PublishedTotal()
    async with outlet(where, SystemClock(), progress.note) as out:
        for path in files:
            sink = out.sink(source, rules)
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(_watch(progress, path, sink))
                found = await (publish_piped(sys.stdin.fileno(), sink) if path == STDIN else publish_file(path, sink))
                watching.cancel()
            total.add(path, found, sink)
        await _send(out, where, total, progress)
    return total


async def _send(out: Outlet, where: EventsLocations, total: PublishedTotal, progress: ProgressLine) -> None:
    """Send what is in the outbox, also what others have left there."""
    try:
        total.sent = await reached("--queue", where.letters.queue, out.sender.send_waiting, progress.note)
    except CommandError as error:
        total.unsent = str(error)


def _batches(number: int) -> str:
    return f"{number:,} batch" if number == 1 else f"{number:,} batches"


def _tell(total: PublishedTotal, source: BatchSource, where: EventsLocations, *, as_json: bool) -> None:
    if as_json:
        told = {name: getattr(total, name) for name in PublishedTotal.__slots__}
        print(jsonlib.dumps({"job": source.job_id, "platform": source.platform, "project": source.project} | told))
        return
    for line in _words(total, source):
        print(printable(line))
    for problem in total.problems:
        print(printable(problem), file=sys.stderr)
    if total.bad > len(total.problems):
        print(f"and {total.bad - len(total.problems):,} more", file=sys.stderr)
    if total.batches and not total.unsent:
        command = again("events consume", where.folder, where.rows, where.bodies, where.letters)
        print(f"\nTo have them analysed:\n\n    {command}\n")


def _words(total: PublishedTotal, source: BatchSource) -> Iterator[str]:
    yield f"Published {count(total.items, 'item')} in {_batches(total.batches)} of the job {source.job_id}."
    if total.left_out:
        yield f"Left out: {count(total.left_out, 'line')}, of pages that moved or are as before."
    if total.bad:
        yield f"Bad: {count(total.bad, 'line')}, of which nothing was made."
    if not total.unsent:
        yield f"Sent {count(total.sent, 'message')}."
