"""What happens to requests on the way to a simulated game: quotas, maintenance, slow hours, a proxy that gives up.

Times in the rules are seconds since the game began; a `GameWeather` is asked in Unix seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, exp, inf
from random import Random
from typing import NamedTuple, Self, TypeVar

from sanderling.worlds.game_schedule import TimeSpan
from sanderling.worlds.hosts import HostQuota, OpenQuota, SlidingWindowQuota

REFUSED_AFTER = 0.25  # of the usual latency: who is refused is refused at the door


class IdTrouble(NamedTuple):
    """A share of the ids answers with an error for a while, the same ones all the time."""

    start: float
    seconds: float
    share: float


class Contest(NamedTuple):
    """Raids that end within these seconds are shown to nobody until it opens."""

    start: float
    seconds: float
    opens: float


class Slowness(NamedTuple):
    """Everything takes so many times as long."""

    start: float
    seconds: float
    factor: float


class GameRefusal(StrEnum):
    """How someone who asks too much is told."""

    THROTTLED = "throttled"  # 503, and the API's own code for it
    FORBIDDEN = "forbidden"  # 403, and a page of HTML
    UNAVAILABLE = "unavailable"  # 503, and a page of HTML


class Trip(StrEnum):
    """What a request meets before anyone looks at what it asks for."""

    SERVED = "served"
    DISABLED = "disabled"
    REFUSED = "refused"
    BAD_GATEWAY = "bad_gateway"
    RESET = "reset"


Timed = TypeVar("Timed", TimeSpan, IdTrouble, Contest, Slowness)


@dataclass(frozen=True, slots=True)
class WeatherRules:
    """The weather. The defaults are fair, with answers in a sixth of a second."""

    latency: float = 0.16  # seconds, the median
    jitter: float = 0.3  # sigma of its lognormal: the 95th percentile is 1.6 times the median
    slow: tuple[Slowness, ...] = ()
    quota: float = inf  # requests per second
    window: float = 1.0  # seconds within which they are counted; the real API is said to take 10
    refusals: tuple[GameRefusal, ...] = (GameRefusal.THROTTLED,)  # one after the other
    retry_after: float | None = None  # seconds, the header of a refusal
    throttle_seconds: int = 0  # the body's; the real API is said to leave it at 0
    maintenance: tuple[TimeSpan, ...] = ()
    troubles: tuple[IdTrouble, ...] = ()
    contests: tuple[Contest, ...] = ()
    bad_gateway: float = 0.0  # share of requests
    resets: float = 0.0  # share of requests

    def __post_init__(self) -> None:
        if not (self.latency >= 0 and self.jitter >= 0 and self.quota > 0 and self.window > 0):
            raise ValueError(
                f"latency {self.latency}, jitter {self.jitter}, quota {self.quota}, window {self.window}; "
                "expected 0 or more of the first two and more than 0 of the others"
            )
        if self.quota * self.window < 0.5:
            raise ValueError(f"quota {self.quota:g} in {self.window:g} s is less than one request")
        if self.bad_gateway < 0 or self.resets < 0 or self.bad_gateway + self.resets > 1:
            raise ValueError(f"shares {self.bad_gateway} and {self.resets}, expected 0 to 1 together")
        if not self.refusals:
            raise ValueError("refusals is empty, expected at least one")

    def faster(self, speed: float) -> Self:
        """The same weather on a clock that is so many times as fast."""
        return replace(
            self,
            latency=self.latency / speed,
            slow=_faster(self.slow, speed),
            quota=self.quota * speed,
            window=self.window / speed,
            retry_after=None if self.retry_after is None else self.retry_after / speed,
            throttle_seconds=ceil(self.throttle_seconds / speed),
            maintenance=_faster(self.maintenance, speed),
            troubles=_faster(self.troubles, speed),
            contests=tuple(Contest(*(each / speed for each in contest)) for contest in self.contests),
        )


def _faster(spans: Iterable[Timed], speed: float) -> tuple[Timed, ...]:
    return tuple(each._replace(start=each.start / speed, seconds=each.seconds / speed) for each in spans)


class GameWeather:
    """The weather over one game: what was asked so far counts against its quota."""

    def __init__(self, rules: WeatherRules, rng: Random, began: float) -> None:
        self._rules = rules
        self._rng = rng
        self._began = began
        self._refused = 0
        self._quota: HostQuota = OpenQuota()
        if rules.quota < inf:
            self._quota = SlidingWindowQuota(round(rules.quota * rules.window), rules.window)

    def meet(self, now: float) -> Trip:
        """What a request that is sent at `now` meets; it counts against the quota."""
        admitted = self._quota.admits(now)
        if self.disabled(now):
            return Trip.DISABLED
        if not admitted:
            return Trip.REFUSED
        rules = self._rules
        if rules.bad_gateway or rules.resets:
            luck = self._rng.random()
            if luck < rules.bad_gateway:
                return Trip.BAD_GATEWAY
            if luck < rules.bad_gateway + rules.resets:
                return Trip.RESET
        return Trip.SERVED

    def latency(self, now: float, trip: Trip) -> float:
        """Seconds to the first byte."""
        rules = self._rules
        if not rules.latency:
            return 0.0
        slowness = self._current(rules.slow, now)
        seconds = rules.latency * exp(self._rng.gauss(0, rules.jitter)) * (slowness.factor if slowness else 1.0)
        return seconds * REFUSED_AFTER if trip is Trip.REFUSED else seconds

    def refusal(self) -> GameRefusal:
        """How the next one who asks too much is told."""
        self._refused += 1
        return self._rules.refusals[(self._refused - 1) % len(self._rules.refusals)]

    def disabled(self, now: float) -> bool:
        """Whether the API is switched off."""
        return self._current(self._rules.maintenance, now) is not None

    def troubled(self, now: float) -> float:
        """The share of ids that answer with an error."""
        trouble = self._current(self._rules.troubles, now)
        return trouble.share if trouble else 0.0

    def hidden(self, born: float, now: float) -> bool:
        """Whether a raid that ended at `born` is shown to nobody."""
        contest = self._current(self._rules.contests, born)
        return contest is not None and now - self._began < contest.opens

    def _current(self, spans: tuple[Timed, ...], now: float) -> Timed | None:
        if not spans:  # as nearly always: every request comes by here several times
            return None
        since = now - self._began
        return next((each for each in spans if each.start <= since < each.start + each.seconds), None)
