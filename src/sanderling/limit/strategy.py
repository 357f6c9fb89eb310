"""What a gate asks of a strategy: `governor`, `aimd` and `contract` are the ones there are."""

from typing import Protocol

from sanderling.limit.lane import Lane
from sanderling.limit.pace import PaceRules


class Strategy(Protocol):
    """Moves a host's rate by what its answers say. Each report tells whether the rate went down."""

    rate: float
    hold: float
    ceiling: float | None
    counts_refusals: bool
    trusts_503: bool  # whether a 503 or 529 without a Retry-After is a refusal; else it is a failure

    @property
    def single(self) -> bool:
        """Whether only one request may be in flight."""

    def probed(self, lane: Lane, now: float) -> bool:
        """A success while only one request may be in flight."""

    def close(self, lane: Lane, now: float) -> bool:
        """The window's time is over: judge it, if it holds enough."""

    def refused(self, lane: Lane, now: float, retry_after: float | None, *, bare: bool) -> bool:
        """A refusal. `bare`: a 503 without a time, so perhaps an outage."""

    def expects_503(self, lane: Lane, now: float) -> bool:
        """Whether a 503 at this point is known for the end of a quota."""

    def failed(self, lane: Lane, now: float) -> bool:
        """A failure."""

    def interrupted(self, lane: Lane, now: float) -> None:
        """The host is down, a probe has shown it: what it last said is no word on its limit."""

    def remember(self, ceiling: float) -> None:
        """A ceiling that was learned in an earlier life."""

    def bound(self, rules: PaceRules) -> None:
        """The bounds of the rate have moved."""

    @property
    def doing(self) -> str:
        """What holds the rate where it is, in words."""

    @property
    def learned(self) -> str | None:
        """What the ceiling was learned from, in words; None if there is none."""

    @property
    def usual(self) -> float | None:
        """The latency that answers are judged by, in seconds; None while there is none."""


class MakeStrategy(Protocol):
    """A strategy's constructor."""

    def __call__(self, rules: PaceRules, lane: Lane, now: float, rate: float, /) -> Strategy:
        """A strategy for a host whose first request left at `now`."""
