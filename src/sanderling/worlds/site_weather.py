"""What happens to requests on the way to a simulated host: quotas, queues, outages, and connections that are cut."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import ceil
from random import Random

from sanderling.task import Headers
from sanderling.worlds.hosts import BucketQuota, FixedWindowQuota, SimulatedHost, SlidingWindowQuota, steady, steps

# Seconds between two pieces of a slow body. The last is longer than a client should wait.
PAUSES = (0.25, 0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 20.0)


class Fault(Enum):
    """What becomes of an answer on the way."""

    NONE = "none"
    REFUSED = "refused"  # no connection
    RESET = "reset"  # before the first byte
    CUT = "cut"  # a reset in mid-body
    TRUNCATED = "truncated"  # the body ends early, and the connection with it
    STALL = "stall"  # the body comes in pieces, with pauses


@dataclass(frozen=True, slots=True)
class Sky:
    """The weather that one request met. Times in seconds."""

    status: int  # 200: the page itself is served
    latency: float
    headers: Headers = ()
    fault: Fault = Fault.NONE
    pause: float = 0.0


@dataclass(slots=True)
class Weather:
    """All that happens to the requests of one host. Its time begins when it is first asked."""

    host: SimulatedHost
    faults: Mapping[Fault, float] = field(default_factory=dict)  # the share of requests that meets each
    advertises: Callable[[float], Headers] = lambda _since: ()
    began: float | None = None

    def meet(self, now: float) -> Sky:
        """What a request that is sent at `now` meets."""
        if self.began is None:
            self.began = now
        since = max(0.0, now - self.began)
        answer = self.host.ask(since)
        wait: Headers = () if answer.retry_after is None else (("Retry-After", f"{ceil(answer.retry_after)}"),)
        fault = self._fault()
        pause = self.host.rng.choices(PAUSES)[0] if fault is Fault.STALL else 0.0
        return Sky(answer.status, answer.latency, wait + self.advertises(since), fault, pause)

    def _fault(self) -> Fault:
        if not self.faults:
            return Fault.NONE
        kinds, shares = tuple(self.faults), tuple(self.faults.values())
        return self.host.rng.choices((*kinds, Fault.NONE), (*shares, max(0.0, 1 - sum(shares))))[0]


def fair(rng: Random) -> Weather:
    """Nothing of note."""
    return Weather(SimulatedHost(rng, network=0.05))


def with_faults(**shares: float) -> Callable[[Random], Weather]:
    """Shares of requests that go wrong, by the names of the faults."""
    faults = {Fault(name): share for name, share in shares.items()}
    return lambda rng: Weather(SimulatedHost(rng, network=0.05), faults)


def queueing(rng: Random) -> Weather:
    """Gets 5 a second done, and queues what comes faster."""
    return Weather(SimulatedHost(rng, network=0.05, service=steady(0.2)))


def quota(rng: Random) -> Weather:
    """Allows 5 a second, and says for how long to stay away."""
    return Weather(SimulatedHost(rng, network=0.05, quota=BucketQuota(steady(5.0), depth=10.0), retry_after=4.0))


def silent_quota(rng: Random) -> Weather:
    """Allows 40 in any 10 seconds, and says so by refusing."""
    return Weather(SimulatedHost(rng, network=0.05, quota=SlidingWindowQuota(40, 10.0)))


def lying_quota(rng: Random) -> Weather:
    """Allows 20 in 10 seconds, and advertises ten times as many."""
    window = FixedWindowQuota(20, 10.0)

    def boast(since: float) -> Headers:
        left = window.seconds - since % window.seconds
        said = (("Limit", 10 * window.limit), ("Remaining", 10 * window.limit - window.used), ("Reset", ceil(left)))
        return tuple((f"X-RateLimit-{name}", str(value)) for name, value in said)

    return Weather(SimulatedHost(rng, network=0.05, quota=window), advertises=boast)


def outage(rng: Random) -> Weather:
    """Well for 10 seconds, fails every request for a minute, and is well from then on."""
    return Weather(SimulatedHost(rng, network=0.05, failing=steps([(0.0, 0.0), (10.0, 1.0), (70.0, 0.0)])))
