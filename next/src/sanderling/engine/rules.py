"""A system's constants: how the engine blames, and how much it has in hand. Times in seconds."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

from sanderling.outcome import Outcome


@dataclass(frozen=True, slots=True)
class BlameRules:
    """When an item ends as failed, when its host is down, and for how long a host is waited for."""

    pauses: tuple[float, ...] = (2.0, 10.0, 30.0)  # before an item is tried again; the last repeats
    row: int = 5  # different items that fail in a row, after which the host is down; more where failures are usual
    own_row: int = 3  # the same for failures before the request was sent, and of the host's own documents
    patience: float = 600.0  # with a host that stopped giving good responses, or asks for so long a pause
    first_patience: float = 15.0  # with a host that never gave one: most likely it does not exist
    improbable: float = 1e-6  # an item ends when its failures in a row are less likely than this
    most_failures: int = 20
    usual_failures: float = 0.01  # of all requests, at least: as if 20 requests had shown it

    def pause(self, failures: int) -> float:
        """Seconds before an item is tried again that failed so many times in a row."""
        return self.pauses[min(max(failures, 1), len(self.pauses)) - 1]

    def limit(self, usual: float) -> int:
        """How many failures in a row end an item at a host where that share of requests usually fails."""
        return min(self.most_failures, int(log(self.improbable) / log(max(self.usual_failures, min(usual, 0.99)))) + 1)


RetryRule = Callable[[str, int, Outcome], float | None]  # host, failures in a row


@dataclass(frozen=True, slots=True)
class EngineRules:
    """How a system runs."""

    slots: int = 64  # requests in flight
    per_host: int = 8  # the same at one host: the limiter sets the pace, this bounds what a slow host can hold
    hosts: int = 10_000  # hosts in memory; the others wait on disk
    load: int = 100  # items of a host that are read at once, fewer where many hosts share the memory
    held: int = 20_000  # items in memory, about
    slow: float = 10.0  # a request that takes longer lends its slot to another, at a host that answers meanwhile
    # What ended is written when it is so many items or bytes, or waits for so long.
    batch: int = 500
    batch_bytes: int = 8 * 2**20
    batch_age: float = 0.5
    grace: float = 10.0  # for what is in flight when we stop
    # None: a person has set how often each item is fetched. Hosts are neither probed nor parked, and the source plans
    # each item itself, whatever came of it.
    blame: BlameRules | None = BlameRules()
    # With the policy aimd, seed 003 decides instead of blame: seconds until the next attempt after so many that ended
    # like this, or None if it was the last.
    retry: RetryRule | None = None

    def __post_init__(self) -> None:
        for name in ("slots", "per_host", "hosts", "load", "held", "batch"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}; expected at least 1")
