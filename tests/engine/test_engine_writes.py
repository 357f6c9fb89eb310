"""What ended reaches the disk: soon, in groups, and at once when there is nothing else to do."""

import asyncio
from contextlib import suppress
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import Machine, play
from shapes import check
from worlds import Ended, Fault, Item, Plan, Record, Rules, Spell, Store, World

from sanderling.engine.rules import EngineRules
from sanderling.engine.writer import WriterRules

WELL, OTHER = "well.example", "other.example"
EPSILON = 1e-6


def chain(length: int) -> Item:
    """An item in whose answer another is found, and so on: each is asked for when it is on disk."""
    item = Item(WELL, f"i{length}")
    for number in reversed(range(length)):
        item = Item(WELL, f"i{number}", children=(item,))
    return item


def handed_over(world: World) -> list[tuple[float, float]]:
    """When each item ended, and when that was handed to the store."""
    given_at = {record: at for at, batch in world.writes for record in batch}
    return [(at, given_at[end]) for at, end in world.ends]


BACKGROUNDS: dict[str, tuple[Plan, list[Item]]] = {
    "nothing": (Plan(OTHER), []),
    "not due": (Plan(OTHER), [Item(OTHER, "i0", due=60.0)]),
    "a host that hangs": (Plan(OTHER, spells=(Spell(Fault.HANG),)), [Item(OTHER, f"i{n}") for n in range(9)]),
    "a stream": (Plan(OTHER, spells=(Spell(Fault.SILENT),)), [Item(OTHER, "i0", size=6000)]),
    "a host that wants quiet": (Plan(OTHER, spells=(Spell(Fault.BUSY_FOR),)), [Item(OTHER, f"i{n}") for n in range(9)]),
    "a host that is closed": (Plan(OTHER, spells=(Spell(Fault.UNREACHED),)), [Item(OTHER, f"i{n}") for n in range(9)]),
}


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_a_group_is_written_within_20_ms_when_nothing_else_can_be_sent(background: str) -> None:
    plan, items = BACKGROUNDS[background]
    world = World([Plan(WELL), plan], [chain(30), *items], Rules(store=Store(0.002)))

    play(world)

    late = [(at, written - at) for at, written in handed_over(world) if 1 < at < 5 and written - at > 0.02 + EPSILON]
    busy = {each.at for each in world.at(OTHER)}
    assert not [one for one in late if not any(one[0] <= at <= one[0] + one[1] for at in busy)]


def test_a_group_is_written_every_half_a_second_while_there_is_much_to_do() -> None:
    world = World([Plan(WELL)], [Item(WELL, f"i{n}") for n in range(200)])

    machine = play(world)

    check(world, machine)
    assert all(written - at <= 0.5 + world.rules.store.takes + EPSILON for at, written in handed_over(world))
    assert len(world.writes) <= 200 / 8 / 0.5 + 3


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 8), st.floats(0, 30), st.integers(1, 40))
def test_no_more_is_unwritten_than_fits_beside_what_was_in_flight(
    items: int, slots: int, away: float, group: int
) -> None:
    sizes = [Item(WELL, f"i{n}", size=1000) for n in range(60)] + [Item(OTHER, f"i{n}", size=1000) for n in range(60)]
    bounds = WriterRules(items=min(group, items), most_items=items, most_bytes=4000, bytes=min(4000, group * 1000))
    rules = Rules(EngineRules(slots=slots), bounds, store=Store(0.3, (2.0, 2.0 + away)))
    world = World([Plan(WELL), Plan(OTHER)], sizes, rules)

    machine = play(world)

    check(world, machine)
    assert not world.disk.waiting
    assert world.most["ended"] <= items + slots
    assert world.most["ended bytes"] <= 4000 + 1000 * slots


def test_a_stop_does_not_wait_for_a_store_that_is_away() -> None:
    world = World([Plan(WELL)], [Item(WELL, f"i{n}") for n in range(100)], Rules(store=Store(away=(3.0, inf))))

    async def stop(machine: Machine) -> None:
        await asyncio.sleep(6)
        machine.engine.stop()
        await asyncio.sleep(60)
        world.wrong.append("still there after a minute")

    with suppress(ExceptionGroup):  # how it ends is the sink's business, that it ends is not
        play(world, stop)

    assert not world.wrong
    assert all(len(row.ends) <= 1 for row in world.disk.rows.values())


def test_records_are_written_in_the_order_they_came() -> None:
    world = World([Plan(WELL)], [Item(WELL, f"i{n}") for n in range(100)], Rules(store=Store(1.0)))

    play(world)

    written: list[Record] = [record for _, batch in world.writes for record in batch if isinstance(record, Ended)]
    assert written == [end for _, end in world.ends]
