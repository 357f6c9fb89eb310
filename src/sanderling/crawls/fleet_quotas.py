"""What the limiters of a whole fleet share: a quota of a key, a domain or an address is one, however many machines ask.

A worker books a stretch of the quota's time at the server, and its parts take their slices of that. Stretches of two
workers never overlap, so together they are no faster than one would be. Who wants nothing books nothing; what is booked
and not used lapses. To book is one question to the server, which the worker waits for: so a stretch is some seconds
long, and longer where very many quotas are in use.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import islice
from math import inf
from typing import Any, TypeVar

from sanderling.clock import Clock
from sanderling.crawls.fleet import FleetStores
from sanderling.limit import slices
from sanderling.limit.slices import QuotaState, Slice
from sanderling.stores.leases import LeasesAwayError

T = TypeVar("T")

STRETCH = 2.0  # seconds that are booked at once, at least
A_SECOND = 25.0  # stretches that are booked in a second, at most; then they are longer
LONGEST = 30.0
PATIENCE = 0.5  # seconds that the server has to answer
REST = 5.0  # seconds for which one that did not answer is not asked: all that runs here waits while it is
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
        self._unsaid: dict[str, float] = {}  # until when others are to leave a quota alone, which no server knows yet
        self._away = -inf  # until when the server is taken to be away

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
        now = self._clock.now()
        try:
            self._say()
            booked = self._ask(self._fleet.servers[0].book, key, length)
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
        self._unsaid[key] = self._clock.wall() + until - self._clock.now()
        with suppress(LeasesAwayError):  # then it is said before anything more is booked
            self._say()

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

    def _say(self) -> None:
        for key, until in list(self._unsaid.items()):
            self._ask(self._fleet.servers[0].hush, key, until)
            del self._unsaid[key]

    def _ask(self, ask: Callable[[str, float], Coroutine[Any, Any, T]], key: str, number: float) -> T:
        now = self._clock.now()
        if now < self._away:
            raise LeasesAwayError("it was away a moment ago")
        try:
            return self._fleet.call.wait_for(ask(key, number), lambda: self._clock.now() > now + PATIENCE)
        except LeasesAwayError:
            self._away = self._clock.now() + REST
            raise
