"""What a crawl of ids asks next: new ids in their order, those that failed, those that were missed, and questions.

An id that waits holds no worker: it is in a heap, with its time. The others of this folder are told what happens: the
window counts, the head is estimated, the lookout decides whether there is anything ahead. While the API is switched off
nothing is asked but whether it still is.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from random import Random
from types import MappingProxyType

from sanderling.apis.numbered import NumberedAnswer, Status, unanswered
from sanderling.engine.classes import Class
from sanderling.engine.hosts import HostState
from sanderling.engine.ports import Settled
from sanderling.engine.rules import EngineRules
from sanderling.outcome import Outcome
from sanderling.sequence.handler import SequenceWork
from sanderling.sequence.inquiries import Availability, Inquiries, Inquiry, InquiryAnswer
from sanderling.sequence.lookout import Lookout
from sanderling.sequence.measures import SequenceMeasures
from sanderling.sequence.recheck import Check, Recheck
from sanderling.sequence.retries import Again, Missed, NewId, Reason, RetryRules, after, check_in
from sanderling.sequence.sink import SequenceWriter

# One host, so its slots are all there are, and the scaler's to set. It is never set aside: there is nobody else to ask.
MOST_SLOTS = 10**6
# Questions are few, and no new ids are taken until they are answered.
WEIGHTS = MappingProxyType({Class.NEW: 90.0, Class.AGAIN: 4.0, Class.MISSED: 10.0, Class.PROBE: 90.0})
ENGINE = EngineRules(per_host=MOST_SLOTS, again=(5.0, 10.0, 15.0), patience=inf, first_patience=inf, weights=WEIGHTS)
# Seconds that an id may fail before it is missed, and those that it may wait for its turn besides: the cursor is held
# up for as long.
LONGEST, OVERDUE = 45.0, 15.0
# Ids that may wait for their next try. Each waits for half a minute at most; were there more, the upstream is in
# trouble, and taking on new ones would only fill the memory.
MOST_WAITING = 20_000
LONGEST_HURRY = 60.0  # seconds until the last of those is asked that were given up where there is life after all
UNSURE = frozenset({Status.DISABLED, Status.ERROR, Status.RATE_LIMITED})


@dataclass(frozen=True, slots=True)
class Lanes:
    """What feeds the source besides its cursor, and where it ends."""

    writer: SequenceWriter
    inquiries: Inquiries
    missed: Recheck
    failed: Recheck  # what is missed since it failed
    availability: Availability


class OnlyHost(HostState):
    """A host beside which there is no other that could need its slots."""

    __slots__ = ()

    @property
    def is_unproven(self) -> bool:
        """Whether it may have half of the slots at most."""
        return False


class SequenceSource:
    """One host and its ids."""

    def __init__(
        self, host: str, lanes: Lanes, lookout: Lookout, measures: SequenceMeasures, rules: RetryRules, rng: Random
    ) -> None:
        self.host = OnlyHost(host)
        self.wake: Callable[[], object] = lambda: None  # something may be given out
        self.until: int | None = None  # ids above this one are not wanted
        self._lanes = lanes
        self._writer, self._cursor, self._clock = lanes.writer, lanes.writer.cursor, lanes.writer.clock
        self._lookout = lookout
        self._measures = measures
        self._rules = rules
        self._rng = rng
        self._waiting: list[NewId] = []  # a heap
        self._again: list[NewId] = []  # another, of ids that have failed
        self._last_lane = lanes.failed  # of what was missed, which had the last permit
        self._draining = False

    @property
    def loading(self) -> bool:
        """Ids never end, unless it drains."""
        if not self._draining or self.waiting:
            return True
        return not (self._lanes.missed.drained and self._lanes.failed.drained)

    @property
    def waiting(self) -> int:
        """Ids that are due again at some time."""
        return len(self._waiting) + len(self._again)

    # What the engine asks.

    def classes(self, host: HostState, now: float) -> Sequence[Class]:  # noqa: ARG002 - there is one
        """The classes that have something due."""
        return [of for of, due in self._dues(now) if due <= now]

    def due(self, host: HostState, now: float) -> float | None:
        """When there is next something to take; None if that is not a matter of time."""
        if not self._lanes.availability.open:
            host.good = None  # an API that is switched off is not to be probed by an id, however well that was known
        return min((due for _, due in self._dues(now) if due < inf), default=None)

    def _dues(self, now: float) -> list[tuple[Class, float]]:
        available = self._lanes.availability.open
        asked = self._lanes.inquiries.due(available=self._may_inquire)
        dues = [] if asked is None else [(Class.PROBE, asked)]
        if not available:
            return dues
        new = min(self._waiting[0].due if self._waiting else inf, now + self._new_in())
        again = self._again[0].due if self._again else inf
        missed = now if self._lanes.missed.ready or self._lanes.failed.ready else inf
        return [(Class.NEW, new), (Class.AGAIN, again), (Class.MISSED, missed), *dues]

    @property
    def _may_inquire(self) -> bool:
        """Whether any question may be asked. Who drains need not know what is ahead."""
        return self._lanes.availability.open and not self._draining

    def _new_in(self) -> float:
        """Seconds until a new id may be taken; inf if that is not a matter of time."""
        number = self._cursor.peek()
        if number is None or self._draining or self._lookout.holding or self.waiting >= MOST_WAITING:
            return inf
        if self.until is not None and number > self.until and not self._lookout.in_doubt:
            return inf
        return max(0.0, self._lookout.due(number))

    def take(self, host: HostState, of: Class, now: float) -> SequenceWork | None:
        """The next one of a class."""
        match of:
            case Class.PROBE:
                return self._lanes.inquiries.take(now, available=self._may_inquire)
            case Class.MISSED:
                return self._take_missed()
            case Class.AGAIN:
                return self._take_again(host, now)
            case _:
                return self._take_new(now)

    def _take_new(self, now: float) -> NewId | None:
        """The next of the main lane; what waits at the head while it is looked what is ahead waits for its turn."""
        while self._waiting and self._waiting[0].due <= now:
            work = heapq.heappop(self._waiting)
            if not (work.tries.not_found and self._lookout.given_back(work.number)):
                return work
            self._cursor.give_back(work.number)
        return NewId(now, self._cursor.take()) if self._new_in() <= 0 else None

    def _take_missed(self) -> Check:
        """What failed and what did not take turns."""
        lanes = [lane for lane in (self._lanes.missed, self._lanes.failed) if lane.ready]
        self._last_lane = next((lane for lane in lanes if lane is not self._last_lane), lanes[0])
        return self._last_lane.take()

    def _take_again(self, host: HostState, now: float) -> NewId | None:
        """The next that failed; those whose turn has not come for long are missed, lest the cursor wait for them."""
        while self._again and self._again[0].due <= now:
            work = heapq.heappop(self._again)
            if not self._is_late(host, work, now - OVERDUE):
                return work
            self._miss(work.number, Reason.ERROR)
        return None

    def take_untried(self, host: HostState, now: float) -> SequenceWork | None:  # noqa: ARG002 - there is one
        """An id that has not failed."""
        if not self._lanes.availability.open:
            return None
        if self._new_in() <= 0:
            return NewId(now, self._cursor.take())
        if self._waiting:
            return heapq.heappop(self._waiting)
        return self._lanes.missed.take() if self._lanes.missed.ready else None

    def drain(self) -> None:
        """Take no new ids; those in hand and what was missed and is due come to their end."""
        self._draining = True
        self._lanes.missed.drain()
        self._lanes.failed.drain()

    def enough(self, inflight: int) -> bool:  # noqa: ARG002 - the port's
        """Ids never end."""
        return False

    # What the engine says.

    def settled(self, host: HostState, work: SequenceWork, settled: Settled[InquiryAnswer], now: float) -> None:
        """There is an answer, or it is for us to decide what follows from there being none."""
        said = settled.result
        answer = said if isinstance(said, NumberedAnswer) else unanswered(settled.outcome)
        match work:
            case Check():
                host.forget(work.key)  # the disk remembers
                self._lane(work).settle(work, answer)
            case Inquiry(number=None):
                work.answer(said)
            case Inquiry():
                self._settle_inquiry(work, answer, now)
            case NewId():
                self._settle(work, answer, now)

    def later(self, host: HostState, work: SequenceWork, outcome: Outcome, due: float) -> None:
        """It is none of its fault."""
        match work:
            case Check():
                self._lane(work).give_back(work)
            case Inquiry():
                self._measures.probes["unsure"] += 1
                self._lanes.inquiries.put_back(work, due)
            case NewId():
                self._count(work, unanswered(outcome))
                work.due = due
                heapq.heappush(self._again if host.failures(work.key) else self._waiting, work)

    def failed(self, host: HostState, work: SequenceWork, outcome: Outcome, failures: int, due: float | None) -> None:  # noqa: ARG002 - the port's
        """It fails: once more, or it is missed."""
        match work:
            case Check():
                host.forget(work.key)
                self._lane(work).settle(work, unanswered(outcome))
            case Inquiry() if due is None:
                work.answer(unanswered(outcome))
            case Inquiry():
                self._measures.probes["unsure"] += 1
                self._lanes.inquiries.put_back(work, due or 0.0)
            case NewId():
                self._count(work, unanswered(outcome))
                work.tries.asked += 1
                if due is None or self._is_late(host, work, due):
                    self._miss(work.number, Reason.ERROR)
                else:
                    work.due = due
                    heapq.heappush(self._again, work)

    def leave(self, host: HostState, outcome: Outcome, due: float) -> None:
        """Never: there is no other host."""

    def welcome(self, host: HostState) -> None:
        """Never: it was not set aside."""

    def written(self, result: object) -> Iterable[HostState]:  # noqa: ARG002 - the sink says nothing
        """There may be room again."""
        return (self.host,)

    # What follows.

    def _lane(self, check: Check) -> Recheck:
        return self._lanes.failed if check.failed else self._lanes.missed

    def _is_late(self, host: HostState, work: NewId, then: float) -> bool:
        """Whether by then it has failed for longer than the cursor should wait."""
        failing = (host.failing or {}).get(work.key)
        return failing is not None and then - failing.since > LONGEST

    def _count(self, work: NewId, answer: NumberedAnswer) -> None:
        tries = work.tries
        self._measures.answer(answer.status, tries.asked + 1, answer.outcome.lag)
        self._lookout.answered(work.number, answer, first=not tries.answered)
        tries.answered = True

    def _settle(self, work: NewId, answer: NumberedAnswer, now: float) -> None:
        number, status = work.number, answer.status
        self._count(work, answer)
        if status is Status.NOT_FOUND and self._lookout.given_back(number):
            self._cursor.give_back(number)
            return
        match after(status, work.tries, self._rules, self._rng):
            case Again(seconds):
                work.due = now + seconds
                heapq.heappush(self._waiting, work)
            case Reason() as reason:
                self._miss(number, reason)
            case None if status is Status.SUCCESS:
                self._writer.keep(number, answer.message)
            case None:
                self._writer.skip(number)

    def _settle_inquiry(self, work: Inquiry, answer: NumberedAnswer, now: float) -> None:
        """Tell who has asked; but what is no answer is asked again first."""
        again: Again | Reason | None = None
        if answer.status in UNSURE:
            self._measures.probes["unsure"] += 1
            again = Again(0.0)  # when the host allows it, or the API is back
        if answer.status is Status.ERROR:
            again = after(answer.status, work.tries, self._rules, self._rng)
        if isinstance(again, Again) and not work.always:
            self._lanes.inquiries.put_back(work, now + again.seconds)
        else:
            work.answer(answer)

    def _miss(self, number: int, reason: Reason) -> None:
        self.host.forget(number)
        wall = self._clock.wall()
        check = wall + check_in(reason, 0, self._rng)
        self._writer.miss([Missed(number, number, reason, wall, wall, 0, check)])

    # What the lookout does to it.

    def skip_to(self, first: int) -> int:
        """Go on at `first`; all between is missed. How many ids that were."""
        wall = self._clock.wall()
        check = wall + check_in(Reason.GAP, 0, self._rng)
        ranges = self._cursor.skip_to(first)
        self._writer.miss([Missed(low, high, Reason.GAP, wall, wall, 0, check) for low, high in ranges])
        return sum(high - low + 1 for low, high in ranges)

    def hurry(self, first: int) -> None:
        """Ask for what was given up from `first` on, when it should be there: as if it were new."""
        last = self._cursor.next - 1
        seconds = self._lookout.due(last) - max(0.0, self._lookout.due(first))
        self._lanes.missed.hurry(first, last, min(LONGEST_HURRY, max(0.0, seconds)))

    def withdraw(self, above: int) -> None:
        """Let ids above this one that wait for another try wait for their turn instead, as if never asked."""
        for waiting in (self._waiting, self._again):
            for each in waiting:
                if each.number > above:
                    self._cursor.give_back(each.number)
                    self.host.forget(each.key)
            waiting[:] = [each for each in waiting if each.number <= above]
            heapq.heapify(waiting)
