"""Plans, readings and facts to decide on, and guards to do it."""

from dataclasses import replace

from sanderling.sequence.guard import Decision, Facts, Guard, GuardRules
from sanderling.sequence.scaling import AtlasPolicy, Plan, Readings, ScaleRules, Strategy

SCALE = ScaleRules()
OFF = GuardRules(one_window=False, dead_zone=False, slew=False, little=False, knee=False, pacing=False)
AT_HEAD = Readings(lag=15.0, missing=0.02, errors=0.0, rate=60.0, missing_count=400, samples=20_000, seconds=300.0)
BEHIND = replace(AT_HEAD, lag=900.0, missing=0.0, missing_count=0)
UNKNOWN = Facts()
KNOWN = Facts(head_rate=60.0, latency=0.25, permits=150.0, backlog=100.0)


def guard(rules: GuardRules | None = None) -> Guard:
    """A guard that has decided nothing yet."""
    return Guard(AtlasPolicy(SCALE), rules or GuardRules(), SCALE)


def only(**on: bool) -> GuardRules:
    """None but these rules."""
    return replace(OFF, **on)


def plan(workers: int = 25, strategy: Strategy = Strategy.NORMAL) -> Plan:
    """What the period was run with."""
    return Plan(workers, 10_000, strategy, "")


def decide(
    rules: GuardRules, readings: Readings, before: Plan, facts: Facts = UNKNOWN, *, gap: bool = False
) -> Decision:
    """The first decision of a guard with these rules."""
    return guard(rules).decide(readings, facts, before, gap=gap)
