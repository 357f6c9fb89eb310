"""Stop calling a host that fails, and find out with a single request whether it is well again."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from math import inf, isfinite, log
from random import Random


class State(Enum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class BreakerEvent(Enum):
    """What moves it."""

    TRIPPED = "tripped"
    RESTED = "rested"
    PROBE_OK = "probe ok"
    PROBE_FAILED = "probe failed"


# docs/limiter.md prints this table; a test compares the two.
NEXT = {
    (State.CLOSED, BreakerEvent.TRIPPED): State.OPEN,
    (State.OPEN, BreakerEvent.RESTED): State.HALF_OPEN,
    (State.HALF_OPEN, BreakerEvent.PROBE_OK): State.CLOSED,
    (State.HALF_OPEN, BreakerEvent.PROBE_FAILED): State.OPEN,
}

SHOWN = 32  # answers, about, of which people are shown how many fail. No decision looks at it.
# How likely it may be that a host that is well fails so often in a row, or a good item, and how often that is at most.
IMPROBABLE, MOST_FAILURES = 1e-6, 20
USUAL_FAILURES = 0.01  # of all requests, before anything is known of a host; as if 20 requests had shown it
CLEAN = 5  # failures in a row that are improbable where up to one in sixteen requests fails
# Seconds for which failures may be a quota, as most are counted over a minute at most; and how many such there may be:
# the governor waits longer before each, and half a minute before the next.
LONGEST_DRAIN, MOST_DRAINED = 61.0, 12
RECENT = 128  # answers, about, of which the usual share of failures is made


def improbable(share: float) -> int:
    """How many failures in a row are improbable where that share of requests fails; never more than 20."""
    return min(MOST_FAILURES, int(log(IMPROBABLE) / log(max(USUAL_FAILURES, share))) + 1)


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When a breaker opens, and for how long."""

    consecutive: int = 5  # different items that fail with nothing good between; more where failures are usual
    unreached: int = 3  # failures in a row that are the host's whatever the item: unsent, or of its own documents
    open_for: float = 15.0  # seconds; doubled each time a probe fails, but not for one that has answered before
    steady: float = 3600.0  # seconds of an outage for which a host that has answered before is probed at an even pace
    longest: float = 300.0
    jitter: float = 0.3  # up to this share longer, so that hosts behind one cause are not probed in one second

    def __post_init__(self) -> None:
        if self.consecutive < 1 or self.unreached < 1:
            raise ValueError(f"consecutive is {self.consecutive}, unreached {self.unreached}; both must be at least 1")
        if not (isfinite(self.open_for) and 0 < self.open_for <= self.longest and isfinite(self.longest)):
            raise ValueError(f"open_for is {self.open_for}, longest {self.longest}; expected 0 < open_for <= longest")
        if not self.steady >= 0:
            raise ValueError(f"steady is {self.steady}; it must be a number of seconds from 0 up")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is {self.jitter}; it must lie between 0 and 1")


@dataclass(slots=True, eq=False, repr=False)
class Breaker:
    """One host's breaker. It decides; the gate hands out the probe and knows which answers are too old to count."""

    _rules: BreakerRules
    until: float  # when an open breaker may be probed
    _answers: int = 0  # that the error rate is made of
    good: bool = False  # whether it has ever answered
    since: float = inf  # when its outage began
    state: State = State.CLOSED
    failures: int = 0  # in a row
    openings: int = 0  # in a row, without a good probe between
    error_rate: float = 0.0  # of the last answers, about
    _items: set[Hashable] = field(default_factory=set)  # that failed, with nothing good since
    _unreached: int = 0  # failures of the host itself, with nothing good since
    _drained: int = 0  # failures of requests that were let through alone, with nothing good since
    _drained_since: float = inf  # and when the first of them was
    _cut: bool = False  # whether the first pause in a row was cut short
    _short: int = 0  # pauses in a row that were not to grow: one that was cut short, and those at an even pace
    _seen: int = field(init=False)  # answers that the usual share of failures is made of
    _usual: float = field(init=False)

    def __post_init__(self) -> None:
        self._seen = min(RECENT, 20 + self._answers)
        self._usual = 20 * USUAL_FAILURES / self._seen
        self._answers = min(self._answers, SHOWN)

    @property
    def enough(self) -> int:
        """How many different items must fail in a row: so many that it is improbable for a host that is well."""
        return self._rules.consecutive + self._more

    @property
    def _more(self) -> int:
        """How many more than the rules say it takes, where failures are usual.

        The row that is in progress does not count, nor does one that a failed probe has confirmed: an outage cannot
        excuse itself.
        """
        return max(0, improbable(self._usual) - max(CLEAN, self._rules.consecutive))

    @property
    def pauses(self) -> int:
        """Openings in a row by which the next pause is longer than the first."""
        return self.openings - self._short

    def failed(self, now: float, rng: Random, item: Hashable, *, of_host: bool = False, single: bool = False) -> bool:
        """Count a failure of `item`, or `of_host`; whether the state changed.

        Also where it takes many items: who has failed for a minute, while one request at a time is let through
        (`single`), is down. What lets these through waits ever longer between them.
        """
        self._count(1.0)
        self.failures += 1
        self._unreached += of_host
        if self.state is State.HALF_OPEN:
            return self._move(BreakerEvent.PROBE_FAILED, now, rng)
        if self.state is State.OPEN:
            return False
        self._items.add(item)
        self._drained += single
        self._drained_since = min(self._drained_since, now if single else inf)
        tripped = len(self._items) >= self.enough or self._unreached >= self._rules.unreached + self._more
        tripped |= self._drained >= MOST_DRAINED or now - self._drained_since > LONGEST_DRAIN
        return tripped and self._move(BreakerEvent.TRIPPED, now, rng)

    def succeeded(self, now: float, rng: Random) -> bool:
        """Count an answer that was none; whether the state changed."""
        self._count(0.0)
        self.good = True
        if self.openings <= 1:  # else a probe has failed: what it was about is an outage, and not what is usual
            for _ in self._items:
                self._learn(1.0)
        self._learn(0.0)
        if self.failures:
            self._forget_failures()
        return self.state is State.HALF_OPEN and self._move(BreakerEvent.PROBE_OK, now, rng)

    def rested(self, now: float, rng: Random) -> bool:
        """Whether an open breaker has just become half-open."""
        return self.state is State.OPEN and now >= self.until and self._move(BreakerEvent.RESTED, now, rng)

    def cut_short(self, now: float) -> bool:
        """End the first pause in a row now, unless it was cut short already; whether that was done."""
        if self.state is not State.OPEN or self.openings != 1 or self._cut:
            return False
        self.until = min(self.until, now)
        self._cut = True
        self._short = 1
        return True

    def reopen(self, openings: int, until: float, since: float = inf) -> None:
        """Take up where an earlier life left off: open until then; `since` is given of a host that had answered.

        One whose time is over meanwhile is open all the same: a probe has yet to find that the host is well.
        """
        self.openings = max(1, self.openings, openings)
        self.good |= since < inf
        self.since = min(self.since, since)
        self.until = max(self.until, until) if self.state is State.OPEN else until
        self.state = State.OPEN

    def hold(self, until: float) -> None:
        """Stay open at least until `until`: a Retry-After outlasts the breaker's own time."""
        if self.state is State.OPEN:
            self.until = max(self.until, until)

    def _count(self, failed: float) -> None:
        self._answers = min(self._answers + 1, SHOWN)
        self.error_rate += (failed - self.error_rate) / self._answers

    def _learn(self, failed: float) -> None:
        self._seen = min(self._seen + 1, RECENT)
        self._usual += (failed - self._usual) / self._seen

    def _forget_failures(self) -> None:
        self.failures = self._unreached = self._drained = 0
        self._drained_since = inf
        self._items.clear()

    def _move(self, event: BreakerEvent, now: float, rng: Random) -> bool:
        self.state = NEXT[self.state, event]
        if self.state is State.OPEN:
            self.since = min(self.since, now)
            jitter = self._rules.jitter
            if self.good and now - self.since < self._rules.steady:
                self._short = self.openings
                jitter /= 2  # many that are alike drift apart anyway
            base = min(self._rules.longest, self._rules.open_for * 2 ** min(self.pauses, 32))
            self.until = now + base * (1 + jitter * rng.random())
            self.openings += 1
        if self.state is State.CLOSED:
            self.openings = self._short = self._answers = 0
            self.error_rate = 0.0
            self.since = inf
            self._cut = False
        return True
