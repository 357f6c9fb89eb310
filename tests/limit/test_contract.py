"""A rate that somebody has set: only what a host says of its limits stretches it, and it comes back within seconds."""

from collections import deque
from collections.abc import Callable, Iterable

import pytest
from driven import HOST, Asked, Driven
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit import Feedback, LimiterRules
from sanderling.worlds.hosts import HostAnswer

RPS, CADENCE = 100.0, 0.2  # what the operator allows at most, and what is asked for
OK, REFUSED = HostAnswer(200, 0.05), HostAnswer(429, 0.01)

Upstream = Callable[[float], HostAnswer]


def contract() -> Driven:
    return Driven(LimiterRules.contract(RPS))


def poll(driven: Driven, ask: Upstream, seconds: float) -> list[Asked]:
    """One document on a grid: asked for at each point, or as soon after it as the limiter lets it."""
    asked, point, clock = list[Asked](), driven.clock.now(), driven.clock
    end = point + seconds
    while (at := max(point, driven.limiter.ready_at(HOST))) < end:
        driven.wait_until(at)
        answer = ask(at)
        permit = driven.limiter.try_acquire(HOST)
        if permit is None:  # the circuit has rested and must be asked about again
            continue
        asked.append(Asked(at, answer))
        clock.advance(answer.latency)
        driven.report(permit, answer.status, answer.latency, answer.retry_after)
        while point <= clock.now():
            point += CADENCE
    driven.wait_until(end)
    return asked


def rate(asked: Iterable[Asked], begin: float, end: float) -> float:
    return sum(begin <= each.at < end for each in asked) / (end - begin)


def refused(asked: Iterable[Asked]) -> int:
    return sum(each.answer.status == 429 for each in asked)


class Quota:
    """So many requests in so many seconds, and a bare refusal for those beyond."""

    def __init__(self, requests: int, seconds: float, until: float) -> None:
        self._requests = requests
        self._seconds = seconds
        self._until = until
        self._served: deque[float] = deque()

    def __call__(self, now: float) -> HostAnswer:
        """What a request gets."""
        while self._served and self._served[0] <= now - self._seconds:
            self._served.popleft()
        if now < self._until and len(self._served) >= self._requests:
            return REFUSED
        self._served.append(now)
        return OK


# No refusal, no Retry-After.

FAILURES = st.sampled_from(
    [
        Feedback(500, 0.01),
        Feedback(502, 0.01),
        Feedback(503, 0.01),
        Feedback(529, 0.01),
        Feedback(0, 5.0, error="timeout"),
        Feedback(0, 0.001, error="refused", unsent=True),
        Feedback(0, 0.001, error="reset"),
        Feedback(200, 0.3, error="the body ended early"),
    ]
)
ANSWERS = st.builds(Feedback, st.sampled_from([200, 204, 304, 403, 404]), st.floats(0.0001, 60.0))


@given(st.lists(st.tuples(FAILURES | ANSWERS, st.integers(1, 40), st.floats(0.0, 200.0)), max_size=12))
def test_without_a_refusal_the_rate_is_what_was_set(played: list[tuple[Feedback, int, float]]) -> None:
    driven = contract()

    for feedback, times, idle in played:
        for _ in range(times):
            driven.wait_until(driven.limiter.ready_at(HOST))
            permit = driven.limiter.try_acquire(HOST)
            if permit is None:
                continue
            assert driven.view().rate == pytest.approx(RPS)
            driven.clock.advance(feedback.latency)
            driven.limiter.feedback(permit, feedback)
            assert driven.view().rate == pytest.approx(RPS)
        driven.clock.advance(idle)

    longest = driven.limiter.rules.breaker.longest * (1 + driven.limiter.rules.breaker.jitter)
    assert driven.limiter.ready_at(HOST) - driven.clock.now() <= longest


# Refusals.


def test_a_refusal_alone_costs_a_moment() -> None:
    driven = contract()

    asked = poll(driven, lambda now: REFUSED if 10 <= now < 10.2 else OK, 20)

    assert refused(asked) == 1
    assert rate(asked, 11, 20) == pytest.approx(5.0, rel=0.03)


@pytest.mark.parametrize("before", [5.0, 300.0])
@pytest.mark.parametrize("seconds", [1.0, 10.0, 90.0])
def test_a_host_that_refuses_everything_is_left_alone_and_taken_up_when_it_opens(before: float, seconds: float) -> None:
    driven, back = contract(), before + seconds

    asked = poll(driven, lambda now: REFUSED if before <= now < back else OK, back + 20)

    assert refused(asked) <= 5 + seconds / 2
    assert rate(asked, back + 4, back + 20) == pytest.approx(5.0, rel=0.03)


def test_a_quota_below_the_cadence_is_kept_and_its_end_is_noticed() -> None:
    driven = contract()

    asked = poll(driven, Quota(2, 1.0, until=300.0), 340)
    under = [each for each in asked if each.at < 300]

    assert refused(under) <= 0.1 * len(under)
    assert len(under) - refused(under) >= 0.8 * 2 * 300
    assert rate(asked, 318, 340) == pytest.approx(5.0, rel=0.03)


def test_a_quota_per_minute_is_spread_over_the_minute() -> None:
    driven = contract()

    asked = poll(driven, Quota(100, 60.0, until=1e9), 1800)
    late = [each for each in asked if each.at >= 600]

    assert refused(late) <= 0.05 * len(late)
    assert len(late) - refused(late) >= 0.85 * 100 * 20


def test_a_retry_after_is_an_order_and_the_cadence_is_there_when_it_is_over() -> None:
    driven = contract()

    asked = poll(driven, lambda now: HostAnswer(503, 0.01, 60.0) if 10 <= now < 10.2 else OK, 90)
    told = next(each.at for each in asked if each.answer.retry_after)

    assert not [each for each in asked if told < each.at < told + 60]
    assert rate(asked, told + 61, 90) == pytest.approx(5.0, rel=0.03)


def test_a_host_that_fails_after_it_has_refused_is_asked_once_a_second() -> None:
    driven = contract()

    asked = poll(driven, lambda now: REFUSED if now < 60 else HostAnswer(500, 0.001) if now < 120 else OK, 150)

    failed = next(each.at for each in asked if each.answer.status == 500)
    assert rate(asked, failed, failed + 2) <= 1.5, "not before the circuit opens either"
    assert 0.7 <= rate(asked, 64, 120) <= 1.3
    assert rate(asked, 122, 150) == pytest.approx(5.0, rel=0.03)


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_says_now_is_asked_once_a_second(status: int) -> None:
    driven = contract()

    asked = poll(driven, lambda now: HostAnswer(status, 0.001, 0.0) if now < 90 else OK, 120)

    assert 0.7 <= rate(asked, 20, 90) <= 1.3
    assert rate(asked, 92, 120) == pytest.approx(5.0, rel=0.03)


def test_a_ceiling_of_an_earlier_life_is_outgrown_within_seconds() -> None:
    driven, later = contract(), contract()
    poll(driven, Quota(1, 1.0, until=1e9), 60)

    later.limiter.restore(driven.limiter.save())
    asked = poll(later, lambda _now: OK, 30)

    assert driven.view().ceiling is not None
    assert rate(asked, 0, 2) <= 2.0
    assert rate(asked, 8, 30) == pytest.approx(5.0, rel=0.03)
