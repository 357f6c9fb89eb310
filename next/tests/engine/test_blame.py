"""Whose fault it is, as one pure function: played with made-up ends, without a loop and without time."""

from dataclasses import replace
from math import inf, isclose
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.engine.blame import END, Verdict, judge, judge_by_retry
from sanderling.engine.ends import Ended, HostEnds, Standing, standing_of
from sanderling.engine.rules import BlameRules
from sanderling.outcome import Code, Outcome

OK, MISSING = Outcome(Code.OK, 200), Outcome(Code.CONTENT_NOT_FOUND, 404)
ERROR, RESET, CUT = Outcome(Code.HOST_UNAVAILABLE, 503), Outcome(Code.CONNECTION_RESET), Outcome(Code.TRUNCATED, 200)
REFUSED, UNSENT = Outcome(Code.RATE_LIMITED, 429), Outcome(Code.CONNECTION_REFUSED, sent=False)
GUARD, DEFERRED = Outcome(Code.REFUSED, sent=False), Outcome(Code.DEFERRED, retry_after=9.0, sent=False)
RULES = BlameRules()

outcomes = st.sampled_from((OK, MISSING, ERROR, RESET, CUT, REFUSED, UNSENT, GUARD, DEFERRED))
systems = st.builds(
    BlameRules, row=st.integers(1, 20), own_row=st.integers(1, 5), most_failures=st.integers(1, 30),
    improbable=st.sampled_from((1e-9, 1e-6, 1e-3)),
)  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> HostEnds:
    """What may have happened at a host: requests for few items, so that they fail again and again."""
    ends = HostEnds()
    now = 0.0
    for _ in range(draw(st.integers(0, 40))):
        now += draw(st.sampled_from((0.0, 0.5, 20.0, 700.0)))
        key = draw(st.integers(0, 8))
        failures = ends.failures_of(key, draw(st.integers(0, 3)))
        ends.note(Ended(key, failures, draw(outcomes), now, probe=draw(st.booleans()), of_host=draw(st.booleans())))
    return ends


@pytest.mark.parametrize(
    ("outcome", "standing", "life"),
    [
        (OK, Standing.ANSWERED, True),
        (MISSING, Standing.ANSWERED, True),
        (Outcome(Code.ACCESS_DENIED, 403), Standing.ANSWERED, True),
        (Outcome(Code.REDIRECT_LOOP, 302), Standing.ANSWERED, True),
        (Outcome(Code.TOO_LARGE, 200), Standing.ANSWERED, True),
        (GUARD, Standing.ANSWERED, False),
        (CUT, Standing.FAILED, True),
        (ERROR, Standing.FAILED, False),
        (RESET, Standing.FAILED, False),
        (UNSENT, Standing.FAILED, False),
        (REFUSED, Standing.REFUSED, False),
        (DEFERRED, Standing.UNSENT, False),
        (Outcome(Code.CANCELLED), Standing.UNSENT, False),
    ],
)
def test_what_a_response_says(outcome: Outcome, standing: Standing, *, life: bool) -> None:
    assert standing_of(outcome) is standing
    assert Ended("a", 0, outcome, 0.0).shows_life is life


@given(histories(), outcomes, st.integers(0, 40), st.booleans(), st.booleans(), systems)
def test_whatever_happened_before(
    ends: HostEnds, outcome: Outcome, failures: int, probe: bool, of_host: bool, rules: BlameRules
) -> None:
    ended = Ended("a", failures, outcome, 1e5, probe=probe, of_host=of_host)

    judgement = judge(ended, ends, rules)

    match judgement.verdict:
        case Verdict.END:
            assert ended.standing is Standing.ANSWERED
        case Verdict.FAIL:
            assert ended.standing is Standing.FAILED
            assert not ended.blames_host
            assert judgement.failures == failures + 1 >= rules.limit(ends.usual)
            assert ends.answered_at is not None or ended.shows_life  # else nothing speaks against the item
        case Verdict.RETRY:
            assert judgement.failures == failures + 1 < rules.limit(ends.usual)
        case Verdict.WAIT:
            assert judgement.failures == failures
    if judgement.verdict is not Verdict.END and ended.standing is not Standing.REFUSED:
        assert 0 <= judgement.wait < inf
    assert judge(ended, ends, rules) == judgement


@given(histories(), systems)
def test_only_something_good_brings_a_host_back(ends: HostEnds, rules: BlameRules) -> None:
    was_down = ends.is_down(rules)
    for outcome in (ERROR, REFUSED, DEFERRED, GUARD):
        ends.note(Ended("x", 0, outcome, 1e5))
        assert ends.is_down(rules) >= was_down
    ends.note(Ended("x", 0, MISSING, 1e5))
    assert not ends.is_down(rules)
    assert not ends.is_hopeless(0.0, rules)


@given(st.integers(1, 30), st.lists(st.sampled_from((ERROR, RESET)), min_size=1, max_size=60))
def test_it_takes_different_items_to_blame_their_host(row: int, failures: list[Outcome]) -> None:
    rules = replace(RULES, row=row)
    one, many = HostEnds(), HostEnds()
    for number, outcome in enumerate(failures):
        one.note(Ended("same", number, outcome, 0.0))
        many.note(Ended(number, 0, outcome, 0.0))

    assert not one.is_down(rules) or row == 1
    assert many.is_down(rules) == (len(failures) >= max(row, 4))


@pytest.mark.parametrize(("outcome", "of_host"), [(UNSENT, False), (ERROR, True)])
def test_what_cannot_be_an_items_fault_closes_a_host_after_three(outcome: Outcome, of_host: bool) -> None:
    ends = HostEnds()
    for _ in range(3):
        assert not ends.is_down(RULES)
        judgement = judge(Ended("a", 2, outcome, 0.0, of_host=of_host), ends, RULES)
        assert (judgement.verdict, judgement.failures) == (Verdict.WAIT, 2)
        ends.note(Ended("a", 2, outcome, 0.0, of_host=of_host))
    assert ends.is_down(RULES)


@pytest.mark.parametrize(("share", "limit"), [(0.0, 4), (0.01, 4), (0.1, 7), (0.3, 12), (0.5, 20), (0.9, 20), (1, 20)])
def test_an_item_ends_when_its_failures_are_improbable(share: float, limit: int) -> None:
    assert RULES.limit(share) == limit


@given(st.floats(0.0, 0.4), st.integers(0, 2**32))
def test_the_usual_share_of_failures_is_learned_from_items_that_are_answered_in_the_end(
    share: float, seed: int
) -> None:
    random, ends = Random(seed), HostEnds()
    for item in range(400):
        failures = 0
        while random.random() < share:
            ends.note(Ended(item, failures, ERROR, float(item)))
            failures += 1
        ends.note(Ended(item, failures, OK, float(item)))
        ends.note(Ended("always bad", item, ERROR, float(item)))

    assert isclose(ends.usual, share, abs_tol=0.17)


def test_a_bad_probe_forgives_all_that_failed_since_the_last_good_response() -> None:
    ends = HostEnds()
    ends.note(Ended("x", 0, OK, 0.0))
    for key in "abcde":
        ends.note(Ended(key, 2, ERROR, 1.0))
    ends.note(Ended("x", 0, ERROR, 2.0, probe=True))

    assert [ends.failures_of(key, 3) for key in "abcde"] == [2] * 5
    assert ends.failures_of("f", 3) == 3
    ends.note(Ended("x", 0, OK, 3.0, probe=True))
    assert [ends.failures_of(key, 3) for key in "abcde"] == [2] * 5
    ends.forget("a")
    assert ends.failures_of("a", 3) == 3


def test_what_is_refused_for_ever_while_others_are_answered_waits_for_another_run() -> None:
    ends = HostEnds()
    waits = []
    for at in (0.0, 2.0, 12.0, 650.0):
        waits.append(judge(Ended("a", 1, REFUSED, at), ends, RULES).wait)
        ends.note(Ended("a", 1, REFUSED, at))
        ends.note(Ended("b", 0, OK, at + 0.1))

    assert waits == [0.0, 2.0, 10.0, inf]
    assert judge(Ended("c", 0, REFUSED, 700.0), ends, RULES).wait == 0.0


@pytest.mark.parametrize(
    ("answered", "silence", "wait", "hopeless"),
    [
        (True, 600.0, 0.0, False),
        (True, 600.1, 0.0, True),
        (False, 15.0, 0.0, False),
        (False, 15.1, 0.0, True),
        (True, 0.0, 600.0, False),
        (True, 0.0, 600.1, True),
    ],
)
def test_patience(answered: bool, silence: float, wait: float, hopeless: bool) -> None:
    ends = HostEnds()
    if answered:
        ends.note(Ended("a", 0, OK, 0.0))
    ends.note(Ended("b", 0, ERROR, 1.0))
    ends.note(Ended("b", 1, ERROR, 1.0 + silence))

    assert ends.is_hopeless(wait, RULES) is hopeless


def test_where_a_rule_of_retries_decides_nobody_is_blamed() -> None:
    def twice(host: str, failures: int, outcome: Outcome) -> float | None:
        return 7.0 if failures < 3 and outcome is not REFUSED else None

    assert judge_by_retry(Ended("a", 0, MISSING, 0.0), twice, "host.example") == END
    assert judge_by_retry(Ended("a", 0, ERROR, 0.0), None, "host.example") == END
    retried = judge_by_retry(Ended("a", 1, ERROR, 0.0), twice, "host.example")
    assert (retried.verdict, retried.failures, retried.wait) == (Verdict.RETRY, 2, 7.0)
    assert judge_by_retry(Ended("a", 2, ERROR, 0.0), twice, "host.example").verdict is Verdict.FAIL
    assert judge_by_retry(Ended("a", 0, REFUSED, 0.0), twice, "host.example").verdict is Verdict.FAIL
    unsent = judge_by_retry(Ended("a", 1, DEFERRED, 0.0), twice, "host.example")
    assert (unsent.verdict, unsent.failures, unsent.wait) == (Verdict.WAIT, 1, 9.0)
