"""The plain law, as it moves the rate of a real limiter."""

from random import Random

import pytest
from driven import Driven, converse

from sanderling.limit import BreakerRules, LimiterRules, PaceRules
from sanderling.worlds.hosts import HostAnswer, SimulatedHost, steady

PACE = PaceRules(initial_rps=4, min_rps=1, max_rps=8, increase=0.5, decrease=0.5)
NEVER = BreakerRules(consecutive=10**6)


def driven_by(pace: PaceRules = PACE) -> Driven:
    return Driven(LimiterRules(pace=pace, breaker=NEVER, strategy="aimd"))


def quick(_now: float) -> HostAnswer:
    return HostAnswer(200, 0.1)


def test_a_good_window_adds_a_little() -> None:
    driven = driven_by()

    converse(driven, quick, 1.2)
    assert driven.view().rate == pytest.approx(4.5)

    converse(driven, quick, 1.2)
    assert driven.view().rate == pytest.approx(5)


def test_the_rate_never_leaves_its_bounds() -> None:
    driven = driven_by()

    converse(driven, quick, 60)
    assert driven.view().rate == pytest.approx(8)
    assert driven.view().why == "at its ceiling"

    for _ in range(10):
        driven.ask(500)
    assert driven.view().rate == pytest.approx(1)
    assert driven.view().why == "adding a little after each good window"


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_trouble_takes_a_share_away(status: int) -> None:
    driven = driven_by()

    driven.ask(status)

    assert driven.view().rate == pytest.approx(2)


def test_what_came_before_the_trouble_counts_for_nothing() -> None:
    """A window that began with successes and ended in trouble is not a good one."""
    driven = driven_by()
    for _ in range(3):
        driven.ask()
    driven.ask(500)

    driven.ask()

    assert driven.view().rate == pytest.approx(2)


def test_a_missing_page_moves_nothing() -> None:
    driven = driven_by()

    converse(driven, lambda _now: HostAnswer(404, 0.1), 20)

    assert driven.view().rate == pytest.approx(4)


def test_until_a_host_has_shown_its_latency_the_target_counts_as_fast() -> None:
    fast, slow = driven_by(), driven_by()

    converse(fast, lambda _now: HostAnswer(200, 1.9), 4)
    converse(slow, lambda _now: HostAnswer(200, 6.0), 10)

    assert fast.view().rate > 4
    assert slow.view().rate < 4


def test_a_queue_of_our_own_making_makes_it_ask_less() -> None:
    driven = driven_by(PaceRules(initial_rps=20, min_rps=1, max_rps=40))
    host = SimulatedHost(Random(1), service=steady(0.1))

    asked = converse(driven, host.ask, 200)

    assert driven.view().rate < 12
    assert len([each for each in asked if each.at > 100]) > 0.7 * 10 * 100


def test_after_a_restart_it_knows_no_ceiling() -> None:
    before, after = driven_by(), driven_by()
    converse(before, quick, 60)

    after.limiter.restore(before.limiter.save())
    after.next()

    assert after.view().ceiling is None
    assert after.view().rate == pytest.approx(4)
