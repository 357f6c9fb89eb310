"""How long an attempt waits after the one before it failed."""

import math
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackoffRules:
    """Seconds and counts; the defaults are those of the original limiter (RetryBaseDelay and its neighbours)."""

    base: float = 0.2
    longest: float = 5.0
    # Tries in all, the first included.
    attempts: int = 3

    def __post_init__(self) -> None:
        # Written so that NaN, for which every comparison is false, is refused as well.
        if not 0 < self.base < math.inf:
            raise ValueError(f"base is {self.base}, expected seconds above 0")
        if not self.base <= self.longest < math.inf:
            raise ValueError(f"longest is {self.longest}, expected seconds, at least base ({self.base})")
        if not 1 <= self.attempts < math.inf:
            raise ValueError(f"attempts is {self.attempts}, expected at least 1")


def delay(rules: BackoffRules, attempt: int, rng: random.Random) -> float:
    """Seconds to wait when `attempt`, counted from 1, has failed: anything up to a ceiling that doubles each time.

    Full jitter, from zero: requests that failed together must not come back together.
    """
    if attempt < 1:
        raise ValueError(f"attempt is {attempt}, expected to be counted from 1")
    # 1023 doublings are the most a float holds; any base in use has met `longest` long before.
    return rng.uniform(0, min(rules.longest, rules.base * 2.0 ** min(attempt - 1, 1023)))
