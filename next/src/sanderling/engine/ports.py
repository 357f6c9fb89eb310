"""What the engine needs from a system: a source of items, a handler of one item, a sink for what came of them.

All waits are seconds from now, so that no port has to share the engine's clock.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sanderling.engine.blame import Judgement
from sanderling.outcome import Outcome
from sanderling.stores import HostWork, Taken


class Item(Protocol):
    """One thing to fetch."""

    @property
    def host(self) -> str:
        """The host it is fetched from."""

    @property
    def key(self) -> Hashable:
        """What tells it from all others."""

    @property
    def kind(self) -> str:
        """Its class: why it is fetched."""

    @property
    def failures(self) -> int:
        """How often in a row it has failed, as stored."""


I = TypeVar("I", bound=Item)  # noqa: E741 - an item
I_contra = TypeVar("I_contra", bound=Item, contravariant=True)


@dataclass(frozen=True, slots=True)
class Handled:
    """What came of one item."""

    outcome: Outcome
    result: Any = None  # for the sink: rows, links, whatever the system keeps
    size: int = 0  # bytes that `result` holds until it is written
    of_host: bool = False  # the outcome is one of the host's own documents, such as robots.txt
    repeatable: bool = True  # whether a host that is down may be probed with this request, if it answered it well


@dataclass(frozen=True, slots=True)
class Done:
    """An item, what came of it, and what becomes of it."""

    item: Any
    handled: Handled
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Parked:
    """A host is parked, or answers again."""

    host: str
    wait: float | None  # until it is due again; None: it answers again
    why: Outcome | None = None  # its last response, if it gave one


class Source(Protocol):
    """What waits, on disk or at a broker."""

    async def hosts(self, limit: int) -> Sequence[HostWork]:
        """Hosts with work that the engine does not hold, the earliest due first; parked ones once they are due.

        It holds a host from when it was returned here or by the sink until `release` or the end of the run. May wait
        for more work to arrive from outside; an empty answer means that none will come but by the sink, by
        `Engine.wake`, or from parked hosts. It is asked again every few seconds.
        """

    async def take(self, host: str, limit: int) -> Taken:
        """Items of a host that are due, of each class some, of which none is taken and not yet written."""

    def probe(self, host: str) -> Any | None:  # noqa: ANN401 - the system's item
        """An item that the host answered well in an earlier run: what it is probed with until it answers."""

    def release(self, host: str) -> None:
        """The engine has forgotten this host: what was taken of it and not written waits again."""

    def enough(self, pending: int) -> bool:
        """Whether a budget is spent, if all of `pending` counts: what is in flight or not yet written."""

    def may_send(self) -> bool:
        """Whether requests may leave: not when the lease on these hosts is half over."""


class SendPermit(Protocol):
    """Leave to send one request. The handler reports to it how the request went."""

    def release(self) -> None:
        """The request is over; harmless after a report."""


P_co = TypeVar("P_co", bound=SendPermit, covariant=True)
P_contra = TypeVar("P_contra", bound=SendPermit, contravariant=True)


class Pacer(Protocol[P_co]):
    """What the engine asks a limiter, in seconds of their common clock."""

    def ready_at(self, host: str, /) -> float:
        """When a request may leave."""

    def try_acquire(self, host: str, /) -> P_co | None:
        """A permit, if a request may leave now."""

    def is_open(self, host: str, /) -> bool:
        """Whether the host's circuit is open, or waits for a good probe."""

    def probe_now(self, host: str, /) -> None:
        """Let the first probe of a circuit that has just opened leave at once."""


class Handler(Protocol[I_contra, P_contra]):
    """Fetches one item and understands the response. It decides nothing about time."""

    async def __call__(self, item: I_contra, permit: P_contra, /) -> Handled:
        """Send the request with this permit."""


class Sink(Protocol):
    """Makes a batch durable, all of it or nothing."""

    async def write(self, batch: Sequence[Done], parked: Sequence[Parked]) -> Sequence[str]:
        """Store what came of these items, and which hosts are parked or answer again.

        Returns the hosts that have new work and are not parked. What was taken and is in no batch by the end of the
        run waits on disk. What is to be tried again waits there too, and comes by `take` when it is due.
        """
