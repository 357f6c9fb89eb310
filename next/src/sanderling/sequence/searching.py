"""Looks for the next records when nothing comes: sends what the search of `gaps.py` asks, and passes over the gap."""

from collections import deque
from collections.abc import Sequence

from sanderling.clock import Clock
from sanderling.observe.alerts import Alert, Alerts, Level
from sanderling.sequence.description import IdAnswer, Meaning
from sanderling.sequence.follower import Follower
from sanderling.sequence.gaps import GapSearch, Search
from sanderling.sequence.options import LARGEST_ID
from sanderling.sequence.retries import Reason, check_in
from sanderling.sequence.store import Missed, SavedState
from sanderling.sequence.storing import Storing

MOST_GAPS = 5  # widths that are remembered


class GapWalk:
    """The search at one place of the sequence, if there is one."""

    def __init__(self, follower: Follower, state: SavedState, storing: Storing, alerts: Alerts, clock: Clock) -> None:
        self._follower, self._state, self._storing = follower, state, storing
        self._alerts, self._clock = alerts, clock
        self.waiting: deque[int] = deque()  # ids to request
        self.passed = 0  # gaps
        self._search: GapSearch | None = None
        self._scan: Search | None = None
        self._batch: Sequence[int] = ()
        self._answers: dict[int, bool] = {}

    @property
    def looks(self) -> int:
        """How often this place was looked at in vain."""
        return self._search.looks if self._search is not None else 0

    @property
    def is_looking(self) -> bool:
        """Whether ids are being requested."""
        return self._scan is not None

    def moved(self) -> None:
        """Something came: this is no gap."""
        self._search = self._scan = None
        self.waiting.clear()

    def look(self, *, at_once: bool = False) -> None:
        """Begin to ask what lies ahead, or go on when that is due."""
        follower, now = self._follower, self._clock.now()
        if self._search is None:
            self._search = GapSearch(follower.newest, self._state.run, self._state.gaps, now, follower.stride)
        if now >= self._search.due or at_once:
            self._scan = self._search.look(follower.ceiling, LARGEST_ID)
            self._go_on(None)

    def hear(self, answer: IdAnswer) -> None:
        """What was said of an id."""
        if self._scan is None or answer.number not in self._batch:
            return
        if answer.meaning.fails or answer.meaning is Meaning.REFUSED:
            self.waiting.append(answer.number)
            return
        self._answers[answer.number] = answer.meaning.exists
        if len(self._answers) == len(self._batch):
            self._go_on([self._answers[number] for number in self._batch])

    def _go_on(self, answers: list[bool] | None) -> None:
        if self._scan is None or self._search is None:
            return
        try:
            self._batch = next(self._scan) if answers is None else self._scan.send(answers)
        except StopIteration as ended:
            self._scan = None
            if ended.value is None:
                self._search.looked(self._clock.now())
            else:
                self._pass_over(ended.value)
            return
        self._answers = {}
        self.waiting.extend(self._batch)

    def _pass_over(self, first: int) -> None:
        """Go on at the first record behind the gap; all before it is missed."""
        state, wall = self._state, self._clock.wall()
        width = first - self._follower.newest - 1
        self._search = None
        for low, high in self._follower.skip_to(first, self._clock.now()):
            due = wall + check_in(Reason.GAP, 1, self._storing.random)
            reason = Reason.GAP if high > low else Reason.NOT_FOUND
            self._storing.batch.missed.append(Missed(low, high, reason, 1, wall, due))
        if width > MOST_GAPS:
            state.gaps = [width, *(each for each in state.gaps if each != width)][:MOST_GAPS]
            state.run = 0
            self.passed += 1
            fields = (
                ("Previous Id", f"`{first - width - 1}`"), ("New Starting Id", f"`{first}`"),
                ("Minimum Block Size", f"{width:,}"),
            )  # fmt: skip
            self._alerts.post(Alert("Gap Mode Block Skip", "", Level.WARNING, fields, ping=True))
