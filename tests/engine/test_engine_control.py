"""Pause, resume, leave hosts alone, let them go, stop, drain and kill -9, in any order: nothing is lost or doubled."""

import asyncio
from math import inf
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import Machine, play
from shapes import Shape, check_ends, make, shapes
from worlds import Item, Key, Plan, Rules, StoreAwayError, World

from sanderling.engine.blame import LEFT_ALONE
from sanderling.engine.rules import EngineRules
from sanderling.stores.control_file import Control, LiveControl, Wish, change_control, clear_ending, read_control
from sanderling.testing import run_virtual

HOST, OTHER = "h0.example", "h1.example"
HEARD = 1.0  # seconds until a process has looked at the file


class Act(NamedTuple):
    """What somebody does, so many seconds after the last."""

    after: float
    what: Wish | Literal["kill"]


ACTS = ("pause", "resume", "leave", "let-go", "stop", "drain", "kill")
acts = st.lists(st.builds(Act, st.one_of(st.floats(0, 4), st.floats(0, 60)), st.sampled_from(ACTS)), max_size=8)


def want(folder: Path, wish: Wish) -> None:
    """Say it, of one host where it is of a host."""
    change_control(folder, lambda control: control.after(wish, HOST))


class Processes:
    """Processes over one disk and one folder, each begun when the last has ended, until there is nothing left to do."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder

    async def run(self, acts: list[Act]) -> None:
        """Do it all; then resume, let go, and run to the end."""
        left = list(acts)
        while left:
            await self._run_one(left)
        change_control(self.folder, lambda _: Control())
        machine = Machine(self.world)
        await machine.run()
        assert not machine.memory.out

    async def _run_one(self, left: list[Act]) -> None:
        """One process, until it ends, or is killed, or nothing more is done to it."""
        clear_ending(self.folder)
        machine = Machine(self.world)
        control = LiveControl(self.folder, machine.engine.control, self.world.clock)
        running = asyncio.ensure_future(run(machine, control))
        while left:
            await asyncio.wait([running], timeout=left[0].after)
            act = left.pop(0)
            if act.what == "kill":
                break
            want(self.folder, act.what)
            await asyncio.wait([running], timeout=HEARD + 0.1)
            if running.done():
                break
        if running.done():
            running.result()
        await machine.crash(running)


async def run(machine: Machine, control: LiveControl) -> None:
    """Run until the end. One that is stopped while its store is away leaves what it has not written to the next."""
    try:
        await machine.run(control.run())
    except* StoreAwayError:
        machine.memory.out.clear()


@settings(max_examples=30)
@given(shapes(), acts)
def test_whatever_is_done_to_it_nothing_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, shape: Shape, acts: list[Act]
) -> None:
    world = make(shape)

    run_virtual(Processes(world, tmp_path_factory.mktemp("control")).run(acts))

    assert not world.wrong
    assert not world.disk.wrong
    check_ends(world)


@settings(max_examples=20)
@given(st.integers(0, 2**32), acts)
def test_one_that_was_disturbed_ends_as_one_that_was_not(
    tmp_path_factory: pytest.TempPathFactory, seed: int, acts: list[Act]
) -> None:
    shape = Shape(seed, bad=0.0, ill=0.0)  # what an item that fails ends with is a matter of how often it was asked
    undisturbed, disturbed = make(shape), make(shape)
    play(undisturbed)

    run_virtual(Processes(disturbed, tmp_path_factory.mktemp("control")).run(acts))

    assert ends_of(disturbed) == ends_of(undisturbed)


def ends_of(world: World) -> dict[Key, list[str]]:
    return {key: [outcome.code.name for outcome in row.ends] for key, row in sorted(world.disk.rows.items())}


def a_tree(host: str, number: int) -> Item:
    children = tuple(Item(host, f"i{number}.{child}") for child in range(3))
    return Item(host, f"i{number}", children=children)


@pytest.mark.parametrize("at", [0.0, 0.3, 0.9])
def test_a_drain_ends_what_is_known_notes_what_is_found_and_asks_for_none_of_it(at: float) -> None:
    items = [a_tree(host, number) for host in (HOST, OTHER) for number in range(10)]
    world = World([Plan(HOST), Plan(OTHER)], items)
    known: set[Key] = set()

    async def drain(machine: Machine) -> None:
        await asyncio.sleep(at)
        known.update(world.disk.rows)
        machine.engine.control(Control(ending="drain"))

    machine = play(world, drain)

    ended = {key for key, row in world.disk.rows.items() if row.ends}
    assert not world.wrong
    assert not machine.memory.out
    assert known <= ended
    assert len(world.disk.rows) == 80
    assert len(ended) < 80


@pytest.mark.parametrize("let_go", [None, 1.5, 30.0])
def test_what_waits_for_a_host_that_is_left_alone_waits_on_disk_and_no_run_waits_for_it(let_go: float | None) -> None:
    items = [Item(host, f"i{number}") for host in (HOST, OTHER) for number in range(40)]
    world = World([Plan(HOST), Plan(OTHER)], items)

    async def drive(machine: Machine) -> None:
        await asyncio.sleep(1)
        machine.engine.control(Control(hosts=frozenset({HOST})))
        if let_go is not None:
            await asyncio.sleep(let_go)
            machine.engine.control(Control())

    play(world, drive)

    assert not world.wrong
    assert len(world.at(OTHER)) == 40
    asked, aside = len(world.at(HOST)), world.disk.asides.get(HOST)
    if let_go == 1.5:
        assert (asked, aside) == (40, None)
    else:
        assert asked < 15
        assert aside == LEFT_ALONE
        assert world.clock_at_end < 10


def test_where_no_host_is_set_aside_one_that_is_left_alone_is_waited_for() -> None:
    rules = Rules(EngineRules(patience=inf, first_patience=inf))
    world = World([Plan(HOST)], [Item(HOST, f"i{number}") for number in range(40)], rules)

    async def drive(machine: Machine) -> None:
        machine.engine.control(Control(hosts=frozenset({HOST})))
        await asyncio.sleep(1000)
        machine.engine.control(Control())

    play(world, drive)

    assert not world.asides
    assert len(world.at(HOST)) == 40


@pytest.mark.parametrize("wish", ["drain", "stop"])
def test_a_host_that_is_left_alone_keeps_nobody_from_ending(wish: Wish) -> None:
    items = [Item(host, f"i{number}") for host in (HOST, OTHER) for number in range(30)]
    world = World([Plan(HOST), Plan(OTHER)], items)
    left_alone = Control(hosts=frozenset({HOST}))

    async def drive(machine: Machine) -> None:
        machine.engine.control(left_alone)
        await asyncio.sleep(1)
        machine.engine.control(left_alone.after(wish))

    play(world, drive)

    assert not world.wrong
    assert len(world.at(HOST)) <= 1  # which left before anybody could say so
    assert len(world.at(OTHER)) == 30 if wish == "drain" else 0 < len(world.at(OTHER)) < 30
    assert world.clock_at_end < 60


def test_a_stop_comes_after_a_drain_and_a_drain_not_after_a_stop(tmp_path: Path) -> None:
    wishes: list[Wish] = ["drain", "stop", "drain"]
    for wish in wishes:
        want(tmp_path, wish)

    assert read_control(tmp_path).ending == "stop"
