"""What is requested not for the first time: missed ids, and visits to records. All of it is on disk by its time.

Some of it is in memory at a time. What is in memory or in flight is held: it is not loaded twice, until what came of it
is committed.
"""

from collections import deque
from random import Random

from sanderling.clock import Clock
from sanderling.sequence.retries import Reason, check_in
from sanderling.sequence.store import Missed, SequenceStore, Visit
from sanderling.sequence.storing import Storing

MOST_IDS = 400  # in memory
MOST_VISITS = 100
SAMPLE = 8  # ids of a gap that are asked at once
NEARBY = 128  # ids on both sides of one that turned up in a gap


class LaterWork:
    """The next of it, in the order in which it is due."""

    def __init__(self, store: SequenceStore, storing: Storing, clock: Clock, random: Random) -> None:
        self._store, self._storing, self._clock, self._random = store, storing, clock, random
        self._ids: deque[tuple[int, Missed]] = deque()  # an id, and what is known of it
        self._visits: deque[Visit] = deque()
        self._held: set[int] = set()
        self._answered: list[int] = []  # until the next commit
        self._turned_up: list[int] = []  # ids of gaps

    @property
    def is_urgent(self) -> bool:
        """Whether a person wants what is next."""
        return bool(self._ids) and self._ids[0][1].due <= 0

    def next_id(self) -> tuple[int, Missed] | None:
        """An id to be asked again."""
        return self._ids.popleft() if self._ids else None

    def next_visit(self) -> Visit | None:
        """A record to be visited."""
        return self._visits.popleft() if self._visits else None

    def put_back(self, number: int) -> None:
        """It was not answered: it is loaded again."""
        self._held.discard(number)

    def answered(self, number: int) -> None:
        """What came of it will be in the next commit."""
        self._answered.append(number)

    def turned_up(self, number: int) -> None:
        """There is a record in a gap: each id near it is asked."""
        self._turned_up.append(number)

    def take_answered(self) -> list[int]:
        """What was answered since the last commit."""
        answered, self._answered = self._answered, []
        return answered

    def release(self, answered: list[int]) -> None:
        """It is committed: from now on the file says whether it is asked again."""
        self._held.difference_update(answered)

    def reload(self) -> None:
        """Begin again with what is due first."""
        self._held.difference_update(number for number, _ in self._ids)
        self._ids.clear()

    async def wake(self) -> None:
        """Ask each id near one that turned up. What was found must be committed before."""
        while self._turned_up:
            await self._store.wake_around(self._turned_up.pop(), NEARBY, self._clock.wall())

    @property
    def has_turned_up(self) -> bool:
        """Whether `wake` has something to do."""
        return bool(self._turned_up)

    async def load(self) -> None:
        """Fetch what is due from the file, if there is room."""
        wall = self._clock.wall()
        if not self._visits:
            for visit in await self._store.visits(wall, MOST_VISITS + len(self._held)):
                if visit.number not in self._held and len(self._visits) < MOST_VISITS:
                    self._held.add(visit.number)
                    self._visits.append(visit)
        if len(self._ids) >= MOST_IDS // 2:
            return
        for each in await self._store.due(wall, MOST_IDS + len(self._held)):
            if len(self._ids) >= MOST_IDS:
                return
            if each.low in self._held:
                continue
            if len(each) == 1:
                self._hold(each.low, each)
            elif each.reason is Reason.GAP:
                self._sample(each, wall)
            else:
                for one in await self._store.break_up(each, MOST_IDS):
                    self._hold(one.low, one)

    def _hold(self, number: int, missed: Missed) -> None:
        self._held.add(number)
        self._ids.append((number, missed))

    def _sample(self, gap: Missed, wall: float) -> None:
        """Ask some ids of a gap; the rest waits for longer."""
        due = wall + check_in(gap.reason, gap.tries + 1, self._random)
        self._storing.batch.missed.append(Missed(gap.low, gap.high, gap.reason, gap.tries + 1, gap.since, due))
        for number in self._random.sample(range(gap.low, gap.high + 1), min(SAMPLE, len(gap))):
            if number not in self._held:
                self._hold(number, gap)
