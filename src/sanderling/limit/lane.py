"""The part of a host that every request touches, kept apart so that it can be fast.

A `Lane` paces by the generic cell rate algorithm: one number says when the next request may leave. It never loops and
never lends: a host that was idle, penalised or closed comes back with nothing saved up. It also counts what the answers
were, window by window, so that a strategy is asked once per window and not once per answer.
"""

from array import array
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from sanderling.limit.gate import Gate

# Enough samples for a 95th percentile to mean something, few enough that an active host stays near a kilobyte.
KEPT = 64
AMPLE_ROOM = 1 << 30  # for hosts whose load is bounded otherwise
# Of the mean that people are shown. No decision looks at it.
SMOOTHING = 0.2


class Owner(Protocol):
    """Whoever handed out a permit and takes it back."""

    granted: int

    def _give_back(self, permit: "Permit", *, sent: bool) -> None: ...

    async def _more(self, permit: "Permit", host: str) -> "Permit": ...

    def _charge(self, permit: "Permit", cost: float) -> None: ...


@dataclass(slots=True, eq=False, repr=False)
class Lane:
    """When the next request may leave, and what the last ones were answered.

    `plain`: nothing but the pace has a say; no one waits, the breaker is closed, no single probe is due.
    `calm`: a success needs no more than to be counted, until the window closes.
    """

    ready: float  # when the next request may leave
    interval: float
    slack: float  # seconds ahead of an even pace that a request may leave
    left: float = -inf  # when the last request did
    serial: int = 0  # permits given,
    ended: int = 0  # reported or released,
    delivered: int = 0  # and answered with "served"
    epoch: int = 0  # serial of the last permit before the rate fell,
    generation: int = 0  # and before the breaker moved
    room: int = AMPLE_ROOM  # how many may be in flight: more would only wait at the host
    stragglers: int = 0  # of those, that were out for so long that they count no more
    plain: bool = True
    calm: bool = False
    mean: float = 0.0  # latency, smoothed; 0 before the first
    opened: float = 0.0  # when this window did,
    closes: float = 0.0  # when it is to be judged, and what was seen before it and in it
    sent_before: int = 0
    delivered_before: int = 0
    failed: int = 0
    fresh: int = 0
    _ring: "array[float]" = field(default_factory=lambda: array("f"))
    _next: int = 0

    def __post_init__(self) -> None:
        self.open_window(self.ready, 0.0)

    @property
    def has_room(self) -> bool:
        """Whether one more may be in flight."""
        out = self.serial - self.ended
        return out - min(self.stragglers, out) < self.room

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the pace has a say."""
        return self.plain and (self.serial - self.ended < self.room or self.has_room)

    def take(self, now: float, cost: float = 1.0) -> int:
        """Book a request that leaves at `now`; its serial number."""
        earliest = now - self.slack
        self.ready = (max(earliest, self.ready)) + self.interval * cost
        self.left = now
        self.serial += 1
        return self.serial

    def open_window(self, now: float, length: float) -> None:
        """Count anew; what was seen before belongs to another rate."""
        self.opened = now
        self.closes = now + length
        self.sent_before = self.serial
        self.delivered_before = self.delivered
        self.failed = self.fresh = 0

    def sample(self, latency: float) -> None:
        """Count a success that took `latency` seconds."""
        self.delivered += 1
        self.fresh += 1
        self.mean += SMOOTHING * (latency - self.mean) if self.mean else latency
        if len(self._ring) < KEPT:
            self._ring.append(latency)
        else:
            self._ring[self._next] = latency
            self._next = (self._next + 1) % KEPT

    def window(self) -> list[float]:
        """The latencies of this window in order of size, at most the last KEPT."""
        ring = self._ring[self._next :] + self._ring[: self._next]
        return sorted(ring[-min(self.fresh, KEPT) :]) if self.fresh else []

    def kept(self) -> list[float]:
        """All latencies that are still there, in order of size."""
        return sorted(self._ring)


class Permit(msgspec.Struct, gc=False):
    """Leave to send one request. Report how it went with `Limiter.feedback`, or give it back with `release`."""

    owner: Owner
    gate: "Gate"
    serial: int
    cost: float = 1.0
    also: tuple["Permit", ...] = ()  # what was taken from further scopes
    live: bool = True
    probe: bool = False  # it finds out whether the host is well: one request at a time, half-open or draining
    job: str = ""  # for whom it was given

    @property
    def host(self) -> str:
        """The host that may be called."""
        return self.gate.host

    def release(self, *, sent: bool = False) -> None:
        """Give the permit back, once: its token too if no request was `sent`, and a probe's place in any case."""
        if self.live:
            self.owner._give_back(self, sent=sent)  # noqa: SLF001 - the other half of this class

    def charge(self, cost: float) -> None:
        """Let its request count for so many, so that the next may leave later. Say it once, before it is sent."""
        if cost != 1.0:
            self.owner._charge(self, cost)  # noqa: SLF001 - the other half of this class

    async def more(self, host: str) -> "Permit":
        """Leave for a further request of the same item, such as a redirect or a log-in, when its turn has come.

        Report or release this one first. At the same host it draws on the same scopes. Raises CircuitOpen.
        """
        return await self.owner._more(self, host)  # noqa: SLF001 - the other half of this class

    def __repr__(self) -> str:
        return f"<Permit {self.serial} for {self.gate.host}, {'live' if self.live else 'spent'}>"
