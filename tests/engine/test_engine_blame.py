"""Whose fault it is: bad items end with their own reason, and a host that is away costs no item anything."""

from itertools import pairwise
from math import inf
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machines import TIMEOUT, Memory, Place, play
from shapes import Shape, check, make, shapes
from worlds import CODES, FAILURES, OUTAGES, REFUSALS, Fault, Item, Plan, Request, Rules, Spell, World, limits

from sanderling.engine.blame import Judge
from sanderling.engine.ports import Settled
from sanderling.engine.rules import EngineRules
from sanderling.limit import BreakerRules, Limiter
from sanderling.outcome import Code, Outcome
from sanderling.testing import FakeClock

SICK, WELL = "sick.example", "well.example"
CUT_SHORT = 1.0 + BreakerRules().jitter  # times its length, a pause may take


@given(
    st.lists(st.sampled_from((*FAILURES, Fault.FLAWED)), min_size=1, max_size=4),
    st.integers(10, 30),
    st.integers(0, 2**32),
)
def test_on_a_clean_host_a_bad_item_is_asked_four_times_and_ends_with_its_own_reason(
    faults: list[Fault], good: int, seed: int
) -> None:
    items = [Item(WELL, f"good{n}") for n in range(good)]
    items += [Item(WELL, f"bad{n}", fault=fault) for n, fault in enumerate(faults)]
    Random(seed).shuffle(items)
    world = World([Plan(WELL)], items, seed=seed)

    machine = play(world)

    check(world, machine)
    assert not world.asides
    for row in world.disk.rows.values():
        (end,) = row.ends
        assert end.code is CODES.get(row.item.fault, Code.OK)
        if row.item.fault in CODES:
            assert len(world.asked(row.item.id)) <= 4


@pytest.mark.parametrize("number", [1, 3, 30])
def test_a_host_that_answers_and_never_with_what_was_asked_for_is_asked_four_times_for_each_item(number: int) -> None:
    world = World([Plan(WELL)], [Item(WELL, f"i{n}", fault=Fault.FLAWED) for n in range(number)])

    machine = play(world)

    check(world, machine)
    assert not world.asides
    assert len(world.sent) == 4 * number
    assert world.clock_at_end < 60


@settings(max_examples=10)
@given(st.integers(5, 25), st.sampled_from(FAILURES), st.integers(0, 2**32))
def test_many_bad_items_cost_the_good_ones_behind_them_nothing(bad: int, fault: Fault, seed: int) -> None:
    """They come in one block, which closes the host; what it has answered before shows that it is well."""
    first = [Item(WELL, f"first{n}") for n in range(3)]
    block = [Item(WELL, f"bad{n}", due=2.0, fault=fault) for n in range(bad)]
    last = [Item(WELL, f"last{n}", due=2.0) for n in range(30)]
    world = World([Plan(WELL)], first + block + last, seed=seed)

    machine = play(world)

    check(world, machine)
    assert not world.asides
    for row in world.disk.rows.values():
        (end,) = row.ends
        assert end.code is CODES.get(row.item.fault, Code.OK)
        assert row.item.fault is Fault.GOOD or len(world.asked(row.item.id)) <= 4


@settings(max_examples=10)
@given(st.floats(0.05, 0.3), st.integers(1, 5), st.sampled_from(FAILURES), st.integers(0, 2**32))
def test_where_failures_are_usual_a_bad_item_is_asked_twenty_times_at_most(
    share: float, bad: int, fault: Fault, seed: int
) -> None:
    items = [Item(WELL, f"good{n}") for n in range(40)] + [Item(WELL, f"bad{n}", fault=fault) for n in range(bad)]
    world = World([Plan(WELL, spells=(Spell(Fault.ERROR, share=share),))], items, seed=seed)

    machine = play(world)

    check(world, machine)
    for number in range(bad):
        asked = world.asked((WELL, f"bad{number}"))
        assert len(asked) <= 20
        ends = world.disk.rows[WELL, f"bad{number}"].ends
        assert all(end.code in (CODES[fault], Code.HOST_UNAVAILABLE) for end in ends)


@example(lasts=1062.1369193313967, fault=Fault.BUSY_FOR, start=17.87351574464197, seed=3779)
@settings(max_examples=8)
@given(st.floats(20, 1500), st.sampled_from((*OUTAGES, Fault.BUSY_FOR)), st.floats(1, 20), st.integers(0, 2**32))
def test_a_host_that_comes_back_is_taken_up_again_and_no_item_has_failed(
    lasts: float, fault: Fault, start: float, seed: int
) -> None:
    away = Spell(fault, start, start + lasts)
    items = [Item(SICK, f"i{n}") for n in range(40)] + [Item(WELL, f"i{n}", due=n * 20.0) for n in range(150)]
    world = World([Plan(SICK, spells=(away,)), Plan(WELL)], items, Rules(limits=limits(1.0)), seed)

    machine = play(world)

    check(world, machine)
    assert {row.ends[0].code for row in world.disk.rows.values()} == {Code.OK}
    assert not world.disk.asides
    # Who refuses again and again is left alone for longer, by the limiter.
    longest = 900.0 if fault in REFUSALS else BreakerRules().longest * CUT_SHORT
    assert min(each.at for each in world.at(SICK) if each.at >= away.end) <= away.end + TIMEOUT + longest + 1


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.CUT, Fault.UNREACHED])
def test_pauses_do_not_grow_across_a_good_probe(fault: Fault) -> None:
    outages = [Spell(fault, 20.0 + 100 * n, 32.0 + 100 * n) for n in range(4)]
    items = [Item(SICK, f"i{n}", due=n * 0.25) for n in range(1600)]
    world = World([Plan(SICK, spells=tuple(outages))], items)

    play(world)

    gaps = [(one.at, other.at - one.at) for one, other in pairwise(world.at(SICK))]
    assert not world.wrong
    for outage in outages:
        longest = max(gap for at, gap in gaps if outage.start - 5 < at < outage.end + 60)
        assert longest <= 2 * BreakerRules().open_for * CUT_SHORT + 1  # a first probe may have failed at once


@settings(max_examples=20)
@given(shapes())
def test_a_closed_host_is_probed_with_what_is_not_under_suspicion(shape: Shape) -> None:
    world = make(shape)
    if any(spell.fault in (*REFUSALS, Fault.AWAY) for plan in world.plans.values() for spell in plan.spells):
        return  # a limiter that drains sends one at a time too, and not because the host is closed

    play(world)

    for request in world.sent:
        if request.judges and request.failures:
            assert not request.untried, request
            assert not _has_answered(world, request), request


def _has_answered(world: World, probe: Request) -> bool:
    earlier = (each for each in world.at(probe.item.host) if each.ended < probe.at and each.outcome is not None)
    return any(each.outcome is not None and each.outcome.ok for each in earlier)


@given(shapes())
def test_a_host_that_was_set_aside_is_asked_one_at_a_time(shape: Shape) -> None:
    world = make(shape)

    play(world)

    check_probes(world)


def test_a_host_that_hangs_with_too_little_work_to_close_it_is_asked_one_at_a_time() -> None:
    items = [Item(SICK, f"i{n}") for n in range(4)] + [Item(WELL, f"i{n}", due=n * 20.0) for n in range(30)]
    world = World([Plan(SICK, spells=(Spell(Fault.HANG),)), Plan(WELL)], items)

    play(world)

    assert world.asides
    check_probes(world)


def check_probes(world: World) -> None:
    """While a host is set aside, one request at a time is sent to it."""
    for since, host in world.asides:
        until = min((at for at, name in world.welcomes if name == host and at >= since), default=inf)
        probes = [each for each in world.at(host) if since < each.at < until]
        assert all(other.at >= one.ended for one, other in pairwise(probes) if one.outcome is not None), probes


def test_what_waits_at_a_host_that_never_answers_keeps_no_crawl_alive() -> None:
    world = World([Plan(SICK, spells=(Spell(Fault.UNREACHED),))], [Item(SICK, f"i{n}") for n in range(500)])

    machine = play(world)

    check(world, machine)
    assert len(world.disk.waiting) == 500
    assert world.disk.asides[SICK].code is Code.CONNECTION_REFUSED
    assert len(world.sent) < 20


def test_probes_of_many_hosts_that_never_answer_keep_no_crawl_alive() -> None:
    names = [f"h{n}.example" for n in range(40)]
    plans = [Plan(name, spells=(Spell(Fault.HANG),)) for name in names]
    world = World(plans, [Item(name, f"i{n}") for name in names for n in range(3)])

    machine = play(world)

    check(world, machine)
    assert set(world.disk.asides) == set(names)


@pytest.mark.parametrize("code", [Code.HTTP_ERROR, Code.TRUNCATED])
def test_a_flawed_answer_is_the_fault_of_its_item_and_shows_that_the_host_is_well(code: Code) -> None:
    host, told = Place(WELL), Told()
    judge = Judge(told, Limiter(clock=FakeClock()), EngineRules())
    host.note_failure(Outcome(Code.TIMEOUT), 0.0)

    for now in range(1, 5):
        flawed = Settled[str](Outcome(code, 200), flawed=True)
        judge.settle(host, Item(WELL, "one"), flawed, float(now), probe=False, dropped=False)

    assert told.failures == [(1, 3.0), (2, 12.0), (3, 33.0), (4, None)]
    assert (host.answered, host.silent_since, host.failures("one"), host.good) == (4.0, None, 0, None)


class Told(Memory):
    """Writes down how often the item has failed, and when it is due again."""

    def __init__(self) -> None:
        self.failures: list[tuple[int, float | None]] = []

    def failed(self, host: Place, work: Item, outcome: Outcome, failures: int, due: float | None) -> None:  # noqa: ARG002
        self.failures.append((failures, due))
