"""How long a host stayed closed, and what that says: a quota over some window, or an outage that says nothing of one.

Who says 429 without a time counts: a closure that probes had to wait out is a window of its quota. A bare 503, or a
Retry-After, may be an outage or a whim, and is a quota once it recurs: after the same count, or after the same time.
"""

from dataclasses import dataclass
from math import inf

QUOTA_WINDOWS = (1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0)  # seconds that people count quotas over
PROBE, PROBE_GROWTH = 0.25, 1.8  # seconds before the first probe of a closure, and how that grows
KNOWN_GROWTH = 2.0  # of the pauses at a host that is known to count over a window: it will end when that does
LATE = 0.12  # of a closure's length so far: the longest pause between two probes of a longer one
LONG = 20.0  # seconds; a pause between probes that is no longer than this is never too late
LONGEST_PROBE = 600.0  # seconds; a host that refused all day may open any minute
ALIKE = 0.03  # two counts or times that differ by no more than this share are the same


@dataclass(slots=True)
class Opening:
    """When the host opened after a closure, and how much it had served by then."""

    at: float
    served: int


class Closures:
    """One host's closures of more than a second. Counts are per window: a shorter one never resets a longer one's."""

    __slots__ = ("_count", "_mark", "_openings", "_period", "confirmed", "window")

    def __init__(self, began: float) -> None:
        self._openings = [Opening(began, 0)]  # the first contact, then the latest few
        self._mark = Opening(began, 0)  # a point one window back, or two
        self._count = self._period = 0.0  # served before the last closure, and the time from the opening before it
        self.window = QUOTA_WINDOWS[0]  # the longest that is known to be counted over
        self.confirmed = False  # whether what a 503 closes has recurred

    def next_probe(self, refused_at: float, probes: int, first: float, now: float) -> float:
        """When to probe next: later each time, or when a window ends that began as the host opened."""
        growth = PROBE_GROWTH if self.window == QUOTA_WINDOWS[0] else KNOWN_GROWTH
        gap = min(LONGEST_PROBE, first * growth ** min(probes, 40))
        gap = min(gap, max(LONG, LATE * (now - refused_at)))
        ends = [each.at + window + 0.02 for each in self._openings for window in QUOTA_WINDOWS[1:]]
        if self.window > QUOTA_WINDOWS[0]:
            last = self._openings[-1].at
            ends.append(last + ((now - last) // self.window + 1) * self.window + 0.02)
        end = min((end for end in ends if end > now), default=inf)
        # Rather a little later and just after the end than just before it.
        return end if end < now + 1.25 * gap else now + gap

    def recurs(self, refused_at: float, served: int) -> bool:
        """Whether a closure at this point comes after as many requests, or as long, as the one before it."""
        last = self._openings[-1]
        return self._count > 0 and (
            _alike(served - last.served, self._count) or _alike(refused_at - last.at, self._period)
        )

    def close(self, refused_at: float, served: int) -> None:
        """The host has closed: remember after how much."""
        last = self._openings[-1]
        self.confirmed = self.recurs(refused_at, served)
        self._count, self._period = served - last.served, refused_at - last.at

    def open(self, closed: float, now: float, served: int) -> float:
        """The host has opened after at least `closed` seconds of a quota; what it serves a second, over its window."""
        window = next((window for window in QUOTA_WINDOWS if window >= closed), QUOTA_WINDOWS[-1])
        self.window = max(window, self.window)
        rate = max((served - each.served) / max(self.window, now - each.at) for each in self._points(now))
        self.reopen(now, served)
        return rate

    def reopen(self, now: float, served: int) -> None:
        """The host has opened, for whatever reason it was closed."""
        self._openings = [*self._openings[-3:], Opening(now, served)]

    def mark(self, now: float, served: int) -> None:
        """Keep how much was served by when, about a window back."""
        if now - self._mark.at > 2 * self.window:
            self._mark = Opening(now, served)

    def _points(self, now: float) -> list[Opening]:
        """From where to count what a window allows: the latest opening that lies a window back, else the first."""
        whole = [each for each in self._openings if now - each.at >= 0.9 * self.window]
        points = [whole[-1] if whole else self._openings[0]]
        return [*points, self._mark] if now - self._mark.at >= self.window else points


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= max(2.0, ALIKE * other)
