"""What a host's objections prove about its limit, seen through the limiter."""

from math import inf
from random import Random

import pytest
from driven import FAST, Driven, converse
from story import Story

from sanderling.limit import LimiterRules
from sanderling.limit.governor import Mode
from sanderling.limit.trials import Evidence
from sanderling.worlds.hosts import BucketQuota, SimulatedHost, steady


def learned(evidence: Evidence) -> str:
    return f"(learned from {evidence.value})"


def test_at_first_it_knows_nothing_and_grows() -> None:
    story = Story().serve(10)

    assert story.why == Mode.GROW.value
    assert story.driven.view().ceiling is None
    assert story.driven.view().rate > 50


@pytest.mark.parametrize("seconds", [4.6, 5.0, 5.4])
def test_a_refusal_while_growing_proves_most_of_what_was_asked_in_the_second_before(seconds: float) -> None:
    """That lies between the level that passed and the one that was refused."""
    story = Story().serve(seconds)
    passed = story.driven.view().rate / 1.5

    story.refuse()

    refused_at = next(each.at for each in story.asked if each.answer.status == 429)
    asked = sum(refused_at - 1 < each.at <= refused_at for each in story.asked)
    ceiling = story.driven.view().ceiling or 0
    assert story.why.endswith(learned(Evidence.PASSED))
    assert asked >= passed
    assert passed + 0.6 * (asked - passed) - 1 <= ceiling <= asked + 1


def test_the_first_refusal_is_chance_where_few_were_served_and_the_host_is_open_again_at_once() -> None:
    story = Story().serve(2).refuse(until=Mode.GROW)
    before = story.driven.view()
    assert (before.requests < 20, before.ceiling) == (True, None)

    story.serve(4)

    assert story.driven.view().rate > 1.9 * before.rate


@pytest.mark.parametrize("why", ["the second", "many served", "open again later"])
def test_any_other_refusal_counts(why: str) -> None:
    story = Story().serve(4.5 if why == "many served" else 1)
    if why == "the second":
        story.refuse(until=Mode.GROW).serve(0.5)

    story.refuse(seconds=3 if why == "open again later" else 0)

    assert (story.driven.view().requests < 20) == (why != "many served")
    assert (story.driven.view().ceiling or inf) < 45


def test_a_refusal_soon_after_proves_what_was_served_between_the_two() -> None:
    story = Story().serve(5).refuse().serve(1)
    before = story.driven.view()

    story.refuse()

    assert story.why.endswith(learned(Evidence.SATURATION))
    assert before.rate / 2 <= (story.driven.view().ceiling or 0) <= before.rate


def test_a_refusal_long_after_proves_that_the_host_allows_less() -> None:
    story = Story().serve(5).refuse().serve(until=Mode.TEST).refuse().serve(12)
    before = story.driven.view()
    assert before.why.startswith(Mode.CRUISE.value)

    story.refuse()

    assert story.why.endswith(learned(Evidence.CRUISE))
    assert (story.driven.view().ceiling or 0) < before.rate


def test_a_refusal_while_testing_proves_the_last_level_that_passed() -> None:
    story = Story().serve(5).refuse().serve(until=Mode.TEST)
    before = story.driven.view()
    assert before.rate > (before.ceiling or 0)

    story.refuse()

    assert story.why.endswith(learned(Evidence.PASSED))
    assert story.driven.view().ceiling == pytest.approx(before.ceiling)


def test_a_long_silence_proves_a_quota_over_a_window() -> None:
    story = Story().serve(5).refuse(seconds=8)

    assert story.why.endswith(learned(Evidence.WINDOW))
    served = sum(each.answer.status == 200 for each in story.asked)
    assert story.driven.view().ceiling == pytest.approx(served / story.driven.clock.now(), rel=0.1)


def test_once_fooled_by_saved_up_allowance_a_refused_test_proves_no_more_than_the_ceiling_before() -> None:
    """A test began with nothing saved up and gained nothing: what passed before was the bucket's depth."""
    driven = Driven(LimiterRules(pace=FAST))
    host = SimulatedHost(Random(1), BucketQuota(steady(20), 20))
    seen = [(Evidence.NOTHING.value, 0.0)]

    def note() -> bool:
        if driven.view().learned not in (None, seen[-1][0]):
            seen.append((driven.view().learned or "", driven.view().ceiling or 0))
        return seen[-1][0] == Evidence.DEPTH.value

    converse(driven, host.ask, 120, until=note)

    (*_, (_, before), (evidence, after)) = seen
    assert evidence == Evidence.DEPTH.value
    assert after == pytest.approx(before, rel=0.02)
    assert after == pytest.approx(20, rel=0.05)


def test_latency_proves_a_ceiling_too() -> None:
    driven = Driven(LimiterRules(pace=FAST))

    converse(driven, SimulatedHost(Random(1), network=0.075, service=steady(0.025)).ask, 60)

    assert driven.view().why.endswith(learned(Evidence.QUEUE))
    assert 25 < (driven.view().ceiling or 0) < 45


def test_every_kind_of_evidence_has_a_test_here() -> None:
    proved = {evidence.name for evidence in Evidence}

    assert proved == {"NOTHING", "PASSED", "SATURATION", "CRUISE", "WINDOW", "DEPTH", "QUEUE"}
