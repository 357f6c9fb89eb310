"""The plain law: add a little after a good window, take a share away on trouble. With its usual faults mended.

Selectable for comparison and for hosts whose owner prescribes it; `governor` learns more from the same answers.
"""

from sanderling.limit.lane import Lane
from sanderling.limit.latency import Latency, Verdict
from sanderling.limit.pace import PaceRules

# Windows shorter than this hold too few answers to judge a host of two requests a second.
WINDOW = 1.0
# Less of the rate than this was used, so the window says nothing about whether more would be fine.
USED = 0.6


class Aimd:
    """Moves a host's rate up by `increase` per window and down by `decrease` per epoch; the gate keeps the epochs."""

    __slots__ = ("_before", "_latency", "_rules", "hold", "rate")

    single = False  # it has no probing phase: after trouble it goes on, slower
    counts_refusals = True  # a refusal without a Retry-After counts against the breaker
    trusts_503 = True
    ceiling: float | None = None  # it remembers none
    learned: str | None = None
    usual: float | None = None  # it judges by a target

    def __init__(self, rules: PaceRules, lane: Lane, now: float, rate: float) -> None:
        self._rules = rules
        self.rate = self._before = rate
        self.hold = now
        self._latency = Latency(rules.degrade_factor - 1)
        # The target is what counts as fast until the host shows its own latency; slower than that is its fault.
        self._latency.rebase(rules.latency_target, now)
        lane.open_window(now, WINDOW)

    def remember(self, ceiling: float) -> None:
        """It keeps no ceiling, so there is none to take up."""

    def bound(self, rules: PaceRules) -> None:
        """Keep to other bounds from now on."""
        self._rules = rules
        self.rate, self._before = rules.clamp(self.rate), rules.clamp(self._before)

    def probed(self, lane: Lane, now: float) -> bool:  # noqa: ARG002 - governor's
        """It never probes."""
        return False

    def close(self, lane: Lane, now: float) -> bool:
        """Judge the window; whether the rate went down."""
        used = (lane.serial - lane.sent_before) >= USED * self.rate * (now - lane.opened)
        ordered = lane.window()
        lane.open_window(now, WINDOW)
        match self._latency.judge(ordered, now):
            case Verdict.OVERLOADED:
                if self._latency.helping:
                    self._before = self.rate
                return self.failed(lane, now)
            case Verdict.BLAMELESS:
                self.rate = self._before
            case Verdict.FINE if used:
                self.rate = self._rules.clamp(self.rate + self._rules.increase)
        return False

    def refused(self, lane: Lane, now: float, retry_after: float | None, *, bare: bool) -> bool:  # noqa: ARG002 - governor's
        """A 429 or 503: less from now on."""
        return self.failed(lane, now)

    def expects_503(self, lane: Lane, now: float) -> bool:  # noqa: ARG002 - governor's
        """It knows of no quotas."""
        return False

    def failed(self, lane: Lane, now: float) -> bool:
        """A 5xx or no answer at all: less from now on."""
        self.rate = self._rules.clamp(self.rate * self._rules.decrease)
        lane.open_window(now, WINDOW)
        return True

    def interrupted(self, lane: Lane, now: float) -> None:
        """The failures that opened the breaker have lowered the rate already."""

    @property
    def doing(self) -> str:
        """What holds the rate where it is, in words."""
        return "at its ceiling" if self.rate >= self._rules.max_rps else "adding a little after each good window"
