"""Random worlds, and what must hold in each of them."""

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from hypothesis import strategies as st
from machines import Machine
from worlds import FAILURES, OUTAGES, REFUSALS, Fault, Item, Plan, Rules, Spell, Store, World, limits

from sanderling.engine.classes import Class
from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import WriterRules

ODD = (Fault.MISSING, Fault.SLOW, Fault.TRICKLE, Fault.SILENT)
EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a world is, and how bad."""

    seed: int
    hosts: int = 3
    items: int = 8
    slots: int = 8
    per_host: int = 4
    bad: float = 0.2  # share of items that are
    ill: float = 0.5  # share of hosts
    takes: float = 0.004  # seconds of a write
    most_items: int = 2000


def shapes() -> st.SearchStrategy[Shape]:
    """All kinds."""
    return st.builds(
        Shape,
        seed=st.integers(0, 2**32 - 1),
        hosts=st.integers(1, 5),
        items=st.integers(1, 12),
        slots=st.integers(1, 10),
        per_host=st.integers(1, 5),
        bad=st.sampled_from((0.0, 0.1, 0.4, 1.0)),
        ill=st.sampled_from((0.0, 0.3, 1.0)),
        takes=st.sampled_from((0.0, 0.004, 3.0)),
        most_items=st.sampled_from((3, 2000)),
    )


def make(shape: Shape) -> World:
    """The world of a shape."""
    rng = Random(shape.seed)
    plans = [_plan(rng, f"h{number}.example", shape.ill) for number in range(shape.hosts)]
    items = [_item(rng, plan.name, f"i{n}", shape.bad) for plan in plans for n in range(rng.randint(1, shape.items))]
    rules = Rules(
        EngineRules(slots=shape.slots, per_host=shape.per_host),
        WriterRules(items=min(500, shape.most_items), most_items=shape.most_items),
        limits(rng.choice((2.0, 8.0))),
        Store(shape.takes, (start := rng.uniform(0, 300), start + rng.choice((0.0, 20.0)))),
    )
    return World(plans, items, rules, shape.seed)


def _plan(rng: Random, name: str, ill: float) -> Plan:
    cap = rng.choice((None, None, 1.0, 0.3))
    if rng.random() >= ill:
        return Plan(name, rng.choice((0.02, 0.1, 1.0)), cap=cap)
    start = rng.choice((0.0, rng.uniform(0, 60)))
    end = start + rng.choice((rng.uniform(5, 300), 1e9))
    share = rng.choice((1.0, 1.0, rng.uniform(0.05, 0.5)))
    return Plan(name, 0.1, (Spell(rng.choice((*OUTAGES, *REFUSALS, *ODD[1:])), start, end, share),), cap)


def _item(rng: Random, host: str, name: str, bad: float) -> Item:
    fault = rng.choice((*FAILURES, *ODD)) if rng.random() < bad else Fault.GOOD
    due = rng.choice((0.0, 0.0, rng.uniform(0, 120)))
    found = rng.choice((0, 0, 0, 2))
    children = tuple(_item(rng, host, f"{name}.{number}", bad) for number in range(found)) if len(name) < 6 else ()
    size = rng.choice((0, 500, 2000, 6000))
    return Item(host, name, rng.choice(list(Class)), due, fault, size, children, rng.random() < 0.05)


def check(world: World, machine: Machine, *, stopped: bool = False) -> None:
    """What holds at the end of every run."""
    assert not world.wrong
    assert not world.disk.wrong
    assert not machine.memory.out
    check_ends(world, stopped=stopped)
    check_bounds(world)
    check_pace(world)


def check_ends(world: World, *, stopped: bool = False) -> None:
    """Each item has one end, or waits for a reason."""
    for row in world.disk.rows.values():
        assert len(row.ends) <= 1, row
        if not row.ends and not stopped:
            assert row.item.host in world.disk.asides or row.item.id in world.left, row


def check_bounds(world: World) -> None:
    """What is in flight, and what is unwritten."""
    rules, most = world.rules, world.most
    assert most["all"] <= rules.engine.slots
    assert most["host"] <= rules.engine.per_host
    assert most["ended"] <= rules.writer.most_items + rules.engine.slots
    largest = max(row.item.size for row in world.disk.rows.values())
    assert most["ended bytes"] <= rules.writer.most_bytes + rules.engine.slots * largest


def check_pace(world: World) -> None:
    """No two requests to a host closer than its highest rate allows."""
    rps = world.rules.limits.pace.max_rps
    for name, plan in world.plans.items():
        least = 1 / min(rps, plan.cap or rps)
        for one, other in pairwise(world.at(name)):
            assert other.at - one.at >= least - EPSILON, (one, other)
