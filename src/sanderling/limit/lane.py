"""The part of a host that every request touches, kept apart so that it can be fast.

`Lane` is a pacer by the generic cell rate algorithm: one number says when the next request may leave. It never loops
and never lends: a host that was idle, penalised or closed comes back with nothing saved up.
"""

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from sanderling.limit.gate import Gate


class Owner(Protocol):
    """Whoever handed out a permit and takes it back."""

    def _give_back(self, permit: "Permit", *, sent: bool) -> None: ...


class Lane:
    """When the next request may leave, and the number of the last one that did.

    `plain` says that nothing but the pace has a say: no one waits, the breaker is closed, no single probe is due.
    """

    __slots__ = ("interval", "plain", "ready", "serial", "slack")

    def __init__(self, ready: float, interval: float, slack: float) -> None:
        self.ready = ready
        self.interval = interval
        self.slack = slack
        self.serial = 0
        self.plain = True

    def take(self, now: float, cost: float = 1.0) -> int:
        """Book a request that leaves at `now`; its serial number."""
        earliest = now - self.slack
        self.ready = (max(earliest, self.ready)) + self.interval * cost
        self.serial += 1
        return self.serial


class Permit(msgspec.Struct, gc=False):
    """Leave to send one request. Report how it went with `Limiter.feedback`, or give it back with `release`."""

    owner: Owner
    gate: "Gate"
    serial: int
    cost: float = 1.0
    also: tuple["Permit", ...] = ()  # what was taken from further scopes
    live: bool = True

    @property
    def host(self) -> str:
        """The host that may be called."""
        return self.gate.host

    def release(self, *, sent: bool = False) -> None:
        """Give the permit back, once: its token too if no request was `sent`, and a probe's place in any case."""
        if self.live:
            self.owner._give_back(self, sent=sent)  # noqa: SLF001 - the other half of this class

    def __repr__(self) -> str:
        state = "live" if self.live else "spent"
        return f"<Permit {self.serial} for {self.gate.host}, {state}>"
