"""Whether a host is slower now than its own best, and whether that is our doing."""

from dataclasses import dataclass
from enum import Enum
from math import inf, sqrt

# Medians are smoothed before their minimum is taken: the minimum of many noisy medians lies well below the truth,
# and every window would look slow against it.
SETTLING = 0.15
# The base is the lowest median of this many seconds, twice over; older ones are forgotten, as hosts do change.
REMEMBERED = 150.0
# A window is suspect when its median lies this many standard errors above the base, and the caller's share of it.
DOUBT = 3.5
# One window is enough when it lies this many above it, and four times the share.
CERTAINTY = 5.0
# Two milliseconds are a scheduler's whim, not a queue.
WHIM = 0.002
# Of the base: a handful of answers may happen to be alike, and the next would look slow beside them.
ALIKE = 0.2
# times the quickest of a host's first few answers: more than that is a queue of our own making, not its usual latency
ALONE = 3.0
SLOW = 0.25  # seconds for an answer
# A median this far below what was taken for usual when we met shows that it was a queue. Once: medians are noisy.
FASTER = 0.7
# A cut that leaves this much of the median did not help; two such cuts, and the slowness is not of our making.
NO_BETTER = 0.95
FUTILE_CUTS = 2


class Verdict(Enum):
    """What a window of latencies says about the host."""

    FINE = "fine"
    SUSPECT = "suspect"  # slow once, and not plainly; wait for a second window
    OVERLOADED = "overloaded"  # slower than it can be: ask less
    BLAMELESS = "blameless"  # still as slow after we asked less, twice: it is not us, and this is its pace now


@dataclass(slots=True, eq=False, repr=False)
class Latency:
    """The base that windows of latencies are judged by: the lowest median of the last minutes.

    Of successes only: a refusal comes back fast and would make the host look fast, a failure says nothing of the queue.
    """

    share: float  # how far above the base, as a share of it, counts as slow
    base: float | None = None
    cuts: int = 0  # times we were told to ask less since the host was last fine
    first: float = 0.0  # the quickest of the first few answers: they waited for none of ours
    _futile: int = 0
    _suspicions: int = 0
    _trouble: float = inf  # the median that last made us ask less
    _settled: float = 0.0
    _doubtful: bool = True
    _low: float = inf  # lowest settled median of this period,
    _lower: float = inf  # and of the one before
    _turned: float = 0.0
    _met: int = 0  # answers that the base rests on, while the host is being met
    _spread: float = 0.0  # of those

    @property
    def is_slow(self) -> bool:
        """Whether the host takes its time: then a queue of ours lasts, and its quickest answer measures its work."""
        return self.first > SLOW

    @property
    def helping(self) -> bool:
        """Whether asking less has helped so far."""
        return self._futile == 0

    def judge(self, ordered: list[float], now: float) -> Verdict:
        """What the window's latencies, in order of size, say. None at all is no complaint."""
        if not ordered:
            return Verdict.FINE
        median = ordered[len(ordered) // 2]
        if self.base is None:
            self.rebase(median, now)
        verdict = self._compare(median, self._standard_error(ordered))
        self._met = 0
        if verdict is Verdict.BLAMELESS:
            self.rebase(median, now)
        elif verdict is not Verdict.OVERLOADED:
            self._settle(median, now)
        return verdict

    def meet(self, ordered: list[float], now: float) -> None:
        """Take all answers so far, in order of size, for what is usual: a window of few alone would be too noisy."""
        if not ordered:
            return
        median = ordered[len(ordered) // 2]
        if not self.first:
            self.first = ordered[0]
        # The first answer waited for nobody: what a queue of our own making adds to the others is not usual.
        self.base = self._settled = self._low = min(median, ALONE * self.first) if self.is_slow else median
        self._lower, self._turned = inf, now
        self._met = len(ordered)
        self._spread = max(_spread(ordered), ALIKE * self.base)

    def rebase(self, median: float, now: float) -> None:
        """Take `median` for what the host can do; what was better before is gone."""
        self.base = self._settled = self._low = median
        self._lower = self._trouble = inf
        self._turned = now
        self._suspicions = self._futile = self.cuts = 0

    def _compare(self, median: float, error: float) -> Verdict:
        base = self.base or median
        above = median - base
        if above <= max(self.share * base, DOUBT * error, WHIM):
            self._suspicions = self._futile = self.cuts = 0
            self._trouble = inf
            return Verdict.FINE
        self._suspicions += 1
        if self._suspicions < 2 and above <= max(4 * self.share * base, CERTAINTY * error):
            return Verdict.SUSPECT
        self._suspicions = 0
        return self._blame(median)

    def _standard_error(self, ordered: list[float]) -> float:
        """Of the median, or of its distance from a base that rests on few answers.

        While a host is met, the spread is that of all answers before: a queue that grows within the window would look
        like noise in its own.
        """
        if self._met:
            return 1.25 * self._spread * sqrt(1 / len(ordered) + 1 / self._met)
        return 1.25 * _spread(ordered) / sqrt(len(ordered))

    def _blame(self, median: float) -> Verdict:
        helped = median <= NO_BETTER * self._trouble
        self._futile = 0 if helped else self._futile + 1
        self._trouble = median
        self.cuts += 1
        return Verdict.BLAMELESS if self._futile >= FUTILE_CUTS else Verdict.OVERLOADED

    def _settle(self, median: float, now: float) -> None:
        if self.is_slow and self._doubtful and median < FASTER * self._settled:
            self._settled, self._doubtful = median, False  # what was taken for usual was a queue
        self._settled += SETTLING * (median - self._settled)
        if now - self._turned > REMEMBERED:
            self._lower, self._low, self._turned = self._low, inf, now
        self._low = min(self._low, self._settled)
        self.base = min(self._low, self._lower)


def _spread(ordered: list[float]) -> float:
    """The standard deviation, from the middle half of the samples: outliers do not widen it."""
    count = len(ordered)
    return (ordered[3 * count // 4] - ordered[count // 4]) / 1.35
