"""Whose fault a failure is: an item's first, and the host's when different items, or its own documents, fail."""

import asyncio
from math import log
from random import Random

import pytest
from driven import FAST, HOST, Driven, limiter_on, views
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit import CircuitOpen, Feedback, LimiterRules, PaceRules, Scope
from sanderling.task import Blame
from sanderling.testing import LoopClock, run_virtual

KEY = Scope("credential", "key")


class Items:
    """Asks for items of one host, one after the other, and knows how often each has failed in a row."""

    def __init__(self, rules: LimiterRules | None = None) -> None:
        self.driven = Driven(rules or LimiterRules(pace=FAST))
        self.limiter = self.driven.limiter
        self.failures: dict[int, int] = {}

    @property
    def is_down(self) -> bool:
        return self.limiter.is_down(HOST)

    @property
    def enough(self) -> int:
        """Different items that must fail in a row."""
        breaker = self.limiter._hosts.gate(HOST).breaker
        return 5 if breaker is None else breaker.enough

    def ask(self, item: int, *, good: bool, unsent: bool = False, of_host: bool = False) -> None:
        permit = self.driven.next()
        blame = Blame(item, self.failures.get(item, 0), of_host)
        self.failures[item] = 0 if good else blame.failures + 1
        self.driven.clock.advance(0.05)
        error = None if good else "cut"
        if good:
            self.limiter.excuse(HOST, blame.failures)
        self.limiter.feedback(permit, Feedback(200 if good else 0, 0.05, error, blame=blame, unsent=unsent))

    def fail(self, *items: int, unsent: bool = False, of_host: bool = False) -> None:
        for item in items:
            self.ask(item, good=False, unsent=unsent, of_host=of_host)


STEPS = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from(["good", "failed", "failed", "unsent", "own"])), max_size=80
)


@given(STEPS)
def test_it_opens_exactly_when_enough_different_items_or_failures_of_the_host_are_in_a_row(
    steps: list[tuple[int, str]],
) -> None:
    items, row = Items(), list[tuple[int, str]]()

    for item, how in steps:
        enough = items.enough
        items.ask(item, good=how == "good", unsent=how == "unsent", of_host=how == "own")
        assert how == "good" or items.enough == enough, "the row that is in progress does not count"
        row = [] if how == "good" else [*row, (item, how)]
        different, of_host = {each for each, _ in row}, [how for _, how in row if how != "failed"]
        assert items.is_down == (len(different) >= enough or len(of_host) >= 3 + enough - 5)
        if items.is_down:
            break


@given(st.integers(1, 4), st.integers(1, 200))
def test_fewer_items_than_enough_may_fail_for_ever_and_teach_the_rate_nothing_more(bad: int, rounds: int) -> None:
    items = Items()
    items.fail(*range(bad))
    before = items.driven.view().rate

    items.fail(*(list(range(bad)) * rounds))

    assert not items.is_down
    assert items.driven.view().rate >= before


@given(st.integers(1, 50), st.integers(1, 4))
def test_items_that_fail_for_ever_beside_good_ones_shut_nobody_out(bad: int, between: int) -> None:
    items = Items()

    for number in range(100):
        items.fail(*(1000 + (number * between + each) % bad for each in range(between)))
        items.ask(number, good=True)

    assert not items.is_down


@pytest.mark.parametrize(("unsent", "of_host"), [(True, False), (False, True), (True, True)])
def test_three_failures_that_are_not_the_items_are_enough_even_of_one(*, unsent: bool, of_host: bool) -> None:
    items = Items()

    items.fail(1, 1, unsent=unsent, of_host=of_host)
    assert not items.is_down
    items.fail(1, unsent=unsent, of_host=of_host)

    assert items.is_down


def test_without_blame_each_failure_is_that_of_an_item_of_its_own() -> None:
    driven = Driven()

    for _ in range(4):
        driven.ask(500)
    assert driven.view().state == "closed"
    driven.ask(500)

    assert driven.view().state == "open"


# How many failures of one item are improbable.


@pytest.mark.parametrize(("share", "most"), [(0.0, 4), (0.3, 12), (0.5, 20), (0.9, 20)])
def test_an_item_may_fail_as_often_as_is_improbable_at_its_host(share: float, most: int) -> None:
    """Every item is answered in the end, after as many failures as that share makes."""
    items, rng = Items(), Random(5)
    assert items.limiter.most_failures(HOST) == 4, "nothing is known yet"
    for item in range(4000):
        while rng.random() < share:
            items.failures[item] = items.failures.get(item, 0) + 1  # by hand: what fails is not the point here
        items.ask(item, good=True)

    assert items.limiter.most_failures(HOST) == pytest.approx(most, abs=1)


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_it_is_the_least_number_that_is_improbable(excused: int, delivered: int) -> None:
    items = Items()
    items.driven.take().release()
    gate = items.limiter._hosts.gate(HOST)
    gate.excused, gate.delivered = excused, delivered

    share = max(0.01, (excused + 0.2) / (excused + delivered + 20))
    most = items.limiter.most_failures(HOST)

    assert 4 <= most <= 20
    assert most == 20 or most * log(share) < log(1e-6) + 1e-9
    assert most == 4 or (most - 1) * log(share) >= log(1e-6) - 1e-9


def test_what_still_fails_excuses_nothing_nor_does_an_answer_that_was_none() -> None:
    items = Items()

    for number in range(200):
        items.fail(*range(10_000, 10_004))
        items.ask(number, good=True)
        items.limiter.feedback(items.driven.next(), Feedback(200, 0.05, blame=Blame(20_000, number)))

    assert items.limiter.most_failures(HOST) == 4


@pytest.mark.parametrize("unsent", [False, True])
def test_where_failures_are_usual_it_takes_more_to_close_a_host(*, unsent: bool) -> None:
    items = Items()
    for item in range(0, 600, 3):
        items.fail(item, unsent=unsent)
        items.ask(item + 1, good=True)
        items.ask(item + 2, good=True)
    enough = items.enough - 2 * unsent
    assert 10 <= items.enough <= 15

    items.fail(*range(1000, 1000 + enough - 1), unsent=unsent)
    assert not items.is_down
    items.fail(5000, unsent=unsent)

    assert items.is_down


# Probes.


def test_a_permit_says_whether_it_is_a_probe() -> None:
    driven = Driven()
    assert not driven.take().probe
    driven.trip()
    driven.clock.advance(400)
    probe = driven.take()
    assert probe.probe
    driven.report(probe, 200)
    assert driven.view().state == "closed"
    assert not driven.next().probe

    driven.ask(429)

    assert driven.next().probe, "one at a time, while the governor drains"


def test_a_false_alarm_may_be_undone_at_once_and_a_host_that_is_down_is_asked_once_more_only() -> None:
    driven = Driven()
    assert not driven.limiter.probe_now(HOST), "never asked"
    driven.ask()
    assert not driven.limiter.probe_now(HOST), "not open"
    driven.trip()
    assert driven.limiter.ready_at(HOST) > driven.clock.now() + 14

    assert driven.limiter.probe_now(HOST)
    assert not driven.limiter.probe_now(HOST)
    assert driven.limiter.ready_at(HOST) <= driven.clock.now() + 1
    driven.ask(500)

    assert driven.view().state == "open"
    assert not driven.limiter.probe_now(HOST)
    pause = driven.limiter.ready_at(HOST) - driven.clock.now()
    assert 15 <= pause <= 19.5, "the one that was cut short was none"


def test_neither_a_retry_after_nor_a_cap_is_broken_by_a_probe() -> None:
    driven = Driven()
    driven.trip()
    driven.limiter.cap(HOST, 0.1, "robots.txt asks for 10 s")
    assert driven.limiter.probe_now(HOST)
    assert driven.limiter.ready_at(HOST) == pytest.approx(driven.clock.now() + 10, abs=0.2)

    other = Driven()
    permits = [other.next() for _ in range(6)]
    for permit in permits[:5]:
        other.report(permit, 500)
    other.report(permits[5], 429, retry_after=60)

    assert not other.limiter.probe_now(HOST)


# Further requests of one item, and leave from several gates at once.


def test_a_further_request_waits_its_turn_for_the_same_job() -> None:
    async def main() -> list[tuple[float, str, str]]:
        clock = LoopClock()
        limiter = limiter_on(clock, LimiterRules(pace=PaceRules(initial_rps=1, max_rps=1)))
        permits = [await limiter.acquire(HOST, job="mine")]
        seen = []
        for host in (HOST, HOST, "other.example"):
            permits[-1].release(sent=True)
            permits.append(await permits[-1].more(host))
            seen.append((round(clock.now(), 3), permits[-1].host, permits[-1].job))
        return seen

    assert run_virtual(main()) == [(1.0, HOST, "mine"), (2.0, HOST, "mine"), (2.0, "other.example", "mine")]


def test_a_further_request_draws_on_the_same_scopes_at_the_same_host_and_is_turned_away_like_any() -> None:
    async def main() -> tuple[list[str], list[str]]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        first = await limiter.acquire(HOST, [Scope("credential", "key", cost=2)])
        limiter.feedback(first, Feedback(302, 0.1))
        same, other = await first.more(HOST), await first.more("other.example")
        assert [part.cost for part in same.also] == [2]
        for _ in range(5):
            limiter.feedback(await limiter.acquire("other.example"), Feedback(500, 0.1))
        with pytest.raises(CircuitOpen):
            await same.more("other.example")
        return [part.host for part in same.also], [part.host for part in other.also]

    assert run_virtual(main()) == (["credential/key"], [])


@pytest.mark.parametrize("closed", [HOST, "credential/key", None])
def test_leave_from_several_gates_at_once_is_all_or_nothing(closed: str | None) -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=1)))
    if closed == HOST:
        driven.take()
    if closed == "credential/key":
        assert driven.limiter.try_acquire("other.example", [KEY]) is not None
    before = {view.host: view.requests for view in views(driven.limiter)}

    permit = driven.limiter.try_acquire(HOST, [KEY], cost=3)

    after = {view.host: view.requests for view in views(driven.limiter)}
    if closed is not None:
        assert permit is None
        assert {host: count for host, count in after.items() if count} == before
        return
    assert permit is not None
    assert (permit.cost, [part.host for part in permit.also]) == (3, ["credential/key"])
    assert driven.limiter.ready_at(HOST) == pytest.approx(3)
    driven.report(permit)
    assert all(view.inflight == 0 for view in views(driven.limiter))


def test_who_does_not_wait_overtakes_nobody_at_any_gate() -> None:
    async def main() -> bool:
        clock = LoopClock()
        limiter = limiter_on(clock)
        await limiter.acquire("first.example", [KEY])
        waiting = asyncio.create_task(limiter.acquire(HOST, [KEY]))
        await clock.sleep(0.4)
        overtook = limiter.try_acquire(HOST) is not None  # the host is ready; who waits there waits for the key
        await waiting
        return overtook

    assert not run_virtual(main())


def test_a_scope_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="named twice"):
        Driven().limiter.try_acquire(HOST, [KEY, KEY])
