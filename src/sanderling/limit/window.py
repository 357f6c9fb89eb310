"""How many answers came lately, and how many of them were failures."""

from array import array
from dataclasses import dataclass
from math import isfinite, sqrt


@dataclass(frozen=True, slots=True)
class WindowRules:
    """How far back errors count, and in what grain they are forgotten."""

    span: float = 30.0
    bucket: float = 2.0

    def __post_init__(self) -> None:
        for name in ("span", "bucket"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}; it must be a positive number of seconds")
        if self.bucket > self.span:
            raise ValueError(f"bucket {self.bucket} s is longer than the span {self.span} s it divides")
        if self.span / self.bucket > 1000:
            found = f"{self.span} s in buckets of {self.bucket} s"
            raise ValueError(f"{found} would keep over 1000 buckets per host; take longer buckets")


class ErrorWindow:
    """Counts of answers and failures over the last `span` seconds, in a ring of buckets."""

    __slots__ = ("_counts", "_latest", "_rules")

    def __init__(self, rules: WindowRules, now: float) -> None:
        self._rules = rules
        # Answers and failures of each bucket, side by side.
        self._counts = array("I", bytes(8 * round(rules.span / rules.bucket)))
        self._latest = int(now / rules.bucket)

    def record(self, now: float, *, answers: int = 1, failures: int = 0) -> None:
        """Count answers, and how many of them were failures."""
        self._turn(now)
        slot = 2 * (self._latest % (len(self._counts) // 2))
        self._counts[slot] += answers
        self._counts[slot + 1] += failures

    def totals(self, now: float) -> tuple[int, int]:
        """Answers and failures within the span."""
        self._turn(now)
        return sum(self._counts[::2]), sum(self._counts[1::2])

    def clear(self) -> None:
        """Forget everything: the host is given a clean slate."""
        self._counts = array("I", bytes(4 * len(self._counts)))

    def _turn(self, now: float) -> None:
        """Empty the buckets that have grown too old. A clock that stands still or goes back empties none."""
        bucket, size = int(now / self._rules.bucket), len(self._counts) // 2
        for passed in range(max(self._latest + 1, bucket - size + 1), bucket + 1):
            slot = 2 * (passed % size)
            self._counts[slot] = self._counts[slot + 1] = 0
        self._latest = max(self._latest, bucket)


def wilson(failures: int, answers: int) -> float:
    """The least share of failures that the counts prove (95 %): three of three say 0.44, thirty of sixty 0.38.

    A plain ratio needs a minimum of samples to mean anything, and a slow host never gathers them.
    """
    if answers == 0:
        return 0.0
    z = 1.96
    share = failures / answers
    middle = share + z * z / (2 * answers)
    spread = z * sqrt(share * (1 - share) / answers + z * z / (4 * answers * answers))
    return max(0.0, (middle - spread) / (1 + z * z / answers))
