"""How many workers the next period gets, and how long it is: the policy, from the readings of the last one. Pure.

Three strategies. *Gap*: most of what is asked for is not there, so a few workers look around in a short period.
*Catch up*: nothing is missing, or we are ten minutes behind, so workers grow with the lag. *Normal*: a little over two
percent not found is what being at the head looks like; fewer means that we are behind it, more that we run ahead.

The policy judges one period and remembers nothing. `guard` stands around it and keeps it from overreacting.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, copysign, floor, isfinite

MOSTLY_MISSING = 0.5  # above this share of requests that said not found, we are in a gap
NEVER_MISSING = 0.001  # below it, there is more ahead than we ask for
FAR_BEHIND = 600.0  # seconds of lag
GAP_WORKERS, GAP_PERIOD = 25, 2500

CLOSE = 20.0  # seconds of lag that are as good as none
GROWTH = 100.0  # seconds above that which double the workers
CATCH_UP_PERIOD, PERIOD_POWER = 10_000, 0.824
# The formulas are at their bounds long before a lag of four months; beyond, floats would overflow.
LONGEST_LAG = 1e7

AT_HEAD = 0.025  # the share not found that is neither too much nor too little
STEEPNESS, STEEPNESS_POWER = 687, 0.88
STRONGEST_CUT = 0.65
RUNNING_AHEAD = 0.075  # from this share on, look again after a third of the time
PERIOD_SECONDS = 300  # a normal period should last about so long
AHEAD_SECONDS = 100
IDLE_PERIOD = 600  # ids per worker, where no rate is known to go by

ROUNDING = 1e-9  # a share that was averaged from others may be a hair above 1


class Strategy(StrEnum):
    """What a period is for."""

    GAP = "gap"
    CATCH_UP = "catch_up"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class Readings:
    """What one closed period saw of the main lane. Times are in seconds, shares are of requests."""

    lag: float | None  # a fifth of the records were younger; None if there was no record
    missing: float  # share that said not found
    errors: float  # share that was malformed, failed, or refused
    rate: float  # records a second, kept or skipped
    missing_count: float
    samples: int  # requests
    seconds: float

    def __post_init__(self) -> None:
        for name in ("lag", "missing", "errors", "rate", "missing_count", "samples", "seconds"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value}; expected a number from 0 up")
        for name in ("missing", "errors"):
            if getattr(self, name) > 1 + ROUNDING:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a share between 0 and 1")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a period is run with. `why` is for people."""

    workers: int  # requests in flight, at most
    period: int  # ids until the next decision
    strategy: Strategy
    why: str


@dataclass(frozen=True, slots=True)
class ScaleRules:
    """Where the workers and the period start and may go."""

    min_workers: int = 5
    max_workers: int = 250
    workers: int = 25
    period: int = 10_000
    # Twice what a decision needs at least. Five minutes of an upstream that makes an id in two minutes are 3 ids.
    min_period: int = 100
    # Five minutes at 660 ids a second, which is about the most one key is known to be allowed.
    max_period: int = 200_000

    def __post_init__(self) -> None:
        for low, first, high in (("min_workers", "workers", "max_workers"), ("min_period", "period", "max_period")):
            bounds = [getattr(self, name) for name in (low, first, high)]
            if not 1 <= bounds[0] <= bounds[1] <= bounds[2]:
                found = f"{low} {bounds[0]}, {first} {bounds[1]}, {high} {bounds[2]}"
                raise ValueError(f"{found}: they must be 1 or more, and not decrease in this order")

    def first_plan(self) -> Plan:
        """What to begin with, when nothing is known."""
        return Plan(self.workers, self.period, Strategy.NORMAL, f"The start: {self.workers} workers.")

    def clamp_workers(self, workers: float) -> int:
        """The allowed number nearest to it; a part of a worker is a whole one."""
        return ceil(min(self.max_workers, max(self.min_workers, workers)))

    def clamp_period(self, ids: float) -> int:
        """The allowed number nearest to it."""
        return rounded(min(self.max_period, max(self.min_period, ids)))


class AtlasPolicy:
    """The three strategies, for anyone who has readings and a plan. The same input gives the same plan, always."""

    def __init__(self, rules: ScaleRules) -> None:
        self.rules = rules

    def decide(self, readings: Readings, plan: Plan) -> Plan:
        """The plan for the next period."""
        return self.follow(self.choose(readings, plan), readings, plan)

    def choose(self, readings: Readings, plan: Plan) -> Strategy:
        """The strategy that fits. Without any record there is no lag to go by, and it stays what it was."""
        if readings.missing > MOSTLY_MISSING:
            return Strategy.GAP
        if readings.lag is None:
            return plan.strategy
        if readings.missing < NEVER_MISSING or readings.lag >= FAR_BEHIND:
            return Strategy.CATCH_UP
        return Strategy.NORMAL

    def follow(self, strategy: Strategy, readings: Readings, plan: Plan) -> Plan:
        """The plan by that strategy.

        In a period without any record, be it that everything failed or that the API was switched off, only a gap can
        be acted on; otherwise the plan is kept. To take no news for a long lag would drive the workers to their
        maximum in every outage.
        """
        if strategy is Strategy.GAP:
            return self._look_around(readings)
        if readings.lag is None:
            return replace(plan, why=f"No record in {readings.seconds:.0f} s, so {plan.workers} workers stay.")
        if strategy is Strategy.CATCH_UP:
            return self._catch_up(readings, readings.lag, plan)
        return self._fine_tune(readings, plan)

    def _look_around(self, readings: Readings) -> Plan:
        workers, period = self.rules.clamp_workers(GAP_WORKERS), self.rules.clamp_period(GAP_PERIOD)
        why = f"{_percent(readings.missing)} not found: {workers} workers look around for {period} ids."
        return Plan(workers, period, Strategy.GAP, why)

    def _catch_up(self, readings: Readings, lag: float, plan: Plan) -> Plan:
        behind = min(max(lag, CLOSE), LONGEST_LAG)
        wanted = plan.workers * (1 + (behind - CLOSE) / GROWTH)
        effective = max(plan.workers, self.rules.min_workers)
        ids = max(rounded((effective * (ceil(behind) - CLOSE)) ** PERIOD_POWER), CATCH_UP_PERIOD)
        workers = self.rules.clamp_workers(wanted)
        seen = f"{lag:.0f} s behind with {_percent(readings.missing)} not found"
        why = f"{seen}: {change(plan.workers, workers)}."
        return Plan(workers, self.rules.clamp_period(ids), Strategy.CATCH_UP, why)

    def _fine_tune(self, readings: Readings, plan: Plan) -> Plan:
        excess = readings.missing - AT_HEAD
        share = min((STEEPNESS * abs(excess)) ** STEEPNESS_POWER / 100, STRONGEST_CUT)
        # At exactly the right share nothing changes; to divide it by its size, for its sign, would be 0 / 0.
        wanted = rounded(plan.workers - copysign(share, excess) * plan.workers)
        workers = self.rules.clamp_workers(wanted)
        why = f"{_percent(readings.missing)} not found, {_percent(AT_HEAD)} is right: {change(plan.workers, workers)}."
        return Plan(workers, self.rules.clamp_period(_normal_period(readings, wanted)), Strategy.NORMAL, why)


def _normal_period(readings: Readings, workers: int) -> int:
    if readings.rate == 0:
        return IDLE_PERIOD * workers
    seconds = AHEAD_SECONDS if readings.missing >= RUNNING_AHEAD else PERIOD_SECONDS
    return rounded(seconds * min(readings.rate, LONGEST_LAG))


def rounded(number: float) -> int:
    """The nearest whole number, and of two the one further from 0: Python's own rounding prefers the even one."""
    return int(copysign(floor(abs(number) + 0.5), number))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def change(before: int, after: int) -> str:
    """In words what becomes of so many workers."""
    return f"{before} workers stay" if before == after else f"{before} workers become {after}"
