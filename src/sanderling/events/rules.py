"""The numbers that consuming goes by."""

from dataclasses import dataclass
from math import inf

from sanderling.engine.rules import EngineRules
from sanderling.events.batches import USUAL_LIMITS, BatchLimits
from sanderling.events.rows import EVENTS_EXCHANGE
from sanderling.limit import BreakerRules

DIFFERENT = 5  # messages in a row at which a station fails, until it counts as down


@dataclass(frozen=True, slots=True)
class ConsumeRules:
    """How much at once, and how patiently. Times in seconds, sizes in bytes."""

    batches: int = 5  # at once
    bucket: str = "crawl-results"  # of paths that name none
    exchange: str = EVENTS_EXCHANGE  # where crawlers hear what they should fetch once more
    most_raw: int = 32 * 2**20  # of an object as it is stored
    most: int = 32 * 2**20  # of it once unpacked: fifty items of 600 kB
    limits: BatchLimits = USUAL_LIMITS  # of what is in it
    memory: int = 256 * 2**20  # that all batches in hand may take, as estimated
    wait: float = 1.0  # for a message
    most_tries: int = 10  # of a batch that is not there
    first_delay: float = 5.0  # doubled with each try
    longest_delay: float = 1_800.0
    switched_off: float = 30.0
    again: tuple[float, ...] = (2.0, 10.0, 30.0)  # until a message comes back at which a store has failed
    probe_every: float = 1.0  # while a store or the queue is away

    def delay(self, tries: int) -> float:
        """Seconds until a message comes back that has failed so many times."""
        return float(min(self.longest_delay, self.first_delay * 2 ** min(tries, 60)))

    @property
    def engine(self) -> EngineRules:
        """The engine's part of the rules. Stores are ours: they are waited for, however long that takes."""
        slots = self.batches
        return EngineRules(slots=slots, per_host=slots, again=self.again, patience=inf, first_patience=inf)

    @property
    def breaker(self) -> BreakerRules:
        """When a station counts as down: so many different messages in a row, or one that it does not even answer."""
        every, different = self.probe_every, min(DIFFERENT, self.batches)
        return BreakerRules(consecutive=different, unreached=1, open_for=every, longest=every, jitter=0.0)
