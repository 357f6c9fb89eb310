"""Nobody takes what others are due: hosts, classes and slow requests share permits and slots."""

import asyncio
from collections import Counter
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import Machine, play
from worlds import OUTAGES, REFUSALS, Fault, Item, Plan, Rules, Spell, Store, World, limits

from sanderling.engine.classes import Class
from sanderling.engine.flights import GRACE, LONGEST_SLOW, TRICKLED
from sanderling.engine.rules import WEIGHTS, EngineRules

SICK, WELL = "sick.example", "well.example"


def time_to_finish(world: World, host: str = WELL) -> float:
    """Seconds from the first answer of a host to when its last good item was answered."""
    play(world)
    assert not world.wrong
    good = {row.item.id for row in world.disk.rows.values() if row.item.host == host and row.item.fault is Fault.GOOD}
    assert all(world.disk.rows[key].ends[0].ok for key in good)
    times = [at for at, end in world.ends if end.id in good]
    return max(times) - min(times)


def well(number: int) -> list[Item]:
    """Items of the healthy host, half of which are found in others."""
    return [Item(WELL, f"i{n}", children=(Item(WELL, f"c{n}"),)) for n in range(number // 2)]


@pytest.mark.parametrize("hosts", [1, 40])
@pytest.mark.parametrize("fault", [*OUTAGES, *REFUSALS])
def test_hosts_that_never_answer_take_no_tenth_of_what_a_healthy_one_gets(fault: Fault, hosts: int) -> None:
    rules = Rules(EngineRules(slots=16))
    alone = time_to_finish(World([Plan(WELL, 0.2)], well(150), rules))
    bad = [Plan(f"bad{n}.example", spells=(Spell(fault),)) for n in range(hosts)]
    others = [Item(plan.name, f"i{n}", size=6000) for n in range(8) for plan in bad]

    among = time_to_finish(World([*bad, Plan(WELL, 0.2)], [*others, *well(150)], rules))

    assert among <= alone / 0.9


def test_new_hosts_are_met_as_fast_as_those_before_them_answer() -> None:
    """Half of the slots are for hosts that have not answered yet: each that is let go is taken at once."""
    names, latency, slots = [f"h{n}.example" for n in range(400)], 0.1, 8
    items = [Item(name, "i") for name in names]
    world = World([Plan(name, latency) for name in names], items, Rules(EngineRules(slots=slots)))
    play(world)

    times = [at for at, _ in world.ends]
    assert len(times) == len(names)
    assert max(times) - min(times) <= 1.2 * len(names) * latency / (slots // 2)


def test_a_host_that_has_only_said_not_found_is_no_stranger() -> None:
    """It answers, so it need not wait with those that hang."""
    bad = [Plan(f"bad{n}.example", spells=(Spell(Fault.HANG),)) for n in range(20)]
    gone = [Item(WELL, f"gone{n}", fault=Fault.MISSING) for n in range(40)]
    rules = Rules(EngineRules(slots=8))

    play(world := World([Plan(WELL), *bad], [*gone, *(Item(plan.name, "i") for plan in bad)], rules))

    last = max(at for at, end in world.ends if end.id[0] == WELL)
    assert last <= 40 / 2  # at two a second, with which a host is first asked


@pytest.mark.parametrize("fault", [*OUTAGES, *REFUSALS])
def test_hosts_that_go_bad_take_no_tenth_of_what_a_healthy_one_gets(fault: Fault) -> None:
    """More of them than there are slots. It takes a while to find out who is bad, and no longer."""
    rules = Rules(EngineRules(slots=16), limits=limits(1.0))
    bad = [Plan(f"bad{n}.example", spells=(Spell(fault, 10.0),)) for n in range(20)]
    others = [Item(plan.name, f"i{n}") for n in range(20) for plan in bad]

    among = time_to_finish(World([*bad, Plan(WELL, 0.2)], [*others, *well(400)], rules))

    assert among <= 400 / 1.0 / 0.9  # which is what its pace allows


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.CUT, Fault.ERROR, Fault.TRICKLE])
def test_bad_items_take_no_tenth_of_what_the_good_ones_of_their_host_get(fault: Fault) -> None:
    alone = time_to_finish(World([Plan(WELL, 0.2)], well(800)))
    bad = [Item(WELL, f"bad{n}", due=2.0, fault=fault, size=20_000) for n in range(10)]

    among = time_to_finish(World([Plan(WELL, 0.2)], [*bad, *well(800)]))

    assert among <= alone / 0.9 * (800 + 4 * len(bad)) / 800


@settings(max_examples=8)
@given(
    st.sets(st.sampled_from(list(Class)), min_size=1),
    st.sampled_from((0.05, 2.0)),
    st.one_of(st.just(dict(WEIGHTS)), st.fixed_dictionaries({of: st.floats(1, 100) for of in Class})),
)
def test_each_class_gets_its_share_of_permits(wanted: set[Class], latency: float, weights: dict[Class, float]) -> None:
    items = [Item(WELL, f"{of.name}{n}", of) for of in sorted(wanted) for n in range(400)]
    rules = Rules(EngineRules(weights=weights, most_slots={}), wanted=400)
    world = World([Plan(WELL, latency)], items, rules)

    play(world)

    total = sum(weights[of] for of in wanted)
    for start in (0, 100, 250):
        window = [request.item.of for request in world.sent[start : start + 100]]
        for of in wanted:
            assert window.count(of) >= floor(0.8 * 100 * weights[of] / total), (of, start)
    if latency < 1:
        assert world.sent[-1].at <= 400 / 8 + 1  # none is left unused


@pytest.mark.parametrize("late", list(Class))
def test_a_class_that_was_away_has_saved_up_nothing(late: Class) -> None:
    others = [of for of in (Class.LIVE, Class.NEW, Class.AGAIN) if of is not late]
    items = [Item(WELL, f"{of.name}{n}", of) for of in others for n in range(500)]
    items += [Item(WELL, f"late{n}", late, due=30.0) for n in range(500)]
    world = World([Plan(WELL, 0.05)], items, Rules(wanted=400))

    play(world)

    total = sum(WEIGHTS[of] for of in (*others, late))
    window = [each.item.of for each in world.sent if each.at >= 30][:100]
    for of in (*others, late):
        assert window.count(of) >= floor(0.8 * 100 * WEIGHTS[of] / total), of


@pytest.mark.parametrize("fault", [Fault.TRICKLE, Fault.HANG, Fault.SLOW])
@pytest.mark.parametrize("hosts", [1, 6])
def test_slow_requests_hold_half_of_the_slots_at_most_while_others_wait(fault: Fault, hosts: int) -> None:
    rules = Rules(EngineRules(slots=8, per_host=8 if hosts == 1 else 4))
    names = [f"h{n}.example" for n in range(hosts)]
    items = [Item(name, f"first{n}") for name in names for n in range(10)]
    items += [Item(name, f"slow{n}", due=3.0, fault=fault, size=12_000) for name in names for n in range(12)]
    items += [Item(name, f"good{n}", due=4.0) for name in names for n in range(200)]
    world = World([Plan(name) for name in names], items, rules)
    seen: list[tuple[float, str, int]] = []

    async def watch(machine: Machine) -> None:
        while (now := world.clock.now()) < 250:
            held = Counter(each.item.host for name in names for each in world.flying[name] if now - each.at > 12.5)
            last = {name: max((each.at for each in world.at(name)), default=now) for name in names}
            # Whoever has work and no slot for it waits: a pace takes less than a second here, and what has failed has
            # slots of its own.
            places = machine.memory.places
            waits = [name for name in names if Class.NEW in machine.memory.classes(places[name], now)]
            stuck = [name for name in waits if now - last[name] > 2.5 and not machine.limiter.is_down(name)]
            seen.extend((now, name, held[name]) for name in stuck if held[name] > rules.engine.per_host // 2)
            if len(stuck) == len(names) and held.total() > rules.engine.slots // 2:
                seen.append((now, "all", held.total()))
            await asyncio.sleep(0.5)
        machine.engine.stop()

    play(world, watch)

    assert any(each.fault is fault for each in world.sent)
    assert not seen


def test_streams_that_are_meant_to_be_silent_are_left_alone() -> None:
    items = [Item(WELL, f"first{n}") for n in range(10)]
    items += [Item(WELL, f"silent{n}", due=3.0, fault=Fault.SILENT, size=6000) for n in range(4)]
    items += [Item(WELL, f"slow{n}", due=3.0, fault=Fault.TRICKLE, size=6000) for n in range(4)]
    items += [Item(WELL, f"good{n}", due=4.0) for n in range(600)]
    world = World([Plan(WELL)], items, Rules(EngineRules(slots=8)))

    play(world)

    for number in range(4):
        (request,) = world.asked((WELL, f"silent{number}"))
        assert request.outcome is not None
        assert request.outcome.ok


@pytest.mark.parametrize("hosts", [1, 2])
def test_who_is_slow_is_not_cut_while_nobody_waits(hosts: int) -> None:
    names = [f"h{n}.example" for n in range(hosts)]
    items = [Item(name, f"slow{n}", fault=Fault.TRICKLE, size=5000) for name in names for n in range(2)]
    world = World([Plan(name) for name in names], items, Rules(EngineRules(slots=8, per_host=2)))

    play(world)

    assert len(world.sent) == len(items)
    assert not world.disk.waiting


@pytest.mark.parametrize("first", [0, 5], ids=["the only one", "after good ones"])
def test_one_that_trickles_for_a_minute_is_cut_though_nobody_waits(first: int) -> None:
    items = [Item(WELL, f"good{n}") for n in range(first)]
    items += [Item(WELL, "slow", fault=Fault.TRICKLE, size=30_000), Item(WELL, "silent", fault=Fault.SILENT, size=9000)]
    world = World([Plan(WELL)], items)

    play(world)

    (slow,) = [end for _, end in world.ends if end.id == (WELL, "slow")]
    assert slow.outcome == TRICKLED
    assert len(world.asked((WELL, "slow"))) <= 4
    assert world.clock_at_end <= 4 * (LONGEST_SLOW + 15) + 60
    assert all(each.outcome is not None and each.outcome.ok for each in world.asked((WELL, "silent")))


@pytest.mark.parametrize("fault", [Fault.TRICKLE, Fault.HANG])
def test_what_is_slow_at_a_stop_is_left_to_the_next_run(fault: Fault) -> None:
    """What arrives well comes to its end, and what is slow has not failed."""
    items = [Item(WELL, f"good{n}") for n in range(5)] + [Item(WELL, "slow", fault=fault, size=30_000)]
    items += [Item(WELL, "late", due=10.0, fault=Fault.SLOW)]
    world = World([Plan(WELL)], items)

    async def stop(machine: Machine) -> None:
        await asyncio.sleep(10.1)
        machine.engine.stop()

    machine = play(world, stop)

    assert not world.wrong
    assert world.clock_at_end <= 10.1 + GRACE + 3
    assert {row.item.name for row in world.disk.waiting} <= {"slow", "late"}
    assert not [end for _, end in world.ends if not end.outcome.ok]
    assert machine.memory.places[WELL].failures("slow") == 0
    assert machine.writer.idle


@pytest.mark.parametrize("takes", [0.0, 5.0])
def test_a_slow_store_holds_up_nothing_while_there_is_room(takes: float) -> None:
    items = [Item(WELL, f"i{n}") for n in range(400)]
    world = World([Plan(WELL)], items, Rules(limits=limits(8.0), store=Store(takes)))

    play(world)

    assert max(each.at for each in world.sent) <= 400 / 8 + 1
