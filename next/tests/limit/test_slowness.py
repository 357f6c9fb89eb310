"""What windows of latencies say about a host."""

import pytest

from sanderling.limit.evidence import LatencyVerdict, Slowness

VERDICTS = {"f": LatencyVerdict.FINE, "s": LatencyVerdict.SUSPECT, "q": LatencyVerdict.QUEUES}
VERDICTS["b"] = LatencyVerdict.BLAMELESS


def window(median: float, spread: float = 0.0) -> list[float]:
    """Sixteen latencies, of which a quarter is below the median by `spread`, and a quarter above."""
    return [median - spread] * 5 + [median] * 6 + [median + spread] * 5


@pytest.mark.parametrize(
    ("medians", "verdicts"),
    [
        ("100 100 100", "fff"),
        ("100 114", "ff"),  # within 15 %
        ("100 117", "fs"),
        ("100 155", "fs"),  # one such window may be chance,
        ("100 155 155", "fsq"),  # two are none,
        ("100 162", "fq"),  # and four times the share is plain
        ("100 155 100 155", "fsfs"),  # a good window takes the suspicion back
        ("100 200 200 200", "fqqb"),
        ("100 200 400 800", "fqqb"),  # sending less did not help, twice: it is the host's own pace
        ("100 200 400 800 800", "fqqbf"),
        ("100 800 400 200", "fqqq"),  # it helps
        ("100 400 390 380", "fqqb"),  # by less than a twentieth, which is no help
        ("100 400 100 400 390", "fqfqq"),  # what did not help is forgotten with a good window
        ("1 2.9 2.9", "fff"),  # two milliseconds are a whim
    ],
)
def test_a_host_is_slow_by_its_own_best(medians: str, verdicts: str) -> None:
    slowness = Slowness()

    said = [slowness.judge(window(float(each) / 1000), float(at)) for at, each in enumerate(medians.split())]

    assert said == [VERDICTS[each] for each in verdicts]


@pytest.mark.parametrize(("spread", "median", "verdict"), [(0.0, 0.12, "s"), (0.03, 0.12, "f"), (0.03, 0.2, "q")])
def test_a_host_of_erratic_latency_is_given_more(spread: float, median: float, verdict: str) -> None:
    slowness = Slowness()
    slowness.judge(window(0.1, spread), 0.0)

    assert slowness.judge(window(median, spread), 1.0) is VERDICTS[verdict]


def test_the_best_of_five_minutes_ago_is_forgotten() -> None:
    slowness = Slowness()
    slowness.judge(window(0.1), 0.0)
    for second in range(1, 320):
        slowness.judge(window(0.114), float(second))

    assert slowness.base == pytest.approx(0.114)


@pytest.mark.parametrize(("latency", "base"), [(0.2, 0.9), (0.3, 0.9)])
def test_the_first_response_waited_for_none_of_ours(latency: float, base: float) -> None:
    slowness = Slowness()
    slowness.meet([latency] + [1.0] * 7, 0.0)

    assert slowness.is_slow is (latency > 0.25)
    assert slowness.base == pytest.approx(base if slowness.is_slow else 1.0)


def test_a_queue_that_was_taken_for_usual_shows_once_the_host_is_much_faster() -> None:
    slowness = Slowness()
    slowness.meet([1.0] * 8, 0.0)
    slowness.judge(window(0.6), 1.0)
    assert slowness.base == pytest.approx(0.6)
    slowness.judge(window(0.3), 2.0)

    assert slowness.base == pytest.approx(0.6 + 0.15 * (0.3 - 0.6))
