"""Who watches the main lane: is anything still found, is this a gap or the head, and when is an id due?

While it looks, no new ids are taken, and what was not found beyond the newest waits for its turn instead of using up
its tries: whether those ids come later or never is what is being found out.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from sanderling.apis.numbered import LARGEST_ID, NumberedAnswer, Status
from sanderling.clock import Clock
from sanderling.observe.alerts import Alert
from sanderling.sequence import alerts
from sanderling.sequence.gaps import (
    CONSECUTIVE,
    NEAR,
    HeadWait,
    LifeAhead,
    LookKind,
    NothingAhead,
    Search,
    WaitRules,
    look_ahead,
)
from sanderling.sequence.head import SequenceHead
from sanderling.sequence.inquiries import Asks
from sanderling.sequence.measures import SequenceMeasures
from sanderling.sequence.readings import ReadingsWindow

CLOSE_BY = 4  # ids that are asked in each near look
USUAL_RATE = 10.0  # ids a second, where none is known yet
UNKNOWN_AGE = 60.0  # seconds, of the newest record where we have not seen any

Say = Callable[[Alert], object]


class Skips(Protocol):
    """What the lookout can do to the crawl."""

    def withdraw(self, above: int) -> None:
        """Let ids above this one that wait for another try wait for their turn instead."""

    def skip_to(self, first: int) -> int:
        """Go on at `first`; all between is missed. How many ids that were."""

    def hurry(self, first: int) -> None:
        """Ask soon for what was given up from `first` on: it may be there by now."""

    @property
    def wake(self) -> Callable[[], object]:
        """Give out what can be given out."""


@dataclass(frozen=True, slots=True)
class LookRules:
    """Whether ids are held back until they are due, and how long to wait at the head."""

    pacing: bool = True
    wait: WaitRules = field(default_factory=WaitRules)


class Lookout:
    """Window, head and gaps in one: told of every answer, asked before every new id."""

    def __init__(self, asks: Asks, measures: SequenceMeasures, say: Say, clock: Clock, rules: LookRules) -> None:
        self.window = ReadingsWindow(clock.now())
        self.head = SequenceHead()
        self.holding = False  # whether no new ids should be taken
        self.waiting = False  # at the head
        self.disturbed = False  # whether a look fell into this period
        self.rules = rules
        self._asks = asks
        self.measures = measures
        self.say = say
        self._clock = clock
        self._failing: set[int] = set()  # ids whose probes have failed, since this look began
        self._misses = 0  # ids in a row that were not found in the main lane
        self._suspected = asyncio.Event()
        self._last = -1  # the highest id that is known to exist, or that was settled when we began
        self._completed: float | None = None  # when the record of `_last` was, by the wall
        self._seen = clock.now()  # when we saw it
        self._slow = 0.0  # seconds that our clock is behind, as far as a record from the future has proved it

    @property
    def in_doubt(self) -> bool:
        """Whether the newest answers were that nothing is there: only ids further on can tell why."""
        return self._misses > 0

    def begin(self, below: int) -> None:
        """Say where the crawl begins: ids below are none of its concern."""
        self._last = max(self._last, below - 1)

    def suspect(self) -> None:
        """Look ahead, whatever the answers in a row say."""
        self._suspected.set()

    # What the crawl asks and tells.

    def due(self, number: int) -> float:
        """Seconds until an id should be asked for the first time; 0 or less for now."""
        if not self.rules.pacing:
            return 0.0
        wall = self._wall()
        due = self.head.due(number, wall)
        return 0.0 if due is None else due - wall

    def _wall(self) -> float:
        """What time it is for those who complete records."""
        return self._clock.wall() + self._slow

    def answered(self, number: int, answer: NumberedAnswer, *, first: bool) -> None:
        """An answer of the main lane; `first` if the id was asked for the first time."""
        self.window.count(answer.status, answer.outcome.lag)
        self.window.ids += first
        ahead = number > self._last
        if answer.status.exists:
            if first:
                self.head.on_time(number)
            self._exists(number, answer)
        elif answer.status is Status.NOT_FOUND:
            if first:
                self.head.early(number)
            if ahead and first:
                self._misses += 1
        if self._misses >= CONSECUTIVE:
            self._suspected.set()

    def _exists(self, number: int, answer: NumberedAnswer) -> None:
        wall, lag = self._clock.wall(), answer.outcome.lag
        if lag is not None:
            self._slow = max(self._slow, -lag) if lag < 0 else 0.0
            self.head.seen(number, wall - lag, self._wall())
        if number > self._last:
            self._misses = 0
            self._last = number
            self._completed = wall if lag is None else wall - lag
            self._seen = self._clock.now()

    def given_back(self, number: int) -> bool:
        """Whether an id that was not found should wait at the head instead of using up its tries."""
        return self.holding and number > self._last

    # Looking.

    async def run(self, crawl: Skips) -> None:
        """Look ahead whenever there is reason to, and go on when it is known what there is."""
        while True:
            await self._suspected.wait()
            self.holding = self.disturbed = True
            last = self._last
            found = await self._look(crawl)
            if found is not None:
                self._go_on(crawl, found)
            crawl.hurry(last + 1 if found is None else found.first)
            self.holding = self.waiting = False
            self.disturbed = True
            self._misses = 0
            self._suspected.clear()
            crawl.wake()

    async def _look(self, crawl: Skips) -> LifeAhead | None:
        """Where there is life ahead; None if ids that were asked for anyway have turned up."""
        last = self._last
        self._failing.clear()
        found = await self._drive(last)
        if found is not None:
            crawl.withdraw(last)
        while isinstance(found, NothingAhead):
            self.waiting = True
            found = await self._wait(last)
        return found

    async def _wait(self, last: int) -> LifeAhead | None:
        """Wait at the head until something is there."""
        waiting = HeadWait(self._clock.now(), self.rules.wait)
        began = self._clock.now()
        while self._last == last:
            at, look = waiting.next_look()
            await self._clock.sleep(max(0.0, at - self._clock.now()))
            near = await self._near(last) if look is LookKind.NEAR else await self._drive(last)
            if not isinstance(near, NothingAhead):
                return near
            now = self._clock.now()
            waiting.looked(look, now)
            if waiting.runaway(now):
                self.say(alerts.runaway(last, now - began))
        return None

    async def _near(self, last: int) -> LifeAhead | NothingAhead:
        # Not those that fail: asked again and again, they would have the limiter shut the host, for everyone.
        ahead = (number for number in range(last + 1, LARGEST_ID + 1) if number not in self._failing)
        numbers = list(islice(ahead, CLOSE_BY))
        exist = await self._probe(numbers)
        live = [number for number, exists in zip(numbers, exist, strict=True) if exists]
        return LifeAhead(live[0], last + 1) if live else NothingAhead(max(numbers, default=last))

    async def _drive(self, last: int) -> LifeAhead | NothingAhead | None:
        """Ask what the search wants asked, until it knows; None if the newest id moved meanwhile."""
        search: Search = look_ahead(last, self.head.rate or USUAL_RATE, self._silent())
        try:
            wanted = next(search)
            while self._last == last:
                wanted = search.send(await self._probe(wanted))
        except StopIteration as end:
            found: LifeAhead | NothingAhead = end.value
            return found
        return None

    def _silent(self) -> float:
        """Seconds since the newest record was completed. Clocks disagree, but that was before we saw it."""
        unseen = self._clock.now() - self._seen
        age = UNKNOWN_AGE + unseen if self._completed is None else self._clock.wall() - self._completed
        return max(1.0, unseen, age)

    async def _probe(self, numbers: Sequence[int]) -> list[bool]:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._exists_at(number)) for number in numbers]
        return [task.result() for task in asked]

    async def _exists_at(self, number: int) -> bool:
        """Whether there is anything; one that fails, or is refused, until the engine ends it counts as missing.

        Single ids fail for hours, and must not hold everyone up; what is skipped for that is asked again like all that
        is skipped.
        """
        status = (await self._asks.ask(number)).status
        if status is Status.ERROR:
            self._failing.add(number)
        self.measures.probes["exists" if status.exists else "missing"] += 1
        return status.exists

    def _go_on(self, crawl: Skips, found: LifeAhead) -> None:
        """There is life ahead: skip the gap before it, if it is one."""
        wall = self._wall()
        if found.first > self._last + NEAR:
            previous, skipped = self._last, crawl.skip_to(found.first)
            self.measures.gaps += 1
            self.measures.skipped += skipped
            self.say(alerts.gap_skipped(previous, found.first, skipped))
        # The first live id has not been crawled: its record is seen when it is.
        self.head.resume(found.first, wall)
        self._last = max(self._last, found.first - 1)
