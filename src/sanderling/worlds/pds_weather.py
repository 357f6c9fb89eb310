"""What happens to requests on the way to simulated hosts of repos, beside the weather of other worlds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from email.utils import formatdate
from math import ceil
from random import Random

from sanderling.task import Headers
from sanderling.worlds.hosts import FixedWindowQuota, SimulatedHost, SlidingWindowQuota, steps
from sanderling.worlds.site_weather import Sky, Weather

# What the hosts' own clocks say when they are first asked. An instant of theirs is to be read beside their Date.
WALL = 1_750_000_000


@dataclass(kw_only=True)
class Announced(Weather):
    """A quota that says with each answer what is left of it, and with each refusal when to come back."""

    window: FixedWindowQuota

    def meet(self, now: float) -> Sky:
        """What a request that is sent at `now` meets."""
        sky = super().meet(now)
        since = max(0.0, now - (self.began or 0.0))
        left = self.window.seconds - since % self.window.seconds
        wait: Headers = (("Retry-After", str(ceil(left))),) if sky.status == 429 else ()
        said: Headers = (
            ("Date", formatdate(WALL + since, usegmt=True)),
            ("RateLimit-Limit", str(self.window.limit)),
            ("RateLimit-Remaining", str(self.window.limit - self.window.used)),
            ("RateLimit-Reset", str(ceil(WALL + since + left))),
            ("RateLimit-Policy", f"{self.window.limit};w={self.window.seconds:g}"),
        )
        return replace(sky, headers=sky.headers + wait + said)


def announced_quota(rng: Random) -> Weather:
    """Allows 30 in each 10 seconds, as the network's own hosts allow 6,000 in each 300."""
    window = FixedWindowQuota(30, 10.0)
    return Announced(SimulatedHost(rng, network=0.05, quota=window), window=window)


def silent_quota(rng: Random) -> Weather:
    """Allows 15 in any 5 seconds, and says so by refusing."""
    return Weather(SimulatedHost(rng, network=0.05, quota=SlidingWindowQuota(15, 5.0)))


def at_home(rng: Random) -> Weather:
    """A machine under somebody's desk: far away, and with a line of its own."""
    return Weather(SimulatedHost(rng, network=0.2))


def starting(seconds: float) -> Callable[[Random], Weather]:
    """Answers 503 for so long, and is well from then on."""
    return lambda rng: Weather(
        SimulatedHost(rng, network=0.05, failing=steps([(0.0, 1.0), (seconds, 0.0)]), failure=503)
    )


def mute(rng: Random) -> Weather:
    """Answers after an hour, which nobody waits for."""
    return Weather(SimulatedHost(rng, network=3600.0, spread=0.0))
