"""The lanes of what was missed: asked again when due, a few at a time, from disk.

What failed has a lane of its own. It is asked with care, lest it shut the host, and nobody else should wait for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from sanderling.apis.numbered import LARGEST_ID, Answer, Status
from sanderling.sequence.books import Books
from sanderling.sequence.measures import Measures
from sanderling.sequence.missed import Missed
from sanderling.sequence.retries import OFFLOAD, WARN_AT, Reason, check_in
from sanderling.sequence.state import Fates

AT_ONCE = 200  # ids, or ranges, in memory: all others wait on disk
SAMPLES = 32  # ids of a range that are asked to know whether anything in it is alive
SMALL = 256  # ids of a range that are all asked
CHUNK = 500  # ids of a live range that are taken apart at a time
LONGEST_NAP = 5.0  # seconds between looks at the disk: others may have made something due
FLOOD_EVERY = 60.0  # seconds between two times that all hidden ids are asked at once
REFUSED_PAUSE = 30.0  # seconds; the host said "not now", which is nobody's failure
# There is a record, and it was not to be had.
QUEUED = frozenset({Reason.HIDDEN, Reason.RATE_LIMITED})
# Each id of these is asked, until they are old.
ONE_BY_ONE = frozenset({Reason.ALIVE, Reason.IMPORTED})


@dataclass(slots=True)
class Sample:
    """A range, as far as it was asked."""

    missed: Missed
    left: int
    found: list[int] = field(default_factory=list)  # ids that have a record
    alive: bool = False
    unsure: bool = False  # the host was not to be asked


@dataclass(frozen=True, slots=True)
class Check:
    """An id to ask, for itself or for the range it stands for."""

    number: int
    missed: Missed
    sample: Sample | None = None


class Recheck:
    """Gives out checks to whoever has a worker to spare, and files what came of them: what failed, or all the rest."""

    def __init__(self, books: Books, rng: Random, measures: Measures, *, failed: bool = False) -> None:
        self.failed = failed
        self.ready: deque[Check] = deque()
        self.inflight = 0
        self.unresolved: Callable[[Missed, float, bool], object] | None = None  # told of ids that stay missing
        self._books = books
        self._state, self._desk, self._clock = books.state, books.desk, books.clock
        self._rng = rng
        self._measures = measures
        self._idle = asyncio.Event()
        self._opened = False  # whether a hidden id was shown
        self._hurried: tuple[int, int] | None = None  # ids that somebody wants asked
        self._flooded: float | None = None

    async def run(self, fed: Callable[[], object]) -> None:
        """Load what is due, again and again; `fed` is called when there is something."""
        while True:
            await self._hasten()
            due = await self._desk(partial(self._state.due, self._clock.wall(), AT_ONCE, failed=self.failed))
            if not due:
                await self._nap()
                continue
            apart = [each for each in due if len(each) > 1 and each.reason in ONE_BY_ONE and each.tries == 0]
            if apart:
                parts = [part for each in apart for part in taken_apart(each)]
                await self._desk(self._state.change, Fates(missed=parts))
            self._feed([each for each in due if each not in apart])
            if self.ready:
                fed()
                await self._idle.wait()
                await self._books.settled()

    async def _nap(self) -> None:
        due = await self._desk(partial(self._state.next_due, failed=self.failed))
        wait = LONGEST_NAP if due is None else due - self._clock.wall()
        await self._clock.sleep(min(LONGEST_NAP, max(0.1, wait)))

    def _feed(self, due: list[Missed]) -> None:
        self._idle.clear()
        for missed in due:
            if len(missed) == 1:
                self.ready.append(Check(missed.low, missed))
                continue
            numbers = spread(missed, self._rng)
            sample = Sample(missed, len(numbers))
            self.ready.extend(Check(number, missed, sample) for number in numbers)

    def take(self) -> Check:
        """The next check; its answer must come to `settle`."""
        self.inflight += 1
        return self.ready.popleft()

    def settle(self, check: Check, answer: Answer) -> None:
        """File what came of a check."""
        self.inflight -= 1
        self._measures.rechecks[answer.status.value] += 1
        if check.sample is None:
            self._settle_id(check.missed, answer)
        else:
            self._settle_sample(check.sample, check.number, answer)
        if not self.ready and not self.inflight:
            self._idle.set()

    def _settle_id(self, missed: Missed, answer: Answer) -> None:
        if answer.status is Status.SUCCESS:
            self._books.keep(missed.low, answer.message)
        elif answer.status is Status.SKIPPED:
            self._books.skip(missed.low)
        else:
            self._books.miss([self._still(missed, answer.status)])
            return
        self._opened |= missed.reason is Reason.HIDDEN

    def _still(self, missed: Missed, status: Status) -> Missed:
        """The same id, missed once more."""
        wall = self._clock.wall()
        refused = status is Status.RATE_LIMITED and missed.reason is not Reason.RATE_LIMITED
        if refused or status is Status.DISABLED:
            return replace(missed, last_seen=wall, next_check=wall + REFUSED_PAUSE)
        reason = Reason(status.value)
        # What was hidden or refused so far has not been looked for in vain, and the other way round.
        same = reason is missed.reason if QUEUED & {reason, missed.reason} else True
        tries = missed.tries + 1 if same else int(reason not in QUEUED)
        if tries in (WARN_AT, OFFLOAD) and reason not in QUEUED and self.unresolved is not None:
            self.unresolved(missed, wall - missed.first_seen, tries == OFFLOAD)
        return replace(
            missed, reason=reason, last_seen=wall, tries=tries, next_check=wall + check_in(reason, tries, self._rng)
        )

    def _settle_sample(self, sample: Sample, number: int, answer: Answer) -> None:
        status, reason = answer.status, sample.missed.reason
        sample.left -= 1
        # That hidden ids are still hidden and malformed ones malformed is no news, and no reason to ask for each.
        sample.alive |= status.exists and status.value != reason.value
        # Not an error: one id that always fails would have its range asked every half a minute, for ever.
        sample.unsure |= status in (Status.DISABLED, Status.RATE_LIMITED)
        if status is Status.SUCCESS:
            self._books.keep(number, answer.message)
        elif status is Status.SKIPPED:
            self._books.skip(number)
        if status in (Status.SUCCESS, Status.SKIPPED):
            sample.found.append(number)
            self._opened |= reason is Reason.HIDDEN
        if sample.left == 0:
            self._end_sample(sample)

    def _end_sample(self, sample: Sample) -> None:
        wall, missed = self._clock.wall(), sample.missed
        if sample.alive:
            changed = replace(missed, reason=Reason.ALIVE, last_seen=wall, tries=0, next_check=wall)
        elif sample.unsure:
            changed = replace(missed, last_seen=wall, next_check=wall + REFUSED_PAUSE)
        else:
            tries = missed.tries + 1
            changed = replace(
                missed, last_seen=wall, tries=tries, next_check=wall + check_in(missed.reason, tries, self._rng)
            )
        self._books.miss(without_all(changed, sample.found))

    def hurry(self, low: int, high: int) -> None:
        """Ask within seconds for what is missed from `low` to `high`."""
        if low <= high:
            self._hurried = (low, high)

    async def _hasten(self) -> None:
        """Let be due at once what somebody wants asked; and if a hidden id was shown, all others, which may be too."""
        hurried, self._hurried = self._hurried, None
        if hurried is not None:
            await self._desk(self._state.hasten, self._clock.wall(), hurried)
        opened, self._opened, now = self._opened, False, self._clock.now()
        if opened and (self._flooded is None or now - self._flooded >= FLOOD_EVERY):
            self._flooded = now
            await self._desk(self._state.hasten, self._clock.wall(), (0, LARGEST_ID), Reason.HIDDEN)


def spread(missed: Missed, rng: Random) -> list[int]:
    """Some ids of a range, one from each of as many equal parts; of a small one, all."""
    size = len(missed)
    parts = size if size <= SMALL else SAMPLES
    edges = [missed.low + size * part // parts for part in range(parts + 1)]
    return [rng.randrange(edges[part], edges[part + 1]) for part in range(parts)]


def without_all(missed: Missed, found: list[int]) -> list[Missed]:
    """What is left of a range when these ids of it are taken out."""
    parts = [missed]
    for number in sorted(found):
        parts += parts.pop().without(number, number)  # they ascend, so it is in the last
    return parts


def taken_apart(missed: Missed) -> list[Missed]:
    """The first ids of a range one by one, and the rest as it is."""
    end = min(missed.high, missed.low + CHUNK - 1)
    ones = [replace(missed, low=number, high=number) for number in range(missed.low, end + 1)]
    return [*ones, replace(missed, low=end + 1)] if end < missed.high else ones
