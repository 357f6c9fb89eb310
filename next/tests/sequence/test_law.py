"""The law of seed 000 to the digit, by its formulas worked out by hand."""

from math import inf
from pathlib import Path

import pytest
from sequence.plays import play
from sequence_ids import IdWorld

from sanderling.sequence.description import Meaning
from sanderling.sequence.law import Readings, decide, histogram_quantile, weighted
from sanderling.sequence.readings import Meter


@pytest.mark.parametrize(
    ("readings", "workers", "expected"),
    [
        # Above half not found: 25 workers, 2,500 ids; exactly half is normal, and cut by 65 %.
        (Readings(missing=0.51), 100, (25, 2500)),
        (Readings(missing=0.50, lag=30, rate=10), 100, (35, 1000)),
        # Catch up: nothing missing, or 600 s behind.
        (Readings(missing=0.0, lag=20), 25, (25, 10_000)),
        (Readings(missing=0.0, lag=5), 25, (25, 10_000)),
        (Readings(missing=0.0, lag=120), 25, (50, 10_000)),
        (Readings(missing=0.0009, lag=121), 25, (51, 10_000)),
        (Readings(missing=0.2, lag=600), 10, (68, 10_000)),
        (Readings(missing=0.2, lag=599.9, rate=1), 100, (35, 100)),
        (Readings(lag=900), 25, (246, 10_000)),  # 25 × (1 + 8.8) is a little above 245 in doubles, also in Go
        (Readings(lag=1000), 200, (250, 22_952)),
        # Normal: 2.5 % is right; above it fewer, below it more, by (687 x)^0.88 / 100.
        (Readings(missing=0.025, lag=30, rate=10), 100, (100, 3000)),
        (Readings(missing=0.005, lag=30, rate=10), 100, (110, 3000)),
        (Readings(missing=0.074, lag=30, rate=10), 100, (78, 3000)),
        (Readings(missing=0.075, lag=30, rate=10), 100, (78, 1000)),
        (Readings(missing=0.10, lag=30, rate=0), 100, (68, 40_800)),
        (Readings(missing=0.4, lag=30, rate=0.01), 6, (5, 1)),
    ],
)
def test_decisions(readings: Readings, workers: int, expected: tuple[int, int]) -> None:
    plan = decide(readings, workers, 5, 250)

    assert (plan.workers, plan.period) == expected


def test_quantiles_and_weights() -> None:
    assert histogram_quantile(0.2, [(5.0, 10.0), (15.0, 20.0), (inf, 20.0)]) == pytest.approx(2.0)
    assert histogram_quantile(0.2, [(5.0, 0.0), (15.0, 20.0), (inf, 20.0)]) == pytest.approx(7.0)
    assert histogram_quantile(0.2, [(5.0, 0.0), (inf, 20.0)]) == 5.0
    assert histogram_quantile(0.2, [(5.0, 0.0), (inf, 0.0)]) is None
    assert weighted([1.0, None, 4.0]) == pytest.approx((1 * 1 + 4 * 3) / 4)
    assert weighted([None]) is None


def test_readings_of_a_period_of_four_minutes() -> None:
    meter = Meter()
    for second in range(0, 600, 15):
        meter.sample(float(second))
        for meaning in (Meaning.FOUND, Meaning.FOUND, Meaning.MISSING, Meaning.DISABLED):
            meter.count(meaning)
        meter.observe(22.0)
    readings = meter.read(600.0, 600.0)

    assert readings.missing == pytest.approx(0.25)
    assert readings.errors == pytest.approx(0.25)  # SystemDisabled is among them
    assert readings.rate == pytest.approx(2 / 15, rel=0.02)
    assert readings.count_missing == 16
    assert readings.lag == pytest.approx(17.0)  # a fifth of the way from 15 to 25
    assert Meter().read(0.0, 60.0) == Readings()


def test_periods_of_atlas_store_each_record_once(tmp_path: Path) -> None:
    played = play(
        tmp_path, 900, lambda clock: IdWorld(clock, back=600, holes=0.05), until=1500, scaling="atlas", rps=100
    )

    assert played.counts == dict.fromkeys((n for n in range(1000, 1501) if played.world.seen(n) < 1e9), 1)
    missing = [number for _, number, said in played.world.asked if said == "none"]
    assert all(missing.count(number) >= 4 for number in set(missing))
