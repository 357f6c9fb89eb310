"""A message in hand: what it says, how far its batch has come, and how it ends."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from sanderling.events.digest import Arrival, Digested
from sanderling.events.envelopes import Envelope
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.queue import Delivery


@dataclass(slots=True, eq=False)
class Message:
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
    digested: Digested | None = None  # what becomes of them
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


@dataclass(frozen=True, slots=True)
class Step:
    """What is asked of one station for a message. Without a message: whether the station is well."""

    station: str
    message: Message | None = None

    @property
    def key(self) -> Hashable:
        """What tells the message from others."""
        return None if self.message is None else self.message.key

    @property
    def is_probe(self) -> bool:
        """Whether the message is past this station: it is only asked again to know how the station is."""
        return self.message is None or self.message.station != self.station


# What a step has found out.


class Known(NamedTuple):
    """The event is in the rows already."""


class Unknown(NamedTuple):
    """It is not, under this id."""

    envelope: Envelope


class Fetched(NamedTuple):
    """The items of the batch, and how many bytes these take."""

    items: list[object]
    size: int


class Kept(NamedTuple):
    """The batch is in the rows, unless its event came there meanwhile (`new`)."""

    digested: Digested
    new: bool


class Told(NamedTuple):
    """Those who wait for the batch know that nothing came of it."""


class Poison(NamedTuple):
    """The message can never be processed."""

    why: str


class Missing(NamedTuple):
    """The batch is not there, or only half."""

    why: str


Found = Known | Unknown | Fetched | Kept | Told | Poison | Missing


# How a message ends.


@dataclass(frozen=True, slots=True)
class Done:
    """Its batch is in the rows."""

    message: Message


@dataclass(frozen=True, slots=True)
class Postponed:
    """It comes back after so many seconds; `failed` if that counts as a try of its own."""

    message: Message
    seconds: float
    why: str
    failed: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Buried:
    """It is a dead letter."""

    message: Message
    why: str


Ended = Done | Postponed | Buried
