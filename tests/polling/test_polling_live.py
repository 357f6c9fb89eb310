"""What is live is asked for as often as was set, whatever else goes on: at the host, beside it, or in our database."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest
from live_polling import LIVE_FROM, Live, during, saying

T = TypeVar("T")

STEPS = (0.008, 0.03, 0.09, 0.16, 0.05, 0.19)


def ramp(low: float, high: float, seconds: float = 30.0) -> Callable[[float], float]:
    return lambda now: low + (high - low) * min(1.0, max(0.0, (now - LIVE_FROM) / seconds))


def test_latency_in_steps_and_with_chance_in_it_leaves_the_cadence(tmp_path: Path) -> None:
    polling, rng = Live(tmp_path, 3), Random(1)
    polling.upstream.latency = lambda now: min(0.19, STEPS[int(now // 5) % len(STEPS)] * rng.uniform(0.5, 1.2))

    polling.poll(LIVE_FROM + 60.0)

    assert min(polling.upstream.rates(LIVE_FROM, LIVE_FROM + 60.0)) >= 4.9


def test_what_an_operator_sets_to_less_than_a_second_is_kept_too(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=0, idle=8)
    polling.settings["scheduler.matchIdleMs"] = "200ms"
    polling.upstream.latency = ramp(0.008, 0.160)

    polling.poll(LIVE_FROM + 60.0)

    assert polling.upstream.rate(LIVE_FROM, LIVE_FROM + 60.0, "idle7") >= 4.9


def test_a_crowd_beside_it_takes_nothing_from_what_is_live_and_does_not_starve(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=4, idle=300)
    polling.upstream.latency = ramp(0.008, 0.160)
    polling.upstream.changes = 1e6

    polling.poll(LIVE_FROM + 60.0)

    assert min(polling.upstream.rates(LIVE_FROM, LIVE_FROM + 60.0)) >= 4.9
    slots = 2 / 0.160
    crowd = sum(polling.upstream.rate(40.0, 70.0, f"idle{number}") for number in range(300))
    assert crowd == pytest.approx(slots, rel=0.1)
    assert polling.upstream.most_at_once <= 4 + 2 + 1, "of the crowd two at once, as was set; and discovery"


def test_more_than_is_allowed_is_shared_and_said(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=30)

    polling.poll(30.0)

    assert min(polling.upstream.rates(LIVE_FROM, 30.0)) >= 0.9 * 100.0 / 30
    assert polling.status.facts.problems == ("what is live asks for 150 requests a second, and --rps allows 100",)


def test_a_database_that_takes_its_time_takes_it_from_nobody(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=2)

    async def slow(work: Callable[..., T], /, *args: object) -> T:
        await polling.clock.sleep(0.02)
        return work(*args)

    polling.desk = slow
    polling.upstream.changes = 0.1
    polling.upstream.latency = lambda _: 0.19

    polling.poll(LIVE_FROM + 30.0)

    assert min(polling.upstream.rates(LIVE_FROM, LIVE_FROM + 30.0)) >= 4.9


def test_failures_now_and_then_leave_the_cadence(tmp_path: Path) -> None:
    """A document that fails three times in ten, beside one that does not."""
    polling, rng = Live(tmp_path, live=2), Random(1)
    polling.upstream.outage = lambda path, _now: saying(500) if path.endswith("live0") and rng.random() < 0.3 else None

    polling.poll(LIVE_FROM + 60.0)

    assert min(polling.upstream.rates(LIVE_FROM, LIVE_FROM + 60.0)) >= 4.9


def test_a_live_document_that_only_fails_is_asked_for_once_a_second(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=2)
    polling.upstream.outage = during(20.0, 40.0, saying(500), "live0")

    polling.poll(90.0)

    assert 0.8 <= polling.upstream.rate(25.0, 60.0, "live0") <= 1.2
    assert polling.upstream.rate(20.0, 90.0, "live1") >= 4.9
    assert polling.upstream.rate(61.2, 90.0, "live0") >= 4.9


# Longer than the cadence.


@pytest.mark.parametrize(("latency", "expected"), [(0.3, 2.5), (0.9, 1.0)])
def test_where_an_answer_takes_longer_than_the_cadence_points_are_passed_over(
    tmp_path: Path, latency: float, expected: float
) -> None:
    polling = Live(tmp_path)
    polling.upstream.latency = lambda _: latency

    polling.poll(LIVE_FROM + 60.0)

    assert polling.upstream.rate(LIVE_FROM, LIVE_FROM + 60.0) == pytest.approx(expected, rel=0.03)
    assert polling.upstream.most_at_once <= 2, "the document, and discovery"


@pytest.mark.parametrize("latency", [0.201, 0.24])
def test_where_it_takes_a_little_longer_hardly_any_are(tmp_path: Path, latency: float) -> None:
    """Or the cadence would halve with the millisecond that an answer takes more."""
    polling = Live(tmp_path)
    polling.upstream.latency = lambda _: latency

    polling.poll(LIVE_FROM + 60.0)

    assert 0.78 / latency <= polling.upstream.rate(LIVE_FROM, LIVE_FROM + 60.0) <= 1 / latency
    assert polling.upstream.most_at_once <= 2


@pytest.mark.parametrize("latency", [1.5, 4.7])
def test_where_an_answer_takes_longer_than_a_second_the_next_one_is_asked_for_meanwhile(
    tmp_path: Path, latency: float
) -> None:
    polling = Live(tmp_path)
    polling.upstream.latency = lambda _: latency

    polling.poll(LIVE_FROM + 60.0)

    asked = polling.upstream.rate(LIVE_FROM, LIVE_FROM + 60.0)
    kept = polling.system.measures.runs
    assert 0.75 <= asked <= 1.0
    assert kept["match", "OK"] + kept["match", "NOT_MODIFIED"] >= 0.9 * asked * 60.0, "all of them count"
