"""How many parts a worker has beside others that are faster: one that does not keep up gives some away. Pure.

A worker cannot know how fast it is, but it notices when it is late: what was to run at a time ran later. That is true
of a slow machine, of a busy one, and of one that is given a tenth of a core. So each says which share of its time was
lost like that, and one that is later than the others by far has fewer parts, until it is not. Where all are late
alike, nobody has anything to give away.
"""

from sanderling.stores.fleet import WorkerPace

MUCH = 0.2  # of its time, by which one is later than the others and has too many parts
LITTLE = 0.05  # by which it is not
FULL, LEAST = 100, 2  # weights
PATIENCE = 3  # beats in a row: others may have just begun, and are late soon
GROWTH = 1.1  # of the weight at each beat
REST = 24  # beats after it fell in which it does not grow: a part that moves costs as much as some seconds of crawling


class WorkerLateness:
    """Weighs a worker by how late it is, from beat to beat."""

    def __init__(self) -> None:
        self._late = 0.0  # seconds since the last beat
        self._all = 0.0
        self._rests = 0  # beats that are left
        self._lagged = 0  # beats in a row
        self.pace = WorkerPace(FULL)

    def ran(self, wanted: float, took: float) -> None:
        """What was to wait for so many seconds has waited for so many."""
        self._late += max(0.0, took - wanted)
        self._all += took

    def measure(self) -> WorkerPace:
        """What to say at a beat: half of it is what was said before, for one pause is no slow machine."""
        share = self._late / self._all if self._all else 0.0
        self._late = self._all = 0.0
        self.pace = self.pace._replace(late=(self.pace.late + share) / 2)
        return self.pace

    def compare(self, others: float, *, lacking: bool) -> int:
        """The others are so late on average: our weight from now on. While one lacks parts, it is not late yet."""
        more, weight = self.pace.late - others, self.pace.weight
        if lacking:
            return weight
        self._lagged = self._lagged + 1 if more > MUCH else 0
        self._rests = max(0, self._rests - 1)
        if self._lagged >= PATIENCE:
            weight = max(LEAST, int(weight * (1 - more)))
            self._lagged, self._rests = 0, REST
        elif more < LITTLE and not self._rests:
            weight = min(FULL, int(weight * GROWTH) + 1)
        self.pace = self.pace._replace(weight=weight)
        return weight
