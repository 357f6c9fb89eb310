"""Stop calling a host that fails, and find out with a single request whether it is well again."""

from dataclasses import dataclass
from enum import Enum
from math import inf, isfinite
from random import Random

from sanderling.limit.window import ErrorWindow, WindowRules, wilson


class State(Enum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Event(Enum):
    """What moves it."""

    TRIPPED = "tripped"
    RESTED = "rested"
    PROBES_OK = "probes ok"
    PROBE_FAILED = "probe failed"


# docs/limiter.md prints this table; a test compares the two.
NEXT = {
    (State.CLOSED, Event.TRIPPED): State.OPEN,
    (State.OPEN, Event.RESTED): State.HALF_OPEN,
    (State.HALF_OPEN, Event.PROBES_OK): State.CLOSED,
    (State.HALF_OPEN, Event.PROBE_FAILED): State.OPEN,
}

# A failing share needs at least this many failures behind it: two of two prove 0.34 by the numbers, and little else.
FEWEST = 3
# Seconds it must stay closed for one earlier opening to be forgiven.
FORGIVEN = 60.0


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When a breaker opens, for how long, and what closes it."""

    consecutive: int = 5  # failures in a row
    # The share of failures that the window must prove. A plain 0.4 of at least 10 samples is never reached
    # by a host that is asked twice in 30 seconds.
    error_share: float = 0.3
    open_for: float = 15.0  # seconds; doubled each time it opens again
    longest: float = 300.0
    jitter: float = 0.3  # up to this share longer, so that hosts behind one cause are not probed in one second
    probes: int = 3  # successes in a row, one at a time, that close it

    def __post_init__(self) -> None:
        if self.consecutive < 1 or self.probes < 1:
            raise ValueError(f"consecutive is {self.consecutive}, probes {self.probes}; both must be at least 1")
        if not 0 < self.error_share < 1:
            raise ValueError(f"error_share is {self.error_share}; it must lie between 0 and 1")
        if not (isfinite(self.open_for) and 0 < self.open_for <= self.longest and isfinite(self.longest)):
            raise ValueError(f"open_for is {self.open_for}, longest {self.longest}; expected 0 < open_for <= longest")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is {self.jitter}; it must lie between 0 and 1")


class Breaker:
    """One host's breaker. It decides; the gate hands out the probe and knows which answers are too old to count."""

    __slots__ = ("_good", "_healthy", "_rules", "failures", "openings", "state", "until", "window")

    def __init__(self, rules: BreakerRules, window: WindowRules, now: float) -> None:
        self._rules = rules
        self.window = ErrorWindow(window, now)
        self.state = State.CLOSED
        self.until = now  # when an open breaker may be probed
        self.failures = 0  # in a row
        self.openings = 0  # how often it opened, minus what was forgiven
        self._good = 0  # probes that succeeded
        self._healthy = now  # since when it has been closed, less what was forgiven for

    def failed(self, now: float, rng: Random) -> bool:
        """Count a failure; whether the state changed."""
        self.window.record(now, failures=1)
        self.failures += 1
        if self.state is State.HALF_OPEN:
            return self._move(Event.PROBE_FAILED, now, rng)
        if self.state is State.CLOSED and self._tripped(now):
            return self._move(Event.TRIPPED, now, rng)
        return False

    def succeeded(self, now: float, rng: Random) -> bool:
        """Count an answer that was none; whether the state changed."""
        self.window.record(now)
        self.failures = 0
        if self.openings and self.state is State.CLOSED and now - self._healthy >= FORGIVEN:
            self.openings -= 1
            self._healthy = now
        if self.state is not State.HALF_OPEN:
            return False
        self._good += 1
        return self._good >= self._rules.probes and self._move(Event.PROBES_OK, now, rng)

    def rested(self, now: float, rng: Random) -> bool:
        """Whether an open breaker has just become half-open."""
        return self.state is State.OPEN and now >= self.until and self._move(Event.RESTED, now, rng)

    def reopen(self, openings: int, until: float) -> None:
        """Take up where an earlier life left off: open until then, or closed (-inf) with its record.

        One whose time is over meanwhile is open all the same: a probe has yet to find that the host is well.
        """
        self.openings = max(self.openings, openings)
        if until > -inf:
            self.until = max(self.until, until) if self.state is State.OPEN else until
            self.state = State.OPEN

    def hold(self, until: float) -> None:
        """Stay open at least until `until`: a Retry-After outlasts the breaker's own time."""
        if self.state is State.OPEN:
            self.until = max(self.until, until)

    def _tripped(self, now: float) -> bool:
        if self.failures >= self._rules.consecutive:
            return True
        answers, failures = self.window.totals(now)
        return failures >= FEWEST and wilson(failures, answers) > self._rules.error_share

    def _move(self, event: Event, now: float, rng: Random) -> bool:
        self.state = NEXT[self.state, event]
        self._good = 0
        if self.state is State.OPEN:
            base = min(self._rules.longest, self._rules.open_for * 2 ** min(self.openings, 32))
            self.until = now + base * (1 + self._rules.jitter * rng.random())
            self.openings += 1
        if self.state is State.CLOSED:
            # The failures that opened it would otherwise open it again at the next slip.
            self.window.clear()
            self.failures = 0
            self._healthy = now
        return True
