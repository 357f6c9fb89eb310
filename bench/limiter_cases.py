"""What a row of the limiter's simulation is made of: hosts that differ a little, bars, and the figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf
from random import Random
from statistics import fmean

from hostile_hosts import ChangingQuota, OutageHost, Outcome, QueueHost, draw_plan
from simulation import WORKERS, Controller, Result, Together, simulate

from sanderling.worlds.hosts import (
    BucketQuota,
    FixedWindowQuota,
    Host,
    HostQuota,
    OpenQuota,
    SimulatedHost,
    SlidingWindowQuota,
    steady,
    steps,
)

MINUTE, HOUR = 60.0, 3600.0
OUTAGE = 10 * MINUTE
NEVER = 9999.0  # stands for `inf`, which JSON does not know
SHARES = ("delivered", "refused", "median")  # the mean of these counts; of all others the worst seed
Figures = dict[str, float]
Need = dict[str, tuple[str, float]]  # by figure: ">=" or "<=", and the number
Plan = Sequence[tuple[float, float]]  # from when on, how many a second
Maker = Callable[[int], Host]  # a host, by seed


def always(now: float) -> float:
    """There is always something to ask."""
    return now


@dataclass(frozen=True, slots=True)
class Case:
    """One host of a row."""

    name: str
    host: Maker
    allowed: float | Callable[[int], Plan]  # a second, in the long run; or by seed how it changes
    since: float = 0.0  # when the host's first full hour begins, or its outage
    min_rps: float | None = None
    clients: int = 1  # who know nothing of each other
    named: bool = False  # our limiter is told which item a request is for
    wanted: Callable[[float], float] = always

    def plan(self, seed: int) -> Plan:
        """How many requests a second it allows, and from when on."""
        return self.allowed(seed) if callable(self.allowed) else [(0.0, self.allowed)]

    def allows(self, seed: int, seconds: float) -> float:
        """How many requests it allows in the first `seconds`."""
        plan = [each for each in self.plan(seed) if each[0] < seconds]
        return sum(rate * (end - start) for (start, rate), (end, _) in pairwise([*plan, (seconds, 0.0)]))


@dataclass(frozen=True, slots=True)
class Row:
    """Hosts that ask the same of a limiter, and what must be reached on each of them."""

    name: str
    need: Need
    seconds: float = 10 * MINUTE
    more: Callable[[Result, Case], Figures] = lambda _result, _case: {}
    kept: bool = False  # reached before, and not to be lost
    rivals: tuple[str, ...] = ("plain AIMD", "AWS adaptive")
    cases: tuple[Case, ...] = ()


def run(row: Row, case: Case, make: Callable[[int], Controller], seed: int) -> tuple[Figures, Result]:
    """One seed of one host with one controller."""
    if case.clients > 1:
        controller: Controller = Together([make(1000 * seed + each) for each in range(case.clients)])
    else:
        controller = make(seed)
    result = simulate(case.host(seed), controller, case.wanted, row.seconds)
    figures = {
        "delivered": 100 * result.served / case.allows(seed, row.seconds),
        "refused": result.rejects,
        "early": result.violations,
        "median": result.percentile(0.5),
        "peak": result.peak,
    }
    return figures | row.more(result, case), result


def together(runs: list[Figures], need: Need) -> Figures:
    """The mean over the seeds of what is a share, and the worst of what must hold every time."""

    def of(name: str) -> float:
        values = [each[name] for each in runs]
        if name in SHARES:
            return fmean(values)
        return min(values) if need.get(name, ("<=", 0))[0] == ">=" else max(values)

    return {name: of(name) for name in runs[0]}


# Hosts in short words.


def limited(quota: Callable[[Random], HostQuota], **more: object) -> Maker:
    """A host with a quota."""

    def host(seed: int) -> Host:
        rng = Random(seed)
        return SimulatedHost(rng, quota(rng), **more)  # type: ignore[arg-type]

    return host


def bucket(rate: float, depth: float) -> BucketQuota:
    """A quota of `rate` a second."""
    return BucketQuota(steady(rate), depth)


def unlimited(network: float, failing: float = 0.0) -> Maker:
    """A host without a limit: as fast as the workers get their answers."""
    return lambda seed: SimulatedHost(Random(seed), OpenQuota(), network, failing=steady(failing))


def fastest(network: float, spread: float = 0.35) -> float:
    """Requests a second that the workers can make where nothing else limits them."""
    return min(500.0, WORKERS / (network * exp(spread**2 / 2)))


def queue(work: float, room: float = inf, **more: float) -> Maker:
    """A server with a queue."""
    return lambda seed: QueueHost(Random(seed), work, room, **more)  # type: ignore[arg-type]


def changing(name: str, plan: Plan, depth: float, network: float = 0.1) -> Case:
    """A bucket whose rate changes."""
    return Case(name, limited(lambda _: BucketQuota(steps(plan), depth), network=network), lambda _: plan)


def changing_window(name: str, plan: Plan, kind: type[FixedWindowQuota] | type[SlidingWindowQuota]) -> Case:
    """So many a second, counted second by second."""
    return Case(name, limited(lambda _: counted(plan, kind)), lambda _: plan)


def counted(plan: Plan, kind: type[FixedWindowQuota] | type[SlidingWindowQuota]) -> ChangingQuota:
    """A quota that is counted second by second, and changes."""
    return ChangingQuota([(start, kind(int(rate), 1)) for start, rate in plan])


@dataclass(frozen=True, slots=True)
class Draw:
    """A quota between two bounds, drawn anew each minute, of whole requests a second."""

    low: float = 2
    high: float = 60
    apart: int = 77  # other draws for the same seeds

    def __call__(self, seed: int) -> Plan:
        """The draws of a quarter of an hour."""
        plan = draw_plan(Random(seed + self.apart), (self.low, self.high), MINUTE, 15 * MINUTE)
        return [(start, round(rate)) for start, rate in plan]


def redrawn(name: str, draw: Draw, depth: float | None, retry_after: float | None = None, network: float = 0.1) -> Case:
    """A bucket, or without a depth a window of a second, whose rate is drawn anew each minute."""

    def host(seed: int) -> Host:
        plan = draw(seed)
        quota = BucketQuota(steps(plan), depth) if depth else counted(plan, FixedWindowQuota)
        return SimulatedHost(Random(seed), quota, network, retry_after=retry_after)

    return Case(name, host, draw)


def outage(outcome: Outcome, well: Maker, rate: float, what: str, since: float = 3 * MINUTE) -> Case:
    """Ten minutes in which everybody has the same outcome."""
    plan = [(0.0, rate), (since, 0.0), (since + OUTAGE, rate)]
    return Case(
        f"{outcome}, {what}",
        lambda seed: OutageHost(well(seed), since, since + OUTAGE, outcome),
        lambda _: plan,
        since,
    )


# Figures beyond the usual ones.


def hourly(result: Result, case: Case) -> Figures:
    """Delivered in the host's second and third hour; if its hours are not ours, in its first two that are whole."""
    start, allowed = case.since or HOUR, case.allows(0, HOUR)
    return {
        f"hour {number}": 100 * result.served_between(at, at + HOUR) / allowed
        for number, at in ((2, start), (3, start + HOUR))
    }


def reaching_half(result: Result, _case: Case) -> Figures:
    """Seconds until half of the cap is first reached."""
    return {"at 250/s": min(NEVER, result.first_at_rate(250))}


def after_outage(result: Result, case: Case) -> Figures:
    """The rate before it, the longest time without a probe in it, seconds until nine tenths of the rate are back."""
    start, end = case.since, case.since + OUTAGE
    before = result.served_between(start - MINUTE, start) / MINUTE
    back = result.back_after(end, 0.9 * before) if before else inf
    return {"before": before, "gap": result.longest_gap(start, end), "back": min(NEVER, back)}


def at_first(result: Result, _case: Case) -> Figures:
    """Refusals in the first two minutes."""
    return {"at first": sum(at < 2 * MINUTE for at in result.refused_at)}
