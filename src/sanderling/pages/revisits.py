"""When a page is worth a second visit: how often it changes, learned from its visits, and what a budget buys. Pure.

Changes are taken for a Poisson process. What is known of its rate is a Gamma distribution, two numbers for each page:

| a visit finds | what it says of the rate r | what becomes of (shape, exposure) |
|---|---|---|
| no change for t seconds | exp(-r t) | exposure grows by t: exact |
| the last change, a seconds ago | r exp(-r a) | shape grows by 1, exposure by a: exact |
| a change, at some time in t seconds | 1 - exp(-r t) | the Gamma with the same mean and variance |

A copy is out of date from the first change that it lacks. Of a page that is visited every x / r seconds it is so for
(x² / 2 - x + 1 - exp(-x)) / (r x) seconds on average, and one request more saves (x² / 2 + (1 + x) exp(-x) - 1) / r² of
them. A budget is spent best where the next request saves the same at every page: that is the price. (To maximise the
share of pages that are up to date would buy little more of that, and give up whatever changes faster than the price.)
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

from sanderling.words import parse_age

MINUTE, DAY = 60.0, 86_400.0
LONGEST = 10_000 * DAY  # between two visits
# Bisections of a number: halved so often it is as exact as a float.
STEPS = 60
# After so long, half of what was learned is forgotten: sites are redesigned, and people begin or cease to write.
HALF = 180 * DAY


class ChangeRate(NamedTuple):
    """How often a page changes, as far as is known."""

    shape: float
    exposure: float  # seconds

    @property
    def rate(self) -> float:
        """Changes a second, to be expected."""
        return self.shape / self.exposure


# Of a page that was never seen twice: once in ten days, give or take as much. It weighs as much as one change does.
UNKNOWN = ChangeRate(1.0, 10 * DAY)


def learn_age(known: ChangeRate, age: float) -> ChangeRate:
    """The page was last changed so many seconds ago."""
    return ChangeRate(known.shape + 1, known.exposure + max(0.0, age))


def learn_visit(known: ChangeRate, elapsed: float, *, changed: bool, age: float | None = None) -> ChangeRate:
    """The page was looked at again after so many seconds; if it had changed, `age` seconds ago if that is known."""
    elapsed = max(0.0, elapsed)
    known = _faded(known, elapsed)
    if not changed:
        return ChangeRate(known.shape, known.exposure + elapsed)
    if age is not None and 0 <= age <= elapsed:
        return learn_age(known, age)
    return _changed(known, elapsed)


def _changed(known: ChangeRate, elapsed: float) -> ChangeRate:
    """One change or more, nobody knows when."""
    shape, exposure = known
    if elapsed <= exposure * 1e-6:  # two moments that are one: as if it were known when
        return ChangeRate(shape + 1, exposure)
    ratio = exposure / (exposure + elapsed)
    unlikely = ratio**shape  # that there was none
    first = shape / exposure * (1 - unlikely * ratio) / (1 - unlikely)
    second = shape * (shape + 1) / exposure**2 * (1 - unlikely * ratio**2) / (1 - unlikely)
    variance = second - first**2
    return ChangeRate(first**2 / variance, first / variance)


def _faded(known: ChangeRate, elapsed: float) -> ChangeRate:
    share = 0.5 ** (elapsed / HALF)
    usual = UNKNOWN
    return ChangeRate(
        usual.shape + (known.shape - usual.shape) * share, usual.exposure + (known.exposure - usual.exposure) * share
    )


@dataclass(frozen=True, slots=True)
class VisitRules:
    """How often pages may be visited again. Times are seconds."""

    shortest: float = 3600.0
    longest: float = 30 * DAY
    a_day: float | None = None  # second visits; None for as many as visit each page once a week on average

    def __post_init__(self) -> None:
        if not 0 < self.shortest <= self.longest < math.inf:
            raise ValueError(f"intervals from {self.shortest} to {self.longest} seconds, expected the shorter first")
        if self.a_day is not None and not self.a_day > 0:
            raise ValueError(f"{self.a_day} visits a day, expected more than none")

    @classmethod
    def parse(cls, every: str, a_day: float | None = None) -> Self:
        """As people write it: auto, 1d, or 6h-14d. Raises ValueError."""
        if every == "auto":
            return cls(a_day=a_day)
        shortest, _, longest = every.partition("-")
        low, high = parse_age(shortest), parse_age(longest or shortest)
        if low is None or high is None or not MINUTE <= low <= high <= LONGEST:
            raise ValueError(
                f"every is {every[:40]!r}, expected auto, an age such as 30m, 12h or 7d, or two of them, the shorter "
                f"first, as 1h-30d; from {MINUTE:.0f}s to {LONGEST / DAY:.0f}d"
            )
        return cls(low, high, a_day)

    def budget(self, pages: int) -> float:
        """Visits a day to so many pages; where all are visited equally often, whatever that takes."""
        if self.a_day is not None:
            return self.a_day
        return math.inf if self.shortest == self.longest else pages / 7


@dataclass(frozen=True, slots=True)
class VisitPlan:
    """When each page is visited next."""

    rules: VisitRules
    price: float  # seconds out of date, times seconds, that a request must save

    def interval(self, rate: float) -> float:
        """The seconds between visits to a page that changes so often."""
        low, high = self.rules.shortest * rate, self.rules.longest * rate
        wanted = self.price * rate**2
        if _saved(high) <= wanted:
            return self.rules.longest
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if _saved(middle) < wanted else (low, middle)
        return high / rate


def _saved(x: float) -> float:
    # Below that the terms cancel out, and the first of the series is exact.
    return x**3 / 3 if x < 1e-4 else x * x / 2 + math.exp(-x) * (1 + x) - 1


def plan_visits(rules: VisitRules, rates: Iterable[tuple[float, int]]) -> VisitPlan:
    """The plan that spends the budget on pages of which so many change so often."""
    found = [(rate, number) for rate, number in rates if number]
    budget = rules.budget(sum(number for _, number in found)) / DAY
    free = VisitPlan(rules, 0.0)
    if _visits(free, found) <= budget:
        return free
    # At the highest, what changes all the time is visited at the longest interval, and all else more rarely than that.
    low, high = 0.0, rules.longest**2 / 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _visits(VisitPlan(rules, middle), found) > budget else (low, middle)
    return VisitPlan(rules, high)


def _visits(plan: VisitPlan, rates: list[tuple[float, int]]) -> float:
    """Visits a second."""
    return sum(number / plan.interval(rate) for rate, number in rates)
