"""How many retries may be made: a share of the requests, so that a host that is down is not called harder for it.

Without one, a host that fails everything gets every item `attempts` times, at the moment it can bear it least.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """Counted in retries."""

    # Retries per request: Google's SRE book allows 10 %, Finagle 20 %. Ours are calls to someone else's machine.
    share: float = 0.1
    # What every budget starts with, so that a crawl of five pages may retry at all; Finagle grants as many each second.
    reserve: float = 10.0
    # Saved up at most, so that a good week does not pay for a storm.
    most: float = 100.0

    def __post_init__(self) -> None:
        # Written so that NaN, for which every comparison is false, is refused as well.
        if not 0 <= self.share <= 1:
            raise ValueError(f"share is {self.share}, expected a share of the requests from 0 to 1")
        if not 1 <= self.most < math.inf:
            raise ValueError(f"most is {self.most}, expected at least 1: below that no retry is ever paid for")
        if not 0 <= self.reserve <= self.most:
            raise ValueError(f"reserve is {self.reserve}, expected from 0 to most ({self.most})")


class Budget:
    """Retries that may still be scheduled; grows with the requests it is told of."""

    __slots__ = ("_credit", "_repeats", "_requests", "_rules")

    def __init__(self, rules: BudgetRules) -> None:
        self._rules = rules
        self._credit = rules.reserve
        self._requests = 0
        self._repeats = 0  # retries granted that have not come by as requests

    def __repr__(self) -> str:
        return f"<Budget: {self._credit:.1f} retries after {self._requests} requests>"

    @property
    def credit(self) -> float:
        """Retries saved up; one is spent when there is a whole one."""
        return self._credit

    def spend(self, requests: int) -> bool:
        """Whether one more retry may be scheduled, `requests` being those granted so far, retries among them.

        Ask when the retry is scheduled, not when it is sent: a budget that does not count those still waiting in
        back-off lets all of them out at once (Envoy #30205).
        """
        self._earn(requests)
        if self._credit < 1:
            return False
        self._credit -= 1
        self._repeats += 1
        return True

    def refund(self) -> None:
        """Give one back: the retry succeeded, or was never sent."""
        self._credit = min(self._rules.most, self._credit + 1)

    def _earn(self, requests: int) -> None:
        # A total that fell was counted anew after a restart; nothing is known to have been requested since.
        if requests < self._requests:
            self._requests, self._repeats = requests, 0
        fresh = requests - self._requests
        # A retry earns nothing, or ten first attempts would pay for more than one.
        repeats = min(fresh, self._repeats)
        self._repeats -= repeats
        self._credit = min(self._rules.most, self._credit + self._rules.share * (fresh - repeats))
        self._requests = requests
