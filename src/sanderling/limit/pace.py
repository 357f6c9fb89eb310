"""The numbers that bound a host's rate, whichever strategy moves it."""

from dataclasses import dataclass, replace
from math import isfinite

from sanderling.limit.hints import LONGEST

# How much of a second's rate may leave at once. A host that allows 20 a second sees one at a time; one that allows 100
# sees up to 5. More than that is a burst, and a quota's depth is something we cannot know.
SPREAD = 0.05


@dataclass(frozen=True, slots=True)
class PaceRules:
    """Where a host's rate starts and may go, and the constants of the plain law (`aimd`)."""

    initial_rps: float = 2.0
    min_rps: float = 0.25
    max_rps: float = 8.0
    burst: float = 4.0  # the most that may ever leave at once; SPREAD keeps it lower at low rates
    increase: float = 0.25  # requests per second added by a window of fast successes
    decrease: float = 0.5  # what is left of the rate after a refusal, a failure or a slow window
    latency_target: float = 1.0  # seconds; what counts as fast until the host has shown its own latency
    degrade_factor: float = 2.0  # this many times the host's own latency counts as slow

    def __post_init__(self) -> None:
        for name in ("initial_rps", "min_rps", "max_rps", "burst", "increase", "latency_target", "degrade_factor"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}; it must be a positive number")
        if not self.min_rps <= self.initial_rps <= self.max_rps:
            found = f"min_rps {self.min_rps}, initial_rps {self.initial_rps}, max_rps {self.max_rps}"
            raise ValueError(f"{found}: they must not decrease in this order")
        if not 0 < self.decrease < 1:
            raise ValueError(f"decrease is {self.decrease}; a rate is multiplied by it, so it must lie between 0 and 1")
        if self.burst < 1:
            raise ValueError(f"burst is {self.burst}; below 1 no request could ever leave")
        if self.degrade_factor <= 1:
            raise ValueError(f"degrade_factor is {self.degrade_factor}; at 1 or less every answer would count as slow")

    @classmethod
    def up_to(cls, rps: float) -> "PaceRules":
        """The rules for someone who allows so many requests a second, and knows no more of the hosts.

        Who allows hundreds has APIs in mind and not somebody's own machine: they start at a twentieth, 5 at most.
        """
        return cls(initial_rps=min(rps, max(2.0, min(5.0, rps / 20))), min_rps=min(0.25, rps), max_rps=rps)

    @classmethod
    def contract(cls, rps: float) -> "PaceRules":
        """The rules for a rate that somebody has set: it begins there, and nothing but refusals lowers it."""
        return cls(initial_rps=rps, min_rps=min(0.25, rps), max_rps=rps)

    def capped(self, rps: float) -> "PaceRules":
        """The same law with no rate above `rps`, not even the slowest."""
        bounds = {name: min(rps, getattr(self, name)) for name in ("initial_rps", "min_rps", "max_rps")}
        return replace(self, **bounds)

    def clamp(self, rate: float) -> float:
        """The allowed rate nearest to `rate`."""
        return min(self.max_rps, max(self.min_rps, rate))

    def slack(self, rate: float) -> float:
        """How many seconds ahead of an even pace a request may leave at `rate`."""
        depth = min(self.burst, max(1.0, rate * SPREAD))
        return (depth - 1) / rate


@dataclass(frozen=True, slots=True)
class Cap:
    """Requests a second that somebody has asked us not to exceed at one host, and who, in words."""

    rps: float
    why: str

    def __post_init__(self) -> None:
        if not (isfinite(self.rps) and self.rps > 0):
            raise ValueError(f"a cap of {self.rps}; expected requests a second above 0, or None to lift it")
        # Once a year is as good as never, and arithmetic stays sane.
        object.__setattr__(self, "rps", max(self.rps, 1 / LONGEST))
