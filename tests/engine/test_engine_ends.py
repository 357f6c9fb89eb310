"""Every item ends once or waits with a reason, within the bounds and the pace, whatever happens to the process."""

import asyncio
from dataclasses import replace
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st
from machines import FOREVER, TIMEOUT, Machine, play
from shapes import Shape, check, check_bounds, check_ends, make, shapes
from worlds import Item, Plan, Rules, Store, StoreAwayError, World

from sanderling.engine.rules import EngineRules
from sanderling.stores.control_file import Control
from sanderling.testing import run_virtual

instants = st.one_of(st.floats(0, 5), st.floats(0, 400))


@given(shapes())
def test_every_item_ends_once_or_waits_at_a_host_set_aside(shape: Shape) -> None:
    world = make(shape)

    machine = play(world)

    check(world, machine)
    assert machine.writer.idle


@settings(max_examples=30)
@given(shapes(), instants)
def test_what_is_in_flight_at_a_stop_comes_to_its_end_and_the_next_run_does_the_rest(shape: Shape, at: float) -> None:
    world = make(shape)
    ended = inf

    async def stop(machine: Machine) -> None:
        await asyncio.sleep(at)
        machine.engine.stop()

    async def main() -> Machine:
        nonlocal ended
        machine = Machine(world)
        try:
            await machine.run(stop(machine))
        except* StoreAwayError:
            machine.memory.out.clear()  # nobody could be told
        ended = world.clock.now()
        check_stopped(machine)
        world.saved = machine.limiter.save()
        machine = Machine(world)
        await machine.run()
        return machine

    def check_stopped(machine: Machine) -> None:
        check(world, machine, stopped=True)
        assert all(request.at <= at for request in world.sent)
        longest = max((row.item.size / 100 for row in world.disk.rows.values()), default=0.0)
        assert ended <= max(at, *world.rules.store.away) + max(TIMEOUT, longest) + 30

    machine = run_virtual(main())

    assert not world.wrong
    check_ends(world)
    assert not machine.memory.out


@settings(max_examples=30)
@given(shapes(), st.lists(instants, min_size=1, max_size=3))
def test_a_crash_loses_nothing_and_ends_nothing_twice(shape: Shape, crashes: list[float]) -> None:
    world = make(shape)

    async def main() -> Machine:
        for after in crashes:
            machine = Machine(world)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(machine.run_until_crash())
                await asyncio.wait([running], timeout=after)
                await machine.crash(running)
        world.rules = replace(world.rules, store=Store(shape.takes))  # one that is away at the end is another story
        machine = Machine(world)
        await machine.run()
        return machine

    machine = run_virtual(main())

    assert not world.wrong
    assert not world.disk.wrong
    assert not machine.memory.out
    check_ends(world)


@settings(max_examples=30)
@given(shape=shapes(), at=instants, rest=st.floats(0.1, 100), all_=st.booleans())
def test_nothing_begins_while_paused_and_all_goes_on_after(shape: Shape, at: float, rest: float, *, all_: bool) -> None:
    world = make(shape)
    left_alone = set(world.plans) if all_ else {"h0.example"}
    wish = Control(paused=True) if all_ else Control(hosts=frozenset(left_alone))
    end = inf

    async def pause(machine: Machine) -> None:
        nonlocal end
        await asyncio.sleep(at)
        machine.engine.control(wish)
        await asyncio.sleep(rest)
        end = world.clock.now()
        machine.engine.control(Control())
        await asyncio.sleep(FOREVER)

    machine = play(world, pause)

    assert not [request for request in world.sent if at < request.at < end and request.item.host in left_alone]
    check(world, machine)


def test_a_paused_engine_waits_for_its_end() -> None:
    world = World([Plan("a.example")], [Item("a.example", f"i{n}") for n in range(20)])

    async def pause(machine: Machine) -> None:
        await asyncio.sleep(1)
        machine.engine.control(Control(paused=True))
        await asyncio.sleep(1000)
        machine.engine.control(Control())
        await asyncio.sleep(FOREVER)

    machine = play(world, pause)

    assert not world.disk.waiting
    check(world, machine)


@given(st.integers(0, 30), st.integers(1, 8))
def test_no_more_is_asked_for_than_is_wanted(wanted: int, slots: int) -> None:
    items = [Item(f"h{n % 3}.example", f"i{n}") for n in range(30)]
    rules = Rules(EngineRules(slots=slots), wanted=wanted)
    world = World([Plan(f"h{n}.example") for n in range(3)], items, rules)

    play(world)

    assert len(world.sent) == wanted
    check_bounds(world)
