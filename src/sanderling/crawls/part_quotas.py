"""What all parts share: quotas of keys, domains and addresses, and how many pages of a domain there are."""

from math import inf

from sanderling.clock import Clock
from sanderling.limit import slices
from sanderling.limit.slices import QuotaState, Slice
from sanderling.stores.time_table import TimeTable


class PartSlices:
    """Keeps what is shared of each quota in a table of this machine: the times of `now` are the same for all on it."""

    def __init__(self, table: TimeTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def take(self, key: str, at: float, interval: float, wanted: int) -> Slice:
        """The next slice."""
        taken = slices.NO_SLICE

        def change(times: tuple[float, float]) -> QuotaState:
            nonlocal taken
            after, taken = slices.take(QuotaState(*times), at, interval, wanted)
            return after

        self._table.change(key, self._clock.now(), change)
        return taken

    def draw(self, key: str, now: float, seconds: float) -> None:
        """Somebody has used that much without a slice."""
        self._table.change(key, now, lambda times: slices.draw(QuotaState(*times), now, seconds))

    def hush(self, key: str, until: float) -> None:
        """Nobody may send before then."""
        self._table.change(key, self._clock.now(), lambda times: slices.hush(QuotaState(*times), until))

    def quiet(self, key: str) -> float:
        """Until when nobody may send."""
        return QuotaState(*self._table.read(key, self._clock.now())).quiet


class PartCounts:
    """Counts by name in a table of this machine. One that is killed has counted what it then asks for again."""

    def __init__(self, table: TimeTable) -> None:
        self._table = table

    def add(self, name: str, number: int = 1) -> None:
        """So many more."""
        self._table.change(name, -inf, lambda counts: (max(0.0, counts[0]) + number, 0.0))

    def of(self, name: str) -> int:
        """How many there are in all parts."""
        return int(max(0.0, self._table.read(name, -inf)[0]))
