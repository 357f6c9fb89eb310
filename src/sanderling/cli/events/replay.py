"""`sanderling events replay`: what was processed goes into the queue once more, and is processed once more.

Tricky bits:

- The end is never later than the beginning of the command. Whoever consumes meanwhile processes again what was marked a
  moment ago: without an end that would be replayed again, and so for ever.
- Events are marked and their messages put into the outbox in one step. Whatever happens afterwards, they go out: by us,
  or by whoever consumes.
"""

import json as jsonlib
from dataclasses import dataclass
from random import Random
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson, again
from sanderling.cli.events.forget import known
from sanderling.cli.events.place import (
    OWN_LETTERS,
    OWN_ROWS,
    USUAL,
    EventsDatabase,
    EventsFolder,
    EventsQueue,
)
from sanderling.cli.progress_line import ProgressLine
from sanderling.cli.reach import explained
from sanderling.cli.times import read_time, written
from sanderling.clock import SystemClock
from sanderling.events.outbox import OutboxSender
from sanderling.stores.analytics import AnalyticsError, EventFilter, OutboxMessage, Replayable
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.queue import QueueError
from sanderling.stores.topic import unfit
from sanderling.words import count, printable

LATER = "they are in the outbox, and go out as soon as somebody consumes"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which events. The command takes one as `*, which: Which`."""

    since: Annotated[str, Parameter(name="--from")]
    """Those that were processed from this time on: 2026-11-01T08:00:00Z, 2026-11-01, or an age such as 2h or 7d."""

    until: Annotated[str | None, Parameter(name="--to")] = None
    """And before this one, written in the same way; by default now."""

    project: str | None = None
    """Only those of this project."""

    job: str | None = None
    """Only those of this job."""

    def chosen(self, wall: float) -> EventFilter:
        """The same for the database. Raises CommandError."""
        start = read_time("--from", self.since, wall)
        end = wall if self.until is None else read_time("--to", self.until, wall)
        if end <= start:
            found = f"--from is {written(start)} and --to is {written(end)}"
            raise CommandError(f"{found}, expected the first to be before the second", code=2)
        return EventFilter(from_date=start, to_date=end, project_id=self.project, job_id=self.job)


class ReplayedEvents(NamedTuple):
    """How many go again, how many cannot, and why they are still in the outbox, if they are."""

    events: int
    without_message: int
    trouble: str


def replay(
    *,
    which: Which,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only say how many events these are.")] = False,
    json: AsJson = False,
    rows: EventsDatabase = OWN_ROWS,
    letters: EventsQueue = OWN_LETTERS,
    folder: EventsFolder = USUAL,
) -> None:
    """Have events processed again."""
    chosen = which.chosen(SystemClock().wall())
    if why := unfit(OutboxMessage(exchange=letters.exchange, routing_key=letters.routing_key, body=b"")):
        raise CommandError(printable(f"exchange, routing-key: a message to there {why}"), code=2)
    known(rows, folder)
    if dry_run:
        found = explained(_counted(chosen, rows, folder))
        text = f"{_events(found.events)} would be processed again.{_lost(found.without_message)}"
        print(jsonlib.dumps(found._asdict()) if json else text)
        return
    done = explained(_replay(chosen, rows, letters, folder))
    if json:
        told = {"replayed": done.events, "without_message": done.without_message, "sent": not done.trouble}
        print(jsonlib.dumps(told))
    elif not done.trouble:
        _tell(done, again("events consume", folder, rows, letters))
    if done.trouble:
        marked = f"{_events(done.events)} will be processed again: {LATER}.{_lost(done.without_message)}"
        raise CommandError(printable(f"{done.trouble}\n{marked}"))


async def _counted(chosen: EventFilter, rows: EventsDatabase, folder: EventsFolder) -> Replayable:
    async with rows.opened(folder, writers=1, readers=1) as store:
        return await store.replayable(chosen)


async def _replay(
    chosen: EventFilter, rows: EventsDatabase, letters: EventsQueue, folder: EventsFolder
) -> ReplayedEvents:
    clock = SystemClock()
    # All is opened before anything is marked: with a queue that is away nothing is changed.
    async with (
        rows.opened(folder, writers=1, readers=1) as store,
        letters.opened(folder, clock) as queue,
        letters.topic(folder, clock, queue) as topic,
    ):
        found = await store.replayable(chosen)
        with ProgressLine() as line:
            events = await _marked(store, chosen, letters, line)
        try:
            await OutboxSender(store, topic, clock, Random()).send_waiting()
        except (QueueError, AnalyticsError) as error:
            return ReplayedEvents(events, found.without_message, str(error))
        return ReplayedEvents(events, found.without_message, "")


async def _marked(store: AnalyticsStore, chosen: EventFilter, letters: EventsQueue, line: ProgressLine) -> int:
    """Mark all of them; how many. Raises CommandError."""
    events = 0
    try:
        while some := await store.replay(chosen, exchange=letters.exchange, routing_key=letters.routing_key):
            events += some
            line.show(f"{_events(events)} marked")
    except AnalyticsError as error:
        before = f"{_events(events)} marked before that: {LATER}; run the same again for the others"
        raise CommandError(printable(f"{error}; {before}")) from None
    return events


def _tell(done: ReplayedEvents, consume: str) -> None:
    if not done.events:
        print(f"There is nothing to process again.{_lost(done.without_message)}")
        return
    again = f"{_events(done.events)} will be processed again: the messages are in the queue, for whoever consumes"
    print(printable(f"{again}.{_lost(done.without_message)}"))
    print(f"\nIf nobody does yet:\n\n    {printable(consume)}\n")


def _events(number: int) -> str:
    return count(number, "event")


def _lost(number: int) -> str:
    return f" {_events(number)} cannot be: the messages were not kept." if number else ""
