"""How well does each strategy find a limit that nobody tells it? Ten simulated minutes of seven hosts, and some more.

Goodput in percent of what the host would have served, refusals in percent of requests, median latency in milliseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import fmean

from harness import Report, at_least, at_most
from rivals import AutoThrottle, AwsAdaptive, Gradient2, PlainAimd
from simulation import Controller, Ours, Result, simulate

from sanderling.worlds.hosts import (
    BucketQuota,
    FixedWindowQuota,
    SimulatedHost,
    SlidingWindowQuota,
    steady,
    steps,
)

SEEDS = 3
OURS = "our governor"
CONTROLLERS: dict[str, Callable[[int], Controller]] = {
    "plain AIMD": lambda _seed: PlainAimd(),
    "AWS adaptive": lambda _seed: AwsAdaptive(),
    "AutoThrottle 1": lambda _seed: AutoThrottle(1),
    "AutoThrottle 8": lambda _seed: AutoThrottle(8),
    "Gradient2": lambda _seed: Gradient2(),
    "our aimd": lambda seed: Ours("aimd", seed),
    "our governor": lambda seed: Ours("governor", seed),
}


def always(now: float) -> float:
    """There is always something to ask."""
    return now


def in_bursts(now: float) -> float:
    """Ten seconds of work in each minute."""
    return now if now % 60 < 10 else (now // 60 + 1) * 60


@dataclass(frozen=True, slots=True)
class Scenario:
    """A host, and what it can serve in ten minutes."""

    name: str
    host: Callable[[Random], SimulatedHost]
    capacity: float
    wanted: Callable[[float], float] = always
    rivals: bool = False  # whether the rivals are tried on it too


def bucket(rate: float, depth: float) -> BucketQuota:
    """A quota of `rate` a second."""
    return BucketQuota(steady(rate), depth)


RISE_AND_FALL = steps([(0, 20), (200, 6), (400, 20)])
SLOWED = steps([(0, 1 / 40), (200, 1 / 12), (400, 1 / 40)])
SCENARIOS = (
    Scenario("A 20/s, silent 429", lambda r: SimulatedHost(r, bucket(20, 20)), 12000, rivals=True),
    Scenario("B + Retry-After 5 s", lambda r: SimulatedHost(r, bucket(20, 20), retry_after=5.0), 12000, rivals=True),
    Scenario("C 600 per minute", lambda r: SimulatedHost(r, FixedWindowQuota(600, 60)), 6000, rivals=True),
    Scenario(
        "D server 40/s, queue", lambda r: SimulatedHost(r, network=0.075, service=steady(0.025)), 24000, rivals=True
    ),
    Scenario("E quota 20, 6, 20", lambda r: SimulatedHost(r, BucketQuota(RISE_AND_FALL, 20)), 9200, rivals=True),
    Scenario("F server at 30 %", lambda r: SimulatedHost(r, network=0.075, service=SLOWED), 18400, rivals=True),
    Scenario("G 10 s on, 50 s off", lambda r: SimulatedHost(r, bucket(20, 20)), 2000, in_bursts, rivals=True),
    Scenario("A, counted per second", lambda r: SimulatedHost(r, FixedWindowQuota(20, 1)), 12000),
    Scenario("A, sliding second", lambda r: SimulatedHost(r, SlidingWindowQuota(20, 1)), 12000),
    Scenario("A, no burst at all", lambda r: SimulatedHost(r, bucket(20, 1.5)), 12000),
    Scenario("A, ten times as fast", lambda r: SimulatedHost(r, bucket(200, 200)), 120000),
    Scenario("A, one in two seconds", lambda r: SimulatedHost(r, bucket(0.5, 1)), 300),
    Scenario("A, answers in 1.5 s", lambda r: SimulatedHost(r, bucket(20, 20), network=1.5), 12000),
    Scenario("A, erratic latency", lambda r: SimulatedHost(r, bucket(20, 20), spread=1.0), 12000),
    Scenario("A, 2 % random 500s", lambda r: SimulatedHost(r, bucket(20, 20), failing=steady(0.02)), 11760),
    Scenario("A, 30 % random 500s", lambda r: SimulatedHost(r, bucket(20, 20), failing=steady(0.3)), 8400),
    Scenario(
        "A, down for 60 s",
        lambda r: SimulatedHost(r, bucket(20, 20), failing=steps([(0, 0), (200, 1), (260, 0)])),
        10800,
    ),
    Scenario(
        "A, 503 for 60 s",
        lambda r: SimulatedHost(r, bucket(20, 20), failing=steps([(0, 0), (200, 1), (260, 0)]), failure=503),
        10800,
    ),
    Scenario(
        "C, minute by 503",
        lambda r: SimulatedHost(r, FixedWindowQuota(600, 60), refusal=503),
        6000,
    ),
    Scenario("B, counted per second", lambda r: SimulatedHost(r, FixedWindowQuota(20, 1), retry_after=5.0), 12000),
    Scenario("C, sliding minute", lambda r: SimulatedHost(r, SlidingWindowQuota(600, 60)), 6000),
    Scenario("C, 5000 per hour", lambda r: SimulatedHost(r, FixedWindowQuota(5000, 3600)), 5000),
    Scenario(
        "D, random work",
        lambda r: SimulatedHost(r, network=0.075, service=steady(0.025), random_service=True),
        24000,
    ),
    Scenario("E, shallow bucket", lambda r: SimulatedHost(r, BucketQuota(RISE_AND_FALL, 6)), 9200),
)


def measure(scenario: Scenario, make: Callable[[int], Controller]) -> tuple[float, float, float, float]:
    """Goodput, rejects, violations and median latency, averaged over the seeds."""
    results: list[Result] = [
        simulate(scenario.host(Random(seed)), make(seed), scenario.wanted) for seed in range(SEEDS)
    ]
    return (
        fmean(100 * result.served / scenario.capacity for result in results),
        fmean(result.rejects for result in results),
        fmean(result.violations for result in results),
        fmean(1000 * result.percentile(0.5) for result in results),
    )


def row(scenario: Scenario, name: str, report: Report) -> None:
    """Measure one controller on one host, and print it."""
    goodput, rejects, violations, median = measure(scenario, CONTROLLERS[name])
    figures = f"{goodput:7.1f}% {rejects:7.2f}% {median:5.0f}ms {violations:7.0f}"
    print(f"{scenario.name:22} {name:15} {figures}", flush=True)
    if name == OURS:
        for key, value in (("goodput", goodput), ("rejects", rejects), ("early", violations), ("p50", median)):
            report.figures[f"{scenario.name} {key}"] = round(value, 3)


def main() -> None:
    """Print the table, then the bars for the governor."""
    report = Report("limiter_sim")
    print(f"{'':22} {'':15} {'goodput':>8} {'rejects':>8} {'median':>7} {'early':>7}")
    for scenario in SCENARIOS:
        for name in CONTROLLERS if scenario.rivals else (OURS,):
            row(scenario, name, report)
    got = report.figures
    report.bars = [
        at_least("A goodput %", 95, got["A 20/s, silent 429 goodput"]),
        at_most("A rejects %", 0.2, got["A 20/s, silent 429 rejects"]),
        at_most("B requests inside a Retry-After", 0, got["B + Retry-After 5 s early"]),
        at_least("C goodput %", 97, got["C 600 per minute goodput"]),
        at_most("C rejects %", 0.5, got["C 600 per minute rejects"]),
        at_least("D goodput %", 85, got["D server 40/s, queue goodput"]),
        at_most("D median latency / unloaded 100 ms", 1.2, got["D server 40/s, queue p50"] / 100),
        at_least("E goodput %", 90, got["E quota 20, 6, 20 goodput"]),
        at_most("E rejects %", 0.3, got["E quota 20, 6, 20 rejects"]),
    ]
    report.finish()


if __name__ == "__main__":
    main()
