"""What stands between the policy and the workers, so that they follow the upstream and not the noise. Pure.

The policy sees one period and answers to all of it. Six rules stand around it, and each can be switched off:

- **one window**: a period that says little, or that was spent in a gap or waiting at the head, changes nothing.
- **dead zone**: close enough is good enough; a strategy is left later than it is entered; small changes are not made.
- **slew**: at most twice as many workers, or three in ten fewer, and fewer only if two periods in a row say so.
- **little**: workers = rate x latency. No fewer than keep up with the upstream and clear the backlog in a quarter of an
  hour, no rise beyond what clears it in five minutes, and no more than the limiter has permits for.
- **knee**: a rise must pay. If it brought little, or errors, it is taken back, and not tried again for three periods.
- **pacing**: ids are not asked for before they are due (`head`), so at the head there is nothing to be learned from how
  few were not found: the workers are those that keep up, with some to spare.

What the limiter, the breaker and the retries do is theirs. Workers are requests in flight at most: one too many waits.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from sanderling.sequence.readings import PeriodReadings, ReadingsWindow
from sanderling.sequence.scaling import (
    AT_HEAD,
    FAR_BEHIND,
    MOSTLY_MISSING,
    NEVER_MISSING,
    AtlasPolicy,
    Knee,
    ScalePlan,
    ScaleRules,
    ScalingStrategy,
    describe_change,
)

USED = 0.8  # of the permits: whoever uses as many is held up by the limiter


@dataclass(frozen=True, slots=True)
class UpstreamFacts:
    """What is known of the upstream apart from the readings; None where it is not."""

    head_rate: float | None = None  # ids a second that it makes
    latency: float | None = None  # mean seconds of a request in the period
    permits: float | None = None  # requests a second that the limiter allows
    backlog: float | None = None  # ids between ours and the head

    def __post_init__(self) -> None:
        for name in ("head_rate", "latency", "permits", "backlog"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"{name} is {value}; expected a number from 0 up, or None")


@dataclass(frozen=True, slots=True)
class ScalingGuardRules:
    """Which rules hold, and their numbers. Times are in seconds."""

    one_window: bool = True
    dead_zone: bool = True
    slew: bool = True
    little: bool = True
    knee: bool = True
    pacing: bool = True

    fewest: int = 50  # requests that a decision must rest on
    longest: float = 300.0  # a period ends by then, however few ids it had
    quick: float = 20.0  # a period lasts so long while workers are still on the rise
    near: float = 0.015  # so far from the right share of not found is near enough
    close: float = 60.0  # so far behind is at the head
    small: float = 0.05  # a change below this share of the workers is none
    # The same with pacing, where workers are counted by what is needed, with more than that to spare.
    small_paced: float = 0.15
    leave_gap: float = 0.3  # share of not found
    leave_catch_up: float = 120.0  # seconds behind
    enter_catch_up: float = 30.0  # seconds behind, where nothing is missing
    most_up: float = 2.0
    most_down: float = 0.3
    spare: float = 1.1  # workers to those that keep up exactly
    band: float = 1.6  # at the head up to so many times as many as are needed may stay
    drain: float = 300.0  # a rise may be such that a backlog is gone in so long
    patience: float = 900.0  # and there are as many workers as it takes to clear it in so long
    slack: float = 1.25  # workers to those that use every permit: latencies vary
    gain: float = 0.25  # of what a rise would bring in proportion, at least
    errors: float = 0.01  # the share that it may bring
    hold: int = 3  # periods

    def __post_init__(self) -> None:
        for name in ("fewest", "longest", "quick", "near", "close", "small", "small_paced", "drain", "patience"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number above 0")
        for name in ("most_up", "spare", "band", "slack"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; workers are multiplied by it: expected 1 or more")
        if not 0 < self.most_down < 1:
            raise ValueError(f"most_down is {self.most_down}; expected a share between 0 and 1")


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan for the next period, what the policy wanted, and what was held against that, in words."""

    plan: ScalePlan
    wanted: ScalePlan
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Case:
    """What is to be decided on, and what was held so far."""

    readings: PeriodReadings
    facts: UpstreamFacts
    plan: ScalePlan
    at_head: bool  # what the upstream makes is all there is to ask for
    held: list[str] = field(default_factory=list)


class Guard:
    """Decides for one crawl, period by period.

    `over` says when a period has lasted long enough; whoever runs the crawl should ask it about once a second. While
    the workers are on the rise, from the first period on, it is a matter of seconds: at 25 workers the 10,000 ids of
    the first period may take minutes, and a backlog grows meanwhile. `permits` should be a mean over the period rather
    than what the limiter allows in the second of the decision.
    """

    def __init__(self, policy: AtlasPolicy, rules: ScalingGuardRules, scale: ScaleRules) -> None:
        self._policy = policy
        self._rules = rules
        self._scale = scale
        self._advised: deque[int] = deque(maxlen=2)  # the last recommendations
        self._knee = Knee(rules.gain, rules.errors, rules.hold)
        self._rising = True

    def __repr__(self) -> str:
        return f"<Guard, {'rising' if self._rising else 'steady'}, {self._knee!r}>"

    def over(self, plan: ScalePlan, window: ReadingsWindow, now: float) -> bool:
        """Whether it is time to close the period and decide."""
        seconds = window.seconds(now)
        if window.ids >= plan.period or seconds >= self._rules.longest:
            return True
        # Four times what a decision needs: a short period must not be a noisy one.
        return self._rising and seconds >= self._rules.quick and window.asked >= 4 * self._rules.fewest

    def decide(self, readings: PeriodReadings, facts: UpstreamFacts, plan: ScalePlan, *, gap: bool = False) -> Decision:
        """The plan that follows; `gap` if there was a gap, or a wait at the head, in the period."""
        wanted = self._policy.decide(readings, plan)
        case = _Case(readings, facts, plan, self._at_head(readings, facts))
        if self._teaches_nothing(case, gap=gap):
            self._knee.forget()
            return _make_decision(plan, wanted, case)
        self._rising = False
        self._judge_last_rise(case)
        proposal = self._by_strategy(wanted, case)
        workers = self._close_enough(proposal, case)
        workers = self._by_littles_law(workers, proposal.strategy, case)
        workers = self._worth_changing(self._slowly(workers, case), case)
        workers = self._below_knee(workers, case)
        if workers > plan.workers:
            self._knee.rise(plan.workers, workers, readings)
            self._rising = True
        return _make_decision(replace(proposal, workers=workers), wanted, case)

    def _at_head(self, readings: PeriodReadings, facts: UpstreamFacts) -> bool:
        if readings.lag is None or readings.missing > MOSTLY_MISSING:
            return False
        if facts.backlog is None or facts.head_rate is None:
            return readings.lag < self._rules.close
        return readings.lag < self._rules.close or facts.backlog <= self._rules.close * facts.head_rate

    # One window.

    def _teaches_nothing(self, case: _Case, *, gap: bool) -> bool:
        if not self._rules.one_window:
            return False
        if gap:
            case.held.append("one window: a gap, or a wait at the head, was in it")
        elif case.readings.samples < self._rules.fewest:
            case.held.append(f"one window: {case.readings.samples} requests are too few to go by")
        elif case.readings.lag is None and case.readings.missing <= MOSTLY_MISSING:
            case.held.append("one window: there was no record in it")
        return bool(case.held)

    # Dead zone, and pacing.

    def _by_strategy(self, wanted: ScalePlan, case: _Case) -> ScalePlan:
        """The policy's plan, by the strategy that holds."""
        strategy, why = self._strategy(wanted.strategy, case)
        if strategy is wanted.strategy:
            return wanted
        case.held.append(why)
        return self._policy.follow(strategy, case.readings, case.plan)

    def _strategy(self, wanted: ScalingStrategy, case: _Case) -> tuple[ScalingStrategy, str]:
        """The strategy to follow, and why that, if it is not what the policy wants."""
        rules, lag, missing, before = self._rules, case.readings.lag, case.readings.missing, case.plan.strategy
        if rules.dead_zone and before is ScalingStrategy.GAP and missing >= rules.leave_gap:
            return before, f"dead zone: still in a gap, until less than {rules.leave_gap:.0%} are not found"
        if lag is None or wanted is ScalingStrategy.GAP:
            return wanted, ""
        if rules.pacing and case.at_head:
            return ScalingStrategy.NORMAL, "pacing: at the head there is nothing to catch up with"
        if not rules.dead_zone:
            return wanted, ""
        behind = rules.leave_catch_up if before is ScalingStrategy.CATCH_UP else FAR_BEHIND
        if lag >= behind or (missing < NEVER_MISSING and lag > rules.enter_catch_up):
            return ScalingStrategy.CATCH_UP, f"dead zone: still catching up, until less than {behind:.0f} s behind"
        return ScalingStrategy.NORMAL, f"dead zone: {lag:.0f} s behind is no reason to catch up"

    def _close_enough(self, proposal: ScalePlan, case: _Case) -> int:
        """The workers of the proposal, unless those that there are will do."""
        rules, facts, missing = self._rules, case.facts, case.readings.missing
        if proposal.strategy is not ScalingStrategy.NORMAL or not case.at_head:
            return proposal.workers
        if rules.pacing and facts.head_rate is not None and facts.latency is not None:
            return self._keep_up(facts.head_rate * facts.latency * rules.spare, proposal, case)
        # Where ids are held back until they are due, there is no such thing as too few that are not found.
        near = missing - AT_HEAD < rules.near and (rules.pacing or AT_HEAD - missing < rules.near)
        if not (rules.dead_zone and near) or proposal.workers == case.plan.workers:
            return proposal.workers
        case.held.append(f"dead zone: {missing:.1%} not found is close enough to {AT_HEAD:.1%}")
        return case.plan.workers

    def _keep_up(self, need: float, proposal: ScalePlan, case: _Case) -> int:
        """At the head: those that keep up, and enough to spare that the next few periods need not change them."""
        least, most = self._scale.clamp_workers(need), self._scale.clamp_workers(need * self._rules.band)
        enough = case.plan.workers
        if not least <= enough <= most:
            enough = self._scale.clamp_workers(need * self._rules.band**0.5)
        if enough != proposal.workers:
            case.held.append(f"pacing: at the head {least} to {most} workers keep up")
        return enough

    # Little's law.

    def _by_littles_law(self, workers: int, strategy: ScalingStrategy, case: _Case) -> int:
        """What the upstream and the limiter make of it."""
        if not self._rules.little or case.facts.latency is None:
            return workers
        if case.facts.head_rate is not None and strategy is not ScalingStrategy.GAP:
            workers = self._needed(workers, case.facts.head_rate, case.facts.latency, case)
        if case.facts.permits is not None:
            workers = self._permitted(workers, case.facts.permits * case.facts.latency, case)
        return workers

    def _needed(self, workers: int, rate: float, latency: float, case: _Case) -> int:
        """As many as keep up with the upstream and clear the backlog, neither late nor in a rush."""
        rules, clamp, backlog = self._rules, self._scale.clamp_workers, case.facts.backlog
        behind = 0.0 if case.at_head or backlog is None else backlog
        least = clamp((rate + behind / rules.patience) * latency * rules.spare)
        if workers < least:
            case.held.append(f"little: {rate:.1f} ids/s and {behind:.0f} to catch up need {least} workers")
            return least
        # Those that there are may stay, for they get there sooner.
        most = max(case.plan.workers, clamp((rate + behind / rules.drain) * latency * rules.spare))
        if case.at_head or backlog is None or workers <= most:
            return workers
        case.held.append(f"little: {most} workers clear a backlog of {backlog:.0f} ids soon enough")
        return most

    def _permitted(self, workers: int, busy: float, case: _Case) -> int:
        """No more than the permits keep busy. To take some away, it must be plain that they are too many."""
        most = self._scale.clamp_workers(busy * self._rules.slack)
        plain = self._scale.clamp_workers(busy * self._rules.slack**2)
        if case.plan.workers <= plain:
            most = max(most, case.plan.workers)
        if workers <= most:
            return workers
        case.held.append(f"little: {case.facts.permits:.1f} permits/s keep no more than {most} workers busy")
        return most

    # Slew.

    def _slowly(self, workers: int, case: _Case) -> int:
        """In steps. Fewer only if the period before said so too."""
        rules, before = self._rules, case.plan.workers
        self._advised.append(workers)
        if not rules.slew:
            return workers
        most, least = (self._scale.clamp_workers(before * by) for by in (rules.most_up, 1 - rules.most_down))
        steady = min(before, max(self._advised))
        if workers > most:
            case.held.append(f"slew: {workers} are more than {rules.most_up:g} times {before}")
        elif workers < steady:
            case.held.append(f"slew: {steady} workers were right a period ago")
        elif workers < least:
            case.held.append(f"slew: {workers} are more than {rules.most_down:.0%} fewer than {before}")
        return min(most, workers) if workers >= before else max(workers, steady, least)

    def _worth_changing(self, workers: int, case: _Case) -> int:
        """The workers that there are, if it is hardly worth a change."""
        before = case.plan.workers
        small = self._rules.small_paced if self._rules.pacing else self._rules.small
        if not self._rules.dead_zone or not 0 < abs(workers - before) < max(1.0, small * before):
            return workers
        case.held.append(f"dead zone: from {before} to {workers} workers is hardly a change")
        return before

    # Knee.

    def _judge_last_rise(self, case: _Case) -> None:
        readings, permits = case.readings, case.facts.permits
        asked = readings.samples / readings.seconds if readings.seconds else 0.0
        throttled = permits is not None and asked >= USED * permits
        in_vain = self._knee.judge(readings, case.plan.workers, at_head=case.at_head, throttled=throttled)
        if in_vain and self._rules.knee:
            case.held.append(f"knee: {in_vain}")
            # Look again soon: if the verdict was wrong, that shows within seconds.
            self._rising = True

    def _below_knee(self, workers: int, case: _Case) -> int:
        ceiling = self._knee.ceiling
        if not self._rules.knee or ceiling is None or workers <= ceiling:
            return workers
        case.held.append(f"knee: for a while no more than {ceiling}")
        return ceiling


def _make_decision(proposal: ScalePlan, wanted: ScalePlan, case: _Case) -> Decision:
    why = proposal.why
    if case.held:
        changed = describe_change(case.plan.workers, proposal.workers)
        why = f"{changed}: {'; '.join(case.held)}. Without that: {wanted.why}"
    return Decision(replace(proposal, why=why), wanted, tuple(case.held))
