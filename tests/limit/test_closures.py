"""How long a host stays closed, and what that says: when to probe, which quota it is, whether it is one at all."""

from itertools import pairwise
from math import inf
from random import Random

import pytest
from driven import Asked, Driven, converse
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit import LimiterRules, PaceRules
from sanderling.limit.closures import QUOTA_WINDOWS, Closures
from sanderling.limit.governor import Mode
from sanderling.worlds.hosts import FixedWindowQuota, HostQuota, SimulatedHost, SlidingWindowQuota

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
WINDOWS = QUOTA_WINDOWS[1:]

# Probes.


def probes(closures: Closures, refused_at: float, until: float) -> list[float]:
    """When probes leave, all of them being refused, up to `until`."""
    left = [refused_at]
    while left[-1] < until:
        left.append(closures.next_probe(refused_at, len(left) - 1, 0.25, left[-1]))
    return left


def opened(at: list[float]) -> Closures:
    """A host that was closed a few times, for reasons of its own."""
    closures = Closures(0.0)
    for number, instant in enumerate(sorted(at)):
        closures.reopen(instant, 10 * number)
    return closures


@given(st.lists(st.floats(0, HOUR), max_size=5), st.floats(HOUR, 2 * HOUR))
def test_no_probe_is_late_by_more_than_an_eighth_of_the_closure(openings: list[float], refused_at: float) -> None:
    left = probes(opened(openings), refused_at, refused_at + 3 * DAY)

    for before, after in pairwise(left):
        # A little longer where a window ends just then.
        assert before < after <= before + 1.25 * min(600.0, max(20.0, 0.12 * (before - refused_at)))
    assert len(left) < 600


@given(st.lists(st.floats(0, HOUR), max_size=3), st.floats(0, 20))
def test_a_probe_leaves_as_each_window_ends_that_began_when_the_host_opened(openings: list[float], busy: float) -> None:
    closures = opened(openings)
    refused_at = max([0.0, *openings]) + busy

    left = probes(closures, refused_at, refused_at + 2 * DAY)[1:]

    ends = [start + window for start in (0.0, *openings) for window in WINDOWS]
    for end in ends:
        assert end <= refused_at or min(abs(each - end - 0.02) for each in left) < 0.3, end


def test_a_window_that_is_known_is_probed_as_it_ends_time_and_again() -> None:
    closures = Closures(0.0)
    closures.close(10.0, 600)
    closures.open(50.0, 60.0, 600)

    left = probes(closures, 130.0, 400.0)

    for end in (180.0, 240.0, 300.0, 360.0):
        assert min(abs(each - end - 0.02) for each in left) < 1e-6


# Windows.


@given(st.sampled_from(WINDOWS), st.integers(10, 100_000), st.floats(0.01, 0.8))
def test_one_closure_that_lasts_until_its_window_ends_tells_the_window_and_the_count(
    window: float, count: int, share: float
) -> None:
    shorter = max((each for each in QUOTA_WINDOWS if each < window), default=0.0)
    refused_at = min(
        share * window, window - 1.1 * shorter
    )  # so that it is closed for longer than the next shorter one
    closures = Closures(0.0)
    closures.close(refused_at, count)

    rate = closures.open(window - refused_at, window, count)

    assert closures.window == window
    assert rate == pytest.approx(count / window)


@given(st.lists(st.tuples(st.floats(1.1, 50), st.integers(1, 200)), max_size=20), st.floats(1, 2000))
def test_shorter_closures_reset_nothing_of_a_longer_window(
    closed: list[tuple[float, int]], served_before: float
) -> None:
    """A day's worth of minutes that were full: what the hour allows is what was served in the hour."""
    closures, now, served = Closures(0.0), HOUR, int(served_before)
    closures.close(served_before, served)
    assert closures.open(HOUR - 1, now, served) == pytest.approx(served / HOUR)

    for seconds, count in closed:
        now += seconds
        served += count
        closures.close(now, served)
        rate = closures.open(seconds, now + seconds, served)
        now += seconds

        assert closures.window == HOUR
        assert rate <= served / HOUR + 1e-9
        assert rate >= (served - int(served_before)) / (2 * HOUR)


def test_what_was_served_is_counted_over_a_window_or_two_and_not_since_the_host_last_opened() -> None:
    """A host that was hardly asked for a day has not shown that its hours allow so little."""
    closures = Closures(0.0)
    closures.close(100.0, 1000)
    closures.open(HOUR - 100, HOUR, 1000)

    for hour in range(2, 30):
        closures.mark(hour * HOUR, 1000 + hour)
    closures.close(30 * HOUR, 2030)

    assert closures.open(HOUR / 2, 30.5 * HOUR, 2030) > 1000 / (4 * HOUR)


# Recurring.


@pytest.mark.parametrize(
    ("count", "seconds", "recurs"),
    [
        (600, 60.0, True),
        (610, 500.0, True),
        (300, 59.0, True),
        (300, 90.0, False),
        (900, 200.0, False),
    ],
)
def test_a_closure_recurs_after_as_many_requests_or_as_long(count: int, seconds: float, *, recurs: bool) -> None:
    closures = Closures(0.0)
    assert not closures.recurs(60.0, 600), "there was none before"
    closures.close(60.0, 600)
    closures.reopen(100.0, 601)

    assert closures.recurs(100.0 + seconds, 601 + count) == recurs
    closures.close(100.0 + seconds, 601 + count)
    assert closures.confirmed == recurs


# Seen through the limiter.


def asked_until(quota: HostQuota, seconds: float, seed: int, closures: int = 1000) -> tuple[list[Asked], Driven]:
    """What was asked of a host, for so long or until it was closed so often for more than a second.

    Its answers take the same time each: what is learned from latency is tested elsewhere.
    """
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=5, max_rps=200)))
    found, closed_at = 0, inf

    def note() -> bool:
        nonlocal found, closed_at
        now, draining = driven.clock.now(), driven.view().why.startswith(Mode.DRAIN.value)
        found += not draining and now - closed_at > 1
        closed_at = min(closed_at, now) if draining else inf
        return found == closures

    asked = converse(driven, SimulatedHost(Random(seed), quota, spread=0.0).ask, seconds, until=note)
    assert found, "it was closed"
    return asked, driven


@given(
    st.sampled_from(WINDOWS),
    st.floats(1.1, 3).map(lambda size: round(10**size)),
    st.sampled_from([FixedWindowQuota, SlidingWindowQuota]),
    st.integers(0, 99),
)
def test_a_quota_over_any_window_is_learned_within_two_closures(
    window: float, count: int, kind: type[FixedWindowQuota] | type[SlidingWindowQuota], seed: int
) -> None:
    count = min(count, round(15 * window))  # beyond that it is met after more than a window

    _, driven = asked_until(kind(count, window), 3 * window, seed, closures=2)

    assert driven.view().ceiling == pytest.approx(count / window, rel=0.1)


@given(st.sampled_from(WINDOWS[1:]), st.floats(1, 3), st.floats(0, 1), st.integers(0, 99))
def test_a_window_that_did_not_begin_with_us_is_learned_in_a_few(
    window: float, size: float, phase: float, seed: int
) -> None:
    """It is cut short for us at first, and looks like a shorter one, or like less."""
    count = round(10**size)

    asked, driven = asked_until(FixedWindowQuota(count, window, phase=phase * window), 6 * window, seed)

    late = [each.answer.status for each in asked if each.at > 3 * window]
    assert late.count(200) >= 0.65 * 3 * count
    assert late.count(429) <= 0.12 * len(late) + 3
    assert (driven.view().ceiling or inf) < 1.3 * count / window
