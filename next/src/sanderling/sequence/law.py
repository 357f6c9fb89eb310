"""How many workers the next period gets and how long it is: the three strategies of seed 000, to the digit. Pure."""

from dataclasses import dataclass
from math import ceil, copysign, floor, inf

FIRST_PERIOD = 10_000
NO_LAG = 900.0  # where nothing is known
RETRY_DELAY = 5500  # ms


@dataclass(frozen=True, slots=True)
class Readings:
    """What a period was like."""

    missing: float = 0.0  # the share of requests that said not found
    errors: float = 0.0  # the share that failed; it is shown, and decides nothing
    rate: float = 0.0  # records a second
    count_missing: float = 0.0
    lag: float = NO_LAG  # seconds, the 20th percentile


@dataclass(frozen=True, slots=True)
class PeriodPlan:
    """What a period is run with."""

    workers: int
    period: int  # ids
    why: str


def decide(readings: Readings, workers: int, least: int, most: int) -> PeriodPlan:
    """The plan after these readings, with the bounds applied last and to workers only."""
    if readings.missing > 0.50:
        wanted, period, why = 25, 2500, "gap"
    elif readings.missing < 0.001 or readings.lag >= 600:
        lag = max(readings.lag, 20.0)
        effective = max(workers, least)
        period = max(_rounded((effective * (ceil(lag) - 20)) ** 0.824), 10_000)
        wanted, why = ceil(workers * (1 + (lag - 20) / 100)), "catch up"
    else:
        off = readings.missing - 0.025
        # The original divides whole numbers here: 5500 / 8 is 687. At exactly the right share it divides zero by zero.
        share = min((RETRY_DELAY // 8 * abs(off)) ** 0.88 / 100, 0.65)
        wanted = _rounded(workers - (copysign(share, off) if off else 0.0) * workers)
        if readings.rate == 0:
            period = 600 * wanted
        else:
            period = _rounded((100 if readings.missing >= 0.075 else 300) * readings.rate)
        why = "normal"
    return PeriodPlan(min(max(wanted, least), most), max(1, period), why)


def _rounded(number: float) -> int:
    """The nearest whole number, halves away from zero as in the original; Python's own rounding takes the even one."""
    return int(copysign(floor(abs(number) + 0.5), number))


def histogram_quantile(quantile: float, buckets: list[tuple[float, float]]) -> float | None:
    """What Prometheus computes from (upper bound, cumulated rate), the last bound infinite; None without a sample."""
    total = buckets[-1][1] if buckets else 0.0
    if not total > 0:
        return None
    wanted, below, before = quantile * total, 0.0, 0.0
    for bound, count in buckets:
        if count >= wanted:
            if bound == inf:
                return below
            return below + (bound - below) * (wanted - before) / (count - before) if count > before else bound
        below, before = bound, count
    return below


def weighted(samples: list[float | None]) -> float | None:
    """The mean of samples, of which later ones weigh more; what is missing keeps its place."""
    pairs = [(value, index + 1) for index, value in enumerate(samples) if value is not None]
    return sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs) if pairs else None
