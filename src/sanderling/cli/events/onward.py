"""Whether what a crawl finds goes on to `events` while it runs: the flags for that, of every command that crawls.

What they switch on is in `feed.py`, which is imported only then: it needs much that a crawl alone does not.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from sanderling.cli.flags import SETTING
from sanderling.clock import Clock

if TYPE_CHECKING:
    from sanderling.events.handover import EventsHandOver
    from sanderling.formats.instance import Message

# Seconds that records are gathered for before they are handed on: a batch of one costs as much as one of fifty.
GATHER = 1.0

Say = Callable[[str], object]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Onward:
    """Whether what is found goes on, and as whose. A command takes one as `*, onward: Onward = NOWHERE`."""

    events_job: str | None = None
    """Hand what is found on to `sanderling events`, as results of this job."""

    events_project: Annotated[str, SETTING] = ""
    """The project; by default the one that the id of the job names."""

    events_brand: Annotated[str, SETTING] = ""
    """The brand that is searched for."""

    events_keyword: Annotated[str, SETTING] = ""
    """The keyword that is searched for."""

    events_out: Annotated[Path, SETTING] = Path("events")
    """The folder of events, unless SANDERLING_EVENTS_DATABASE, _OBJECTS and _QUEUE name servers."""

    def check(self) -> None:
        """Raise CommandError for flags that make no sense, before anything is begun."""
        if self.events_job is not None:
            from sanderling.cli.events.feed import source  # noqa: PLC0415 - see above

            source(self, "web")

    def pages(self, clock: Clock, say: Say) -> "AbstractAsyncContextManager[EventsHandOver[bytes] | None]":
        """What rows of pages are handed to; None if to nobody. Entered, it raises CommandError."""
        if self.events_job is None:
            return nullcontext()
        from sanderling.cli.events.feed import feeding  # noqa: PLC0415 - see above
        from sanderling.events.handover import read_page  # noqa: PLC0415 - see above

        return feeding(self, read_page, clock, say)

    def reports(self, clock: Clock, say: Say) -> "AbstractAsyncContextManager[EventsHandOver[Message] | None]":
        """The same for reports of `sequence`."""
        if self.events_job is None:
            return nullcontext()
        from sanderling.cli.events.feed import feeding  # noqa: PLC0415 - see above
        from sanderling.events.handover import read_report  # noqa: PLC0415 - see above

        return feeding(self, read_report, clock, say)

    def words(self, handed: "EventsHandOver[Any] | None") -> tuple[str, ...]:
        """What went on, and what to do next, as lines."""
        if handed is None:
            return ()
        from sanderling.cli.events.feed import words  # noqa: PLC0415 - see above

        return tuple(words(handed, self))


NOWHERE = Onward()
