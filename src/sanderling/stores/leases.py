"""Leases: who may work on which part of something shared, until when.

Terms. *Scope*: what is shared, a crawl of a fleet say; it has so many parts. *Holder*: whoever works on parts, by a
name that no other process ever has. *Epoch*: how often a part has changed hands; with the holder's name it is the token
that every write is checked against, so that one who slept past its lease changes nothing. *Head*: how many writes of a
part were accepted, in all epochs; a write says which one it is, so that a server that has forgotten some is found out.

Time is the server's. Where its clock was set, leases that others hold are left to them for a whole lease, in which all
who live renew theirs. A holder counts by a clock of its own, from before it asked, and sends nothing after `SENDS` of a
lease; others take a part after a whole lease. What lies between is for clocks that run at another speed, and for
requests that are on their way. Who is known to be gone is waited for less: `GONE`.
"""

import secrets
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from threading import Event
from typing import NamedTuple, Protocol

SENDS = 0.5  # of a lease, in which its holder may send
GONE = 0.75  # of a lease, after which a part is free whose holder has no connection any more
BEATS = 6  # renewals in one lease
ALLOWED = 0.5  # of the time between two looks at a server's clock, by which it may differ from ours


class LeasesError(Exception):
    """The store cannot be worked with as it is. The message says what was found and what to do."""


class LeaseLostError(Exception):
    """Somebody else has the part, or may have it. Nothing was written."""


class LeasesAwayError(Exception):
    """The server does not answer, or not now. Whether something was written is not known."""


class Lease(NamedTuple):
    """The right to work on a part."""

    part: int
    epoch: int
    head: int  # writes that were accepted before


class PartHolder(NamedTuple):
    """Who has a part, for people."""

    part: int
    holder: str  # empty if nobody has it
    epoch: int
    seconds: float  # until the lease ends, by the server's clock


class Leases(Protocol):
    """The leases of one scope, as one holder sees them. All methods raise LeasesAwayError."""

    async def renew(self, leases: Sequence[Lease]) -> Sequence[int]:
        """Begin these leases anew; the parts of those that we still have.

        One of which the server has forgotten writes is not: what we know of the part is not what counts.
        """

    async def acquire(self, most: int, preferred: Sequence[int] = ()) -> list[Lease]:
        """Take parts that are free, so many at most, those first that are preferred."""

    async def release(self, leases: Sequence[Lease]) -> None:
        """Give them back: whoever asks next has them. Those that we do not have any more are passed over."""

    async def holders(self) -> list[PartHolder]:
        """Who has which part, by part."""


@dataclass(slots=True)
class HeldLease:
    """A lease as its holder keeps it. `boot` is a clock that also runs while the machine sleeps."""

    lease: Lease
    seconds: float
    boot: Callable[[], float]
    asked: float  # when it was last asked for, by that clock
    lost: Event = field(default_factory=Event)  # which threads wait for, too
    hurried: bool = False  # whether whoever holds it is to end now, and waits for no server

    def may_send(self) -> bool:
        """Whether requests may be sent: nobody else can have the part yet."""
        return not self.lost.is_set() and self.boot() < self.asked + self.seconds * SENDS

    def renewed(self, asked: float) -> None:
        """The server has begun it anew, after we asked at that time."""
        self.asked = max(self.asked, asked)


def name_holder() -> str:
    """A name for this process, as no other has: with that of its machine, for people."""
    return f"{machine_name()}-{secrets.token_hex(6)}"


def machine_name() -> str:
    """What people call this machine."""
    return socket.gethostname() or "machine"


class SteadyClock:
    """Tells whether a server's clock goes as ours does: one that was set says nothing of how old a lease is.

    `boot` is our clock. Each look is an interval, for an answer takes a while; so slow answers are no step.
    """

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self._seen = 0.0  # when we last looked
        self._ahead = -inf, inf  # how far the server's clock is ahead of ours, at least and at most
        self.since = boot()  # from when on it was steady

    def look(self, asked: float, server: float) -> None:
        """The server has said what time it is, to who asked then."""
        now = self._boot()
        least, most = server - now, server - asked
        drift = ALLOWED * (now - self._seen) + 0.1
        if least > self._ahead[1] + drift or most < self._ahead[0] - drift:
            self.since = now
        self._seen, self._ahead = now, (least, most)

    def is_steady(self, seconds: float) -> bool:
        """Whether it was for so long."""
        return self._boot() - self.since >= seconds


def fair_share(parts: int, weight: int, weights: int, *, lacking: bool) -> int:
    """How many parts a holder of this weight has at most, of all `weights` together.

    What is left when all shares are rounded down goes to whoever asks first, one to each: once nobody lacks any of
    its own.
    """
    share, more = divmod(parts * weight, max(1, weights))
    return share + (more > 0 and not lacking)


class MemoryLeases:
    """Leases that live in one process: a twin of those of a server, for tests and simulations."""

    def __init__(self, table: "LeaseTable", holder: str) -> None:
        self._table = table
        self.holder = holder

    async def renew(self, leases: Sequence[Lease]) -> Sequence[int]:
        return self._table.renew(self.holder, leases)

    async def acquire(self, most: int, preferred: Sequence[int] = ()) -> list[Lease]:
        return self._table.acquire(self.holder, most, preferred)

    async def release(self, leases: Sequence[Lease]) -> None:
        self._table.release(self.holder, leases)

    async def holders(self) -> list[PartHolder]:
        return self._table.holders()


@dataclass(slots=True)
class _Row:
    holder: str = ""
    epoch: int = 0
    head: int = 0
    until: float = 0.0


class LeaseTable:
    """What the server knows: leases of these parts for so many `seconds`, by the clock `now`."""

    def __init__(self, parts: Iterable[int], seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._rows = {part: _Row() for part in parts}
        self.gone: set[str] = set()  # holders that have no connection, until they ask for something

    def renew(self, holder: str, leases: Sequence[Lease]) -> list[int]:
        """As in the port."""
        self.gone.discard(holder)
        held = [lease for lease in leases if self.is_held(holder, lease.part, lease.epoch)]
        kept = [lease.part for lease in held if self._rows[lease.part].head >= lease.head]
        for part in kept:
            self._rows[part].until = self._now() + self._seconds
        return kept

    def acquire(self, holder: str, most: int, preferred: Sequence[int]) -> list[Lease]:
        """As in the port."""
        self.gone.discard(holder)
        free = [part for part, row in self._rows.items() if self._is_free(row)]
        first = [part for part in dict.fromkeys(preferred) if part in free]
        taken = [*first, *(part for part in free if part not in first)][: max(0, most)]
        for part in taken:
            row = self._rows[part]
            row.holder, row.epoch, row.until = holder, row.epoch + 1, self._now() + self._seconds
        return [Lease(part, self._rows[part].epoch, self._rows[part].head) for part in taken]

    def release(self, holder: str, leases: Sequence[Lease]) -> None:
        """As in the port."""
        for lease in leases:
            if self.is_held(holder, lease.part, lease.epoch):
                self._rows[lease.part].holder = ""

    def is_held(self, holder: str, part: int, epoch: int) -> bool:
        """Whether the part is still that holder's, under that epoch."""
        row = self._rows.get(part, _Row())
        return (row.holder, row.epoch) == (holder, epoch)

    def head(self, part: int) -> int:
        """How many writes of a part were accepted."""
        return self._rows[part].head

    def advance(self, holder: str, lease: Lease) -> bool:
        """Accept the write behind `lease.head`, if the part is still that holder's and that write is the next."""
        if not self.is_held(holder, lease.part, lease.epoch) or self.head(lease.part) != lease.head:
            return False
        self._rows[lease.part].head += 1
        return True

    def holders(self) -> list[PartHolder]:
        """As in the port."""
        return [
            PartHolder(part, row.holder, row.epoch, row.until - self._now() if row.holder else 0.0)
            for part, row in sorted(self._rows.items())
        ]

    def _is_free(self, row: _Row) -> bool:
        left = row.until - self._now()
        gone = row.holder in self.gone and left < self._seconds * (1 - GONE)
        return not row.holder or left < 0 or gone
