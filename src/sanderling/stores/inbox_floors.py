"""Below which ids inboxes have nothing: whoever looks into them need not go over all that was read and deleted.

A row that was deleted stays in its index until it is vacuumed: once a minute at best, and not while a backup or anybody
else reads an earlier state. The first message of a part is behind all of those.

Ids are given out before their messages can be seen, so one may appear below what was read. Therefore each inbox is
looked through from its beginning now and then, and where such a look found its first message counts from the next such
look on. A message whose sender took longer than that to commit comes later by as much, and none is lost.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

WHOLE = 10.0  # seconds between two looks from the beginning


class _Floor(NamedTuple):
    looked: float  # when it was last looked through
    floor: int  # the first message was above it at the look before that
    next: int  # the same of the last look


class InboxFloors:
    """The floors of the inboxes that one worker reads, by the clock `now`."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._floors: dict[int, _Floor] = {}
        self._last = 0  # id that was seen

    def below(self, parts: Sequence[int]) -> list[int]:
        """The id behind which each of these is to be read; 0 if it is time to look through all of it."""
        now = self._now()
        found = [self._floors.get(part) for part in parts]
        return [0 if each is None or now >= each.looked + WHOLE else each.floor for each in found]

    def note(self, below: Sequence[tuple[int, int]], found: Sequence[tuple[int, int]], taken: Sequence[int]) -> None:
        """Parts were read, each behind an id; part and id of what was found besides what was taken, all there was."""
        now, first = self._now(), dict[int, int]()
        for part, number in found:
            first[part] = min(number, first.get(part, number))
            self._last = max(self._last, number)
        lowest = min(taken, default=self._last + 1)
        for part, floor in below:
            if not floor:
                before = self._floors.get(part)
                at = min(lowest, first.get(part, self._last + 1)) - 1
                self._floors[part] = _Floor(now, before.next if before else 0, at)
