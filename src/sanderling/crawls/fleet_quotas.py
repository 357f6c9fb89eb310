"""What the limiters of a whole fleet share: a quota of a key, a domain or an address is one, however many machines ask.

A worker books a stretch of the quota's time at the server, and its parts take their slices of that. Stretches of two
workers never overlap, so together they are no faster than one would be. Who wants nothing books nothing; what is booked
and not used lapses. To book is one question to the server, which the worker waits for: so a stretch is some seconds
long, and longer where very many quotas are in use.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from math import inf

from sanderling.clock import Clock
from sanderling.crawls.fleet import FleetStores
from sanderling.limit import slices
from sanderling.limit.slices import QuotaState, Slice
from sanderling.stores.leases import LeasesAwayError

STRETCH = 2.0  # seconds that are booked at once, at least
A_SECOND = 25.0  # stretches that are booked in a second, at most; then they are longer
LONGEST = 30.0
PATIENCE = 0.5  # seconds that the server has to answer
LOOKED_AT = 2  # quotas, whenever one changes, of whether they are over


class FleetSlices:
    """Keeps what the limiters of one worker have of each quota. `clock` has the server's time of day.

    While the server is away, nothing more is promised for `seconds`: a lease, after which nobody may send anyhow.
    """

    def __init__(self, fleet: FleetStores, clock: Clock, seconds: float) -> None:
        self._fleet = fleet
        self._clock = clock
        self._seconds = seconds
        self._states: dict[str, QuotaState] = {}
        self._ends: dict[str, float] = {}  # of the stretch that was booked last

    def take(self, key: str, at: float, interval: float, wanted: int) -> Slice:
        """The next slice, of a stretch that is ours."""
        state, end = self._of(key), self._ends.get(key, -inf)
        if max(state.free, state.quiet, at) + interval > end:
            state, end = self._book(key, interval)
        most = max(1, int((end - max(state.free, state.quiet, at)) / interval))
        state, taken = slices.take(state, at, interval, min(wanted, most))
        self._keep(key, state)
        return taken

    def _book(self, key: str, interval: float) -> tuple[QuotaState, float]:
        length = max(STRETCH, min(LONGEST, len(self._ends) / A_SECOND), interval)
        now, server = self._clock.now(), self._fleet.servers[0]
        try:
            booked = self._fleet.call.wait_for(server.book(key, length), self._patience())
        except LeasesAwayError:
            return self._of(key)._replace(free=now + self._seconds), now + self._seconds + interval
        start, quiet = (self._clock.now() + each - self._clock.wall() for each in booked)
        state = QuotaState(start, max(self._of(key).quiet, quiet))
        self._ends[key] = start + length
        self._keep(key, state)
        return state, start + length

    def draw(self, key: str, now: float, seconds: float) -> None:
        """Somebody has used that much without a slice."""
        self._keep(key, slices.draw(self._of(key), now, seconds))

    def hush(self, key: str, until: float) -> None:
        """Nobody may send before then, on any machine."""
        self._keep(key, slices.hush(self._of(key), until))
        wall = self._clock.wall() + until - self._clock.now()
        with suppress(LeasesAwayError):  # then each host that refuses says so to whoever asks it
            self._fleet.call.wait_for(self._fleet.servers[0].hush(key, wall), self._patience())

    def quiet(self, key: str) -> float:
        """Until when nobody may send."""
        return self._of(key).quiet

    def _keep(self, key: str, state: QuotaState) -> None:
        """Keep it, as the last; and let go of the first if they are over, which then are as if they had never been."""
        self._states.pop(key, None)
        self._states[key] = state
        now = self._clock.now()
        for each in list(islice(self._states, LOOKED_AT)):
            first = self._states.pop(each)
            if max(*first, self._ends.get(each, -inf)) < now:
                self._ends.pop(each, None)
            else:
                self._states[each] = first

    def _of(self, key: str) -> QuotaState:
        return self._states.get(key, QuotaState())

    def _patience(self) -> Callable[[], bool]:
        until = self._clock.now() + PATIENCE
        return lambda: self._clock.now() > until
