from random import Random

import pytest

from sanderling.limit.latency import Latency, Verdict

STEADY = 0.1


def window(median: float, spread: float = 0.01, samples: int = 17) -> list[float]:
    """Latencies around a median, in order of size, give or take a share of it."""
    return [median * (1 + spread * (2 * i / (samples - 1) - 1)) for i in range(samples)]


def usual(share: float = 0.15) -> Latency:
    """The latency of a host that has answered in a tenth of a second for a while."""
    latency = Latency(share)
    for now in range(20):
        assert latency.judge(window(STEADY), now) is Verdict.FINE
    return latency


def test_the_first_window_is_the_base() -> None:
    latency = Latency(0.15)

    assert latency.judge(window(3.0), 0) is Verdict.FINE
    assert latency.base == pytest.approx(3.0)


def test_a_little_slower_is_fine() -> None:
    assert usual().judge(window(1.1 * STEADY), 20) is Verdict.FINE


def test_plainly_slower_is_overloaded_at_once() -> None:
    assert usual().judge(window(2 * STEADY), 20) is Verdict.OVERLOADED


def test_somewhat_slower_is_overloaded_the_second_time() -> None:
    latency = usual()

    assert latency.judge(window(1.4 * STEADY), 20) is Verdict.SUSPECT
    assert latency.judge(window(1.4 * STEADY), 21) is Verdict.OVERLOADED


def test_a_suspicion_that_passes_is_forgotten() -> None:
    latency = usual()
    latency.judge(window(1.4 * STEADY), 20)

    assert latency.judge(window(STEADY), 21) is Verdict.FINE
    assert latency.judge(window(1.4 * STEADY), 22) is Verdict.SUSPECT


def test_what_counts_as_slow_is_the_callers_share() -> None:
    assert usual(share=1.0).judge(window(1.9 * STEADY), 20) is Verdict.FINE
    assert usual(share=1.0).judge(window(6 * STEADY), 20) is Verdict.OVERLOADED


def test_a_median_that_few_wild_samples_could_explain_is_fine() -> None:
    assert usual().judge(window(1.5 * STEADY, spread=0.9, samples=5), 20) is Verdict.FINE


def test_two_milliseconds_are_nothing_however_fast_the_host() -> None:
    latency = Latency(0.15)
    latency.judge(window(0.001), 0)

    assert latency.judge(window(0.0029), 1) is Verdict.FINE
    assert latency.judge(window(0.009), 2) is Verdict.OVERLOADED


def test_the_base_does_not_follow_the_overload() -> None:
    """A moving average did: fifty times the latency in ten minutes gave one signal."""
    latency = usual()

    verdicts = [latency.judge(window(STEADY * 1.3 * 0.9**cut * 2), 20 + cut) for cut in range(5)]

    assert verdicts == [Verdict.OVERLOADED] * 5
    assert latency.base == pytest.approx(STEADY)


def test_overload_that_comes_and_goes_leaves_no_trace_in_the_base() -> None:
    latency = usual()

    for now in range(20, 1000, 2):
        assert latency.judge(window(3 * STEADY), now) is Verdict.OVERLOADED
        assert latency.judge(window(STEADY), now + 1) is Verdict.FINE

    assert latency.base == pytest.approx(STEADY)


def test_the_lowest_median_of_the_last_minutes_is_the_base() -> None:
    latency = usual()

    for now in range(20, 140):
        latency.judge(window(1.1 * STEADY), now)
    assert latency.base == pytest.approx(STEADY, rel=0.01)

    for now in range(140, 500):
        latency.judge(window(1.1 * STEADY), now)
    assert latency.base == pytest.approx(1.1 * STEADY, rel=0.01)


def test_a_host_that_gets_faster_is_judged_by_that_soon() -> None:
    latency = usual()

    for now in range(20, 60):
        assert latency.judge(window(0.5 * STEADY), now) is Verdict.FINE

    assert latency.base == pytest.approx(0.5 * STEADY, rel=0.01)


def test_the_least_of_many_noisy_medians_is_not_taken_for_the_truth() -> None:
    latency, rng = Latency(0.15), Random(1)

    verdicts = [latency.judge(sorted(STEADY * rng.lognormvariate(0, 0.35) for _ in range(16)), i) for i in range(300)]

    assert verdicts.count(Verdict.OVERLOADED) <= 3


def test_slowness_that_two_cuts_do_not_change_is_not_our_doing() -> None:
    latency = usual()

    verdicts = [latency.judge(window(3 * STEADY), now) for now in (20, 21, 22)]

    assert verdicts == [Verdict.OVERLOADED, Verdict.OVERLOADED, Verdict.BLAMELESS]
    assert latency.base == pytest.approx(3 * STEADY), "and it is the host's pace from now on"
    assert latency.judge(window(3 * STEADY), 23) is Verdict.FINE


def test_a_cut_that_helps_is_never_blameless() -> None:
    latency = usual()

    verdicts = [latency.judge(window(STEADY * factor), 20) for factor in (8, 6, 4.5, 3, 2)]

    assert verdicts == [Verdict.OVERLOADED] * 5
    assert latency.helping
    assert latency.cuts == 5


def test_it_says_when_asking_less_does_not_help() -> None:
    latency = usual()
    latency.judge(window(3 * STEADY), 20)
    assert latency.helping

    latency.judge(window(3 * STEADY), 21)

    assert not latency.helping


def test_being_fine_again_takes_back_the_blame() -> None:
    latency = usual()
    latency.judge(window(3 * STEADY), 20)

    latency.judge(window(STEADY), 21)

    assert latency.cuts == 0
    assert latency.judge(window(3 * STEADY), 22) is Verdict.OVERLOADED
    assert latency.judge(window(3 * STEADY), 23) is Verdict.OVERLOADED


# A host that is being met.

RAMP = [0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]


def test_a_queue_that_grows_within_a_window_does_not_pass_for_noise() -> None:
    strange, met = Latency(0.15), Latency(0.15)
    for latency in (strange, met):
        latency.judge([0.1] * 8, 0)
    met.meet([0.1] * 8, 0)

    assert strange.judge(RAMP, 1) is Verdict.FINE
    assert met.judge(RAMP, 1) is Verdict.OVERLOADED


def test_few_answers_that_happen_to_be_alike_do_not_make_the_next_look_slow() -> None:
    latency = Latency(0.15)
    latency.judge([0.1] * 8, 0)
    latency.meet([0.1] * 8, 0)

    assert latency.judge([0.138] * 8, 1) is Verdict.FINE


def test_what_is_usual_is_the_median_of_all_answers_so_far() -> None:
    latency = Latency(0.15)
    latency.judge([0.08] * 3, 0)

    latency.meet([0.08] * 3 + [0.1] * 10, 1)
    assert latency.base == 0.1
    latency.meet([], 2)
    assert latency.base == 0.1


def test_once_it_is_known_windows_are_judged_by_their_own_spread_again() -> None:
    latency = Latency(0.15)
    latency.judge([0.1] * 8, 0)
    latency.meet([0.1] * 8, 0)
    latency.judge([0.1] * 16, 1)

    assert latency.judge([0.13] * 16, 2) is Verdict.SUSPECT
