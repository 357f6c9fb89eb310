"""A limiter that is used wrongly raises; it never crashes, leaks or loses a permit."""

import asyncio
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules
from sanderling.testing import FakeClock


class Forgetful(Limiter):
    """A subclass that does not call the constructor above it."""

    def __init__(self) -> None: ...


@pytest.mark.parametrize("make", [lambda: Limiter.__new__(Limiter), Forgetful])
def test_a_limiter_that_was_never_made_raises(make: Callable[[], Limiter]) -> None:
    with pytest.raises(AttributeError):
        make().try_acquire("a.example")
    with pytest.raises(AttributeError):
        asyncio.run(make().acquire("a.example"))


def test_a_clock_may_let_go_of_the_host_that_is_being_asked_for() -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock)
    assert limiter.try_acquire("a.example") is not None
    told = limiter._now

    def forgetful() -> float:
        limiter._gates.clear()
        return told() + 10

    limiter._now = forgetful

    permit = limiter.try_acquire("a.example")
    assert permit is not None
    limiter.feedback(permit, Feedback(200, 0.1))
    assert not permit.live


@pytest.mark.parametrize("feedback", [None, 3, "ok"])
def test_feedback_of_the_wrong_kind_is_an_error_and_the_permit_stays_good(feedback: object) -> None:
    clock = FakeClock()
    limiter: Any = Limiter(clock=clock)
    for _ in range(3):  # the first answers are learned from one by one, later ones only counted
        permit = limiter.try_acquire("a.example")
        limiter.feedback(permit, Feedback(200, 0.1))
        clock.advance(10)
    permit = limiter.try_acquire("a.example")

    with pytest.raises(AttributeError):
        limiter.feedback(permit, feedback)
    assert permit.live
    with pytest.raises(AttributeError):
        limiter.feedback(feedback, Feedback(200))
    with pytest.raises(TypeError):
        limiter.try_acquire([])


@pytest.mark.parametrize("latency", [0.0, -1.0, inf, nan])
def test_a_latency_that_is_none_is_counted_but_not_measured(latency: float) -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock)
    for value in (0.1, latency):
        clock.advance(1)
        permit = limiter.try_acquire("a.example")
        assert permit is not None
        limiter.feedback(permit, Feedback(200, value))

    (view,) = limiter.snapshot().top
    assert view.latency == 0.1
    assert view.inflight == 0


def test_an_acquire_that_is_never_awaited_takes_nothing() -> None:
    limiter = Limiter(clock=FakeClock())
    assert limiter.try_acquire("a.example") is not None

    limiter.acquire("a.example").close()

    assert limiter.snapshot().requests == 1


def test_a_permit_says_what_it_is() -> None:
    limiter = Limiter(LimiterRules(pace=PaceRules()), clock=FakeClock())
    permit = limiter.try_acquire("a.example")
    assert permit is not None

    assert repr(permit) == "<Permit 1 for a.example, live>"
    permit.release()
    assert repr(permit) == "<Permit 1 for a.example, spent>"
