"""How many workers should store, by how many letters wait for them: pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DepthRules:
    """When there are more workers or fewer. A check is one look at the queue."""

    least: int = 1  # never none: a queue that nobody empties would look like one that nobody fills
    most: int = 16
    start: int = 4
    above: int = 1_000  # letters that call for more workers, if seen at so many checks in a row
    checks_up: int = 2
    below: int = 100  # and those for which fewer will do
    checks_down: int = 3
    share_up: float = 0.2  # of the workers, by how many there are more; at least one
    share_down: float = 0.1
    largest_step: int = 10
    every: float = 300.0  # seconds between checks
    cooldown: float = 120.0  # seconds after a change without another: its effect must show first

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.start <= self.most:
            raise ValueError(
                f"{self.least} to {self.most} workers, {self.start} at the start; expected 1 ≤ these in order"
            )
        if not 0 <= self.below <= self.above:
            raise ValueError(
                f"fewer workers below {self.below} letters, more above {self.above}; expected them in order"
            )
        if min(self.checks_up, self.checks_down, self.largest_step) < 1 or min(self.share_up, self.share_down) < 0:
            raise ValueError(f"{self}, expected checks and steps from 1 up, and shares from 0 up")
        if not (self.every > 0 and self.cooldown >= 0):
            raise ValueError(f"a check every {self.every} s and a rest of {self.cooldown} s; expected more than none")


class Staff:
    """How many `workers` there should be. Between the two depths nothing changes, and earlier checks are forgotten."""

    def __init__(self, rules: DepthRules) -> None:
        self._rules = rules
        self.workers = rules.start
        self._seen: tuple[int, float] | None = None  # the depth last read, and when
        self._high = self._low = 0  # checks in a row
        self._changed = float("-inf")

    def __repr__(self) -> str:
        return f"<Staff {self.workers} workers, {self._high} checks high, {self._low} low>"

    def check(self, depth: int | None, now: float) -> int:
        """Look at the queue, and say how many workers there should be; None if its depth could not be read."""
        known = self._known(depth, now)
        self._high = self._high + 1 if known is not None and known > self._rules.above else 0
        self._low = self._low + 1 if known is not None and known < self._rules.below else 0
        wanted = self._wanted()
        if wanted != self.workers and now - self._changed >= self._rules.cooldown:
            self.workers, self._changed = wanted, now
            self._high = self._low = 0
        return self.workers

    def _known(self, depth: int | None, now: float) -> int | None:
        """The depth, or for a while the one before; then nobody knows, and nothing changes."""
        if depth is not None:
            self._seen = depth, now
        elif self._seen and now - self._seen[1] >= 2 * self._rules.every:
            self._seen = None
        return self._seen[0] if self._seen else None

    def _wanted(self) -> int:
        rules = self._rules
        if self._high >= rules.checks_up:
            return min(rules.most, self.workers + self._step(rules.share_up))
        if self._low >= rules.checks_down:
            return max(rules.least, self.workers - self._step(rules.share_down))
        return self.workers

    def _step(self, share: float) -> int:
        return min(self._rules.largest_step, max(1, int(self.workers * share)))
