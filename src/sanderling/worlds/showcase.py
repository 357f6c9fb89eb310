"""Three hosts to watch a limiter with, and the callers that keep asking them: one set for the demo and its tests.

`quota.example` has a quota and never mentions it. `queue.example` refuses nothing and gets slow instead.
`failing.example` is well, then fails every request for a while, then is well again.
"""

from collections import Counter
from dataclasses import dataclass, field
from math import exp, inf
from random import Random

from sanderling.clock import Clock
from sanderling.limit import CircuitOpen, Feedback, Limiter, LimiterRules, PaceRules
from sanderling.worlds.hosts import BucketQuota, HostAnswer, SimulatedHost, steady, steps

# More than any of the hosts can be asked by: what holds them back is the limiter, not a lack of callers.
CALLERS = 32
# The default of 8 a second at most would hide what the hosts allow, and that of 2 at first would spend an eighth of a
# run of 160 seconds on starting.
RULES = LimiterRules(pace=PaceRules(initial_rps=5.0, max_rps=100.0))


@dataclass(slots=True, kw_only=True)
class Exhibit:
    """A host, what it really allows, and what came of asking it. Times count from 0, when it is first asked."""

    name: str
    host: SimulatedHost
    rate: float  # requests a second that it serves while it is well
    saved: float = 0.0  # what it serves on top of that, once
    down: tuple[float, float] = (inf, inf)  # from when to when every request fails
    sent: int = 0
    sent_while_down: int = 0
    found_well_after: float | None = None  # seconds from when it was well again until it was next asked
    answers: Counter[int] = field(default_factory=Counter)  # that arrived, by status
    took: float = 0.0  # seconds, all that was served together

    def ask(self, now: float) -> HostAnswer:
        """What a request that is sent at `now` gets."""
        self.sent += 1
        begins, ends = self.down
        self.sent_while_down += begins <= now < ends
        if now >= ends and self.found_well_after is None:
            self.found_well_after = now - ends
        return self.host.ask(now)

    def note(self, answer: HostAnswer) -> None:
        """Count an answer that has arrived."""
        self.answers[answer.status] += 1
        if answer.status == 200:
            self.took += answer.latency

    @property
    def latency(self) -> float | None:
        """Seconds that an answer took on average, once there was one."""
        return self.took / self.answers[200] if self.answers[200] else None

    def possible(self, until: float) -> float:
        """How many requests could have been served by then."""
        return self.rate * (until - self.down_for(until)) + self.saved

    def down_for(self, until: float) -> float:
        """For how many seconds it was down by then."""
        begins, ends = self.down
        return max(0.0, min(until, ends) - begins)

    @property
    def unloaded(self) -> float:
        """Seconds that an answer takes on average while it is asked by nobody else."""
        return self._travel + (0.0 if self.host.service is None else self.host.service(0.0))

    def unrestrained(self, until: float) -> float:
        """How many requests would have met it down by then, had every caller asked again as soon as it was answered."""
        return CALLERS * self.down_for(until) / self._travel

    @property
    def _travel(self) -> float:
        return self.host.network * exp(self.host.spread**2 / 2)  # the mean of a lognormal


def exhibits(seconds: float, rng: Random) -> tuple[Exhibit, Exhibit, Exhibit]:
    """The three hosts, for a run of so many seconds: the third is down for a quarter of them."""
    begins, ends = 0.3 * seconds, 0.55 * seconds
    quota = SimulatedHost(_branch(rng), quota=BucketQuota(steady(20.0), depth=20.0))
    queue = SimulatedHost(_branch(rng), service=steady(1 / 40))
    outage = steps([(0.0, 0.0), (begins, 1.0), (ends, 0.0)])
    failing = SimulatedHost(_branch(rng), network=0.15, service=steady(1 / 25), failing=outage)
    return (
        Exhibit(name="quota.example", host=quota, rate=20.0, saved=20.0),
        Exhibit(name="queue.example", host=queue, rate=40.0),
        Exhibit(name="failing.example", host=failing, rate=25.0, down=(begins, ends)),
    )


async def keep_asking(exhibit: Exhibit, limiter: Limiter, clock: Clock) -> None:
    """Be one of the callers: ask, say how it went, and ask again, until cancelled."""
    while True:
        try:
            permit = await limiter.acquire(exhibit.name)
        except CircuitOpen as closed:
            await clock.sleep(max(0.0, closed.until - clock.now()))
            continue
        try:
            answer = exhibit.ask(clock.now())
            await clock.sleep(answer.latency)
            exhibit.note(answer)
            # The latency that the host meant: at a speed of 40, a timer's millisecond is a network's whole way.
            limiter.feedback(permit, Feedback(answer.status, answer.latency, retry_after=answer.retry_after))
        finally:
            permit.release(sent=True)


def _branch(rng: Random) -> Random:
    """Chance of its own for each host, so that what one is asked does not change what another answers."""
    return Random(rng.random())
