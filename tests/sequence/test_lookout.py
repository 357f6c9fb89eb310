"""Who watches the main lane: when it looks ahead, what it does about what it finds, and what may not mislead it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sequence_parts import Asker, JumpingClock, NumbersApi, Upstream, answer

from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.observe.alerts import Alert
from sanderling.outcome import Code, Outcome
from sanderling.sequence.gaps import CONSECUTIVE, NEAR, WaitRules
from sanderling.sequence.lookout import Lookout, LookRules
from sanderling.testing import run_virtual

FIRST = 1000  # where the crawl begins; what is below is none of its concern


@dataclass(slots=True)
class Crawl:
    """What the lookout does to a crawl, in its order."""

    done: list[tuple[str, int]] = field(default_factory=list)

    def withdraw(self, above: int) -> None:
        self.done.append(("withdraw", above))

    def skip_to(self, first: int) -> int:
        self.done.append(("skip_to", first))
        return 7

    def hurry(self, first: int) -> None:
        self.done.append(("hurry", first))

    def wake(self) -> None:
        self.done.append(("wake", 0))


class Watch:
    """A lookout over an upstream of which these ids are alive."""

    def __init__(self, alive: range | set[int] = range(0), rules: LookRules | None = None) -> None:
        self.clock = JumpingClock()
        self.alerts: list[Alert] = []
        self.upstream = Upstream(self.clock, {number: [Status.SUCCESS] for number in alive})
        self.crawl = Crawl()
        self.reach(rules)

    def reach(self, rules: LookRules | None = None) -> None:
        """Look at that upstream."""
        self.asker = Asker(self.upstream, NumbersApi(), self.clock)
        measures = self.asker.measures
        self.lookout = Lookout(self.asker, measures, self.alerts.append, self.clock, rules or LookRules())
        self.lookout.begin(FIRST)

    def seen(self, number: int, lag: float = 5.0) -> None:
        """The main lane had a record."""
        self.lookout.answered(number, NumberedAnswer(Status.SUCCESS, Outcome(Code.OK, lag=lag)), first=True)

    def missing(self, *numbers: int, first: bool = True) -> None:
        """The main lane was told that these are not there."""
        for number in numbers:
            self.lookout.answered(number, answer(Status.NOT_FOUND), first=first)

    async def run(self, seconds: float, *others: Coroutine[Any, Any, object]) -> None:
        """Look for so long."""
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(each) for each in (self.lookout.run(self.crawl), *others)]
            await self.clock.sleep(seconds)
            for task in beside:
                task.cancel()


def watched(watch: Callable[[], Watch], script: Callable[[Watch], Coroutine[Any, Any, None]]) -> Watch:
    """Play it under virtual time."""

    async def main() -> Watch:
        made = watch()
        await script(made)
        return made

    return run_virtual(main())


AHEAD = range(FIRST, FIRST + CONSECUTIVE)


# When it looks.


@pytest.mark.parametrize(("misses", "looks"), [(CONSECUTIVE - 1, False), (CONSECUTIVE, True)])
def test_it_looks_after_150_ids_in_a_row_that_are_not_there(misses: int, looks: bool) -> None:  # noqa: FBT001 - a column
    async def script(watch: Watch) -> None:
        watch.missing(*AHEAD[:misses])
        await watch.run(1)

    assert bool(watched(Watch, script).upstream.asked) is looks


def test_only_the_first_answer_for_an_id_counts_and_only_ahead_of_the_newest() -> None:
    async def script(watch: Watch) -> None:
        watch.seen(FIRST + 500)
        watch.missing(*range(FIRST, FIRST + 400))
        watch.missing(*[FIRST + 501] * 300, first=False)
        watch.missing(*range(FIRST + 501, FIRST + 501 + CONSECUTIVE - 1))
        await watch.run(1)

    assert watched(Watch, script).upstream.asked == {}


@pytest.mark.parametrize("status", [Status.ERROR, Status.RATE_LIMITED, Status.DISABLED])
def test_an_answer_that_says_neither_does_not_count(status: Status) -> None:
    async def script(watch: Watch) -> None:
        for number in range(FIRST, FIRST + 500):
            watch.lookout.answered(number, answer(status), first=True)
        await watch.run(1)

    assert watched(Watch, script).upstream.asked == {}


@pytest.mark.parametrize("status", [status for status in Status if status.exists])
def test_whatever_proves_that_an_id_exists_ends_the_row(status: Status) -> None:
    async def script(watch: Watch) -> None:
        watch.missing(*AHEAD[:100])
        watch.lookout.answered(FIRST + 100, answer(status), first=True)
        watch.missing(*range(FIRST + 101, FIRST + 200))
        await watch.run(1)

    assert watched(Watch, script).upstream.asked == {}


def test_who_is_told_to_look_looks() -> None:
    async def script(watch: Watch) -> None:
        watch.lookout.suspect()
        await watch.run(1)

    assert watched(Watch, script).upstream.asked


# What it does.


def test_a_gap_is_skipped_after_what_waits_in_it_was_withdrawn() -> None:
    async def script(watch: Watch) -> None:
        watch.seen(FIRST)
        watch.missing(*AHEAD[1:], FIRST + CONSECUTIVE)
        await watch.run(30)

    watch = watched(lambda: Watch(range(FIRST + 2000, FIRST + 9000)), script)

    first = FIRST + 2000
    assert watch.crawl.done == [("withdraw", FIRST), ("skip_to", first), ("hurry", first), ("wake", 0)]
    assert [alert.kind for alert in watch.alerts] == ["gap_skipped"]
    assert (watch.asker.measures.gaps, watch.asker.measures.skipped) == (1, 7)
    assert watch.lookout.head.newest == first
    assert not watch.lookout.holding


def test_what_is_right_ahead_is_no_gap() -> None:
    async def script(watch: Watch) -> None:
        watch.missing(*AHEAD)
        await watch.run(30)

    watch = watched(lambda: Watch(range(FIRST + NEAR - 1, FIRST + 5000)), script)

    assert ("skip_to", FIRST + NEAR - 1) not in watch.crawl.done
    assert watch.alerts == []
    assert watch.crawl.done[-1] == ("wake", 0)


def test_at_the_head_it_waits_and_goes_on_when_something_is_there() -> None:
    async def script(watch: Watch) -> None:
        watch.missing(*AHEAD)

        async def later() -> None:
            await watch.clock.sleep(300)
            assert watch.lookout.waiting
            assert watch.crawl.done == [("withdraw", FIRST - 1)]
            watch.upstream.says = {number: [Status.SUCCESS] for number in range(FIRST, FIRST + 50)}

        await watch.run(330, later())

    watch = watched(Watch, script)

    assert watch.crawl.done == [("withdraw", FIRST - 1), ("hurry", FIRST), ("wake", 0)]
    assert not watch.lookout.waiting


def test_while_it_looks_what_is_not_there_is_given_back_and_what_lies_behind_is_not() -> None:
    async def script(watch: Watch) -> None:
        watch.seen(FIRST)
        assert not watch.lookout.given_back(FIRST + 1)
        watch.lookout.suspect()

        async def meanwhile() -> None:
            await watch.clock.sleep(0.1)
            assert watch.lookout.holding
            assert watch.lookout.given_back(FIRST + 1)
            assert not watch.lookout.given_back(FIRST)

        await watch.run(1, meanwhile())

    watched(Watch, script)


def test_what_the_main_lane_finds_meanwhile_ends_the_look_and_nothing_is_skipped() -> None:
    """The search is about to find a block far ahead when the next id appears: this was the head."""

    async def script(watch: Watch) -> None:
        watch.upstream.took = 1.0
        watch.missing(*AHEAD)

        async def meanwhile() -> None:
            await watch.clock.sleep(0.5)
            watch.seen(FIRST)

        await watch.run(60, meanwhile())

    watch = watched(lambda: Watch(range(FIRST + 300, FIRST + 20_000)), script)

    assert watch.crawl.done == [("hurry", FIRST), ("wake", 0)]
    assert watch.alerts == []


def test_what_the_main_lane_finds_during_a_wait_ends_it() -> None:
    async def script(watch: Watch) -> None:
        watch.missing(*AHEAD)

        async def meanwhile() -> None:
            await watch.clock.sleep(120)
            watch.seen(FIRST + 3)

        await watch.run(150, meanwhile())

    watch = watched(Watch, script)

    assert watch.crawl.done[-2:] == [("hurry", FIRST), ("wake", 0)]
    assert not watch.lookout.holding


def test_a_wait_that_lasts_is_told_once() -> None:
    async def script(watch: Watch) -> None:
        watch.missing(*AHEAD)
        await watch.run(1000)

    watch = watched(lambda: Watch(rules=LookRules(wait=WaitRules(runaway=200.0))), script)

    assert [alert.kind for alert in watch.alerts] == ["runaway"]


# What may not mislead it.


def test_an_id_that_fails_counts_as_missing_and_is_not_asked_again_while_it_waits() -> None:
    """Asking again after a failure is the engine's; what it has ended would fail again and again."""

    async def script(watch: Watch) -> None:
        watch.upstream.says[FIRST] = [Status.ERROR]
        watch.missing(*AHEAD)
        await watch.run(100)

    watch = watched(Watch, script)

    assert watch.lookout.waiting
    near = [len(watch.upstream.asked[number]) for number in range(FIRST, FIRST + 3)]
    assert near[0] < near[1] == near[2]


def test_probes_are_no_part_of_the_readings() -> None:
    async def script(watch: Watch) -> None:
        watch.missing(*AHEAD)
        await watch.run(300)

    watch = watched(Watch, script)

    assert watch.asker.measures.probes.total() > 500
    readings = watch.lookout.window.close(1000.0)
    assert readings.samples == readings.missing_count == CONSECUTIVE


@dataclass(slots=True)
class Growing(Upstream):
    """Behind a gap, ten ids a second are made."""

    start: int = 0

    def answer(self, number: int) -> Status:
        self.asked[number].append(self.clock.now())
        alive = self.start <= number < self.start + 10 * self.clock.now()
        return Status.SUCCESS if alive else Status.NOT_FOUND


@settings(max_examples=30)
@given(
    gap=st.integers(0, 20_000),
    lag=st.sampled_from([-1e6, 0.0, 30.0, 1e9]),
    jump=st.sampled_from([-86_400.0, 0.0, 86_400.0]),
)
def test_a_gap_is_passed_whatever_a_record_or_a_clock_says_of_the_time(gap: int, lag: float, jump: float) -> None:
    start = FIRST + 1 + gap

    async def script(watch: Watch) -> None:
        watch.upstream.took = 0.0
        watch.seen(FIRST, lag)
        watch.clock.ahead = jump
        watch.missing(*range(FIRST + 1, FIRST + 1 + CONSECUTIVE))
        await watch.run(1800)

    def growing() -> Watch:
        watch = Watch()
        watch.upstream = Growing(watch.clock, start=start)
        watch.reach()
        return watch

    watch = watched(growing, script)

    assert watch.crawl.done[-1] == ("wake", 0)
    assert watch.lookout.head.newest is not None
    assert watch.lookout.head.newest >= start
    assert [first for name, first in watch.crawl.done if name == "skip_to"] == ([start] if gap >= NEAR else [])


# When an id is due.


def test_without_pacing_every_id_is_due() -> None:
    async def script(watch: Watch) -> None:
        for number in range(FIRST, FIRST + 300):
            watch.seen(number, lag=(FIRST + 300 - number) / 10)
        due.append(watch.lookout.due(FIRST + 10_000))

    due: list[float] = []
    watched(Watch, script)
    watched(lambda: Watch(rules=LookRules(pacing=False)), script)

    assert due[0] > 0
    assert due[1] == 0.0
