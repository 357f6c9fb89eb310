"""The seed's law: add a little after a good window, take a share away on trouble. With its structural faults mended.

Selectable for comparison and for hosts whose owner prescribes it; `governor` learns more from the same answers.
"""

from sanderling.limit.latency import Latency, Verdict
from sanderling.limit.pace import PaceRules

# Windows shorter than this hold too few answers to judge a host of two requests a second.
WINDOW = 1.0
# Less of the rate than this was used, so the window says nothing about whether more would be fine.
USED = 0.6


class Aimd:
    """Moves a host's rate up by `increase` per window and down by `decrease` per epoch; the gate keeps the epochs."""

    __slots__ = ("_before", "_opened", "_rules", "_sent", "hold", "latency", "rate")

    single = False  # it has no probing phase: after trouble it goes on, slower
    counts_refusals = True  # a refusal without a Retry-After counts against the breaker, as in the seed
    ceiling: float | None = None  # it remembers none

    def __init__(self, rules: PaceRules, now: float, rate: float, sent: int) -> None:
        self._rules = rules
        self.rate = self._before = rate
        self.hold = now
        self.latency = Latency(now, rules.degrade_factor - 1)
        # The seed's target is what counts as fast until the host shows its own latency; slower than that is its fault.
        self.latency.rebase(rules.latency_target, now)
        self._open(now, sent)

    def remember(self, ceiling: float) -> None:
        """It keeps no ceiling, so there is none to take up."""

    def answered(self) -> None:
        """An answer that is neither success nor trouble (a 404): the rate stays."""

    def succeeded(self, now: float, latency: float, sent: int, inflight: int) -> bool:  # noqa: ARG002 - governor's
        """Learn from a success; whether the rate went down."""
        self.latency.add(latency)
        if now - self._opened < WINDOW:
            return False
        return self._close(now, sent)

    def refused(self, now: float, sent: int, retry_after: float | None) -> bool:  # noqa: ARG002 - governor's
        """A 429 or 503: less from now on."""
        return self.failed(now, sent)

    def failed(self, now: float, sent: int) -> bool:
        """A 5xx or no answer at all: less from now on."""
        self.rate = self._rules.clamp(self.rate * self._rules.decrease)
        self.latency.discard()
        self._open(now, sent)
        return True

    def why(self) -> str:
        """What holds the rate where it is, in words."""
        return "at its ceiling" if self.rate >= self._rules.max_rps else "adding a little after each good window"

    def _open(self, now: float, sent: int) -> None:
        self._opened, self._sent = now, sent

    def _close(self, now: float, sent: int) -> bool:
        used = (sent - self._sent) >= USED * self.rate * (now - self._opened)
        self._open(now, sent)
        match self.latency.close(now):
            case Verdict.OVERLOADED:
                if self.latency.helping:
                    self._before = self.rate
                return self.failed(now, sent)
            case Verdict.BLAMELESS:
                self.rate = self._before
            case Verdict.FINE if used:
                self.rate = self._rules.clamp(self.rate + self._rules.increase)
        return False
