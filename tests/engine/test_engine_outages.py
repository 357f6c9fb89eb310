"""A host that was good and goes away is probed every half a minute, and has its rate back a minute after its return."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import PROBE_TIMEOUT, TIMEOUT, Machine, play
from worlds import OUTAGES, Fault, Item, Plan, Rules, Spell, World, limits

from sanderling.engine.rules import EngineRules
from sanderling.limit import BreakerRules, LimiterRules
from sanderling.testing import run_virtual

SICK, WELL = "sick.example", "well.example"
HOUR, START = 3600.0, 30.0
EVERY = 30.0  # seconds between the starts of two probes, at most
RATE = 2.0  # requests a second, which the limiter allows from the start


def world_with(fault: Fault, lasts: float, *, items: int = 400, others: int = 0, seed: int = 0) -> World:
    """A host that is away for a while, another that keeps the process alive, and `others` that want all slots."""
    late = [Item(WELL, f"i{n}", due=n * 20.0) for n in range(int((START + lasts + 600) / 20))]
    first = [Item(SICK, f"first{n}") for n in range(20)]
    rest = [Item(SICK, f"rest{n}", due=START - 10 if items > 100 else START - 1) for n in range(items)]
    busy = [Item(f"busy{n}.example", f"i{number}") for n in range(others) for number in range(120)]
    plans = [Plan(SICK, spells=(Spell(fault, START, START + lasts),)), Plan(WELL)]
    plans += [Plan(f"busy{n}.example", 5.0) for n in range(others)]
    return World(plans, first + rest + late + busy, Rules(EngineRules(slots=16), limits=limits(RATE)), seed)


def stop_at(when: float) -> Callable[[Machine], Coroutine[object, object, None]]:
    """What ends a run then."""

    async def stop(machine: Machine) -> None:
        await asyncio.sleep(when)
        machine.engine.stop()

    return stop


def gaps(world: World, since: float, until: float) -> list[float]:
    """Seconds between the starts of two requests to the host that is away."""
    starts = [each.at for each in world.at(SICK) if each.at >= since]
    return [other - one for one, other in pairwise(starts) if one < until]


def first_good(world: World, since: float) -> float:
    """When the host first gave a good answer, from then on."""
    answers = (each for each in world.at(SICK) if each.outcome is not None and each.outcome.ok)
    return min(each.ended for each in answers if each.ended >= since)


def rate(world: World, since: float) -> float:
    """Requests a second in the half a minute from then."""
    return sum(since <= each.at < since + 30 for each in world.at(SICK)) / 30


@settings(max_examples=10)
@given(st.sampled_from(OUTAGES), st.one_of(st.floats(5, 700), st.floats(700, 1.5 * HOUR)), st.integers(0, 2**32))
def test_an_outage_is_probed_and_its_end_seen_and_the_rate_is_back(fault: Fault, lasts: float, seed: int) -> None:
    world = world_with(fault, lasts, seed=seed)
    end = START + lasts

    play(world, stop_at(end + 500))

    assert not world.wrong
    assert max(gaps(world, START - 1, min(end, START + HOUR))) <= EVERY
    longest = EVERY if lasts <= HOUR else BreakerRules().longest * 1.3 + PROBE_TIMEOUT
    good = first_good(world, end)
    assert good <= end + longest + PROBE_TIMEOUT + 1
    assert rate(world, max(end + 60, good + 20)) >= 0.9 * RATE
    assert not [end for _, end in world.ends if not end.outcome.ok], "no item has failed"


@pytest.mark.parametrize("items", [1, 3])
@pytest.mark.parametrize("fault", OUTAGES)
@pytest.mark.parametrize("lasts", [45.0, 1500.0])
def test_too_few_items_to_close_a_host_are_enough_to_see_its_return(items: int, fault: Fault, lasts: float) -> None:
    world = world_with(fault, lasts, items=items)
    end = START + lasts

    play(world)

    assert not world.wrong
    assert not [ended for _, ended in world.ends if not ended.outcome.ok], "no item has failed"
    # Until a first request has run into its timeout nobody knows that the host says nothing.
    since = START + (TIMEOUT + EVERY if fault is Fault.HANG else 0)
    assert max(gaps(world, since, end), default=0.0) <= EVERY
    assert min(at for at, _ in world.ends if at >= end) <= end + EVERY + PROBE_TIMEOUT + 1


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.UNREACHED, Fault.HANG])
def test_hosts_set_aside_are_probed_while_others_want_all_slots(fault: Fault) -> None:
    """Twenty hosts whose answers take five seconds want all of the 16 slots, all of the time."""
    world = world_with(fault, 700.0, others=20)

    play(world, stop_at(850.0))

    assert world.asides
    assert max(gaps(world, START, START + 700.0)) <= EVERY
    assert rate(world, START + 760.0) > 0


@pytest.mark.parametrize("fault", [*OUTAGES, Fault.BUSY])
@pytest.mark.parametrize("items", [1, 3, 40])
@pytest.mark.parametrize("patience", [5.0, 600.0])
def test_a_host_that_never_answered_is_set_aside_by_the_first_failure_after_its_time(
    fault: Fault, items: int, patience: float
) -> None:
    """And not at its next turn, for which the pauses of the breaker are doubled by then."""
    rules = EngineRules(patience=patience)
    world = World([Plan(SICK, spells=(Spell(fault),))], [Item(SICK, f"i{n}") for n in range(items)], Rules(rules))
    limit = min(patience, rules.first_patience)

    play(world)

    assert not world.wrong
    ended = [each.ended for each in world.at(SICK) if each.outcome is not None]
    if not world.asides:
        assert not world.disk.waiting, "an item that is bad has its own end"
        return
    # Earlier, if it asks us to wait for longer than our patience; and what hangs may be cut for others.
    (aside, _), first = world.asides[0], min(ended, default=TIMEOUT)
    assert aside <= min((each for each in ended if each > first + limit), default=inf)
    assert aside <= first + limit + PROBE_TIMEOUT + 20
    assert world.clock_at_end <= aside + TIMEOUT + 1


@pytest.mark.parametrize("fault", [*OUTAGES, Fault.BUSY, Fault.BUSY_FOR])
@pytest.mark.parametrize("ever", [True, False])
def test_a_host_that_is_set_aside_is_next_asked_when_it_was_said_to_be(fault: Fault, *, ever: bool) -> None:
    world = world_with(fault, 1000.0) if ever else world_with(fault, START + 1000.0)
    world.plans[SICK] = Plan(SICK, spells=(Spell(fault, START if ever else 0.0, START + 1000.0),))
    world.rules = Rules(EngineRules(slots=16, patience=100.0), limits=limits(RATE))

    play(world, stop_at(START + 900.0))

    since = world.asides[0][0]
    probes = [each.at for each in world.at(SICK) if each.at > since]
    dues = [due for _, due in world.dues][: len(probes)]
    assert len(probes) >= 5
    assert probes == pytest.approx(dues, abs=0.1)
    assert world.dues[-1][1] > START + 870


@pytest.mark.parametrize("fault", OUTAGES)
def test_a_restart_goes_on_probing(fault: Fault) -> None:
    world = world_with(fault, 900.0)

    async def main() -> None:
        for after in (300.0, 400.0):
            machine = Machine(world)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(machine.run_until_crash())
                await asyncio.wait([running], timeout=after)
                world.saved = machine.limiter.save()
                await machine.crash(running)
        machine = Machine(world)
        await machine.run(stop_at(500.0)(machine))

    run_virtual(main())

    # After a restart a request may hang for as long as any, since nobody knows what to ask instead.
    longest = EVERY + (TIMEOUT if fault is Fault.HANG else 0)
    assert max(gaps(world, START, START + 900.0)) <= longest
    assert rate(world, START + 960.0) >= 0.9 * RATE
    assert not [end for _, end in world.ends if not end.outcome.ok]


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.AWAY])
@pytest.mark.parametrize("items", [1, 3, 11, 40])
@pytest.mark.parametrize("seed", range(3))
def test_a_host_that_refuses_all_but_what_it_gave_before_is_not_waited_for(fault: Fault, items: int, seed: int) -> None:
    """It answers its front page whenever it is probed with that: so it is alive, and still nothing comes of it."""
    rules = Rules(EngineRules(patience=60.0, longest_pace=300.0), limits=LimiterRules())
    bad = [Item(SICK, f"i{n}", fault=fault, due=1.0) for n in range(items)]
    world = World([Plan(SICK)], [Item(SICK, "home"), *bad], rules, seed)

    play(world)

    assert not world.wrong
    assert world.clock_at_end <= 60.0 + 2 * EVERY
