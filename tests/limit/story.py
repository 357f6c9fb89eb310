"""A host that is told what to do until something is seen, and the limiter that asks it: for the tests beside it."""

from collections.abc import Callable
from random import Random

from driven import FAST, Asked, Driven, converse

from sanderling.limit import LimiterRules, PaceRules
from sanderling.limit.governor import Mode
from sanderling.worlds.hosts import HostAnswer


class Story:
    """A limiter and a host that is told what to do until something is seen."""

    def __init__(self, pace: PaceRules = FAST) -> None:
        self.driven = Driven(LimiterRules(pace=pace))
        self.asked = list[Asked]()
        self._rng = Random(1)

    @property
    def why(self) -> str:
        return self.driven.view().why

    def serve(self, seconds: float = 300.0, until: Mode | None = None) -> "Story":
        """Serve everything, until it does that."""
        self._go(self._well, seconds, until)
        return self

    def refuse(self, seconds: float = 0.0, status: int = 429, until: Mode = Mode.CRUISE) -> "Story":
        """Refuse what comes and go on for so long; then serve again, until that is noticed."""
        self._go(lambda _now: HostAnswer(status, 0.01), 600, until=Mode.DRAIN)
        opens = self.driven.clock.now() + seconds
        self._go(lambda now: self._well(now) if now >= opens else HostAnswer(status, 0.01), 600 + seconds, until)
        return self

    def _well(self, _now: float) -> HostAnswer:
        return HostAnswer(200, 0.1 * self._rng.uniform(0.95, 1.05))

    def _go(self, ask: Callable[[float], HostAnswer], seconds: float, until: Mode | None) -> None:
        def seen() -> bool:
            return until is not None and self.why.startswith(until.value)

        self.asked += converse(self.driven, ask, seconds, until=seen)
        assert until is None or seen(), f"expected {until}, found {self.why}"
