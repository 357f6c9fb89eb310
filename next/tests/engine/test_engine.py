"""What the loop promises, played on virtual time."""

import asyncio

import pytest
from engine.worlds import BAD, OUTAGES, Fault, Item, Machine, Spell, World, items, play

from sanderling.engine.rules import EngineRules

SICK, WELL = "sick.example", "well.example"


def test_every_item_is_sent_once_at_the_pace_of_its_host() -> None:
    world = World(items(WELL, 100) + items(SICK, 10))

    play(world)

    assert not world.waiting
    assert len(world.sent) == len(world.ends) == 110
    assert world.last_end(host=WELL) == pytest.approx(100 / 8, rel=0.1)


def test_what_is_found_is_requested_and_nothing_twice() -> None:
    leaf = Item(SICK, "leaf")
    tree = Item(WELL, "root", finds=tuple(Item(WELL, f"i{n}", finds=(leaf, Item(WELL, "root"))) for n in range(5)))
    world = World([tree])

    play(world)

    assert not world.waiting
    assert len(world.sent) == 7


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_item_ends_with_its_own_reason_after_at_most_four_requests(fault: Fault) -> None:
    world = World(items(WELL, 20) + items(WELL, 4, "bad", fault=fault))

    play(world)

    assert not world.waiting
    assert not world.parks
    for number in range(4):
        assert len(world.asked(f"bad{number}")) <= 4
        assert world.ends[WELL, f"bad{number}"] == fault.value[0]


@pytest.mark.parametrize("fault", OUTAGES)
def test_an_outage_costs_no_item_anything(fault: Fault) -> None:
    world = World(items(SICK, 200) + items(WELL, 5), spells={SICK: (Spell(fault, 5.0, 200.0),)})

    play(world)

    assert not world.waiting
    assert all(each.ok for each in world.ends.values())
    during = [each.at for each in world.at(SICK) if 40 < each.at < 200]
    assert 195 / 30 <= len(during) + 2 <= 20
    assert min(each.at for each in world.at(SICK) if each.at >= 200) <= 200 + 30


@pytest.mark.parametrize("fault", OUTAGES)
def test_what_waits_for_a_host_that_never_answers_keeps_no_run_alive(fault: Fault) -> None:
    world = World(items(SICK, 50) + items(WELL, 20), spells={SICK: (Spell(fault),)})

    machine = play(world)

    assert [each.host for each in world.waiting] == [SICK] * 50
    assert list(machine.engine.facts().parked) == [SICK]
    assert machine.world.parks[0][0] < 80


def test_a_host_that_asked_in_an_earlier_life_to_wait_keeps_no_run_alive() -> None:
    world = World(items(SICK, 5) + items(WELL, 20))

    async def ask(machine: Machine) -> None:
        machine.limiter.wait_until(SICK, world.clock.now() + 3600)

    machine = play(world, ask)

    assert list(machine.engine.facts().parked) == [SICK]
    assert world.writes[-1][0] < 30
    assert not world.at(SICK)


def test_a_stop_lets_what_is_in_flight_end_and_the_next_run_does_the_rest() -> None:
    world = World(items(WELL, 100) + items(SICK, 1, "slow", fault=Fault.HANG))

    async def stop(machine: Machine) -> None:
        await asyncio.sleep(5.05)
        machine.engine.stop()

    play(world, stop)

    assert 40 <= len(world.ends) <= 45
    assert max(each.at for each in world.sent) <= 5.05
    assert world.writes[-1][0] <= 15.1
    play(world)
    assert {each.key for each in world.waiting} == {"slow0"}


def test_pause_and_block_send_nothing_and_all_goes_on_after() -> None:
    world = World(items(WELL, 100) + items(SICK, 100))

    async def drive(machine: Machine) -> None:
        await asyncio.sleep(2)
        machine.engine.control(paused=True)
        await asyncio.sleep(10)
        machine.engine.control(blocked={SICK})
        await asyncio.sleep(5)
        machine.engine.control()
        await asyncio.sleep(1000)

    play(world, drive)

    assert not [each for each in world.sent if 2 < each.at < 12]
    assert not [each for each in world.at(SICK) if 2 < each.at < 17]
    assert not world.waiting


def test_a_store_that_is_away_is_waited_for_and_not_much_is_sent_meanwhile() -> None:
    world = World(items(WELL, 400), away=(3.0, 60.0), rules=EngineRules(batch=10))

    play(world)

    assert not world.waiting
    assert len([each for each in world.sent if 3.5 < each.at < 60]) <= 4 * 10 + world.rules.per_host


def test_nothing_is_sent_while_the_lease_is_half_over() -> None:
    world = World(items(WELL, 100))

    async def drive(machine: Machine) -> None:
        await asyncio.sleep(3.01)
        machine.leased = False
        await asyncio.sleep(30)
        machine.leased = True
        await asyncio.sleep(1000)

    play(world, drive)

    assert not world.waiting


@pytest.mark.parametrize("slots", [1, 8])
def test_a_budget_is_never_exceeded(slots: int) -> None:
    world = World(items(WELL, 30) + items(SICK, 30), rules=EngineRules(slots=slots), wanted=17)

    play(world)

    assert len(world.sent) == len(world.ends) == 17


@pytest.mark.parametrize("bad", [5, 30, 150])
def test_pages_that_always_answer_503_cost_the_healthy_ones_behind_them_little(bad: int) -> None:
    """A limiter as users have it: it begins with two requests a second, and takes 200 good ones in 29 s."""
    world = World(items(WELL, bad, "bad", fault=Fault.ERROR) + items(WELL, 200), rps=None)

    play(world)

    assert not world.waiting
    assert max(at for (_, key), at in world.ended_at.items() if key.startswith("i")) <= 45
    assert all(len(world.asked(f"bad{number}")) <= 4 for number in range(bad))
