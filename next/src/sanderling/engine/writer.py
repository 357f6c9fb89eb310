"""What ended, on its way to the sink in batches."""

from math import inf

from sanderling.engine.ports import Done, Parked
from sanderling.engine.rules import EngineRules

HURRY = 0.02  # seconds that a batch waits while nothing else can be sent: what it found may be needed


class Unwritten:
    """Items and hosts that wait to be written. `due` says when the next batch should be."""

    def __init__(self, rules: EngineRules) -> None:
        self._rules = rules
        self._done: list[Done] = []
        self._parked: dict[str, Parked] = {}
        self._size = 0
        self._since = inf
        self.writing = 0  # items of the batch that is being written
        self._writing_size = 0
        self.is_busy = False

    def __len__(self) -> int:
        return len(self._done) + self.writing

    def __bool__(self) -> bool:
        return self.is_busy or bool(self._done or self._parked)

    @property
    def is_crowded(self) -> bool:
        """Whether so much is unwritten that nothing more should be sent."""
        rules = self._rules
        return len(self) >= 4 * rules.batch or self._size + self._writing_size >= 2 * rules.batch_bytes

    def add(self, done: Done, now: float) -> None:
        """An item ended."""
        self._since = min(self._since, now)
        self._done.append(done)
        self._size += done.handled.size

    def note(self, parked: Parked, now: float) -> bool:
        """A host is parked, or answers again. Whether that replaces a note which was not being written yet."""
        self._since = min(self._since, now)
        replaces = parked.host in self._parked
        self._parked[parked.host] = parked
        return replaces

    def due(self, *, hurry: bool) -> float:
        """When to write the next batch; infinity if there is nothing to write."""
        if len(self._done) >= self._rules.batch or self._size >= self._rules.batch_bytes:
            return -inf
        return self._since + (min(HURRY, self._rules.batch_age) if hurry else self._rules.batch_age)

    def begin(self) -> tuple[list[Done], list[Parked]]:
        """The next batch, which is being written from now on."""
        batch, parked = self._done, list(self._parked.values())
        self.writing, self._writing_size, self.is_busy = len(batch), self._size, True
        self._done, self._parked, self._size, self._since = [], {}, 0, inf
        return batch, parked

    def end(self) -> None:
        """It is on disk."""
        self.writing, self._writing_size, self.is_busy = 0, 0, False
