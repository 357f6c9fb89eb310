from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.worlds.hosts import (
    BucketQuota,
    FixedWindowQuota,
    HostAnswer,
    HostQuota,
    SimulatedHost,
    SlidingWindowQuota,
    steady,
    steps,
)


def admitted(quota: HostQuota, times: list[float]) -> list[float]:
    return [now for now in times if quota.admits(now)]


def ticks(seconds: float, a_second: int = 100) -> list[float]:
    return [tick / a_second for tick in range(int(seconds * a_second))]


def test_a_bucket_serves_what_it_saved_up_and_then_its_rate() -> None:
    quota = BucketQuota(steady(2), depth=5)

    assert len(admitted(quota, [0.0] * 20)) == 5
    assert admitted(quota, [0.4, 0.5, 0.6, 1.0, 1.1]) == [0.5, 1.0]
    assert len(admitted(quota, [1000.0] * 20)) == 5


def test_a_bucket_follows_a_rate_that_changes() -> None:
    quota = BucketQuota(steps([(0, 10), (10, 1)]), depth=2)

    served = admitted(quota, ticks(20))

    assert len([now for now in served if now < 10]) == pytest.approx(100, abs=2)
    assert len([now for now in served if now >= 10]) == pytest.approx(10, abs=2)


def test_a_fixed_window_gives_all_of_it_back_at_its_start() -> None:
    quota = FixedWindowQuota(limit=3, seconds=10)

    assert admitted(quota, [1, 2, 3, 4, 9.9, 10, 10, 10, 10, 35, 36]) == [1, 2, 3, 10, 10, 10, 35, 36]


def test_a_sliding_window_gives_back_as_it_was_used() -> None:
    quota = SlidingWindowQuota(limit=2, seconds=10)

    assert admitted(quota, [0, 1, 2, 9.9, 10, 10.5, 11, 12]) == [0, 1, 10, 11]


def test_a_fixed_window_may_start_at_another_time_than_we_do() -> None:
    quota = FixedWindowQuota(limit=2, seconds=10, phase=3)

    assert admitted(quota, [0, 1, 2, 2.9, 3, 4, 5, 12.9, 13]) == [0, 1, 3, 4, 13]


@given(st.lists(st.floats(0, 100), max_size=60).map(sorted), st.integers(1, 5), st.floats(0.1, 20))
def test_no_window_ever_holds_more_than_its_limit(times: list[float], limit: int, seconds: float) -> None:
    sliding = admitted(SlidingWindowQuota(limit, seconds), times)
    fixed = admitted(FixedWindowQuota(limit, seconds), times)

    for start in times:
        # A hair less than the window: what lies exactly its length back is already given back.
        assert sum(start - seconds * 0.999999 < now <= start for now in sliding) <= limit
        assert sum(now // seconds == start // seconds for now in fixed) <= limit


def test_a_host_is_the_same_for_the_same_seed() -> None:
    def answers(seed: int) -> list[HostAnswer]:
        host = SimulatedHost(Random(seed), BucketQuota(steady(5), 5), service=steady(0.1), failing=steady(0.2))
        return [host.ask(now) for now in ticks(3, 20)]

    assert answers(1) == answers(1)
    assert answers(1) != answers(2)


def test_the_network_takes_its_time_there_and_back() -> None:
    host = SimulatedHost(Random(1), network=0.1, spread=0.35)

    latencies = sorted(host.ask(now).latency for now in range(2000))

    assert median(latencies) == pytest.approx(0.1, rel=0.05)
    assert latencies[1900] == pytest.approx(0.18, rel=0.1)


def test_a_refusal_comes_back_fast_and_says_when_to_come_again() -> None:
    host = SimulatedHost(Random(1), BucketQuota(steady(1), 1), spread=0, refusal=503, retry_after=7)

    assert host.ask(0.0) == HostAnswer(200, 0.1)
    assert host.ask(0.0) == HostAnswer(503, 0.025, 7)


def test_a_host_that_works_at_one_thing_at_a_time_makes_the_others_wait() -> None:
    host = SimulatedHost(Random(1), network=0.1, spread=0, service=steady(0.5))

    latencies = [host.ask(0.0).latency for _ in range(4)]

    assert latencies == pytest.approx([0.6, 1.1, 1.6, 2.1])
    assert host.ask(100.0).latency == pytest.approx(0.6), "the queue is gone"


def test_some_requests_fail_and_do_no_work() -> None:
    host = SimulatedHost(Random(1), failing=steps([(0, 0), (10, 1)]), service=steady(5))

    assert host.ask(0.0).status == 200
    assert [host.ask(10.0 + i).status for i in range(5)] == [500] * 5
    assert host.free_at == 5
