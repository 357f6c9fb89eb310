"""The lanes of what was missed: asked again when due, a few at a time, from disk.

What failed has a lane of its own. It is asked with care, lest it shut the host, and nobody else should wait for it.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from sanderling.apis.numbered import LARGEST_ID, NumberedAnswer, Status
from sanderling.sequence.measures import SequenceMeasures
from sanderling.sequence.retries import OFFLOAD, WARN_AT, Missed, Reason, check_in
from sanderling.sequence.sink import SequenceSink, SequenceWriter
from sanderling.sequence.state import Fates, Hurry

AT_ONCE = 200  # ids, or ranges, that are read at a time: all others wait on disk
FEW = 50  # of them; with fewer left, more are read
SAMPLES = 32  # ids of a range that are asked to know whether anything in it is alive
SMALL = 256  # ids of a range that are all asked
CHUNK = 500  # ids of live ranges that are taken apart at a time
LONGEST_NAP = 5.0  # seconds between looks at the disk: others may have made something due
SHORT_NAP = 1.0  # the same while all that is due is being asked
FLOOD_EVERY = 60.0  # seconds between two times that all hidden ids are asked at once
REFUSED_PAUSE = 30.0  # seconds; the host said "not now", which is nobody's failure
# There is a record, and it was not to be had.
QUEUED = frozenset({Reason.HIDDEN, Reason.RATE_LIMITED})
# Each id of these is asked, until they are old.
ONE_BY_ONE = frozenset({Reason.ALIVE, Reason.IMPORTED})


@dataclass(slots=True)
class RecheckSample:
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
    sample: RecheckSample | None = None

    @property
    def key(self) -> int:
        """What tells it from all others."""
        return self.number

    @property
    def attempt(self) -> int:
        """How often it was asked."""
        return self.missed.tries + 1

    @property
    def decided(self) -> bool:
        """Whether nobody but its lane decides about asking again: that is on disk, whatever comes of it."""
        return True

    @property
    def failed(self) -> bool:
        """Whether it is known to fail."""
        return self.missed.reason is Reason.ERROR


class Recheck:
    """Gives out checks to whoever has a permit to spare, and files what came of them: what failed, or all the rest.

    What is due is read from disk a little at a time, and again when little of that is left. It waits for nobody: what
    is still being asked then is left out.
    """

    def __init__(
        self,
        writer: SequenceWriter,
        sink: SequenceSink,
        rng: Random,
        measures: SequenceMeasures,
        *,
        failed: bool = False,
    ) -> None:
        self.failed = failed
        self.unresolved: Callable[[Missed, float, bool], object] | None = None  # told of ids that stay missing
        self._writer = writer
        self._state, self._executor, self._clock = sink.state, sink.executor, writer.clock
        self._rng = rng
        self._measures = measures
        self._due: deque[Missed] = deque()
        self._checks: deque[Check] = deque()  # of the first that was due
        self._held: dict[int, Missed] = {}  # what was read and has not been settled, by its first id
        self._hastened: dict[int, float] = {}  # of those, when somebody wants them asked once more, by the wall
        self._needed = asyncio.Event()  # whether more should be read
        self._opened = False  # whether a hidden id was shown
        self._hurried: tuple[int, int, float] | None = None  # ids that somebody wants asked, over so many seconds
        self._flooded: float | None = None
        self._until: float | None = None  # while it drains: when what is asked was due at the latest, by the wall
        self.drained = False  # whether all that was due then is settled

    def __len__(self) -> int:
        """How many entries are in memory."""
        return len(self._held)

    @property
    def ready(self) -> bool:
        """Whether there is something to take."""
        return bool(self._checks or self._due)

    async def run(self, fed: Callable[[], object]) -> None:
        """Read what is due, again and again; `fed` is called when there is something."""
        while not self.drained:
            await self._hasten()
            await self._read()
            if self.ready:
                fed()
            if len(self._due) >= FEW:
                self._needed.clear()
                await self._needed.wait()
        fed()

    def drain(self) -> None:
        """Give out what is due now, and then no more."""
        if self._until is None:
            self._until = self._clock.wall()

    async def _read(self) -> None:
        """Take in what is due; if there is nothing, come back after a while."""
        # What is not in there now is settled, and will be on disk: what is, is being asked.
        held = sorted((each.low, each.high) for each in self._held.values())
        await self._writer.settled()
        limit, until = AT_ONCE + len(held), self._until
        wall = self._clock.wall() if until is None else until
        due = await self._executor(partial(self._state.due, wall, limit, failed=self.failed))
        new = [each for each in due if not _overlaps(each, held)]
        whole = [each for each in new if not _needs_splitting(each)]
        if parts := _split_ranges(filter(_needs_splitting, new)):
            await self._executor(self._state.change, Fates(missed=parts))
        self._due.extend(whole)
        self._held.update((each.low, each) for each in whole)
        if not due and until is not None:
            self.drained = True
        elif not due:
            await self._nap()
        elif not new:
            await self._clock.sleep(SHORT_NAP)

    async def _nap(self) -> None:
        due = await self._executor(partial(self._state.next_due, failed=self.failed))
        wait = LONGEST_NAP if due is None else due - self._clock.wall()
        await self._clock.sleep(min(LONGEST_NAP, max(0.1, wait)))

    def take(self) -> Check:
        """The next check; its answer must come to `settle`, or it must be given back."""
        if not self._checks:
            self._checks.extend(self._checks_of(self._due.popleft()))
            if len(self._due) < FEW:
                self._needed.set()
        return self._checks.popleft()

    def give_back(self, check: Check) -> None:
        """It was not asked, or it was none of its fault: it is the next."""
        self._checks.appendleft(check)

    def _checks_of(self, missed: Missed) -> list[Check]:
        if len(missed) == 1:
            return [Check(missed.low, missed)]
        numbers = spread(missed, self._rng)
        sample = RecheckSample(missed, len(numbers))
        return [Check(number, missed, sample) for number in numbers]

    def settle(self, check: Check, answer: NumberedAnswer) -> None:
        """File what came of a check."""
        self._measures.rechecks[answer.status.value] += 1
        if check.sample is None:
            self._settle_id(check.missed, answer)
        else:
            self._settle_sample(check.sample, check.number, answer)

    def _settle_id(self, missed: Missed, answer: NumberedAnswer) -> None:
        self._held.pop(missed.low, None)
        if answer.status is Status.SUCCESS:
            self._writer.keep(missed.low, answer.message)
        elif answer.status is Status.SKIPPED:
            self._writer.skip(missed.low)
        else:
            self._writer.miss([self._at_once(self._still(missed, answer.status))])
            return
        self._hastened.pop(missed.low, None)
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

    def _settle_sample(self, sample: RecheckSample, number: int, answer: NumberedAnswer) -> None:
        status, reason = answer.status, sample.missed.reason
        sample.left -= 1
        # That hidden ids are still hidden and malformed ones malformed is no news, and no reason to ask for each.
        sample.alive |= status.exists and status.value != reason.value
        # Not an error: one id that always fails would have its range asked every half a minute, for ever.
        sample.unsure |= status in (Status.DISABLED, Status.RATE_LIMITED)
        if status is Status.SUCCESS:
            self._writer.keep(number, answer.message)
        elif status is Status.SKIPPED:
            self._writer.skip(number)
        if status in (Status.SUCCESS, Status.SKIPPED):
            sample.found.append(number)
            self._opened |= reason is Reason.HIDDEN
        if sample.left == 0:
            self._end_sample(sample)

    def _end_sample(self, sample: RecheckSample) -> None:
        wall, missed = self._clock.wall(), sample.missed
        self._held.pop(missed.low, None)
        if sample.alive:
            changed = replace(missed, reason=Reason.ALIVE, last_seen=wall, tries=0, next_check=wall)
        elif sample.unsure:
            changed = replace(missed, last_seen=wall, next_check=wall + REFUSED_PAUSE)
        else:
            tries = missed.tries + 1
            changed = replace(
                missed, last_seen=wall, tries=tries, next_check=wall + check_in(missed.reason, tries, self._rng)
            )
        self._writer.miss(without_all(self._at_once(changed), sample.found))

    def hurry(self, low: int, high: int, seconds: float = 0.0) -> None:
        """Ask for what is missed from `low` to `high`: the first of it within seconds, the last so much later."""
        if low <= high:
            self._hurried = (low, high, seconds)

    async def _hasten(self) -> None:
        """Let be due at once what somebody wants asked; and if a hidden id was shown, all others, which may be too."""
        hurried, self._hurried = self._hurried, None
        if hurried is not None:
            low, high, seconds = hurried
            await self._make_due(Hurry(self._clock.wall(), low, high, seconds))
        opened, self._opened, now = self._opened, False, self._clock.now()
        if opened and (self._flooded is None or now - self._flooded >= FLOOD_EVERY):
            self._flooded = now
            await self._make_due(Hurry(self._clock.wall(), 0, LARGEST_ID), Reason.HIDDEN)

    async def _make_due(self, hurry: Hurry, reason: Reason | None = None) -> None:
        """On disk, and of what is being asked just now, once more."""
        for each in self._held.values():
            if each.low <= hurry.high and hurry.low <= each.high and reason in (None, each.reason):
                self._hastened[each.low] = hurry.due(each.low)
        await self._executor(self._state.hasten, hurry, reason)

    def _at_once(self, missed: Missed) -> Missed:
        """What is still missed; due soon if somebody wanted that while it was being asked."""
        due = self._hastened.pop(missed.low, None)
        return missed if due is None else replace(missed, tries=0, next_check=due)


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


def _overlaps(missed: Missed, held: list[tuple[int, int]]) -> bool:
    """Whether ids of it are in one of the ranges, which ascend and do not overlap."""
    place = bisect_right(held, (missed.high, LARGEST_ID))
    return place > 0 and held[place - 1][1] >= missed.low


def _needs_splitting(missed: Missed) -> bool:
    return len(missed) > 1 and missed.reason in ONE_BY_ONE and missed.tries == 0


def _split_ranges(ranges: Iterable[Missed]) -> list[Missed]:
    """Some ids of the first ranges one by one, and the rest of these as they are."""
    parts: list[Missed] = []
    for each in ranges:
        if len(parts) < CHUNK:
            parts += split_ids(each)
    return parts


def split_ids(missed: Missed) -> list[Missed]:
    """The first ids of a range one by one, and the rest as it is."""
    end = min(missed.high, missed.low + CHUNK - 1)
    ones = [replace(missed, low=number, high=number) for number in range(missed.low, end + 1)]
    return [*ones, replace(missed, low=end + 1)] if end < missed.high else ones
