"""Starvation, outages, throttled hosts and tarpits, each a row; and what must hold whatever happens."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from random import Random

import pytest
from engine.worlds import BAD, OUTAGES, Fault, Item, Machine, Spell, World, items, play, run
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sanderling.clock import run_virtual
from sanderling.engine.rules import BlameRules, EngineRules

SICK, WELL = "sick.example", "well.example"
SILENT = (*OUTAGES, Fault.TARPIT, Fault.REFUSED, Fault.WAIT)  # nothing good comes of these


def well(number: int) -> list[Item]:
    """Items of the healthy host, half of which are found in others."""
    return [Item(WELL, f"i{n}", finds=(Item(WELL, f"c{n}"),)) for n in range(number // 2)]


def bad_hosts(number: int, fault: Fault, start: float = 0.0, each: int = 8) -> World:
    names = [f"bad{n}.example" for n in range(number)]
    spells: dict[str, tuple[Spell, ...]] = {name: (Spell(fault, start),) for name in names}
    return World([*(item for name in names for item in items(name, each)), *well(300)], spells=spells)


@dataclass
class Row:
    """A world with a healthy host, and in how many times its own time that is done, from its first response."""

    world: World
    most: float = 1.1
    late: float = 1.0  # seconds beside that


ROWS: dict[str, Row] = {}
for _fault in SILENT:
    ROWS[f"one host, always {_fault.name}"] = Row(bad_hosts(1, _fault))
    ROWS[f"40 hosts, always {_fault.name}"] = Row(bad_hosts(40, _fault))
    ROWS[f"20 hosts that go bad: {_fault.name}"] = Row(bad_hosts(20, _fault, 5.0, 100), late=20 + _fault.value[1])
for _fault in BAD:
    # A failed item is requested four times at most, and those requests take their share of the pace.
    ROWS[f"10 items of the host itself: {_fault.name}"] = Row(
        World(items(WELL, 10, "bad", fault=_fault) + well(300)), most=1.1 * 340 / 300, late=6.0
    )
    ROWS[f"10 items in the middle: {_fault.name}"] = Row(
        World([*well(150), *items(WELL, 10, "bad", fault=_fault), *well(300)]), most=1.1 * 340 / 300, late=6.0
    )
ROWS["a host with 5,000 items"] = Row(World(items("large.example", 5000) + well(300)))
ROWS["a slow store"] = Row(World(well(300), write_takes=3.0), most=1.2)


@pytest.mark.parametrize("name", ROWS)
def test_a_healthy_host_is_done_in_its_own_time(name: str) -> None:
    row = ROWS[name]
    row.world.rules = EngineRules(slots=16)

    play(row.world)

    good = {(WELL, f"{letter}{n}") for letter in "ic" for n in range(150)}
    assert good <= row.world.ends.keys()
    times = [row.world.ended_at[key] for key in good]
    assert max(times) - min(times) <= row.most * 300 / 8 + row.late
    assert all(row.world.ends[key].ok for key in good)


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.TARPIT, Fault.SLOW])
def test_slow_requests_leave_slots_to_others_at_their_host_too(fault: Fault) -> None:
    world = World(items(WELL, 20) + items(WELL, 12, "slow", fault=fault) + items(WELL, 200, "late", due=4.0))
    world.rules = EngineRules(slots=8)

    play(world)

    late = [world.ended_at[WELL, f"late{n}"] for n in range(200)]
    assert max(late) <= 2 * 220 / 8 + 12


@pytest.mark.parametrize("hosts", [1, 400])
def test_new_hosts_are_met_as_fast_as_those_before_them_answer(hosts: int) -> None:
    world = World([Item(f"h{n}.example", "i") for n in range(hosts)], rules=EngineRules(slots=8))

    play(world)

    assert max(world.ended_at.values()) <= 1.3 * hosts * world.latency / 4 + 0.7


def test_classes_of_a_host_take_turns() -> None:
    kinds = ("live", "new", "again")
    world = World([item for kind in kinds for item in items(WELL, 400, kind, kind=kind)])
    world.wanted = 400

    play(world)

    for start in (0, 100, 250):
        sent = Counter(each.item.kind for each in world.sent[start : start + 100])
        assert min(sent[kind] for kind in kinds) >= 33
    assert world.sent[-1].at <= 400 / 8 + 1  # none is left unused


@pytest.mark.parametrize("items_left", [1, 3, 200])
@pytest.mark.parametrize("fault", OUTAGES)
@pytest.mark.parametrize("lasts", [45.0, 1500.0])
def test_the_end_of_an_outage_is_seen_within_half_a_minute(fault: Fault, lasts: float, items_left: int) -> None:
    first, rest = items(SICK, 20), items(SICK, items_left, "rest", due=29.0)
    keeps_running = [Item(WELL, f"i{n}", due=20.0 * n) for n in range(int(lasts / 20) + 30)]
    world = World(first + rest + keeps_running, spells={SICK: (Spell(fault, 29.0, 29.0 + lasts),)}, rps=2.0)

    play(world)

    assert not world.waiting
    assert all(each.ok for each in world.ends.values())
    ended = [at for (host, key), at in world.ended_at.items() if host == SICK and key.startswith("rest")]
    assert min(ended) <= 29.0 + lasts + 30.0 + 11.0
    assert max(ended) <= 29.0 + lasts + 60.0 + items_left / 2 * 1.2 + 11.0


@pytest.mark.parametrize("fault", [*OUTAGES, Fault.REFUSED])
def test_a_host_that_never_answered_is_parked_soon_and_probed_with_one_request_at_a_time(fault: Fault) -> None:
    keeps_running = [Item(WELL, f"i{n}", due=20.0 * n) for n in range(30)]
    world = World(items(SICK, 40) + keeps_running, spells={SICK: (Spell(fault),)})

    play(world)

    parked = world.parks[0][0]
    assert parked <= 15 + 30 + 11
    probes = [each for each in world.at(SICK) if each.at > parked]
    assert all(later.at >= one.ended for one, later in pairwise(probes))
    assert 3 <= len(probes) <= 600 / 30 + 1  # the pauses double: most such hosts do not exist


def test_a_quota_is_kept_and_costs_no_item_anything() -> None:
    """A host that refuses, with a time and without one, half of the time."""
    spells: tuple[Spell, ...] = tuple(
        Spell(fault, at, at + 5.0) for at, fault in [(5.0, Fault.WAIT), (60.0, Fault.REFUSED)]
    )
    world = World(items(SICK, 300), spells={SICK: spells})

    play(world)

    assert not world.waiting
    assert all(each.ok for each in world.ends.values())
    (asked,) = {round(each.ended) for each in world.at(SICK) if each.outcome == Fault.WAIT.value[0]} or {5}
    assert not [each for each in world.at(SICK) if asked + 1 < each.at < asked + 19]


# Random worlds.


@dataclass(frozen=True)
class Shape:
    """How large a world is, and how bad."""

    seed: int
    hosts: int
    each: int
    slots: int
    per_host: int
    memory: int  # hosts in memory
    bad: float  # share of the items
    ill: float  # share of the hosts
    takes: float  # seconds of a write

    def world(self) -> World:
        random = Random(self.seed)
        names = [f"h{n}.example" for n in range(self.hosts)]
        all_items = [self._item(random, name, f"i{n}") for name in names for n in range(random.randint(1, self.each))]
        spells = {name: (self._spell(random),) for name in names if random.random() < self.ill}
        away = random.choice((inf, random.uniform(0, 100)))
        rules = EngineRules(
            slots=self.slots, per_host=self.per_host, hosts=self.memory, load=4, held=20, batch=random.choice((1, 500))
        )
        latency, rps = random.choice((0.02, 1.0)), random.choice((None, 2.0, 8.0))
        return World(all_items, spells, latency, rps, rules, self.takes, (away, away + 20.0), seed=self.seed)

    def _item(self, random: Random, host: str, key: str) -> Item:
        fault = random.choice((*BAD, Fault.MISSING, Fault.SLOW)) if random.random() < self.bad else Fault.GOOD
        number = random.choice((0, 0, 0, 2)) if len(key) < 5 else 0
        found = tuple(
            self._item(random, f"h{random.randrange(self.hosts + 1)}.example", f"{key}.{n}") for n in range(number)
        )
        due = random.choice((0.0, 0.0, random.uniform(0, 120)))
        return Item(host, key, random.choice(("new", "live", "missed")), 0, due, fault, found)

    def _spell(self, random: Random) -> Spell:
        start = random.choice((0.0, random.uniform(0, 60)))
        end = start + random.choice((random.uniform(5, 300), inf))
        return Spell(random.choice((*SILENT, Fault.CUT)), start, end, random.choice((1.0, 1.0, 0.3)))


shapes = st.builds(
    Shape, seed=st.integers(0, 2**32), hosts=st.integers(1, 6), each=st.integers(1, 12), slots=st.integers(1, 10),
    per_host=st.integers(1, 5), memory=st.sampled_from((1, 2, 100)), bad=st.sampled_from((0.0, 0.2, 1.0)),
    ill=st.sampled_from((0.0, 0.3, 1.0)), takes=st.sampled_from((0.0, 0.004, 3.0)),
)  # fmt: skip


def check_ends(world: World) -> None:
    """Every item ends once, or waits for a reason."""
    assert not world.wrong
    assert len(world.ends) + len(world.waiting) == len(world.known)
    for item in world.waiting:
        assert item.host in world.parked or item.due == inf, item
    asked = {(each.item.host, each.item.key) for each in world.sent}
    assert world.ends.keys() <= asked


def check_bounds(world: World) -> None:
    """No more requests at a time than there are slots, and none before its host's pace allows it."""
    edges = sorted([(each.at, 1) for each in world.sent] + [(each.ended, -1) for each in world.sent], key=lambda e: e)
    flying = most = 0
    for _, step in edges:
        flying += step
        most = max(most, flying)
    assert most <= 2 * world.rules.slots + max(1, world.rules.slots // 8)
    for host in world.by_host:
        least = 1 / (world.rps or 8.0)
        assert all(later.at - one.at >= least - 1e-6 for one, later in pairwise(world.at(host))), host


@settings(deadline=None)
@example(Shape(seed=1447306, hosts=3, each=4, slots=2, per_host=1, memory=2, bad=0.2, ill=0.0, takes=0.0))
@example(Shape(seed=1182104461, hosts=6, each=8, slots=2, per_host=1, memory=2, bad=0.0, ill=0.3, takes=0.0))
@given(shapes)
def test_every_item_ends_once_or_waits_for_a_reason(shape: Shape) -> None:
    world = shape.world()

    play(world)

    check_ends(world)
    check_bounds(world)


@settings(deadline=None)
@example(
    Shape(seed=1079297076, hosts=5, each=11, slots=2, per_host=1, memory=2, bad=1.0, ill=0.3, takes=0.004),
    [(1.07, "stop")],
)
@given(shapes, st.lists(st.tuples(st.floats(0, 100), st.sampled_from(("kill", "stop"))), min_size=1, max_size=3))
def test_kills_and_stops_lose_nothing_and_end_nothing_twice(shape: Shape, acts: list[tuple[float, str]]) -> None:
    world = shape.world()

    async def main() -> None:
        for after, act in acts:
            machine = Machine(world)
            running = asyncio.ensure_future(machine.engine.run())
            await asyncio.wait([running], timeout=after)
            at = world.clock.now()
            if act == "kill":
                running.cancel()
            else:
                machine.engine.stop()
            with suppress(asyncio.CancelledError):
                await running
            assert world.clock.now() <= max(at, world.away[1]) + world.rules.grace + 2 * world.write_takes + 31
            assert not [each for each in world.sent if each.at > at + 1e-3]
        world.away = (inf, inf)
        await run(world)

    run_virtual(main())

    check_ends(world)


def test_rules_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="slots is 0"):
        EngineRules(slots=0)
    assert BlameRules().limit(0.3) == 12
