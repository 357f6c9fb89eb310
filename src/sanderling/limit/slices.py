"""One quota for several limiters, which do not ask each other before every request: each takes slices of it. Pure.

Terms. *Quota*: what a key, a domain or an address allows, as an interval between requests. *Slice*: a stretch of the
quota's time in which one limiter sends, and no other. Slices of one quota never overlap: at no instant is more than the
whole of it given out, however many limiters there are, and together they are as fast as one would be.

Whoever wants to send takes the next stretch that is free. So limiters that want more than there is get their turns one
after the other, as long as each takes one slice at a time; and one that wants nothing takes nothing. A slice that is
not used lapses: nobody has to give it back, also not one that was killed.

What must be shared is two times for each quota (`QuotaState`). A store keeps them, and changes them one at a time:
`take`, `draw` and `hush` say how. `Slices` keeps them in memory; `crawls/part_quotas.py` in memory that the processes
of one machine share.
"""

from collections.abc import Mapping
from math import inf
from typing import NamedTuple, Protocol

# Seconds for which a slice is good beyond its end: a request that was to leave at the last moment may be a little late.
GRACE = 0.1
LENGTH = 0.5  # seconds of a slice at most, unless one request takes longer: others have their turn after that


class QuotaState(NamedTuple):
    """What is shared of one quota. Times are those of a clock that all limiters have."""

    free: float = -inf  # from then on nobody has a slice
    quiet: float = -inf  # nobody may send before: a host has asked for that


class Slice(NamedTuple):
    """So many requests may leave from `start` on."""

    start: float
    end: float  # where the next slice may begin
    number: int

    def is_good(self, at: float) -> bool:
        """Whether a request may leave then: it may be a little late."""
        return self.start <= at < self.end + GRACE


NO_SLICE = Slice(-inf, -inf, 0)


def take(
    state: QuotaState, at: float, interval: float, wanted: int = 1, length: float = LENGTH
) -> tuple[QuotaState, Slice]:
    """The next slice for `wanted` requests, not before `at`, and what is shared from then on."""
    number = max(1, min(wanted, int(length / interval)))
    start = max(state.free, state.quiet, at)
    end = start + number * interval
    return state._replace(free=end), Slice(start, end, number)


def draw(state: QuotaState, now: float, seconds: float) -> QuotaState:
    """Somebody has used that much of the quota's time without a slice, or beyond one: all wait the longer."""
    return state._replace(free=max(state.free, now) + seconds)


def hush(state: QuotaState, until: float) -> QuotaState:
    """Nobody may send before then, slices that were taken included. Never shortens what was said before."""
    return state._replace(quiet=max(state.quiet, until))


class SliceStore(Protocol):
    """Keeps what limiters share of their quotas, by name."""

    def take(self, key: str, at: float, interval: float, wanted: int) -> Slice:
        """The next slice; see `take`."""

    def draw(self, key: str, now: float, seconds: float) -> None:
        """See `draw`."""

    def hush(self, key: str, until: float) -> None:
        """See `hush`."""

    def quiet(self, key: str) -> float:
        """Until when nobody may send."""


class Slices:
    """Keeps it in memory, for limiters of one event loop."""

    def __init__(self, states: Mapping[str, QuotaState] | None = None) -> None:
        self._states = dict(states or {})

    def take(self, key: str, at: float, interval: float, wanted: int) -> Slice:
        """The next slice."""
        self._states[key], taken = take(self._of(key), at, interval, wanted)
        return taken

    def draw(self, key: str, now: float, seconds: float) -> None:
        """Somebody has used that much without a slice."""
        self._states[key] = draw(self._of(key), now, seconds)

    def hush(self, key: str, until: float) -> None:
        """Nobody may send before then."""
        self._states[key] = hush(self._of(key), until)

    def quiet(self, key: str) -> float:
        """Until when nobody may send."""
        return self._of(key).quiet

    def _of(self, key: str) -> QuotaState:
        return self._states.get(key, QuotaState())


class SharedQuota:
    """What one limiter has of a quota: the slice that it took last, and how many requests are left of that."""

    __slots__ = ("_key", "_left", "_slice", "_store")

    def __init__(self, store: SliceStore, key: str) -> None:
        self._store = store
        self._key = key
        self._slice = NO_SLICE
        self._left = 0.0

    def claim(self, at: float, interval: float, wanted: int) -> float:
        """From when on a request may leave, not before `at`: within the slice that is there, or the next one."""
        at = max(at, self._store.quiet(self._key))
        if self._left < 1 or max(at, self._slice.start) >= self._slice.end + GRACE:
            self._slice = self._store.take(self._key, at, interval, wanted)
            self._left = self._slice.number
        return max(at, self._slice.start)

    def use(self, now: float, interval: float, cost: float) -> None:
        """A request leaves, which counts for so many."""
        if self._slice.is_good(now):
            cost, self._left = cost - self._left, max(0.0, self._left - cost)
        if cost > 0:
            self._store.draw(self._key, now, cost * interval)

    def put_back(self, cost: float) -> None:
        """One that was to leave has not."""
        self._left += cost

    def hush(self, until: float) -> None:
        """A host has asked for quiet: that is for all."""
        self._store.hush(self._key, until)
