"""The numbers of an engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType

from sanderling.engine.classes import Class

# Of permits, where several classes want them. What one does not use, the others get.
WEIGHTS = MappingProxyType({Class.LIVE: 90.0, Class.NEW: 90.0, Class.AGAIN: 4.0, Class.MISSED: 6.0, Class.PROBE: 10.0})
# Of slots, at most, so that what comes due a moment later finds one.
MOST_SLOTS = MappingProxyType({Class.MISSED: 0.1})


@dataclass(frozen=True, slots=True)
class EngineRules:
    """Times in seconds."""

    slots: int = 256  # requests in flight, over all hosts
    per_host: int = 8  # and at one of them: the limiter sets the pace, this bounds what a slow one can hold
    # Until an item that failed is asked again; the last again and again.
    again: tuple[float, ...] = (2.0, 10.0, 30.0)
    patience: float = 600.0  # with a host that does not answer any more, or that asks us to stay away
    first_patience: float = 15.0  # with one that never answered: most likely it does not exist
    longest_pace: float = 0.0  # between two requests that a host may ask for without being taken for one that is away
    weights: Mapping[Class, float] = field(default_factory=lambda: WEIGHTS)
    most_slots: Mapping[Class, float] = field(default_factory=lambda: MOST_SLOTS)
    # A person has set how often each item is asked for. Hosts are neither set aside nor only probed: every request is
    # work, and the limiter alone says when. The source plans each item itself, whatever came of it.
    contract: bool = False
    slotless: frozenset[Class] = frozenset()  # classes that need no slot, so that no crowd makes them late
    hangs: float = inf  # after which a request without a slot does not keep its item from being asked for again
    most_hanging: int = 4  # such requests for one item, and for each slot of a host; one more is cut off

    def __post_init__(self) -> None:
        if self.slots < 1 or self.per_host < 1:
            raise ValueError(f"slots is {self.slots}, per_host {self.per_host}; both must be at least 1")
        if self.hangs <= 0 or self.most_hanging < 1:
            found = f"hangs is {self.hangs}, most_hanging {self.most_hanging}"
            raise ValueError(f"{found}; expected seconds above 0, and at least 1 request")
        if not self.again or min(self.again) < 0 or list(self.again) != sorted(self.again):
            raise ValueError(f"again is {self.again}, expected pauses that do not shrink")
        if not all(weight > 0 for weight in self.weights.values()):
            raise ValueError(f"weights are {dict(self.weights)}, expected them all above 0: no class starves")

    @property
    def gives_up(self) -> bool:
        """Whether hosts are set aside at all, so that a run ends without them."""
        return not self.contract and self.patience < inf

    def pause(self, failures: int) -> float:
        """Seconds until an item is asked again that has failed so many times in a row."""
        return self.again[min(failures, len(self.again)) - 1]
