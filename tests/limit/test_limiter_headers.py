"""What a host says about its pace, in headers or passed on by the caller, and how it is heeded."""

from math import inf, nan
from typing import Literal

import pytest
from driven import HOST, Driven, converse

from sanderling.limit import Feedback, HostView, Limiter, LimiterRules, PaceRules, Quota
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.hosts import HostAnswer


def seen_after_headers(headers: dict[str, str], retry_after: float | None = None) -> HostView:
    """How the host looks after an answer with these headers."""

    async def main() -> HostView:
        limiter = Limiter(clock=LoopClock())
        async with limiter.attempt(HOST) as call:
            call.report(429, headers, latency=0.1, retry_after=retry_after)
        return limiter.snapshot().top[0]

    return run_virtual(main())


@pytest.mark.parametrize("name", ["Retry-After", "retry-after", "RETRY-AFTER"])
def test_an_attempt_reads_what_the_headers_ask_for_in_whichever_case(name: str) -> None:
    assert seen_after_headers({name: "60"}).not_before == pytest.approx(60)


def test_a_date_is_measured_by_the_clock_of_the_server() -> None:
    headers = {"date": "Sun, 06 Nov 1994 08:49:37 GMT", "retry-after": "Sun, 06 Nov 1994 08:50:07 GMT"}

    assert seen_after_headers(headers).not_before == pytest.approx(30)


def test_rate_headers_are_heeded_and_retry_after_goes_before_them() -> None:
    rate = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "600"}

    assert seen_after_headers(rate).not_before == pytest.approx(600)
    assert seen_after_headers(rate | {"Retry-After": "10"}).not_before == pytest.approx(10)


def test_what_the_caller_says_goes_before_the_headers() -> None:
    assert seen_after_headers({"Retry-After": "10"}, retry_after=20).not_before == pytest.approx(20)


def test_headers_that_cannot_be_read_are_ignored() -> None:
    assert seen_after_headers({"Retry-After": "soon", "X-RateLimit-Remaining": "few"}).not_before == 0


# What the host says about its pace.


@pytest.mark.parametrize("retry_after", [-1.0, nan, None, -inf])
def test_a_retry_after_that_is_none_is_ignored(retry_after: float | None) -> None:
    driven = Driven()

    driven.ask(429, retry_after=retry_after)

    assert driven.view().not_before == 0
    assert driven.limiter.ready_at(HOST) < 1


@pytest.mark.parametrize("retry_after", [-1.0, nan])
def test_a_retry_after_that_is_none_directs_nobody(retry_after: float) -> None:
    driven = Driven()

    for _ in range(5):
        driven.ask(503, retry_after=retry_after)

    assert driven.view().state == "open"


@pytest.mark.parametrize("retry_after", [1e18, inf, 400 * 86_400.0])
def test_a_retry_after_of_ages_is_a_year(retry_after: float) -> None:
    driven = Driven()

    driven.ask(429, retry_after=retry_after)

    assert driven.view().not_before == 366 * 86_400


def test_a_retry_after_is_never_shortened() -> None:
    driven = Driven()
    permits = [driven.next() for _ in range(3)]

    for permit, wait in zip(permits, (10, 600, 5), strict=True):
        driven.report(permit, 429, retry_after=wait)

    assert driven.view().not_before == pytest.approx(600)


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
def test_a_permit_given_back_does_not_shorten_it(strategy: Literal["governor", "aimd"]) -> None:
    driven = Driven(LimiterRules(strategy=strategy))
    answered, given_back = driven.next(), driven.next()
    driven.report(answered, 200, retry_after=60)

    given_back.release()

    assert driven.limiter.ready_at(HOST) >= driven.clock.now() + 60


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
def test_a_rate_that_rises_does_not_shorten_it(strategy: Literal["governor", "aimd"]) -> None:
    driven = Driven(LimiterRules(strategy=strategy, pace=PaceRules(initial_rps=20, max_rps=100)))
    converse(driven, lambda _now: HostAnswer(200, 0.01), 0.999)

    driven.ask(200, latency=0.05, retry_after=60)

    assert driven.view().rate > 20
    assert driven.limiter.ready_at(HOST) >= driven.clock.now() + 60


@pytest.mark.parametrize("status", [200, 301, 429, 503])
def test_a_retry_after_is_heeded_with_any_status(status: int) -> None:
    driven = Driven()

    driven.ask(status, retry_after=60)

    assert driven.view().not_before == pytest.approx(60)
    assert driven.view().why.startswith("told to wait another 60")


def quota(driven: Driven, remaining: float, resets_in: float, window: float | None = None) -> None:
    permit = driven.next()
    driven.limiter.feedback(permit, Feedback(200, 0.1, quota=Quota(remaining, resets_in, window=window)))


def test_what_remains_is_spread_over_the_time_to_the_reset() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=8)))

    quota(driven, remaining=100, resets_in=100)

    assert driven.view().rate == pytest.approx(0.95), "with a reserve of a twentieth"
    assert driven.view().why == "its rate headers say how much is left"


def test_a_generous_quota_raises_nothing() -> None:
    driven = Driven()

    quota(driven, remaining=10_000, resets_in=1)

    assert driven.view().rate == pytest.approx(2)


def test_after_the_reset_the_learned_rate_counts_again() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=8)))
    quota(driven, remaining=30, resets_in=60)

    driven.clock.advance(60)
    driven.ask()

    assert driven.view().rate >= 8


def test_when_nothing_remains_we_stay_away_until_the_reset() -> None:
    driven = Driven()

    quota(driven, remaining=0, resets_in=60)

    assert driven.view().not_before == pytest.approx(60)


@pytest.mark.parametrize(("window", "wait"), [(60.0, 60.0), (None, 3600.0)])
def test_a_reset_further_off_than_its_window_is_not_believed(window: float | None, wait: float) -> None:
    driven = Driven()

    quota(driven, remaining=0, resets_in=1e6, window=window)

    assert driven.view().not_before == pytest.approx(wait)


def test_retry_after_goes_before_the_rate_headers() -> None:
    driven = Driven()
    permit = driven.take()

    driven.limiter.feedback(permit, Feedback(429, 0.1, retry_after=10, quota=Quota(0, 600)))

    assert driven.view().not_before == pytest.approx(10)
