"""What the limiter is told about an outcome."""

from random import Random

import pytest

from sanderling.fetch.classify import ANSWERED, BY_STATUS, feedback
from sanderling.limit import Feedback, Limiter, Quota
from sanderling.outcome import Code, Outcome
from sanderling.testing.clock import FakeClock


@pytest.mark.parametrize("status", [0, 200, 400, 500])
@pytest.mark.parametrize("code", list(Code))
def test_the_breaker_opens_for_what_blames_the_host_and_for_nothing_else(code: Code, status: int) -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock, rng=Random(1))

    while limiter.snapshot().requests < 9 and (permit := limiter.try_acquire("a.example")):
        limiter.feedback(permit, feedback(Outcome(code, status), 0.1))
        clock.advance(5.0)

    assert limiter.snapshot().open == code.blames_host


@pytest.mark.parametrize(("status", "code"), [(200, Code.OK), *BY_STATUS.items(), (500, Code.HOST_UNAVAILABLE)])
def test_a_status_is_passed_on(status: int, code: Code) -> None:
    error = code if code.blames_host and status < 500 else None

    assert feedback(Outcome(code, status), 0.5) == Feedback(status=status, latency=0.5, error=error)


def test_hints_are_passed_on() -> None:
    quota = Quota(10, 60)

    told = feedback(Outcome(Code.RATE_LIMITED, 503, retry_after=9.0), 0.5, quota)

    assert told == Feedback(status=503, latency=0.5, retry_after=9.0, quota=quota)


@pytest.mark.parametrize("code", [code for code in Code if code.blames_host])
def test_no_answer_is_a_failure(code: Code) -> None:
    assert feedback(Outcome(code), 0.5) == Feedback(latency=0.5, error=code)


def test_a_cut_body_is_a_failure_although_its_status_was_fine() -> None:
    assert feedback(Outcome(Code.TRUNCATED, 200), 0.5) == Feedback(status=200, latency=0.5, error=Code.TRUNCATED)


def test_a_refusal_that_is_a_refusal_only_in_the_body_is_one_for_the_limiter() -> None:
    assert feedback(Outcome(Code.RATE_LIMITED, 200), 0.5).status == 429
    assert feedback(Outcome(Code.RATE_LIMITED), 0.5).status == 429


def test_a_500_that_means_not_found_does_not_count_against_the_host() -> None:
    assert feedback(Outcome(Code.CONTENT_NOT_FOUND, 500), 0.5) == Feedback(status=404, latency=0.5)


@pytest.mark.parametrize("code", sorted(ANSWERED))
def test_what_was_found_in_the_middle_of_an_answer_was_served(code: Code) -> None:
    assert feedback(Outcome(code), 0.5) == Feedback(status=404, latency=0.5)
    assert feedback(Outcome(code, 200), 0.5) == Feedback(status=200, latency=0.5)


@pytest.mark.parametrize("code", [Code.CANCELLED, Code.DEFERRED])
def test_what_was_not_answered_by_our_own_doing_teaches_nothing(code: Code) -> None:
    assert feedback(Outcome(code, retry_after=60.0), 0.5) == Feedback()


@pytest.mark.parametrize(
    "code", [Code.REFUSED, Code.INVALID_URL, Code.INVALID_RESPONSE, Code.INTERNAL_ERROR, Code.UNKNOWN_ERROR]
)
def test_without_a_status_and_with_nobody_to_blame_nothing_is_learned(code: Code) -> None:
    told = feedback(Outcome(code), 0.5)

    assert not told.status
    assert told.error is None


def test_a_redirect_to_where_we_do_not_go_was_an_answer() -> None:
    assert feedback(Outcome(Code.REFUSED, 302), 0.5) == Feedback(status=302, latency=0.5)
