"""A crawl as if ids were water: what comes in, what workers and limiter let through, and what the guard does."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from sanderling.apis.numbered import Status
from sanderling.sequence.guard import Decision, Guard, ScalingGuardRules, UpstreamFacts
from sanderling.sequence.readings import ReadingsWindow
from sanderling.sequence.scaling import AtlasPolicy, ScaleRules

YOUNGEST = 9.0  # seconds that a record is old at the head
NOT_YET = 0.02  # share that is asked for too early there


@dataclass
class Fluid:
    """One story, second by second. What the guard is told is noisy, as it would be."""

    rate: Callable[[float], float] = lambda _: 60.0  # ids a second that come in
    latency: Callable[[float], float] = lambda _: 0.25
    limit: float = 150.0  # requests a second that the host allows
    capacity: float = 1e9  # requests a second beyond which it only gets slower
    backlog: float = 0.0  # ids
    holes: float = 0.0
    made: list[tuple[float, int, Decision]] = field(default_factory=list)  # when, workers before, and what
    behind: list[float] = field(default_factory=list)  # seconds, each second

    def run(self, seconds: int, rules: ScalingGuardRules | None = None, seed: int = 1) -> "Fluid":
        rng, scale = Random(seed), ScaleRules()
        guard, plan, window = (
            Guard(AtlasPolicy(scale), rules or ScalingGuardRules(), scale),
            scale.first_plan(),
            ReadingsWindow(0.0),
        )
        latencies: list[float] = []
        for now in range(seconds):
            rate = self.rate(now)
            latencies.append(max(self.latency(now), plan.workers / self.capacity))
            self.backlog += rate
            passed = min(plan.workers / latencies[-1], self.limit, self.backlog)
            self.backlog -= passed
            self.behind.append(self.backlog / rate)
            self._count(window, round(passed), now)
            if not guard.over(plan, window, now + 1.0):
                continue
            readings = window.close(now + 1.0)
            latency = sum(latencies) / len(latencies)
            told = UpstreamFacts(*(value * rng.gauss(1, 0.05) for value in (rate, latency, self.limit)))
            decision = guard.decide(readings, replace(told, backlog=self.backlog), plan)
            self.made.append((now, plan.workers, decision))
            plan, latencies = decision.plan, []
        return self

    def _count(self, window: ReadingsWindow, passed: int, now: int) -> None:
        window.ids += passed
        lag = YOUNGEST + self.behind[-1]
        missing = 4 * self.holes + (NOT_YET if lag < 20 else 0.0)
        for _ in range(passed):
            window.count(Status.SUCCESS, lag)
        # Of all answers so far, if all seconds were like this one, those that are due in it.
        for _ in range(int((now + 1) * passed * missing) - int(now * passed * missing)):
            window.count(Status.NOT_FOUND, None)

    @property
    def changed(self) -> float:
        """The share of decisions that changed the number of workers."""
        return sum(before != decision.plan.workers for _, before, decision in self.made) / len(self.made)

    @property
    def caught_up(self) -> float:
        """Minutes until we were less than half a minute behind."""
        return next(second for second, behind in enumerate(self.behind) if behind < 30) / 60
