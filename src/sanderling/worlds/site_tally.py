"""What a simulated host was asked, and how it was treated: what tests of politeness look at."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

from sanderling.worlds.site import Answer
from sanderling.worlds.site_weather import Fault


@dataclass(slots=True)
class Tally:
    """Counts of one host. Times in seconds."""

    asked: int = 0
    forbidden: int = 0  # of these, for what its robots.txt says not to ask for
    answered: Counter[int] = field(default_factory=Counter)  # by status; what was cut on the way too
    faults: Counter[Fault] = field(default_factory=Counter)
    inflight: int = 0
    most_inflight: int = 0
    shortest: float = inf  # between two requests
    last: float = -inf

    @contextmanager
    def request(self, now: float, *, forbidden: bool) -> Iterator[None]:
        """Count a request for as long as it is under way."""
        self.asked += 1
        self.forbidden += forbidden
        self.inflight += 1
        self.most_inflight = max(self.most_inflight, self.inflight)
        self.shortest = min(self.shortest, now - self.last)
        self.last = now
        try:
            yield
        finally:
            self.inflight -= 1

    def note(self, answer: Answer) -> None:
        """Count what the request got."""
        if answer.status:
            self.answered[answer.status] += 1
        if answer.fault is not Fault.NONE:
            self.faults[answer.fault] += 1
