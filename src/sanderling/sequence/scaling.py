"""How many workers the next period gets, and how long it is: the policy, from the readings of the last one. Pure.

Three strategies. *Gap*: most of what is asked for is not there, so a few workers look around in a short period.
*Catch up*: nothing is missing, or we are ten minutes behind, so workers grow with the lag. *Normal*: a little over two
percent not found is what being at the head looks like; fewer means that we are behind it, more that we run ahead.

The policy judges one period and remembers nothing. `guard` stands around it and keeps it from overreacting.

The knee: whether a rise in workers has paid. Beyond the knee of a host's curve, more workers only wait longer.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, copysign, floor

from sanderling.sequence.readings import PeriodReadings

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


class ScalingStrategy(StrEnum):
    """What a period is for."""

    GAP = "gap"
    CATCH_UP = "catch_up"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """What a period is run with. `why` is for people."""

    workers: int  # requests in flight, at most
    period: int  # ids until the next decision
    strategy: ScalingStrategy
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

    def first_plan(self) -> ScalePlan:
        """What to begin with, when nothing is known."""
        return ScalePlan(self.workers, self.period, ScalingStrategy.NORMAL, f"The start: {self.workers} workers.")

    def clamp_workers(self, workers: float) -> int:
        """The allowed number nearest to it; a part of a worker is a whole one."""
        return ceil(min(self.max_workers, max(self.min_workers, workers)))

    def clamp_period(self, ids: float) -> int:
        """The allowed number nearest to it."""
        return round_half_up(min(self.max_period, max(self.min_period, ids)))


class AtlasPolicy:
    """The three strategies, for anyone who has readings and a plan. The same input gives the same plan, always."""

    def __init__(self, rules: ScaleRules) -> None:
        self.rules = rules

    def decide(self, readings: PeriodReadings, plan: ScalePlan) -> ScalePlan:
        """The plan for the next period."""
        return self.follow(self.choose(readings, plan), readings, plan)

    def choose(self, readings: PeriodReadings, plan: ScalePlan) -> ScalingStrategy:
        """The strategy that fits. Without any record there is no lag to go by, and it stays what it was."""
        if readings.missing > MOSTLY_MISSING:
            return ScalingStrategy.GAP
        if readings.lag is None:
            return plan.strategy
        if readings.missing < NEVER_MISSING or readings.lag >= FAR_BEHIND:
            return ScalingStrategy.CATCH_UP
        return ScalingStrategy.NORMAL

    def follow(self, strategy: ScalingStrategy, readings: PeriodReadings, plan: ScalePlan) -> ScalePlan:
        """The plan by that strategy.

        In a period without any record, be it that everything failed or that the API was switched off, only a gap can
        be acted on; otherwise the plan is kept. To take no news for a long lag would drive the workers to their
        maximum in every outage.
        """
        if strategy is ScalingStrategy.GAP:
            return self._look_around(readings)
        if readings.lag is None:
            return replace(plan, why=f"No record in {readings.seconds:.0f} s, so {plan.workers} workers stay.")
        if strategy is ScalingStrategy.CATCH_UP:
            return self._catch_up(readings, readings.lag, plan)
        return self._fine_tune(readings, plan)

    def _look_around(self, readings: PeriodReadings) -> ScalePlan:
        workers, period = self.rules.clamp_workers(GAP_WORKERS), self.rules.clamp_period(GAP_PERIOD)
        why = f"{_percent(readings.missing)} not found: {workers} workers look around for {period} ids."
        return ScalePlan(workers, period, ScalingStrategy.GAP, why)

    def _catch_up(self, readings: PeriodReadings, lag: float, plan: ScalePlan) -> ScalePlan:
        behind = min(max(lag, CLOSE), LONGEST_LAG)
        wanted = plan.workers * (1 + (behind - CLOSE) / GROWTH)
        effective = max(plan.workers, self.rules.min_workers)
        ids = max(round_half_up((effective * (ceil(behind) - CLOSE)) ** PERIOD_POWER), CATCH_UP_PERIOD)
        workers = self.rules.clamp_workers(wanted)
        seen = f"{lag:.0f} s behind with {_percent(readings.missing)} not found"
        why = f"{seen}: {describe_change(plan.workers, workers)}."
        return ScalePlan(workers, self.rules.clamp_period(ids), ScalingStrategy.CATCH_UP, why)

    def _fine_tune(self, readings: PeriodReadings, plan: ScalePlan) -> ScalePlan:
        excess = readings.missing - AT_HEAD
        share = min((STEEPNESS * abs(excess)) ** STEEPNESS_POWER / 100, STRONGEST_CUT)
        # At exactly the right share nothing changes; to divide it by its size, for its sign, would be 0 / 0.
        wanted = round_half_up(plan.workers - copysign(share, excess) * plan.workers)
        workers = self.rules.clamp_workers(wanted)
        seen = f"{_percent(readings.missing)} not found, {_percent(AT_HEAD)} is right"
        why = f"{seen}: {describe_change(plan.workers, workers)}."
        return ScalePlan(
            workers, self.rules.clamp_period(_normal_period(readings, wanted)), ScalingStrategy.NORMAL, why
        )


def _normal_period(readings: PeriodReadings, workers: int) -> int:
    if readings.rate == 0:
        return IDLE_PERIOD * workers
    seconds = AHEAD_SECONDS if readings.missing >= RUNNING_AHEAD else PERIOD_SECONDS
    return round_half_up(seconds * min(readings.rate, LONGEST_LAG))


def round_half_up(number: float) -> int:
    """The nearest whole number, and of two the one further from 0: Python's own rounding prefers the even one."""
    return int(copysign(floor(abs(number) + 0.5), number))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def describe_change(before: int, after: int) -> str:
    """In words what becomes of so many workers."""
    return f"{before} workers stay" if before == after else f"{before} workers become {after}"


@dataclass(frozen=True, slots=True)
class Trial:
    """A rise, and what there was before it."""

    before: int
    after: int
    rate: float
    errors: float


@dataclass(slots=True)
class Ceiling:
    """Workers that a rise has shown to be enough, and what more of them had brought."""

    workers: int
    tried: int
    rate: float
    errors: float
    left: int  # periods


class Knee:
    """Remembers a rise until the next period has shown what it brought; then, if that was little, where to stay.

    A rise must bring at least `gain` of what it would in proportion, and at most `errors`, a share of the requests.
    Otherwise there are no more workers than before it, for `hold` periods.
    """

    def __init__(self, gain: float, errors: float, hold: int) -> None:
        self._gain = gain
        self._errors = errors
        self._hold = hold
        self._trial: Trial | None = None
        self._ceiling: Ceiling | None = None

    def __repr__(self) -> str:
        return f"<Knee, trial {self._trial}, ceiling {self._ceiling}>"

    @property
    def ceiling(self) -> int | None:
        """The most workers for now; None if there is no such bound."""
        return None if self._ceiling is None else self._ceiling.workers

    def rise(self, before: int, after: int, readings: PeriodReadings) -> None:
        """There will be more workers from now on; the readings are those of the time before."""
        self._trial = Trial(before, after, readings.rate, readings.errors)

    def forget(self) -> None:
        """The period was none to judge by."""
        self._trial = None

    def judge(self, readings: PeriodReadings, workers: int, *, at_head: bool, throttled: bool) -> str:
        """See whether the last rise has paid, and whether a ceiling is still right. What was found, if it was not.

        At the head a rise cannot show in the rate: there is no more to be had than the upstream makes. And where the
        limiter set the pace, neither a rate that did not grow nor refusals are the doing of the workers.
        """
        trial, self._trial = self._trial, None
        if self._ceiling is not None:
            self._ceiling.left -= 1
            if self._ceiling.left < 0 or self._was_wrong(self._ceiling, readings, at_head=at_head):
                self._ceiling = None
        if trial is None or trial.after != workers or throttled:
            return ""
        why = self._in_vain(trial, readings, at_head=at_head)
        if not why:
            return ""
        self._ceiling = Ceiling(trial.before, trial.after, readings.rate, readings.errors, self._hold)
        return f"{trial.after} workers instead of {trial.before} brought {why}"

    def _in_vain(self, trial: Trial, readings: PeriodReadings, *, at_head: bool) -> str:
        # Errors that were there before are not the doing of those who came later.
        if readings.errors > max(self._errors, 2 * trial.errors):
            return f"{readings.errors:.1%} errors"
        if at_head or trial.rate == 0:
            return ""
        gain, in_proportion = readings.rate / trial.rate - 1, trial.after / trial.before - 1
        return "" if gain >= self._gain * in_proportion else f"{gain:+.0%} records a second"

    def _was_wrong(self, ceiling: Ceiling, readings: PeriodReadings, *, at_head: bool) -> bool:
        """Whether stepping back did not help: the host had become slow, or failed, for reasons of its own."""
        if ceiling.errors > self._errors:
            return readings.errors > ceiling.errors / 2
        if at_head or ceiling.rate == 0:
            return False
        return 1 - readings.rate / ceiling.rate > (1 - ceiling.workers / ceiling.tried) / 2
