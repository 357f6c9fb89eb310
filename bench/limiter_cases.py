"""What a row of the limiter's simulation is made of: hosts that differ a little, what must be reached, and the figures."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf
from random import Random
from statistics import fmean

from simulation import WORKERS, Controller, Ours, Result, Together, simulate

from sanderling.worlds.hosts import BucketQuota, Host, Quota, SimulatedHost, steady

MINUTE, HOUR = 60.0, 3600.0
NEVER = 9999.0  # stands for `inf`, which JSON does not know
Figures = dict[str, float]
Need = tuple[str, float]  # ">=" or "<=", and the number


def always(now: float) -> float:
    """There is always something to ask."""
    return now


@dataclass(frozen=True, slots=True)
class Case:
    """One host of a row, and how many requests it allows in the whole time."""

    name: str
    host: Callable[[int], Host]  # by seed
    allowed: float | Callable[[int], float]
    min_rps: float | None = None
    clients: int = 1  # who know nothing of each other
    wanted: Callable[[float], float] = always

    def allows(self, seed: int) -> float:
        """How many requests, with this seed."""
        return self.allowed(seed) if callable(self.allowed) else self.allowed


@dataclass(frozen=True, slots=True)
class Row:
    """Hosts that ask the same of the limiter, and what must be reached on each of them."""

    name: str
    cases: tuple[Case, ...]
    need: dict[str, Need]
    seconds: float = 10 * MINUTE
    more: Callable[[Result], Figures] = lambda _result: {}
    kept: bool = False  # what was reached before, and must not be lost
    rivals: tuple[str, ...] = ("plain AIMD", "AWS adaptive")


def run(row: Row, case: Case, make: Callable[[int], Controller], seed: int) -> tuple[Figures, Result]:
    """One seed of one host with one controller."""
    if case.clients > 1:
        controller: Controller = Together([make(1000 * seed + each) for each in range(case.clients)])
    else:
        controller = make(seed)
    result = simulate(case.host(seed), controller, case.wanted, row.seconds)
    figures = {
        "delivered": 100 * result.served / case.allows(seed),
        "refused": result.rejects,
        "early": result.violations,
        "median": result.percentile(0.5),
        "peak": result.peak,
    }
    return figures | row.more(result), result


def ours(strategy: str, min_rps: float | None) -> Callable[[int], Controller]:
    """Our limiter, by seed."""
    return lambda seed: Ours(strategy, seed, min_rps)


def mean(runs: list[Figures]) -> Figures:
    """Of each figure, over the seeds."""
    return {name: min(NEVER, fmean(each[name] for each in runs)) for name in runs[0]}


# Hosts in short words.


def limited(quota: Callable[[Random], Quota], **more: object) -> Callable[[int], Host]:
    """A host with a quota, by seed."""

    def host(seed: int) -> Host:
        rng = Random(seed)
        return SimulatedHost(rng, quota(rng), **more)  # type: ignore[arg-type]

    return host


def bucket(rate: float, depth: float) -> BucketQuota:
    """A quota of `rate` a second."""
    return BucketQuota(steady(rate), depth)


def unlimited(network: float) -> Callable[[int], SimulatedHost]:
    """A host without a limit: as fast as the workers get their answers."""
    return lambda seed: SimulatedHost(Random(seed), network=network)


def fastest(network: float, spread: float = 0.35) -> float:
    """Requests a second that the workers can make where nothing else limits them."""
    return min(500.0, WORKERS / (network * exp(spread**2 / 2)))


# Figures beyond the usual ones.


def hourly(allowed: float) -> Callable[[Result], Figures]:
    """Delivered in the second and the third hour."""

    def figures(result: Result) -> Figures:
        hours = ((each, result.served_between((each - 1) * HOUR, each * HOUR)) for each in (2, 3))
        return {f"hour {each}": 100 * served / allowed for each, served in hours}

    return figures


def reaching(rate: float) -> Callable[[Result], Figures]:
    """Seconds until the rate is first reached."""
    return lambda result: {f"at {rate:g}/s": min(NEVER, result.first_at_rate(rate))}


def after_outage(start: float, end: float) -> Callable[[Result], Figures]:
    """The rate before it, the longest time without a probe in it, and when nine tenths of the rate are back."""

    def figures(result: Result) -> Figures:
        before = result.served_between(start - MINUTE, start) / MINUTE
        back = result.back_after(end, 0.9 * before) if before else inf
        return {"before": before, "gap": result.longest_gap(start, end), "back": min(NEVER, back)}

    return figures


def first_minutes(minutes: float) -> Callable[[Result], Figures]:
    """Refusals at first."""
    return lambda result: {"at first": sum(at < minutes * MINUTE for at in result.refused_at)}
