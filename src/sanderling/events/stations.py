"""What a batch passes on its way into the rows. Each of these may be at fault, as a host may be.

| station | what is asked of it |
|---|---|
| `lookups` | whether the event is in the rows already |
| `objects` | the body of the batch |
| `rows` | to keep the batch, or to note that nothing came of it |

Reading and writing of the database are apart: a disk that is full, or a table that somebody has locked, lets one go on
and not the other.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from sanderling.engine.hosts import HostState
from sanderling.events.analysis.analyse import Analyser
from sanderling.events.message import Message
from sanderling.events.modes import LiveModes
from sanderling.executor import Executor
from sanderling.stores.analytics import AnalyticsStore
from sanderling.stores.objects import Objects
from sanderling.stores.queue import Queue

LOOKUPS, OBJECTS, ROWS = "lookups", "objects", "rows"


@dataclass(frozen=True, slots=True)
class Stations:
    """The services, and what works on a batch in between."""

    queue: Queue
    objects: Objects
    store: AnalyticsStore
    analyser: Analyser
    modes: LiveModes
    desk: Executor  # where batches are unpacked and analysed


@dataclass(slots=True, eq=False)
class Station(HostState):
    """One service, and the messages in hand that wait for it."""

    ready: deque[Message] = field(default_factory=deque)  # that have not failed here
    again: list[Message] = field(default_factory=list)  # that wait until they are due
    last_failed: Message | None = None  # the last that failed here

    @property
    def is_suspect(self) -> bool:
        """Whether different messages fail, or all would: that the service is there does not prove that it works."""
        return len(self.failing or ()) > 1 or (self.trouble is not None and self.trouble.unsent)

    def due(self) -> float | None:
        """When there is next something to take; None if there is nothing."""
        return 0.0 if self.ready else min((each.due for each in self.again), default=None)

    def is_due(self, now: float) -> bool:
        """Whether one that had to wait is due."""
        return any(each.due <= now for each in self.again)

    def pop_again(self, now: float) -> Message | None:
        """The first that is due."""
        place = next((place for place, each in enumerate(self.again) if each.due <= now), None)
        return None if place is None else self.again.pop(place)

    def messages(self) -> Iterator[Message]:
        """All that wait for it."""
        yield from self.ready
        yield from self.again
