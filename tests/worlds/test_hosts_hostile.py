from collections.abc import Callable
from math import inf
from random import Random

import pytest
from hostile_hosts import (
    BanningHost,
    LayeredQuota,
    LyingHost,
    OutageHost,
    Outcome,
    QueueHost,
    SharedQuota,
    SmoothedWindowQuota,
    StrictWindowQuota,
)
from hypothesis import given
from hypothesis import strategies as st

from sanderling.worlds.hosts import (
    FixedWindowQuota,
    HostAnswer,
    HostQuota,
    OpenQuota,
    SimulatedHost,
    SlidingWindowQuota,
)

INSTANTS = st.lists(st.floats(0, 100), max_size=80).map(sorted)


def admitted(quota: HostQuota, times: list[float]) -> list[float]:
    return [now for now in times if quota.admits(now)]


def ticks(seconds: float, a_second: int) -> list[float]:
    return [tick / a_second for tick in range(int(seconds * a_second))]


def most_in_any(seconds: float, times: list[float]) -> int:
    # A hair less than the window: what lies exactly its length back is already given back.
    return max((sum(end - seconds * 0.999999 < now <= end for now in times) for end in times), default=0)


def well(seed: int = 1) -> SimulatedHost:
    return SimulatedHost(Random(seed), OpenQuota(), spread=0)


# Quotas.


@given(INSTANTS, st.integers(1, 4), st.integers(5, 12))
def test_no_layer_admits_more_than_it_allows(times: list[float], few: int, many: int) -> None:
    served = admitted(LayeredQuota([SlidingWindowQuota(few, 1), FixedWindowQuota(many, 50, phase=7)]), times)

    assert most_in_any(1, served) <= few
    assert all(sum((now - 7) // 50 == window for now in served) <= many for window in (-1, 0, 1))


@given(INSTANTS, st.integers(1, 5), st.floats(0.5, 20), st.randoms(use_true_random=False))
def test_all_who_share_a_quota_stay_within_it(times: list[float], limit: int, seconds: float, rng: Random) -> None:
    inner = SlidingWindowQuota(limit, seconds)
    shared = SharedQuota(inner, rng, 2.0)

    served = admitted(shared, times)

    assert most_in_any(seconds, served) <= limit
    assert len(inner.served) <= limit


@given(INSTANTS, st.integers(1, 6), st.floats(0.5, 20))
def test_a_smoothed_window_weighs_the_last_one_by_what_still_reaches_in(
    times: list[float], limit: int, seconds: float
) -> None:
    served = admitted(SmoothedWindowQuota(limit, seconds), times)

    for at, now in enumerate(served, 1):
        window, into = divmod(now, seconds)
        this = sum(each // seconds == window for each in served[:at])
        last = sum(each // seconds == window - 1 for each in served)
        assert this + last * (1 - into / seconds) <= limit + 1e-9


@given(INSTANTS, st.integers(1, 5), st.floats(0.5, 20))
def test_a_strict_window_admits_only_after_so_few_were_asked(times: list[float], limit: int, seconds: float) -> None:
    served = admitted(StrictWindowQuota(limit, seconds), times)

    assert most_in_any(seconds, served) <= limit


# Hosts.


@given(INSTANTS, st.integers(1, 6), st.floats(0.1, 5), st.floats(0, 0.9))
def test_a_queue_never_holds_more_than_it_has_room_for(times: list[float], room: int, work: float, vary: float) -> None:
    host = QueueHost(Random(1), work, room, vary, network=0)

    stays = [(now, now + answer.latency) for now in times if (answer := host.ask(now)).status == 200]

    for asked, _ in stays:
        assert sum(start <= asked < end - 1e-9 for start, end in stays) <= room


def test_a_host_that_thrashes_gets_less_done_the_more_is_asked_of_it() -> None:
    def done(a_second: int) -> float:
        host = QueueHost(Random(1), 0.025, room=30, healthy=8, strain=0.1)
        return sum(host.ask(now).status == 200 for now in ticks(60, a_second)) / 60

    assert done(38) == pytest.approx(38)
    assert done(80) < 20


def refusing(limit: int = 1) -> SimulatedHost:
    return SimulatedHost(Random(1), FixedWindowQuota(limit, 1), spread=0)


def test_too_many_refusals_are_a_ban_that_ends() -> None:
    host = BanningHost(refusing(), refusals=3, within=10, ban=60)

    assert [host.ask(0.5).status for _ in range(3)] == [200, 429, 429]
    assert host.ask(1.0).status == 200
    assert [host.ask(1.5).status, host.ask(2.0).status] == [429, 429], "the third refusal in ten seconds"
    assert {host.ask(2.0 + now).status for now in range(59)} == {429}
    assert host.ask(62.0).status == 200


@pytest.mark.parametrize("says", [1.0, 30.0, None])
def test_a_liar_is_closed_for_as_long_as_it_does_not_say(says: float | None) -> None:
    host = LyingHost(refusing(), closed=5, says=says)

    assert host.ask(0.0).status == 200
    assert {host.ask(now) for now in (0.0, 1.0, 2.5, 4.9)} == {
        HostAnswer(429, latency, says) for latency in (0.025, 0.1)
    }
    assert host.ask(5.0).status == 200


@pytest.mark.parametrize(
    ("outcome", "met"),
    [
        (503, HostAnswer(503, 0.1)),
        (500, HostAnswer(500, 0.1)),
        ("reset", HostAnswer(0, 0.1, error="connection reset")),
        ("silence", HostAnswer(0, inf, error="no answer")),
    ],
)
def test_an_outage_is_the_same_for_everybody_and_ends(outcome: Outcome, met: HostAnswer) -> None:
    host = OutageHost(well(), start=10, end=20, outcome=outcome)

    assert [host.ask(now).status for now in (0.0, 9.9, 20.0, 30.0)] == [200] * 4
    assert {host.ask(now) for now in (10.0, 15.0, 19.9)} == {met}


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: QueueHost(rng, 0.1, 5, vary=0.3),
        lambda rng: BanningHost(SimulatedHost(rng, SharedQuota(SlidingWindowQuota(5, 1), rng, 2))),
    ],
)
def test_a_host_is_the_same_for_the_same_seed(make: Callable[[Random], QueueHost | BanningHost]) -> None:
    def answers(seed: int) -> list[HostAnswer]:
        host = make(Random(seed))
        return [host.ask(now) for now in ticks(5, 20)]

    assert answers(1) == answers(1)
    assert answers(1) != answers(2)
