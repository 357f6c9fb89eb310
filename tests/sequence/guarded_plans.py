"""Plans, readings and facts to decide on, and guards to do it."""

from dataclasses import replace

from sanderling.sequence.guard import Decision, Guard, ScalingGuardRules, UpstreamFacts
from sanderling.sequence.readings import PeriodReadings
from sanderling.sequence.scaling import AtlasPolicy, ScalePlan, ScaleRules, ScalingStrategy

SCALE = ScaleRules()
OFF = ScalingGuardRules(one_window=False, dead_zone=False, slew=False, little=False, knee=False, pacing=False)
AT_HEAD = PeriodReadings(
    lag=15.0, missing=0.02, errors=0.0, rate=60.0, missing_count=400, samples=20_000, seconds=300.0
)
BEHIND = replace(AT_HEAD, lag=900.0, missing=0.0, missing_count=0)
UNKNOWN = UpstreamFacts()
KNOWN = UpstreamFacts(head_rate=60.0, latency=0.25, permits=150.0, backlog=100.0)


def guard(rules: ScalingGuardRules | None = None) -> Guard:
    """A guard that has decided nothing yet."""
    return Guard(AtlasPolicy(SCALE), rules or ScalingGuardRules(), SCALE)


def only(**on: bool) -> ScalingGuardRules:
    """None but these rules."""
    return replace(OFF, **on)


def plan(workers: int = 25, strategy: ScalingStrategy = ScalingStrategy.NORMAL) -> ScalePlan:
    """What the period was run with."""
    return ScalePlan(workers, 10_000, strategy, "")


def decide(
    rules: ScalingGuardRules,
    readings: PeriodReadings,
    before: ScalePlan,
    facts: UpstreamFacts = UNKNOWN,
    *,
    gap: bool = False,
) -> Decision:
    """The first decision of a guard with these rules."""
    return guard(rules).decide(readings, facts, before, gap=gap)
