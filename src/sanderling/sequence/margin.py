"""How long after its completion an id is asked for: learned from what was asked for too early. Pure."""

from dataclasses import dataclass
from math import inf

# So many ids in a row that were not there are no holes: the upstream has become slower to show what it has, or shows
# nothing more.
IN_A_ROW = 8


@dataclass(frozen=True, slots=True)
class MarginRules:
    """Seconds, and shares."""

    first: float = 8.0
    least: float = 2.0
    most: float = 120.0
    early: float = 0.003  # the share of first answers that may come too early
    # Of the margin, added by an id that was; the others take off what keeps that share. Above ten ids a second it is
    # less, so that a second's worth of ids never does more: what was early is known only seconds later.
    step: float = 0.015

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.first <= self.most < inf:
            found = f"least {self.least}, first {self.first}, most {self.most}"
            raise ValueError(f"{found}: expected seconds that do not decrease in this order")
        if not (0 < self.early < 1 and 0 < self.step < 1):
            raise ValueError(f"early {self.early}, step {self.step}: expected shares between 0 and 1")


class Margin:
    """Grows by what came later than it was asked for, shrinks by what was there.

    An id that is not there may be a hole, which no margin would fill, so it counts only once its record is seen after
    all. But if the records come so late that all tries are in vain, none ever is: then a row of misses must do, and is
    taken back if it turns out to have been a hole.
    """

    def __init__(self, rules: MarginRules) -> None:
        self._rules = rules
        self.seconds = rules.first
        self._missed = 0  # in a row
        self._proved = False  # whether any of those was seen later
        self._before = rules.first  # that row

    def step(self, apart: float) -> float:
        """Seconds that one id counts for, where ids are `apart` seconds apart."""
        return self._rules.step * self.seconds * min(1.0, 10.0 * apart)

    def there(self, apart: float) -> None:
        """An id was there when it was due."""
        if self._missed >= IN_A_ROW and not self._proved:
            self.seconds = self._before
        self._missed = 0
        share = self._rules.early / (1 - self._rules.early)
        self.seconds = max(self._rules.least, self.seconds - self.step(apart) * share)

    def missed(self, apart: float) -> None:
        """An id was not there when it was due."""
        if self._missed == 0:
            self._before, self._proved = self.seconds, False
        self._missed += 1
        if self._missed > IN_A_ROW:
            self.seconds = min(self._rules.most, self.seconds + self.step(apart))

    def late(self, enough: float, apart: float) -> None:
        """The record of such an id was seen after all; a margin of `enough` would have done."""
        self._proved = True
        self.seconds = max(self.seconds, min(self.seconds + self.step(apart), enough, self._rules.most))

    def forget_misses(self) -> None:
        """They were a gap, and say nothing."""
        if self._missed:
            self.seconds = self._before
        self._missed = 0

    def is_enough(self, lag: float) -> None:
        """A record was seen so many seconds after its completion by someone who had been waiting for it."""
        self._missed = 0
        self.seconds = max(self._rules.least, min(self.seconds, lag))
