"""Hours of a crawl under the guard, against what they are without it."""

from dataclasses import replace
from math import pi, sin

import pytest
from fluid_upstream import Fluid
from guarded_plans import OFF

from sanderling.sequence.guard import ScalingGuardRules


def test_six_steady_hours_with_their_ups_and_downs_change_few_plans() -> None:
    def wobbling(now: float) -> float:
        return 60 * (1 + 0.3 * sin(2 * pi * now / 21_600) + 0.1 * sin(2 * pi * now / 1_700))

    guarded = Fluid(rate=wobbling).run(6 * 3600)
    bare = Fluid(rate=wobbling).run(6 * 3600, OFF)

    assert guarded.changed <= 0.15
    assert bare.changed >= 0.4
    assert max(guarded.behind) < 30


@pytest.mark.parametrize("latency", [0.1, 0.25, 1.0])
@pytest.mark.parametrize("holes", [0.0, 0.02])
def test_an_hours_backlog_is_gone_in_hardly_more_than_the_limit_allows(latency: float, holes: float) -> None:
    """216,000 ids and 60 more each second, at 150 a second: 40 minutes."""
    story = Fluid(backlog=216_000, latency=lambda _: latency, holes=holes).run(3600)

    assert story.caught_up <= 1.05 * 40
    assert max(decision.plan.workers for _, _, decision in story.made) <= 150 * latency * 1.25 * 1.2 + 5


def test_a_host_that_becomes_slow_gets_more_workers_and_loses_them_again() -> None:
    story = Fluid(latency=lambda now: 1.0 if 3600 < now < 5400 else 0.25).run(3 * 3600)

    assert max(story.behind) < 300
    assert max(decision.plan.workers for _, _, decision in story.made) >= 60
    assert story.made[-1][2].plan.workers <= 30


def test_a_host_that_cannot_do_more_is_not_pushed() -> None:
    """It does 100 a second and no more; the limiter would allow 400."""
    story = Fluid(backlog=216_000, capacity=100.0, limit=400.0).run(3600)
    pushed = Fluid(backlog=216_000, capacity=100.0, limit=400.0).run(3600, replace(ScalingGuardRules(), knee=False))

    assert sum(before for _, before, _ in story.made) / len(story.made) < 40
    assert max(before for _, before, _ in pushed.made) > 150
