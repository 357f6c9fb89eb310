"""The lane of what was missed: who is asked when, what comes of it, and that nobody is forgotten."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sequence_parts import DAY, WALL, JumpingClock, MemoryQueue, Upstream, answer, desk

from sanderling.apis.numbered import Status
from sanderling.sequence import recheck, sink
from sanderling.sequence.cursor import IdCursor, Position
from sanderling.sequence.measures import SequenceMeasures
from sanderling.sequence.recheck import (
    AT_ONCE,
    FEW,
    LONGEST_NAP,
    REFUSED_PAUSE,
    SAMPLES,
    Check,
    Recheck,
    split_ids,
    spread,
)
from sanderling.sequence.retries import OFFLOAD, Missed, Reason
from sanderling.sequence.sink import SequenceSink, SequenceWriter
from sanderling.sequence.state import Fates, Hurry, SequenceState
from sanderling.testing import run_virtual

MINUTE, HOUR = 60.0, 3600.0
SOON = LONGEST_NAP + 1.0
LAZY = 60.0  # seconds between looks at the disk, where days pass


def missed(
    low: int, high: int | None = None, reason: Reason = Reason.NOT_FOUND, tries: int = 0, due: float = 0.0
) -> Missed:
    return Missed(low, low if high is None else high, reason, WALL, WALL, tries, WALL + due)


class Lane:
    """The lane, with an upstream and workers."""

    def __init__(self, path: Path, *known: Missed) -> None:
        self.clock = JumpingClock()
        self.upstream = Upstream(self.clock)
        self.state = SequenceState(path)
        self.state.change(Fates(missed=list(known)))
        self.queue = MemoryQueue(self.clock)
        self.reads = 0
        self.measures = SequenceMeasures()
        position = Position(10**6)
        self.sink = SequenceSink(self.state, self.queue, self._desk, self.clock, position)
        self.writer = SequenceWriter(self.sink, IdCursor(position), "numbers", self.clock)
        self.recheck = self.lane()
        self.recheck.unresolved = lambda missed, seconds, last: self.alerts.append((missed.low, seconds, last))
        self.alerts: list[tuple[int, float, bool]] = []
        self.slow: dict[int, float] = {}  # ids that take so many seconds
        self.most_held = 0
        self.workers = 5
        self.inflight = 0

    async def _desk(self, work: Callable[..., Any], /, *args: Any) -> Any:  # noqa: ANN401 - a desk
        self.reads += getattr(work, "func", None) == self.state.due
        return await desk(work, *args)

    def lane(self, *, failed: bool = False) -> Recheck:
        """One of the two."""
        return Recheck(self.writer, self.sink, Random(7), self.measures, failed=failed)

    async def run(self, seconds: float) -> None:
        """Ask what is due, for so long; then stop as a crawl does."""
        async with asyncio.TaskGroup() as keeping:
            keeping.create_task(self.writer.run(lambda _: None))
            async with asyncio.TaskGroup() as self._group:
                feeding = self._group.create_task(self.recheck.run(self._pump))
                await self.clock.sleep(seconds)
                feeding.cancel()
                self.workers = 0
            self.writer.close()

    def _pump(self) -> None:
        self.most_held = max(self.most_held, len(self.recheck))
        while self.recheck.ready and self.inflight < self.workers:
            self.inflight += 1
            self._group.create_task(self._ask(self.recheck.take()))

    async def _ask(self, check: Check) -> None:
        await self.clock.sleep(self.slow.get(check.number, self.upstream.took))
        self.inflight -= 1
        self.recheck.settle(check, answer(self.upstream.answer(check.number), check.number))
        self._pump()

    @property
    def ids(self) -> list[int]:
        """What is missed, one by one."""
        return [number for each in self.state.missed(limit=10**6) for number in range(each.low, each.high + 1)]

    def asked(self, *, after: float = 0.0) -> dict[int, int]:
        """How often each id was asked since."""
        times = {number: sum(at >= after for at in when) for number, when in self.upstream.asked.items()}
        return {number: often for number, often in times.items() if often}


Play = Callable[..., Lane]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run a lane that begins with some missed ids; a number for so many seconds, or a script."""

    def run(script: float | Callable[[Lane], Coroutine[Any, Any, None]], *known: Missed, **says: Any) -> Lane:  # noqa: ANN401 - of the upstream
        async def main() -> Lane:
            lane = Lane(tmp_path / "sequence.db", *known)
            for name, value in says.items():
                setattr(lane.upstream, name, value)
            await (script(lane) if callable(script) else lane.run(script))
            return lane

        return run_virtual(main())

    return run


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at the disk are rarer, so that days pass in moments."""
    monkeypatch.setattr(sink, "RULES", replace(sink.RULES, every=60.0))
    monkeypatch.setattr(recheck, "LONGEST_NAP", LAZY)


# One id.


def test_what_is_found_is_kept_and_missed_no_more(play: Play) -> None:
    lane = play(SOON, missed(5), missed(9, due=DAY), says={5: [Status.SUCCESS]})

    assert lane.queue.bodies() == {"5": b"record 5"}
    assert lane.ids == [9]
    assert lane.measures.rechecks == {"success": 1}


def test_what_nobody_wants_is_missed_no_more_either(play: Play) -> None:
    lane = play(SOON, missed(5), says={5: [Status.SKIPPED]})

    assert (lane.queue.bodies(), lane.ids) == ({}, [])


def test_nothing_is_asked_before_it_is_due(play: Play) -> None:
    assert play(59, missed(5, due=60)).asked() == {}
    assert play(2, missed(5, due=0.5)).asked() == {5: 1}


@pytest.mark.usefixtures("unhurried")
def test_an_id_that_stays_missing_is_asked_seven_times_in_minutes_and_then_rarely(play: Play) -> None:
    lane = play(DAY, missed(5, due=15))

    times = lane.upstream.asked[5]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    for tries, gap in enumerate(gaps[:OFFLOAD], 1):
        assert 2 * tries**2 <= gap < 7 * tries**2 + 1  # and a moment for asking and writing
    old = gaps[OFFLOAD:]
    assert old[:3] == pytest.approx([15 * MINUTE, 30 * MINUTE, HOUR], abs=SOON)
    assert len(times) <= 7 + 7
    assert lane.ids == [5]


@pytest.mark.usefixtures("unhurried")
def test_people_are_told_at_the_third_and_at_the_sixth_time(play: Play) -> None:
    lane = play(DAY, missed(5, due=15))

    times = lane.upstream.asked[5]
    assert [(number, last) for number, _, last in lane.alerts] == [(5, False), (5, True)]
    assert [seconds for _, seconds, _ in lane.alerts] == pytest.approx([times[2], times[5]])


def test_nobody_is_told_of_an_id_that_turns_up(play: Play) -> None:
    lane = play(HOUR, missed(5), says={5: [Status.NOT_FOUND, Status.NOT_FOUND, Status.SUCCESS]})

    assert (lane.alerts, lane.ids) == ([], [])


@pytest.mark.parametrize("refusal", [Status.RATE_LIMITED, Status.DISABLED])
def test_to_be_refused_is_not_counted(play: Play, refusal: Status) -> None:
    lane = play(10 * MINUTE, missed(5, tries=2), usual=refusal)

    (left,) = lane.state.missed()
    assert (left.tries, left.reason, lane.alerts) == (2, Reason.NOT_FOUND, [])
    gaps = [later - earlier for earlier, later in pairwise(lane.upstream.asked[5])]
    assert gaps == pytest.approx([REFUSED_PAUSE] * len(gaps), abs=SOON)
    assert len(gaps) >= 15


def test_another_answer_is_another_reason(play: Play) -> None:
    lane = play(SOON, missed(5), missed(6, reason=Reason.IMPORTED), usual=Status.BAD_FORMAT)

    assert {each.reason for each in lane.state.missed()} == {Reason.BAD_FORMAT}


def test_what_failed_has_a_lane_of_its_own(play: Play) -> None:
    failing, other = missed(5, reason=Reason.ERROR, due=-HOUR), missed(6)
    lane = play(SOON, failing, other, usual=Status.SUCCESS)

    assert lane.state.missed() == [failing]
    assert lane.asked() == {6: 1}

    async def ask_what_failed(lane: Lane) -> None:
        lane.recheck = lane.lane(failed=True)
        await lane.run(SOON)

    lane = play(ask_what_failed, other, usual=Status.SUCCESS)  # the other one is there from before

    assert lane.state.missed() == [other]
    assert lane.asked() == {5: 1}


def test_since_when_it_is_missed_does_not_change(play: Play) -> None:
    lane = play(10 * MINUTE, missed(5))

    (left,) = lane.state.missed()
    assert left.first_seen == WALL
    assert left.last_seen == pytest.approx(WALL + lane.upstream.asked[5][-1])


# Hidden ids.


def test_an_id_that_is_hidden_now_begins_anew_in_the_retry_queue(play: Play) -> None:
    lane = play(SOON, missed(5, tries=5), usual=Status.HIDDEN)

    (left,) = lane.state.missed()
    assert (left.reason, left.tries) == (Reason.HIDDEN, 0)
    assert left.next_check == pytest.approx(WALL + 60, abs=1)


def test_hidden_ids_are_asked_after_a_minute_at_first_and_then_more_rarely(play: Play) -> None:
    lane = play(40 * MINUTE, missed(5, reason=Reason.HIDDEN, due=60), usual=Status.HIDDEN)

    gaps = [later - earlier for earlier, later in pairwise(lane.upstream.asked[5])]
    assert gaps == pytest.approx([120, 240, 480, 960], abs=SOON)
    assert lane.alerts == []


def test_when_one_of_them_opens_all_are_asked_at_once(play: Play) -> None:
    hidden = [missed(number, reason=Reason.HIDDEN, due=HOUR) for number in range(100, 600, 2)]
    opens = missed(7, reason=Reason.HIDDEN)

    lane = play(MINUTE, opens, *hidden, missed(9, due=HOUR), usual=Status.SUCCESS)

    assert lane.queue.bodies().keys() == {str(number) for number in (7, *range(100, 600, 2))}
    assert lane.ids == [9]


def test_that_one_opens_says_nothing_of_the_others_for_a_minute(play: Play) -> None:
    """Of 50 hidden ids 3 open, seconds apart: the others are asked twice in a minute, and not once for each."""
    hidden = [missed(number, reason=Reason.HIDDEN, due=HOUR) for number in range(100, 150)]
    opening = [missed(number, reason=Reason.HIDDEN, due=10.0 * number) for number in (1, 2, 3)]
    says = {number: [Status.SUCCESS] for number in (1, 2, 3)}

    lane = play(55, *hidden, *opening, says=says, usual=Status.HIDDEN)

    assert {lane.asked()[number] for number in range(100, 150)} == {1}
    assert lane.queue.bodies().keys() == {"1", "2", "3"}


# Ranges.


def test_a_skipped_range_is_sampled_evenly(play: Play) -> None:
    lane = play(5 * MINUTE, missed(10_000, 41_999, Reason.GAP))

    numbers = sorted(lane.asked())
    assert len(numbers) == SAMPLES
    assert [(number - 10_000) // 1000 for number in numbers] == list(range(SAMPLES))
    (left,) = lane.state.missed()
    assert (len(left), left.tries, left.reason) == (32_000, 1, Reason.GAP)
    assert left.next_check == pytest.approx(WALL + 20 * MINUTE, abs=SOON)


def test_of_a_small_range_each_id_is_asked(play: Play) -> None:
    lane = play(MINUTE, missed(100, 299, Reason.GAP))

    assert lane.asked() == dict.fromkeys(range(100, 300), 1)


@pytest.mark.usefixtures("unhurried")
def test_a_range_that_is_dead_is_asked_ever_more_rarely(play: Play) -> None:
    lane = play(3 * DAY, missed(10_000, 10_999_999, Reason.GAP))

    # After 0, 20, 60, 140, 300, 620, 1260 and 2540 minutes.
    assert sum(lane.asked().values()) == 8 * SAMPLES
    assert sum(lane.asked(after=DAY).values()) == SAMPLES


def test_a_range_with_something_alive_in_it_is_taken_apart_and_each_id_is_asked(play: Play) -> None:
    alive = range(1500, 1700)
    says = {number: [Status.SUCCESS] for number in alive}

    lane = play(MINUTE, missed(1000, 2199, Reason.GAP), says=says)

    assert lane.asked().keys() == set(range(1000, 2200))
    assert lane.queue.bodies().keys() == {str(number) for number in alive}
    assert lane.ids == [number for number in range(1000, 2200) if number not in alive]
    assert {each.reason for each in lane.state.missed(limit=5000)} == {Reason.NOT_FOUND}


def test_a_range_that_came_from_elsewhere_is_asked_id_by_id(play: Play) -> None:
    lane = play(MINUTE, missed(1, 700, Reason.IMPORTED, due=15), says={634: [Status.SUCCESS]})

    assert lane.asked().keys() == set(range(1, 701))
    assert lane.queue.bodies().keys() == {"634"}
    assert lane.ids == [number for number in range(1, 701) if number != 634]


@pytest.mark.parametrize("refusal", [Status.RATE_LIMITED, Status.DISABLED])
def test_a_sample_that_was_refused_is_no_sample(play: Play, refusal: Status) -> None:
    lane = play(SOON, missed(10_000, 99_999, Reason.GAP, tries=4), usual=refusal)

    (left,) = lane.state.missed()
    assert left.tries == 4
    assert left.next_check == pytest.approx(WALL + REFUSED_PAUSE, abs=SOON)


@pytest.mark.parametrize("status", [Status.ERROR, Status.BAD_FORMAT])
@pytest.mark.usefixtures("unhurried")
def test_a_range_of_which_every_id_fails_is_asked_ever_more_rarely_too(play: Play, status: Status) -> None:
    lane = play(DAY, missed(5, 6, Reason(status.value), tries=OFFLOAD + 2), usual=status)

    assert len(lane.upstream.asked[5]) <= 8
    assert lane.ids == [5, 6]


@pytest.mark.usefixtures("unhurried")
def test_hidden_neighbours_are_asked_each_hour_and_not_from_the_beginning(play: Play) -> None:
    hidden = [missed(number, reason=Reason.HIDDEN) for number in (5, 6)]

    lane = play(DAY, *hidden, usual=Status.HIDDEN)

    assert len(lane.upstream.asked[5]) <= 7 + 24


@pytest.mark.usefixtures("unhurried")
def test_a_hidden_id_that_opens_in_a_range_opens_the_others_too(play: Play) -> None:
    old = missed(5, 6, Reason.HIDDEN, tries=OFFLOAD + 2)

    lane = play(30 * MINUTE, old, missed(100, reason=Reason.HIDDEN, due=DAY), usual=Status.SUCCESS)

    assert lane.queue.bodies().keys() == {"5", "6", "100"}
    assert lane.ids == []


@given(low=st.integers(0, 10**12), size=st.integers(1, 10**7), seed=st.integers(0, 9))
def test_a_sample_has_one_id_of_each_of_as_many_parts(low: int, size: int, seed: int) -> None:
    numbers = spread(missed(low, low + size - 1, Reason.GAP), Random(seed))

    assert len(numbers) == len(set(numbers)) == (size if size <= 256 else SAMPLES)
    assert numbers == sorted(numbers)
    assert low <= numbers[0] <= numbers[-1] < low + size
    parts = [(number - low) * len(numbers) // size for number in numbers]
    assert all(abs(part - place) <= 1 for place, part in enumerate(parts))


@given(low=st.integers(0, 10**12), size=st.integers(1, 3000))
def test_taken_apart_it_has_the_same_ids(low: int, size: int) -> None:
    parts = split_ids(missed(low, low + size - 1, Reason.ALIVE))

    assert [number for each in parts for number in range(each.low, each.high + 1)] == list(range(low, low + size))
    assert len(parts) <= 501


# Many of them, and others at work.


def test_only_a_few_are_in_memory_at_once_and_the_disk_is_read_for_many_at_a_time(play: Play) -> None:
    lane = play(10 * MINUTE, *(missed(number) for number in range(0, 3000, 2)), usual=Status.SUCCESS)

    assert lane.most_held <= AT_ONCE + FEW + lane.workers
    assert len(lane.queue.bodies()) == 1500
    assert lane.ids == []
    assert lane.reads < 1500 / (AT_ONCE - FEW) + 10 * MINUTE / LONGEST_NAP + 5


def test_nobody_waits_for_the_slowest_and_nothing_is_asked_twice_meanwhile(play: Play) -> None:
    async def script(lane: Lane) -> None:
        lane.slow = {4: 300.0}
        await lane.run(60)

    lane = play(script, *(missed(number) for number in range(0, 2000, 2)), usual=Status.SUCCESS)

    assert set(lane.asked().values()) == {1}
    assert len(lane.queue.bodies()) == 1000


def test_what_is_hurried_while_it_is_asked_is_asked_once_more(play: Play) -> None:
    async def script(lane: Lane) -> None:
        lane.slow = {5: 2.0}
        async with asyncio.TaskGroup() as group:
            group.create_task(lane.run(30))
            await lane.clock.sleep(1)
            lane.recheck.hurry(0, 10, 20.0)

    lane = play(script, missed(5, tries=5), says={5: [Status.NOT_FOUND, Status.SUCCESS]})

    assert lane.ids == []
    assert lane.upstream.asked[5] == pytest.approx([2, 15], abs=5)


def test_what_somebody_else_made_due_is_asked_within_seconds(play: Play) -> None:
    async def script(lane: Lane) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(lane.run(100 + SOON))
            await lane.clock.sleep(100)
            lane.state.hasten(Hurry(lane.clock.wall(), 0, 10))

    assert play(script, missed(5, due=DAY)).asked() == {5: 1}


def test_what_was_in_flight_when_the_process_died_is_still_missed(play: Play) -> None:
    async def script(lane: Lane) -> None:
        lane.upstream.took = 10.0
        running = asyncio.ensure_future(lane.run(HOUR))
        await lane.clock.sleep(25)
        running.cancel()
        await asyncio.wait([running])

    lane = play(script, *(missed(number) for number in range(20)), usual=Status.SUCCESS)

    assert lane.queue.bodies().keys() == {str(number) for number in range(10)}
    assert lane.ids == list(range(10, 20))


@settings(max_examples=20)
@given(
    says=st.dictionaries(st.integers(0, 30), st.lists(st.sampled_from(Status), min_size=1, max_size=6)),
    seconds=st.floats(0, 300),
)
def test_whatever_is_said_an_id_is_kept_or_unwanted_or_still_missed(
    tmp_path_factory: pytest.TempPathFactory, says: dict[int, list[Status]], seconds: float
) -> None:
    unwanted = {number for number, said in says.items() if Status.SKIPPED in said}

    async def main() -> Lane:
        lane = Lane(tmp_path_factory.mktemp("lane") / "sequence.db", missed(0, 20, Reason.GAP), missed(25, 30))
        lane.upstream.says = {number: list(said) for number, said in says.items()}
        await lane.run(seconds)
        return lane

    lane = run_virtual(main())

    fates = {int(key) for key in lane.queue.bodies()} | set(lane.ids) | unwanted
    assert fates >= {*range(21), *range(25, 31)}
    lane.state.close()


# Somebody sets the clock.


def test_a_clock_that_jumps_ahead_makes_all_due_and_loses_nothing(play: Play) -> None:
    async def script(lane: Lane) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(lane.run(10 * MINUTE))
            await lane.clock.sleep(10)
            lane.clock.ahead = DAY

    lane = play(script, missed(5, due=HOUR), missed(1000, 1999, Reason.GAP, due=HOUR), says={5: [Status.SUCCESS]})

    assert lane.queue.bodies().keys() == {"5"}
    assert lane.ids == list(range(1000, 2000))
    assert len(lane.asked()) == SAMPLES + 1


@pytest.mark.usefixtures("unhurried")
def test_a_clock_that_is_set_back_a_day_delays_by_a_day_and_loses_nothing(play: Play) -> None:
    async def script(lane: Lane) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(lane.run(DAY + HOUR))
            await lane.clock.sleep(10)
            lane.clock.ahead = -DAY
            lane.state.change(Fates(missed=[missed(7, due=10 - DAY)]))

    lane = play(script, missed(5, due=15), usual=Status.SUCCESS)

    assert lane.upstream.asked[7] == [pytest.approx(10, abs=LAZY + 1)]  # what is missed after that is not held up
    assert lane.upstream.asked[5] == [pytest.approx(DAY + 15, abs=LAZY + 1)]
    assert lane.ids == []


# What kind of being missed it is.


def test_an_id_that_was_refused_so_far_has_not_been_looked_for_in_vain(play: Play) -> None:
    lane = play(SOON, missed(5, reason=Reason.RATE_LIMITED, tries=9), usual=Status.NOT_FOUND)

    (left,) = lane.state.missed()
    assert left.tries <= 2
    assert left.next_check < WALL + MINUTE


def test_an_api_that_is_switched_off_is_not_held_against_a_refused_id(play: Play) -> None:
    lane = play(SOON, missed(5, reason=Reason.RATE_LIMITED, tries=2), usual=Status.DISABLED)

    (left,) = lane.state.missed()
    assert left.tries == 2


@pytest.mark.usefixtures("unhurried")
def test_nobody_is_told_of_an_id_that_is_only_refused(play: Play) -> None:
    assert play(HOUR, missed(5, reason=Reason.RATE_LIMITED), usual=Status.RATE_LIMITED).alerts == []


def test_an_id_that_was_hidden_and_is_not_found_is_looked_for_from_the_beginning(play: Play) -> None:
    lane = play(SOON, missed(5, reason=Reason.HIDDEN, tries=30), usual=Status.NOT_FOUND)

    assert all(left.next_check < WALL + MINUTE for left in lane.state.missed())


@pytest.mark.usefixtures("unhurried")
def test_what_a_clock_ten_years_ahead_has_put_off_is_due(play: Play) -> None:
    lane = play(HOUR, missed(5, due=3650 * DAY), usual=Status.SUCCESS)

    assert lane.ids == []
