"""The stations that a batch passes on its way into the rows, and the messages in hand that wait for them.

Each station may be at fault, as a host may be.

| station | what is asked of it |
|---|---|
| `lookups` | whether the event is in the rows already |
| `objects` | the body of the batch |
| `rows` | to keep the batch, or to note that nothing came of it |

Reading and writing of the database are apart: a disk that is full, or a table that somebody has locked, lets one go on
and not the other.
"""

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from sanderling.engine.hosts import HostState
from sanderling.events.analysis.analyse import Analyser
from sanderling.events.envelopes import Envelope
from sanderling.events.modes import LiveModes
from sanderling.events.rows import Arrival, ProcessedBatch
from sanderling.executor import Executor
from sanderling.observe import logs
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.objects import Objects
from sanderling.stores.queue import Delivery, Queue

LOOKUPS, OBJECTS, ROWS = "lookups", "objects", "rows"

log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class Stations:
    """The services, and what works on a batch in between."""

    queue: Queue
    objects: Objects
    store: AnalyticsStore
    analyser: Analyser
    modes: LiveModes
    executor: Executor  # where batches are unpacked and analysed


@dataclass(slots=True, eq=False)
class EventMessage:
    """One delivery, from when it was taken until the queue knows what became of it."""

    delivery: Delivery
    number: int
    began: float  # on the clock
    arrival: Arrival
    envelope: Envelope | None = None  # under the id that its batch has in the rows; None if it is no message
    renamed: bool = False  # whether that is not the id of its event
    station: str = ""  # for which it waits, or by which it is processed; empty once it has its end
    due: float = 0.0  # when it may go on
    items: list[object] | None = None  # of its batch
    processed: ProcessedBatch | None = None  # what becomes of them
    burial: str = ""  # why it is given up, while those who wait for its batch are told
    note: OutboxMessage | None = None  # what they are told
    size: int = 0  # bytes that it holds, as estimated

    @property
    def key(self) -> str:
        """The same whenever it is delivered."""
        return self.delivery.key

    @property
    def holder(self) -> str:
        """Who holds its memory."""
        return f"{self.number}"


@dataclass(slots=True, eq=False)
class Station(HostState):
    """One service, and the messages in hand that wait for it."""

    ready: deque[EventMessage] = field(default_factory=deque)  # that have not failed here
    again: list[EventMessage] = field(default_factory=list)  # that wait until they are due
    last_failed: EventMessage | None = None

    def __post_init__(self) -> None:
        self.good = StationCall(self)  # before any message went well, it is asked how it is

    @property
    def is_suspect(self) -> bool:
        """Whether different messages fail, or all would: that the service is there does not prove that it works."""
        return len(self.failing or ()) > 1 or (self.trouble is not None and self.trouble.unsent)

    def due(self) -> float | None:
        """When there is next something to take; None if there is nothing."""
        return 0.0 if self.ready else min((each.due for each in self.again), default=None)

    def pop_again(self, now: float) -> EventMessage | None:
        """The first that had to wait and is due."""
        place = next((place for place, each in enumerate(self.again) if each.due <= now), None)
        return None if place is None else self.again.pop(place)

    def messages(self) -> Iterator[EventMessage]:
        """All that wait for it."""
        yield from self.ready
        yield from self.again


@dataclass(frozen=True, slots=True)
class StationCall:
    """What is asked of one station for a message. Without a message: whether the station is well."""

    station: Station
    message: EventMessage | None = None

    @property
    def key(self) -> Hashable:
        """What tells the message from others."""
        return None if self.message is None else self.message.key

    @property
    def is_probe(self) -> bool:
        """Whether the message is past this station: it is only asked again to know how the station is."""
        return self.message is None or self.message.station != self.station.name


# What a station has answered. What it gave is in the message.


class MessageStep(Enum):
    """How far a message has come."""

    KNOWN = auto()  # the batch is in the rows already
    LOOKED_UP = auto()  # it is not, under the id of the envelope
    FETCHED = auto()
    KEPT = auto()
    RIVALLED = auto()  # it was not kept, since its event came into the rows meanwhile
    TOLD = auto()  # those who wait for the batch know that nothing came of it


class Poison(NamedTuple):
    """The message can never be processed."""

    why: str


class Missing(NamedTuple):
    """The batch is not there, or only half."""

    why: str


StationAnswer = MessageStep | Poison | Missing


# How a message ends.


class MessageDone(NamedTuple):
    """Its batch is in the rows."""

    message: EventMessage


class Postponed(NamedTuple):
    """It comes back after so many seconds; `failed` if that counts as a try of its own."""

    message: EventMessage
    seconds: float
    why: str
    failed: bool = False


class Buried(NamedTuple):
    """It is a dead letter."""

    message: EventMessage
    why: str


MessageEnd = MessageDone | Postponed | Buried


def note_trouble(what: str, before: str, why: str) -> str:
    """Log that something has become unavailable, or is back; why it is unavailable now, empty if it is not."""
    if why and not before:
        log.warning("events_wait", what=what, why=why)
    elif before and not why:
        log.info("events_go_on", what=what)
    return why
