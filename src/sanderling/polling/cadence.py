"""When again? Points of a grid, and the exceptions from it."""

import hashlib
from math import floor, log2
from random import Random

# What keeps targets of one interval from falling into step must stay small beside the interval; and a cadence of less
# than a second is there to be kept.
JITTER_SHARE, JITTER_FROM = 0.05, 1.0
# Failures double the pause, up to this many intervals, but to no less than a second and no more than five minutes:
# what is shown live is back soon after its upstream, and a document that is gone is not asked for all day.
LONGEST_PAUSE_INTERVALS, SHORTEST_CAP, LONGEST_CAP = 32, 1.0, 300.0


def phase(kind: str, source_id: str) -> float:
    """The share of its interval by which a target is shifted: the same on every machine, and spread evenly."""
    name = f"{kind}\0{source_id}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=6).digest(), "big") / 2**48


def next_point(point: float, interval: float, now: float) -> float:
    """The first point after `now` of the grid through `point`."""
    steps = floor((now - point) / interval) + 1
    following = point + steps * interval
    # Rounding may lead to `now` itself, which has been.
    return following if following > now else point + (steps + 1) * interval


def missed_runs(due: float, interval: float, now: float) -> int:
    """How many runs should have been after the one that was due, up to now."""
    return max(0, floor((now - due) / interval))


def jitter(interval: float, most: float, rng: Random) -> float:
    """Seconds by which a run may be later than its point."""
    return rng.uniform(0.0, min(most, JITTER_SHARE * interval)) if interval >= JITTER_FROM else 0.0


def pause(failures: int, interval: float, rng: Random) -> float:
    """Seconds to stay away after so many failures in a row. The first costs nothing: the next point is soon enough."""
    if failures < 2:
        return 0.0
    cap = min(max(interval * LONGEST_PAUSE_INTERVALS, SHORTEST_CAP), max(LONGEST_CAP, interval))
    return rng.uniform(0.0, min(cap, interval * 2.0 ** min(failures, 60)))


def bucket(interval: float) -> int:
    """The class of intervals that are about as long: in each the longest is at most twice the shortest."""
    return floor(log2(interval))


def stretch(late: float, interval: float, weight: int) -> float:
    """How urgent a target is: its lateness in intervals, times its weight.

    It grows without end while a target waits, so none waits for ever. A millisecond is added, so that of two which are
    due just now the one that is due more often comes first.
    """
    return (late + 0.001) / interval * (1 + weight if weight >= 0 else 1 / (1 - weight))
